//! Printing of a module as TVMScript, in the spelling of TVM 0.27 on Python before 3.12.
//!
//! The layout is that of `tvm_script` (TVM `src/relax/script/printer`): every binding has a type annotation, except
//! calls of `call_tir` and `call_dps_packed` whose `out_ty` states the type, calls printed as bare statements, and
//! nested functions. For a module without errors, the printed text parses back to an equivalent module. For example:
//!
//! ```text
//! @R.function
//! def main(x: R.Tensor((n, 4), dtype="float32")) -> R.Tensor((n, 4), dtype="float32"):
//!     y: R.Tensor((n, 4), dtype="float32") = R.exp(x)
//!     return y
//! ```

mod expression;
mod metadata;
mod symbols;
mod written;

use crate::{Module, names, walk};
use expression::{bound, operand, string};
use rx_base::name::{NameSet, name};
use rx_base::{Dim, Name};
use rx_ir::struct_info::Spelling;
use rx_ir::{
    Attr, Block, BoundValue, Branches, Expr, ExprKind, Item, LoopBody, LoopFunction, Origin, RelaxFunction, Sequence,
    StructInfo, VarBinding,
};
use rx_syntax::token::TokenKind;
use rx_tir::PrimFunc;
use rx_tir::print::Header;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// A range of lines in a printed module that belongs to one binding of an expression, or to one prim_func that was
/// built as loops instead of read from source text. An `if` or a nested function has no part; the bindings inside have
/// parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of the variable or of the prim_func.
    pub name: Name,
    /// The line numbers, from 0, with an exclusive end.
    pub lines: Range<usize>,
    /// The statements of the original source text from which the lines derive.
    pub origins: Vec<Origin>,
}

/// Prints a module. The text ends in a line break, unless it is empty.
pub fn print(module: &Module) -> String {
    printed(module).out
}

/// Prints a module; also returns its [`Part`]s, in the order of the text.
pub fn print_with_parts(module: &Module) -> (String, Vec<Part>) {
    let printer = printed(module);
    // The printer records byte offsets; convert them to line numbers.
    let mut line = 0;
    let mut seen = 0;
    let mut line_at = |offset: usize| {
        line += printer.out.get(seen..offset).map_or(0, |text| text.matches('\n').count());
        seen = offset;
        line
    };
    let parts = printer.parts.iter().map(|part| {
        let start = line_at(part.lines.start);
        Part { lines: start..line_at(part.lines.end), ..part.clone() }
    });
    let parts = parts.collect();
    (printer.out, parts)
}

/// Returns the symbolic dims of signatures that the module's prelude does not declare, in order of first use. The
/// printed text declares them with `TypeVar`.
pub fn undeclared(module: &Module) -> Vec<Name> {
    let declared = symbols::declared_in(&module.prelude);
    let mut symbols = symbols::of_signatures(module);
    symbols.retain(|symbol| !declared.contains(symbol));
    symbols
}

/// Prints a function's attributes as the dictionary that `R.func_attr` takes.
pub fn dictionary(attributes: &[(Arc<str>, Attr)]) -> String {
    expression::attribute(&Attr::Dict(attributes.to_vec()))
}

