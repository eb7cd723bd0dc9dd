//! The printer: prints a document in the layout of TVM's `mod.script()`, in any dialect.
//!
//! - One statement is one line. Parentheses are printed where Python needs them. Blank lines separate functions.
//! - Comments stay with their statement: those between the lines of a statement are moved above it.
//! - Symbolic dims are declared as the dialect declares them ([`DimStyle`]). A dim of another type than `int64` is
//!   quoted where it is first used and declared in the body in every dialect, as TVM 0.27 itself prints it. So are the
//!   dims of a classic prim_func: `T.Buffer(("n", 64), "float32")`, then `n = T.int64()` at the start of the body.
//! - Broken statements, and Python code that rx does not parse, are kept as written.
//!
//! For example, `@R.function` with `def f( x:R.Tensor( (64, ),dtype = 'float32' ) ) : return(x)` is printed as
//!
//! ```text
//! @R.function
//! def f(x: R.Tensor((64,), dtype="float32")):
//!     return x
//! ```

pub(crate) mod call;
pub(crate) mod canonical;
mod compare;
mod expression;
mod header;
mod layout;
mod lines;
mod scope;
pub(crate) mod signature;
mod statement;
mod string;
pub use compare::{Difference, tree_eq, tree_eq_as};
pub use string::quote;

use rx_base::DType;
use rx_base::name::{Name, NameSet};

use crate::ast::StatementKind;
use crate::dialect::{Dialect, DimStyle};
use crate::directive::MARK;
use crate::document::Document;
use canonical::dim_declarations;
use expression::{Place, SignaturePlace, Writer};
use header::Header;
use layout::Layout;
use lines::{Code, Comment, Line, Part, parts};
use scope::{Function, Scope, Scopes, TypeVars};
use statement::has_verbatim_part;

/// Prints `document` in dialect `to`.
pub fn print(document: &Document, to: Dialect) -> String {
    print_as(document, Dialect::detect(document), to)
}

/// Prints `document`, which is in dialect `from`, in dialect `to`.
pub fn print_as(document: &Document, from: Dialect, to: Dialect) -> String {
    let parts = parts(document);
    let type_vars = TypeVars::of(&parts, from != to);
    let scopes: Vec<Scopes> = parts
        .iter()
        .map(|part| match part {
            Part::Code(code) => Scopes::of(&code.lines, &type_vars, to),
            Part::Verbatim(_) => Scopes::default(),
        })
        .collect();
    let has_tir = type_vars.has_tir;
    let mut header = Header::plan(from, to, &parts, &scopes, &type_vars);
    let mut layout = Layout::new(&parts);
    for (part, scopes) in parts.iter().zip(&scopes) {
        match part {
            Part::Verbatim(segments) => segments.iter().for_each(|segment| layout.verbatim(segment.text())),
            Part::Code(code) => {
                Printer { from, to, code, scopes, has_tir, header: &mut header, layout: &mut layout }.code();
            }
        }
    }
    layout.finish()
}

/// The printer of one run of lines.
struct Printer<'p, 'd> {
    from: Dialect,
    to: Dialect,
    code: &'p Code<'d>,
    scopes: &'p Scopes,
    /// Whether `T` may be printed where the text does not use it.
    has_tir: bool,
    header: &'p mut Header,
    layout: &'p mut Layout,
}

