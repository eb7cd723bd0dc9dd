//! A module as text, in the spelling of TVM 0.27 on Python before 3.12: as `tvm_script` prints it (TVM
//! `src/relax/script/printer`), every binding with its type but where the call's own `out_ty` says it.
//!
//! What is printed reads back as the same module, up to names.

mod expression;
mod metadata;
mod symbols;

use crate::{Module, walk};
use expression::{bound, operand, string};
use rx_base::name::NameSet;
use rx_base::{Dim, Name};
use rx_ir::struct_info::Spelling;
use rx_ir::{
    Attr, Block, BoundValue, Branches, Expr, ExprKind, Item, LoopBody, LoopFunction, Origin, RelaxFunction, Sequence,
    StructInfo, VarBinding,
};
use rx_tir::PrimFunc;
use rx_tir::print::Header;
use std::ops::Range;
use std::sync::Arc;

/// Lines of a printed module that say one thing: a binding, or a prim_func that a pass made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The variable, or the prim_func.
    pub name: Name,
    /// Its lines, from 0.
    pub lines: Range<usize>,
    /// The statements of the text it comes from that was read first.
    pub origins: Vec<Origin>,
}

/// The module's text, ending in a line break.
pub fn print(module: &Module) -> String {
    printed(module).out
}

/// The module's text, and what its lines come from, in order.
pub fn print_with_parts(module: &Module) -> (String, Vec<Part>) {
    let printer = printed(module);
    // Parts are in bytes until here.
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

/// The symbolic dims of signatures that the text in front of the module does not declare, in order: its printed text does.
pub fn undeclared(module: &Module) -> Vec<Name> {
    let declared = symbols::declared_in(&module.prelude);
    let mut symbols = symbols::of_signatures(module);
    symbols.retain(|symbol| !declared.contains(symbol));
    symbols
}

/// What a function says of itself, as the dictionary that `R.func_attr` takes.
pub fn dictionary(attributes: &[(Arc<str>, Attr)]) -> String {
    expression::attribute(&Attr::Dict(attributes.to_vec()))
}

fn printed(module: &Module) -> Printer {
    let (module, section) = metadata::numbered(module);
    let mut printer = Printer { out: String::new(), parts: Vec::new(), indent: 0, class: module.class };
    if !section.is_empty() {
        printer.out.push_str(section.trim_end());
        printer.out.push('\n');
    }
    let mut prelude = module.prelude.trim_end().to_owned();
    for symbol in undeclared(&module) {
        prelude.push_str(&format!("\n{symbol} = TypeVar(\"{symbol}\")"));
    }
    if !prelude.is_empty() {
        printer.out.push_str(prelude.trim_start_matches('\n'));
        printer.out.push('\n');
        // As TVM has it: dims stand at the class, imports apart.
        if symbols::declared_in(prelude.lines().last().unwrap_or_default()).is_empty() {
            printer.out.push('\n');
        }
    }
    if let Some(class) = module.class {
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
            Item::Relax(function) => printer.function(function, &NameSet::default()),
            Item::Loops(function) => {
                let start = printer.out.len();
                printer.lines(&loop_function(function));
                if let LoopBody::Made(loops) = &function.body {
                    printer.part(function.name, start, loops.origins.clone());
                }
            }
            Item::Text { text, .. } => printer.lines(text),
        }
    }
    printer
}

/// A prim_func's text, without the indentation of a class.
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

/// An expression as a binding has it.
pub(crate) fn expression_text(expr: &Expr) -> String {
    operand(expr)
}

/// A type as a body writes it: compound dims bare.
fn ty(info: &StructInfo) -> String {
    info.to_string()
}

/// A type as a signature writes it: compound dims in quotes.
fn signature_ty(info: &StructInfo) -> String {
    let dim = |dim: &Dim| match dim.as_constant().is_some() || dim.as_symbol().is_some() {
        true => dim.to_string(),
        false => format!("\"{dim}\""),
    };
    info.spell(&Spelling { path: &str::to_owned, dim: &dim })
}

/// A text that grows by lines.
struct Printer {
    out: String,
    /// What was printed, in bytes of the text.
    parts: Vec<Part>,
    indent: usize,
    /// The class around, which functions call `cls`.
    class: Option<Name>,
}

impl Printer {
    fn line(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_str(&"    ".repeat(self.indent));
            self.out.push_str(text);
        }
        self.out.push('\n');
    }

    /// Notes what stands behind `start`.
    fn part(&mut self, name: Name, start: usize, origins: Vec<Origin>) {
        self.parts.push(Part { name, lines: start..self.out.len(), origins });
    }

    /// Lines that stand at no indentation.
    fn lines(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    fn indented(&mut self, print: impl FnOnce(&mut Self)) {
        self.indent += 1;
        print(self);
        self.indent -= 1;
    }

    /// A function; `outer` are the symbolic dims that functions around it have.
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
        self.indented(|printer| printer.body(function, outer));
    }

    fn body(&mut self, function: &RelaxFunction, outer: &NameSet) {
        if let Some(class) = self.class.filter(|_| outer.is_empty() && !walk::globals(function).is_empty()) {
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
        // Marks that a function stands around, whatever its dims.
        inner.insert(rx_base::name::name("<function>"));
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
            // Of an `if` and a function their bindings are parts.
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
            // What the branch gives may have been bound under this very name.
            let result = &sequence.result;
            if result.as_var() != Some(variable) {
                let ty = if says_less(declared, &result.ty) { &result.ty } else { declared };
                printer.line(&format!("{variable}: {} = {}", self::ty(ty), bound(result)));
            }
        });
    }
}

/// Whether a branch's own type is written, and not that of the whole `if`.
fn says_less(whole: &StructInfo, branch: &StructInfo) -> bool {
    whole != branch && !matches!(branch, StructInfo::Error)
}

/// Whether a statement may be this call alone: TVM takes it for its effect.
fn may_stand_alone(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Call(_))
        && match &value.ty {
            StructInfo::Tuple(fields) => fields.is_empty(),
            ty => matches!(ty, StructInfo::Object | StructInfo::String),
        }
}

/// Calls whose type is what their `out_ty` says, so that TVM prints no annotation.
fn says_its_type(value: &Expr, declared: &StructInfo) -> bool {
    matches!(value.as_op(), Some("call_tir" | "call_dps_packed")) && value.ty == *declared
}

/// A dictionary's key or a name, quoted.
fn quoted(text: &Arc<str>) -> String {
    string(text)
}