fn printed(module: &Module) -> Printer {
    let module = symbols::with_distinct_names(module);
    let (module, section) = metadata::numbered(&module);
    // TVM parses a single function by itself, but several functions only in a class.
    let functions = module.items.iter().filter(|item| !matches!(item, Item::Text { name: None, .. })).count();
    let class = module.class.or_else(|| (functions > 1).then(|| name("Module")));
    let mut printer = Printer { out: String::new(), parts: Vec::new(), indent: 0, class, hides_class: false };
    let undeclared = undeclared(&module);
    let mut declared: Vec<Name> =
        symbols::declared_in(&module.prelude).into_iter().chain(undeclared.iter().copied()).collect();
    declared.sort_unstable_by_key(|symbol| symbol.as_str());
    if let Some(class) = class {
        printer.line("@I.ir_module");
        printer.line(&format!("class {class}:"));
        printer.indent = 1;
        if module.items.is_empty() {
            printer.line("pass");
        }
    }
    for (at, item) in module.items.iter().enumerate() {
        let is_function = |item: &Item<_>| !matches!(item, Item::Text { text, .. } if !text.starts_with('@'));
        if at > 0 && module.items.get(at - 1).is_some_and(is_function) {
            printer.out.push('\n');
        }
        match item {
            Item::Relax(function) => {
                printer.function(function, &NameSet::default());
                printer.hides_class = false;
            }
            Item::Loops(function) => {
                let start = printer.out.len();
                let text = loop_function(function);
                match function.body {
                    LoopBody::Made(_) => printer.lines(&text),
                    LoopBody::Written { .. } => printer.lines(&written::with_distinct_symbols(&text, &declared)),
                }
                if let LoopBody::Made(loops) = &function.body {
                    printer.part(function.name, start, loops.origins.clone());
                }
            }
            Item::Text { text, .. } => printer.lines(text),
        }
    }
    let head = head(&section, with_imports(module.prelude.trim_end(), &printer.out), &undeclared);
    for part in &mut printer.parts {
        part.lines = part.lines.start + head.len()..part.lines.end + head.len();
    }
    printer.out.insert_str(0, &head);
    printer
}

/// Returns the text before the module: the metadata section, the prelude, and declarations of the dims of signatures.
fn head(section: &str, mut prelude: String, undeclared: &[Name]) -> String {
    let mut head = String::new();
    if !section.is_empty() {
        head.push_str(section.trim_end());
        head.push('\n');
    }
    for symbol in undeclared {
        prelude.push_str(&format!("\n{symbol} = TypeVar(\"{symbol}\")"));
    }
    if !prelude.is_empty() {
        head.push_str(prelude.trim_start_matches('\n'));
        head.push('\n');
        // TVM prints declarations of dims directly before the class, but an empty line after imports.
        if symbols::declared_in(prelude.lines().last().unwrap_or_default()).is_empty() {
            head.push('\n');
        }
    }
    head
}

/// Returns the prelude (the text before the module). If it imports `R` from TVM, adds missing imports of `I` and `T` if
/// the printed `items` name them. Any other prelude is returned unchanged: its reader is assumed to know these names.
fn with_imports(prelude: &str, items: &str) -> String {
    let imports = |line: &str, dialect: &str| {
        let line = line.trim();
        let imports = |part: &str| part.split_whitespace().collect::<Vec<_>>().ends_with(&["as", dialect]);
        line.starts_with("from tvm.script import") && line.split(',').any(imports)
    };
    let Some(at) = prelude.lines().position(|line| imports(line, "R")) else { return prelude.to_owned() };
    let is_missing = |dialect| !prelude.lines().any(|line| imports(line, dialect));
    let mut lines: Vec<&str> = prelude.lines().collect();
    for (dialect, line) in [("I", "from tvm.script import ir as I"), ("T", "from tvm.script import tirx as T")] {
        if is_missing(dialect) && mentions(items, dialect) {
            lines.insert(at, line);
        }
    }
    lines.join("\n")
}

/// Whether a text names an attribute of `namespace`, as in `T.int64`.
fn mentions(text: &str, namespace: &str) -> bool {
    let found = Cell::new(false);
    rename(text, |name, before_dot| {
        found.set(found.get() || before_dot && name == namespace);
        None
    });
    found.get()
}

/// Prints a prim_func, without the indentation of a class.
pub(crate) fn loop_function(function: &LoopFunction<PrimFunc>) -> String {
    let LoopFunction { name, private, attributes, body } = function;
    let dictionary = match attributes.is_empty() {
        true => String::new(),
        false => self::dictionary(attributes),
    };
    match body {
        LoopBody::Made(loops) => {
            let header = Header { name, private: *private, attributes: &dictionary };
            rx_tir::print::script_with(loops, &header)
        }
        LoopBody::Written { before, after, .. } if !before.ends_with('\n') => {
            let dictionary = if dictionary.is_empty() { "{}" } else { &dictionary };
            format!("{before}{dictionary}{after}")
        }
        LoopBody::Written { before, after, .. } => {
            let statement = if dictionary.is_empty() { dictionary } else { format!("    T.func_attr({dictionary})\n") };
            format!("{before}{statement}{after}")
        }
    }
}

