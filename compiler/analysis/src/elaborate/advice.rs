//! Fixes: edits that correct a mistake, and *anchors*, the edited positions that have no name in the program.
//!
//! A fix may edit a position in an earlier segment, such as the decorator or the end of a dataflow block. Such an
//! anchor is stored like a definition, under a name that no program can write (`<return>`). So it moves with the
//! text, and the result does not depend on how the function is cut into segments.

use super::argument_list::removed_span;
use super::checker::Checker;
use super::result::{Role, Unresolved};
use crate::entry::{Entry, FUNCTION_CONTEXT, Place, replace_fix};
use rx_base::name::name;
use rx_base::{Code, Diagnostic, Fix, Name, Span};
use rx_context::ItemPart;
use rx_ir::{Shape, Signature, StructInfo};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, Expr, ExprKind, StatementKind, TokenRange};

/// A position that fixes edit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    /// The annotation of a nested function's parameter.
    TypeOf(Name),
    /// The return annotation of the innermost function.
    Return,
    /// The place in the innermost function's decorator where `pure=False` is written. Its number is an index into
    /// [`PURITY`].
    Purity,
    /// The place where the dataflow block with this ordinal can output one more variable. Its number is
    /// [`INTO_EMPTY`], [`BEHIND_OTHERS`], or [`NO_OUTPUT`] plus the indentation of the missing `R.output` statement.
    Output(u32),
}

/// The text to insert, by the form of the decorator: `@R.function`, `@R.function()`, `@R.function(private=True)`,
/// `@R.function(pure=True)`.
const PURITY: [&str; 4] = ["(pure=False)", "pure=False", ", pure=False", "False"];

/// The reserved name of the anchor for the purity of a function.
pub(crate) const PURITY_ANCHOR: &str = "<purity>";

/// Returns the text that declares a function as impure at its anchor with this number.
pub(crate) fn purity_text(number: usize) -> Option<&'static str> {
    PURITY.get(number).copied()
}

/// The block ends with `R.output()`: insert the first argument.
pub(super) const INTO_EMPTY: usize = 0;
/// The block ends with `R.output(x)`: append an argument.
pub(super) const BEHIND_OTHERS: usize = 1;
/// The block has no `R.output`: insert the statement. The indentation is added to this number.
pub(super) const NO_OUTPUT: usize = 2;

impl Anchor {
    /// Returns the reserved name under which the anchor is stored.
    fn name(self) -> Name {
        match self {
            Anchor::TypeOf(variable) => name(&format!("<type of {variable}>")),
            Anchor::Return => name("<return>"),
            Anchor::Purity => name(PURITY_ANCHOR),
            Anchor::Output(ordinal) => name(&format!("<output {ordinal}>")),
        }
    }
}

