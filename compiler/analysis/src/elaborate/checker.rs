//! The state of an elaboration: names, facts, diagnostics and recorded data.
//!
//! [`Checker`] checks typed values and creates fixes; it does not read expressions or statements. Its methods are
//! grouped by subject: names (`names`), facts about symbols (`refinement`), known elements (`values`), calls (`call`,
//! `call_tir`), and texts of messages and fixes (`annotation_text`, `advice`, `explanation`). `Elaborator` reads the
//! syntax trees and calls it.

use super::asked::Asked;
use super::bound_call::Tried;
use super::result::{Annotated, BlockState, Export, KeptRecord, Recorded, Row, SegmentResult, Unresolved, Wanted};
use super::scope::Scope;
use super::shared_types::SharedTypes;
use crate::entry::{Outer, Place, mistake};
use rx_base::symbolic::Bounds;
use rx_base::{Code, Diagnostic, Name, Span};
use rx_context::{FileContext, Namespace};
use rx_ir::{IndexSites, Known, Requirement, StructInfo};
use rx_syntax::ast::{Expr, ExprKind};
use rx_syntax::dialect::Dialect;
use rx_syntax::{Cursor, Segment, Statement};
use std::sync::Arc;

/// The state of the elaboration of one segment.
pub(super) struct Checker<'a> {
    pub(super) segment: &'a Segment,
    pub(super) file: &'a FileContext,
    pub(super) state: BlockState,
    /// The ordinals of the dataflow blocks that are open around the nested functions that contain the statement.
    pub(super) open_outside: Vec<u32>,
    /// The open scopes, innermost last; the first is that of the function.
    pub(super) scopes: Vec<Scope>,
    pub(super) exports: Vec<Export>,
    pub(super) symbols: Vec<Name>,
    pub(super) asked: Asked<'a>,
    /// A pool of the types of definitions and imports.
    pub(super) types: SharedTypes,
    pub(super) diagnostics: Vec<Diagnostic<Place>>,
    pub(super) rows: Vec<Row>,
    pub(super) returned: Option<StructInfo>,
    pub(super) return_text: Option<Box<str>>,
    pub(super) returned_values: Known,
    pub(super) requirements: Vec<Requirement>,
    pub(super) index_sites: IndexSites,
    pub(super) unresolved: Vec<Unresolved>,
    pub(super) wanted: Vec<Wanted>,
    /// The last reported call, whose fixes are tried again once the declared type of its result is known.
    pub(super) tried: Option<Box<Tried>>,
    /// The last access to a field that its tuple does not have: the span of the access, the span of the index, and
    /// the tuple's type.
    pub(super) tried_field: Option<(Span, Span, StructInfo)>,
    /// The symbols that the parameters of the last header bind.
    pub(super) signature_symbols: Vec<Name>,
    /// The index of the statement that is elaborated.
    pub(super) statement: u32,
    /// Bounds and facts of the symbols in scope, from attributes and from the statements so far.
    pub(super) bounds: Arc<Bounds>,
    /// The nesting depth of functions; 0 in the body of the outermost one.
    pub(super) nesting: u32,
    /// The number of blocks around the statement. The parser reports blocks that are nested too deeply; these are not
    /// elaborated.
    pub(super) blocks: u32,
    /// The collected annotations, if they are wanted.
    pub(super) annotated: Option<Annotated>,
    /// The recorded bindings, if they are wanted; a check does not record.
    pub(super) recorder: Option<Recorded>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        segment: &'a Segment,
        state: BlockState,
        file: &'a FileContext,
        outer: &'a dyn Outer,
    ) -> Checker<'a> {
        Checker {
            segment,
            file,
            asked: Asked::new(outer),
            state,
            open_outside: Vec::new(),
            scopes: vec![Scope::default()],
            exports: Vec::new(),
            symbols: Vec::new(),
            types: SharedTypes::default(),
            diagnostics: Vec::new(),
            rows: Vec::new(),
            returned: None,
            return_text: None,
            returned_values: None,
            requirements: Vec::new(),
            index_sites: IndexSites::default(),
            unresolved: Vec::new(),
            wanted: Vec::new(),
            tried: None,
            tried_field: None,
            signature_symbols: Vec::new(),
            statement: 0,
            bounds: Arc::default(),
            nesting: 0,
            blocks: 0,
            recorder: None,
            annotated: None,
        }
    }

    pub(super) fn finish(mut self) -> SegmentResult {
        for diagnostic in rx_syntax::syntax_diagnostics(self.segment) {
            let primary = Place::Here(diagnostic.primary);
            self.diagnostics.push(diagnostic.map_places(primary, |span| Some(Place::Here(*span))));
        }
        let statements = u32::try_from(self.segment.tree().statements.len()).unwrap_or(u32::MAX);
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.sort_by_key(|diagnostic| match diagnostic.primary {
            Place::Here(span) => span,
            _ => Span::default(),
        });
        // Results live as long as their segments, and there are thousands: release unused capacity.
        self.asked.imports.shrink_to_fit();
        self.asked.globals.shrink_to_fit();
        self.exports.shrink_to_fit();
        self.symbols.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.requirements.shrink_to_fit();
        diagnostics.shrink_to_fit();
        SegmentResult {
            imports: self.asked.imports,
            globals: self.asked.globals,
            summaries: self.asked.summaries,
            exports: self.exports,
            symbols: self.symbols,
            end: self.state,
            diagnostics,
            rows: self.rows,
            returned: self.returned,
            return_text: self.return_text,
            returned_values: self.returned_values,
            requirements: self.requirements,
            index_sites: self.index_sites,
            recorded: KeptRecord::default(),
            unresolved: self.unresolved,
            wanted: self.wanted,
            statements,
        }
    }

    /// Reports an error at `span`.
    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.diagnostics.push(mistake(code, span, message));
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic<Place>) {
        self.diagnostics.push(diagnostic);
    }

    pub(super) fn statement_at(&self, at: usize) -> Option<&'a Statement> {
        let segment = self.segment;
        segment.tree().statements.get(at)
    }

    /// Whether the statement that is elaborated has a syntax error.
    pub(super) fn is_broken(&self) -> bool {
        self.statement_at(self.statement as usize).is_some_and(|statement| statement.tree.error.is_some())
    }

    /// Whether an expression is a call of `R.<function>`.
    pub(super) fn is_relax_call(&self, cursor: Cursor<'_>, expr: &Expr, function: &str) -> bool {
        let ExprKind::Call { callee, .. } = &expr.kind else { return false };
        let Some((head, rest)) = cursor.path(callee.tokens).split_once('.') else { return false };
        rest == function && self.file.namespace(head) == Some(Namespace::Relax)
    }

    /// Returns the dialect in which types are written.
    pub(super) fn dialect(&self) -> Dialect {
        self.annotated.as_ref().map_or(Dialect::Tvm027, |annotated| annotated.style.dialect)
    }
}