/// Prints an expression as it appears as an operand.
pub(crate) fn expression_text(expr: &Expr) -> String {
    operand(expr)
}

/// Prints a type as in a body, with compound dims unquoted: `R.Tensor((n * 2,))`.
fn ty(info: &StructInfo) -> String {
    info.to_string()
}

/// Prints a type as in a signature, with compound dims in quotes: `R.Tensor(("n * 2",))`.
fn signature_ty(info: &StructInfo) -> String {
    let dim = |dim: &Dim| match dim.as_constant().is_some() || dim.as_symbol().is_some() {
        true => dim.to_string(),
        false => format!("\"{dim}\""),
    };
    info.spell(&Spelling { path: &str::to_owned, dim: &dim })
}

/// The output text and the state of the printer.
struct Printer {
    out: String,
    /// The parts printed so far; `lines` is in bytes of `out`.
    parts: Vec<Part>,
    indent: usize,
    /// The enclosing class, to which functions refer as `cls`.
    class: Option<Name>,
    /// Whether the current function, or one nested in it, defines the name `cls`. The class is then referred to by its
    /// own name.
    hides_class: bool,
}

impl Printer {
    fn line(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_str(&"    ".repeat(self.indent));
            match self.class.filter(|_| self.hides_class) {
                Some(class) => {
                    let renamed = |name: &str, before_dot| (name == "cls" && before_dot).then(|| class.to_string());
                    self.out.push_str(&rename(text, renamed));
                }
                None => self.out.push_str(text),
            }
        }
        self.out.push('\n');
    }

    /// Records the text from byte `start` to the end as one part.
    fn part(&mut self, name: Name, start: usize, origins: Vec<Origin>) {
        self.parts.push(Part { name, lines: start..self.out.len(), origins });
    }

    /// Prints lines at the current indentation.
    fn lines(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    fn indented(&mut self, print: impl FnOnce(&mut Self)) {
        self.indent += 1;
        print(self);
        self.indent -= 1;
    }

    /// Prints a function. `outer` are the symbolic dims of the enclosing functions; it is empty for a function of the
    /// module.
    fn function(&mut self, function: &RelaxFunction, outer: &NameSet) {
        let mut flags = Vec::new();
        flags.extend((!function.pure).then_some("pure=False"));
        flags.extend(function.private.then_some("private=True"));
        match flags.is_empty() {
            true => self.line("@R.function"),
            false => self.line(&format!("@R.function({})", flags.join(", "))),
        }
        let params: Vec<String> =
            function.params.iter().map(|(param, ty)| format!("{param}: {}", signature_ty(ty))).collect();
        self.line(&format!("def {}({}) -> {}:", function.name, params.join(", "), signature_ty(&function.ret)));
        if outer.is_empty() {
            self.hides_class = names::of_function(function).contains(&name("cls"));
        }
        self.indented(|printer| printer.body(function, outer));
    }

    fn body(&mut self, function: &RelaxFunction, outer: &NameSet) {
        let names_class = outer.is_empty() && !self.hides_class && !walk::globals(function).is_empty();
        if let Some(class) = self.class.filter(|_| names_class) {
            self.line(&format!("cls = {class}"));
        }
        if !function.attributes.is_empty() {
            self.line(&format!("R.func_attr({})", dictionary(&function.attributes)));
        }
        let known = symbols::known_in(function, outer);
        for symbol in symbols::of_body(function, &known) {
            self.line(&format!("{symbol} = T.int64()"));
        }
        let mut inner = symbols::of_body(function, &known).into_iter().collect::<NameSet>();
        inner.extend(known);
        // The entry makes `outer` non-empty for nested functions, even if there are no dims.
        inner.insert(name("<function>"));
        self.blocks(&function.body.blocks, &inner);
        self.line(&format!("return {}", operand(&function.body.result)));
    }

    fn blocks(&mut self, blocks: &[Block], symbols: &NameSet) {
        for block in blocks {
            let Some(outputs) = &block.outputs else {
                self.bindings(&block.bindings, symbols);
                continue;
            };
            self.line("with R.dataflow():");
            self.indented(|printer| {
                printer.bindings(&block.bindings, symbols);
                let outputs: Vec<&str> = outputs.iter().map(Name::as_str).collect();
                printer.line(&format!("R.output({})", outputs.join(", ")));
            });
        }
    }

    fn bindings(&mut self, bindings: &[VarBinding], symbols: &NameSet) {
        bindings.iter().for_each(|binding| self.binding(binding, symbols));
    }

    fn binding(&mut self, binding: &VarBinding, symbols: &NameSet) {
        let VarBinding { variable, ty: declared, value, origin } = binding;
        let start = self.out.len();
        match value {
            BoundValue::Expr(value) if variable.as_str() == "_" && may_stand_alone(value) => self.line(&operand(value)),
            BoundValue::Expr(value) if says_its_type(value, declared) => {
                self.line(&format!("{variable} = {}", operand(value)));
            }
            BoundValue::Expr(value) => self.line(&format!("{variable}: {} = {}", ty(declared), bound(value))),
            // For an `if` or a nested function, the bindings inside are recorded as parts instead.
            BoundValue::If(branches) => {
                let Branches { condition, then, otherwise } = &**branches;
                self.line(&format!("if {}:", operand(condition)));
                self.branch(*variable, declared, then, symbols);
                self.line("else:");
                self.branch(*variable, declared, otherwise, symbols);
            }
            BoundValue::Function(function) => {
                self.function(&RelaxFunction { name: *variable, ..RelaxFunction::clone(function) }, symbols);
                self.line("");
            }
        }
        if let BoundValue::Expr(_) = value {
            self.part(*variable, start, vec![*origin]);
        }
    }

    fn branch(&mut self, variable: Name, declared: &StructInfo, sequence: &Sequence, symbols: &NameSet) {
        self.indented(|printer| {
            printer.blocks(&sequence.blocks, symbols);
            // The branch may have bound its result to this very variable already.
            let result = &sequence.result;
            if result.as_var() != Some(variable) {
                let ty = if says_less(declared, &result.ty) { &result.ty } else { declared };
                printer.line(&format!("{variable}: {} = {}", self::ty(ty), bound(result)));
            }
        });
    }
}