impl Checker<'_> {
    /// Stores the position of an anchor, with its number.
    pub(super) fn set_anchor(&mut self, anchor: Anchor, place: Span, number: usize) {
        self.define(anchor.name(), Entry::value(StructInfo::Shape(Shape::Rank(number))), place);
    }

    /// Returns the stored position of an anchor, and its number.
    pub(super) fn anchor(&mut self, anchor: Anchor) -> Option<(Place, usize)> {
        match self.lookup(anchor.name()) {
            Some(Entry::Value { ty: StructInfo::Shape(Shape::Rank(number)), .. }) => {
                Some((self.definition_of(anchor.name()), number))
            }
            _ => None,
        }
    }

    /// Stores the place where a decorator declares the purity of its function.
    pub(super) fn anchor_purity(&mut self, cursor: Cursor<'_>, decorator: &Expr) {
        let end = cursor.span(decorator.tokens).end;
        let ExprKind::Call { callee, arguments } = &decorator.kind else {
            return self.set_anchor(Anchor::Purity, Span::empty(end), 0);
        };
        let is_pure = |argument: &&Argument| argument.keyword.is_some_and(|keyword| cursor.text(keyword) == "pure");
        match (arguments.iter().find(is_pure), arguments.last()) {
            (Some(pure), _) => self.set_anchor(Anchor::Purity, cursor.span(pure.value.tokens), 3),
            (None, Some(last)) => self.set_anchor(Anchor::Purity, Span::empty(cursor.span(last.value.tokens).end), 2),
            (None, None) => {
                let open = cursor.span(TokenRange { start: callee.tokens.end, end: callee.tokens.end + 1 });
                self.set_anchor(Anchor::Purity, Span::empty(open.end), 1);
            }
        }
    }

    /// Stores the place where `R.output(…)` takes another variable.
    pub(super) fn anchor_output(&mut self, cursor: Cursor<'_>, call: &Expr, arguments: &[Argument]) {
        let Some((_, ordinal)) = self.state.dataflow else { return };
        self.state.output_seen = true;
        match (arguments.last(), &call.kind) {
            (Some(last), _) => {
                let end = cursor.span(last.value.tokens).end;
                self.set_anchor(Anchor::Output(ordinal), Span::empty(end), BEHIND_OTHERS);
            }
            (None, ExprKind::Call { callee, .. }) => {
                let open = cursor.span(TokenRange { start: callee.tokens.end, end: callee.tokens.end + 1 });
                self.set_anchor(Anchor::Output(ordinal), Span::empty(open.end), INTO_EMPTY);
            }
            _ => {}
        }
    }

    /// Stores the place where the open dataflow block, which ends before a statement at `span`, could have an
    /// `R.output`.
    pub(super) fn anchor_missing_output(&mut self, span: Span) {
        let (Some((_, ordinal)), Some(level)) = (self.state.dataflow, self.state.level) else { return };
        if !std::mem::take(&mut self.state.output_seen) {
            let before = self.segment.text().get(..span.range().start).unwrap_or_default();
            let line = before.rfind('\n').map_or(0, |at| at + 1);
            let place = Span::empty(u32::try_from(line).unwrap_or(0));
            self.set_anchor(Anchor::Output(ordinal), place, NO_OUTPUT + level as usize);
        }
    }

    /// Returns the fix that outputs `variable` from the dataflow block `ordinal`, so that it is visible after the
    /// block.
    pub(super) fn output_fix(&mut self, ordinal: u32, variable: Name) -> Option<Fix<Place>> {
        let (place, number) = self.anchor(Anchor::Output(ordinal))?;
        let (title, text) = match number {
            INTO_EMPTY => (format!("add `{variable}` to R.output"), variable.to_string()),
            BEHIND_OTHERS => (format!("add `{variable}` to R.output"), format!(", {variable}")),
            _ => {
                let indent = " ".repeat(number.saturating_sub(NO_OUTPUT));
                (format!("add R.output({variable})"), format!("{indent}R.output({variable})\n"))
            }
        };
        Some(Fix { title, edits: vec![(place, text)], safe: false })
    }

    /// Returns the fix that declares the enclosing function as impure. The fix is safe: the results of the function
    /// do not depend on its declared purity.
    pub(super) fn impure_fix(&mut self) -> Option<Fix<Place>> {
        let (place, number) = self.anchor(Anchor::Purity)?;
        let text = purity_text(number)?;
        Some(Fix {
            title: "declare the function pure=False".to_owned(),
            edits: vec![(place, text.to_owned())],
            safe: true,
        })
    }

    /// Returns the fix that changes `call_packed` to `call_pure_packed`, which declares that the packed function,
    /// called at `callee` in `call`, has no side effects.
    ///
    /// `has_types` is whether the call passes the type of its result, which `R.call_pure_packed` requires; without
    /// it, the fix copies the variable's annotation into `ty_args`. The fix is safe if the function is known to be
    /// pure (`is_known`).
    pub(super) fn pure_call_fix(
        &self,
        callee: Span,
        (has_types, call): (bool, Span),
        is_known: bool,
    ) -> Option<Fix<Place>> {
        let text = self.segment.text();
        let head = text.get(callee.range())?.strip_suffix("call_packed")?;
        let title = format!("call it by {head}call_pure_packed");
        let mut fix = replace_fix(callee, title, format!("{head}call_pure_packed"));
        if !has_types {
            let statement = self.statement_at(self.statement as usize)?;
            let StatementKind::AnnAssign { annotation, value: Some(value), .. } = &statement.tree.kind else {
                return None;
            };
            let cursor = self.segment.cursor(statement);
            // Copy the annotation only where the call is the whole bound value, since otherwise the type is not that
            // of the call.
            let end = call.end.checked_sub(1).filter(|_| cursor.span(value.tokens) == call)?;
            let inside = text.get(call.start as usize..end as usize)?.trim_end();
            let comma = if inside.ends_with(',') { " " } else { ", " };
            let types = format!("{comma}ty_args=({},)", cursor.source(annotation.tokens));
            fix.edits.push((Place::Here(Span::new(end, end)), types));
        }
        fix.safe = is_known;
        Some(fix)
    }

    /// Returns the fix that declares `ty` as the return type of the enclosing function.
    pub(super) fn return_type_fix(&mut self, ty: &StructInfo) -> Option<Fix<Place>> {
        let (place, _) = self.anchor(Anchor::Return)?;
        let text = self.written_in_signature(ty)?;
        Some(Fix { title: format!("declare -> {text}"), edits: vec![(place, text)], safe: false })
    }

    /// Returns the fix that declares `ty` as the type of a parameter; `None` for a variable that is not a parameter.
    pub(super) fn parameter_type_fix(&mut self, parameter: Name, ty: &StructInfo) -> Option<Fix<Place>> {
        let place = match self.anchor(Anchor::TypeOf(parameter)) {
            Some((place, _)) => place,
            None => self.annotation_of(parameter)?,
        };
        let text = self.written_in_signature(ty)?;
        Some(Fix { title: format!("declare `{parameter}` as {text}"), edits: vec![(place, text)], safe: false })
    }

    /// Returns the place of a parameter's annotation in the outermost function's header. It is found by the index of
    /// the parameter; anchors are not stored for these, because a header may have tens of thousands of parameters.
    fn annotation_of(&mut self, parameter: Name) -> Option<Place> {
        let Some(Entry::Function(context)) = self.lookup(name(FUNCTION_CONTEXT)) else { return None };
        let signature = self.asked.signature(context.name)?;
        let Signature::Relax(signature) = &*signature else { return None };
        let index = signature.params.iter().rposition(|(name, ty)| *name == parameter && !ty.is_error())?;
        Some(Place::Item(context.name, ItemPart::ParamType(u32::try_from(index).ok()?)))
    }

    /// Adds the fix "replace the type at `place` by `text`" to the diagnostics about that type, from number `since`
    /// on.
    pub(super) fn offer_type(&mut self, since: usize, place: Span, title: &str, text: Option<String>) {
        let is_written = |text: &String| self.segment.text().get(place.range()) == Some(text);
        let Some(text) = text.filter(|text| !is_written(text)) else { return };
        let guilty = |diagnostic: &Diagnostic<Place>| {
            let of_types = matches!(
                diagnostic.code,
                Code::UndefinedSymbolicVar
                    | Code::UndefinedName
                    | Code::UnknownDtype
                    | Code::UnknownVDevice
                    | Code::UnknownArgument
                    | Code::TooManyArguments
                    | Code::MalformedType
                    | Code::ArgumentType
                    | Code::CallTirOutputMismatch
            );
            // An output mismatch of a single part of the type has its own fix already.
            let is_open = diagnostic.code != Code::CallTirOutputMismatch || diagnostic.fixes.is_empty();
            of_types
                && is_open
                && matches!(diagnostic.primary, Place::Here(at) if place.start <= at.start && at.end <= place.end)
        };
        for diagnostic in self.diagnostics.iter_mut().skip(since).filter(|it| guilty(it)) {
            let fix = replace_fix(place, title, text.clone());
            if !diagnostic.fixes.contains(&fix) {
                diagnostic.fixes.push(fix);
            }
        }
    }

    /// Adds fixes to the undefined dims of a parameter's type, among the diagnostics from number `since` on. A dim
    /// that is a bare name, such as `n` in `R.Tensor((n, 4))`, can be declared by quotes: `"n"`.
    pub(super) fn offer_dim_declarations(&mut self, since: usize) {
        if self.diagnostics.len() == since {
            return;
        }
        let text = self.segment.text();
        // A declared symbol that occurs in the signature but is bound by no parameter is probably the intended one.
        let is_word = |symbol: &str| {
            let at_word = |c: char| c.is_alphanumeric() || c == '_';
            text.split(|c| !at_word(c)).any(|word| word == symbol)
        };
        let unbound = self.file.symbols.iter().filter(|symbol| !self.signature_symbols.contains(symbol));
        let unbound: Vec<Name> = unbound.filter(|symbol| is_word(symbol)).copied().collect();
        for diagnostic in self.diagnostics.iter_mut().skip(since) {
            let Place::Here(place) = diagnostic.primary else { continue };
            let Some(symbol) = text.get(place.range()).filter(|symbol| !symbol.starts_with(['"', '\''])) else {
                continue;
            };
            let before = text.get(..place.range().start).unwrap_or_default().trim_end();
            let after = text.get(place.range().end..).unwrap_or_default().trim_start();
            if matches!(diagnostic.code, Code::UndefinedSymbolicVar | Code::UndefinedName)
                && before.ends_with(['(', '[', ','])
                && after.starts_with([')', ']', ','])
            {
                if let [meant] = &unbound[..]
                    && meant.as_str() != symbol
                {
                    diagnostic.fixes.push(replace_fix(place, format!("use `{meant}`"), meant.to_string()));
                }
                let title = format!("declare the dim: \"{symbol}\"");
                diagnostic.fixes.push(replace_fix(place, title, format!("\"{symbol}\"")));
            }
        }
    }

    /// Adds fixes that declare the undefined symbols of a `match_cast`, among the diagnostics from number `since` on.
    /// For example, `n = T.int64()` is inserted before the statement.
    pub(super) fn offer_symbols(&mut self, since: usize) {
        let Some(statement) = self.statement_at(self.statement as usize).filter(|_| self.diagnostics.len() > since)
        else {
            return;
        };
        let text = self.segment.text();
        let before = text.get(..statement.span.range().start).unwrap_or_default();
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let (indent, tir) = (before.get(line..).unwrap_or_default(), self.file.spelled_namespace("T"));
        let place = Span::empty(u32::try_from(line).unwrap_or(0));
        if !indent.trim().is_empty() {
            return;
        }
        for diagnostic in self.diagnostics.iter_mut().skip(since).filter(|it| it.code == Code::UndefinedSymbolicVar) {
            let Place::Here(at) = diagnostic.primary else { continue };
            let Some(symbol) = text.get(at.range()).filter(|symbol| !symbol.starts_with(['"', '\''])) else { continue };
            let declaration = format!("{symbol} = {tir}.int64()");
            let title = format!("declare `{declaration}`");
            diagnostic.fixes.push(replace_fix(place, title, format!("{indent}{declaration}\n")));
        }
    }

    /// Returns the bytes to delete to remove an argument of a call, including one comma.
    fn removal(&self, cursor: Cursor<'_>, arguments: &[Argument], at: usize) -> Option<Span> {
        let span = |argument: &Argument| {
            let value = argument.value.tokens;
            cursor.span(TokenRange { start: argument.keyword.unwrap_or(value.start), end: value.end })
        };
        let own = span(arguments.get(at)?);
        let before = at.checked_sub(1).and_then(|before| arguments.get(before)).map(span);
        Some(removed_span(self.segment.text(), before, own, arguments.get(at + 1).map(span)))
    }

    /// Replaces the fixes of the last diagnostic, an undefined name that is the name of a dtype, by one that puts it
    /// in quotes. The fix is safe, since nothing else can be meant.
    pub(super) fn offer_quotes(&mut self, dtype: Name, span: Span) {
        if rx_base::DType::parse(&dtype).is_none() {
            return;
        }
        let mut fix = replace_fix(span, format!("write \"{dtype}\""), format!("\"{dtype}\""));
        fix.safe = true;
        self.unresolved.retain(|unresolved| unresolved.span != span);
        if let Some(diagnostic) = self.diagnostics.last_mut() {
            diagnostic.fixes = vec![fix];
        }
    }

    /// Sets the role of the unresolved name at `span`, if the last unresolved name is there and may be any value.
    pub(super) fn used_for(&mut self, role: Role, span: Span) {
        let is_here = |last: &&mut Unresolved| last.span == span && last.role == Role::Value;
        if let Some(last) = self.unresolved.last_mut().filter(is_here) {
            last.role = role;
        }
    }

    /// Adds fixes that remove argument `index` to the diagnostics from number `since` on. If the argument is passed
    /// both by position and by keyword, each of the two can be removed.
    pub(super) fn offer_removal(&mut self, since: usize, cursor: Cursor<'_>, arguments: &[Argument], index: usize) {
        let Some(argument) = arguments.get(index) else { return };
        let shown = argument.keyword.map_or(cursor.source(argument.value.tokens), |keyword| cursor.text(keyword));
        let positional = arguments.iter().rposition(|other| other.keyword.is_none());
        let duplicate = self.diagnostics.iter().skip(since).any(|it| it.code == Code::DuplicateArgument);
        let by_name = |other: &&Argument| matches!((argument.keyword, other.keyword), (Some(a), Some(b)) if cursor.text(a) == cursor.text(b));
        let is_named_twice = arguments.iter().filter(by_name).count() > 1;
        let other = positional.filter(|_| duplicate && !is_named_twice).and_then(|at| Some((at, arguments.get(at)?)));
        let mut fixes = Vec::new();
        if let Some((at, other)) = other
            && let Some(span) = self.removal(cursor, arguments, at)
        {
            let title = format!("leave out `{}`", cursor.source(other.value.tokens));
            fixes.push(replace_fix(span, title, ""));
        }
        if let Some(span) = self.removal(cursor, arguments, index) {
            fixes.push(replace_fix(span, format!("leave out `{shown}`"), ""));
        }
        for diagnostic in self.diagnostics.iter_mut().skip(since) {
            diagnostic.fixes.extend(fixes.iter().cloned());
        }
    }
}