impl Printer<'_, '_> {
    fn code(&mut self) {
        self.layout.begin(&self.code.before);
        if let Some(top) = self.header.top.take() {
            self.layout.line(0, false, top);
            self.layout.want_blank();
        }
        let mut functions: Vec<(usize, Scope<'_>)> = Vec::new();
        for (at, line) in self.code.lines.iter().enumerate() {
            while functions.last().is_some_and(|(depth, _)| *depth >= line.depth) {
                functions.pop();
            }
            self.line(at, line, functions.last().map(|(_, scope)| *scope));
            if let Some(scope) = self.scopes.at(at) {
                functions.push((line.depth, scope));
            }
        }
        self.comments(&self.code.tail);
        self.layout.end(&self.code.after);
    }

    fn comments(&mut self, comments: &[Comment<'_>]) {
        for comment in comments {
            let mut blank = comment.blank;
            if let Some(import) = self.header.before_comment(comment.text) {
                self.layout.line(comment.depth, std::mem::take(&mut blank), &import);
            }
            match self.header.comment(comment.text) {
                Some(text) => self.layout.line(comment.depth, blank, &text),
                None => self.layout.skipped(blank),
            }
            if let Some(import) = self.header.after_comment(comment.text) {
                self.layout.line(comment.depth, false, &import);
            }
        }
    }

    fn line(&mut self, at: usize, line: &Line<'_>, scope: Option<Scope<'_>>) {
        self.comments(&line.comments);
        // A directive inside a statement applies to its own line, and moving it above the statement would change that
        // line.
        let suppresses = self.from == self.to && line.inside.iter().any(|comment| comment.contains(MARK));
        let verbatim = line.statement.tree.error.is_some()
            || suppresses
            || (!line.inside.is_empty() && has_verbatim_part(line.kind()));
        let mut blank = line.blank;
        if let Some(import) = self.header.before_statement(line) {
            self.layout.line(0, std::mem::take(&mut blank), import);
        }
        if self.header.type_vars_before == Some(at) {
            if let Some(import) = self.header.before_type_vars() {
                self.layout.line(0, std::mem::take(&mut blank), import);
            }
            for name in std::mem::take(&mut self.header.type_vars) {
                self.layout.line(0, std::mem::take(&mut blank), &format!("{name} = TypeVar(\"{name}\")"));
            }
        }
        if !verbatim {
            for comment in &line.inside {
                self.layout.line(line.depth, std::mem::take(&mut blank), comment);
            }
        }
        self.printed(at, line, scope, verbatim, blank);
    }

    /// Prints the statement itself, then the dims to declare at the start of its block.
    fn printed(&mut self, at: usize, line: &Line<'_>, scope: Option<Scope<'_>>, verbatim: bool, blank: bool) {
        let source = line.segment.text().get(line.statement.span.range()).unwrap_or("");
        let text = if verbatim { Some(source.to_owned()) } else { self.statement(at, line, scope, source) };
        let Some(mut text) = text else {
            self.layout.skipped(blank);
            if let Some(comment) = line.trailing {
                self.layout.line(line.depth, false, comment);
            }
            return;
        };
        if let Some(comment) = line.trailing {
            text.push_str("  ");
            text.push_str(comment);
        }
        self.layout.line(line.depth, blank, &text);
        self.layout.printed(line.depth, line.kind());
        if let Some(function) = self.scopes.at(at).and_then(Scope::function).filter(|_| !verbatim) {
            for (symbol, style) in &function.symbols {
                // In a Relax function, a dim that is a quoted name declares itself; TVM prints this line by convention,
                // so it may be left out. In a prim_func such a dim would be an `int32`.
                let declares = self.has_tir || function.prim;
                if *style == DimStyle::Body && symbol.dtype == DType::INT64 && !symbol.in_body && declares {
                    self.layout.line(line.depth + 1, false, &format!("{} = T.int64()", symbol.name));
                }
            }
        }
    }

    /// Returns a statement's text; `None` if the dialect omits the statement.
    fn statement(&self, at: usize, line: &Line<'_>, scope: Option<Scope<'_>>, source: &str) -> Option<String> {
        let cursor = line.cursor();
        let kind = line.kind();
        if self.header.drops(line) {
            return None;
        }
        let mut writer = Writer {
            out: String::new(),
            from: self.from,
            to: self.to,
            keeps_metadata_keys: self.header.has_metadata,
            place: Place {
                relax: scope.and_then(Scope::function).is_some_and(|function| !function.prim),
                scope,
                ..Place::default()
            },
        };
        if let (StatementKind::Def { name, params, ret, .. }, Some(scope)) = (kind, self.scopes.at(at)) {
            let function = scope.function()?;
            let signature = Some(SignaturePlace { scope, bound: NameSet::default() });
            writer.place = Place { relax: !function.prim, scope: Some(scope), signature, ..Place::default() };
            writer.def(cursor.text(*name), &type_params(function), params, ret.as_ref(), cursor);
            return Some(writer.out);
        }
        if let (Some(names), Some(function)) = (self.scopes.declared_by.get(&at), scope.and_then(Scope::function)) {
            return remaining_declarations(line, names, function);
        }
        writer.statement(kind, cursor, source);
        Some(writer.out)
    }
}

/// Returns a declaration `m, n = T.int32(), T.int64()` without the dims of the signature that the dialect declares
/// elsewhere; `None` if no dim is left.
fn remaining_declarations(line: &Line<'_>, names: &NameSet, function: &Function) -> Option<String> {
    let elsewhere = |name: &Name| names.contains(name) && function.style(name) != Some(DimStyle::Body);
    let declared = dim_declarations(line.kind(), line.cursor());
    let kept: Vec<_> = declared.iter().filter(|(name, _)| !elsewhere(name)).collect();
    if kept.is_empty() {
        return None;
    }
    let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
    let dtypes: Vec<String> = kept.iter().map(|(_, dtype)| format!("T.{dtype}()")).collect();
    Some(format!("{} = {}", names.join(", "), dtypes.join(", ")))
}

/// Returns the type parameters to print: first those that the function has, then its other dims by name.
fn type_params(function: &Function) -> Vec<String> {
    let written: NameSet = function.type_params.iter().copied().collect();
    let wanted = function.symbols.iter().filter(|(_, style)| *style == DimStyle::TypeParam);
    let mut more: Vec<&str> = wanted
        .map(|(symbol, _)| symbol.name)
        .filter(|name| !written.contains(name))
        .map(|name| name.as_str())
        .collect();
    more.sort_unstable();
    let own = function.type_params.iter().filter(|name| function.style(name) == Some(DimStyle::TypeParam));
    own.map(|name| name.as_str()).chain(more).map(str::to_owned).collect()
}