/// Replaces names in a text by `renamed`, which is called with each name and whether a dot follows it. Attributes
/// (names after a dot), strings and comments stay as they are.
fn rename(text: &str, renamed: impl Fn(&str, bool) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let is_trivia = |kind| matches!(kind, TokenKind::Whitespace | TokenKind::Newline | TokenKind::Comment);
    let mut tokens = rx_syntax::token::tokens(text).peekable();
    let mut after_dot = false;
    while let Some(token) = tokens.next() {
        let own = text.get(token.span.start as usize..token.span.end as usize).unwrap_or_default();
        let before_dot = tokens.peek().is_some_and(|next| next.kind == TokenKind::Dot);
        let new = if token.kind.is_name() && !after_dot { renamed(own, before_dot) } else { None };
        out.push_str(new.as_deref().unwrap_or(own));
        if !is_trivia(token.kind) {
            after_dot = token.kind == TokenKind::Dot;
        }
    }
    out
}

/// Whether the assignment in a branch is annotated with the branch's type, instead of that of the whole `if`.
fn says_less(whole: &StructInfo, branch: &StructInfo) -> bool {
    whole != branch && !matches!(branch, StructInfo::Error)
}

/// Whether a value bound to `_` can be printed as a bare statement. TVM accepts a call as a statement only if it is
/// evaluated for its effect: if its type is the empty tuple, an object or a string.
fn may_stand_alone(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Call(_))
        && match &value.ty {
            StructInfo::Tuple(fields) => fields.is_empty(),
            ty => matches!(ty, StructInfo::Object | StructInfo::String),
        }
}

/// Whether the `out_ty` of a `call_tir` or `call_dps_packed` states the declared type, so that TVM prints no
/// annotation.
fn says_its_type(value: &Expr, declared: &StructInfo) -> bool {
    matches!(value.as_op(), Some("call_tir" | "call_dps_packed")) && value.ty == *declared
}

/// Prints a dictionary key in quotes.
fn quoted(text: &Arc<str>) -> String {
    string(text)
}
