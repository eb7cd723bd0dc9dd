//! Follows symbolic dims to the places where they get their values.

use super::descriptions::describe_part;
use super::follow::{Cursor, Next, Tracer};
use super::view::{Inner, Site};
use super::{Detail, Step, StepKind, TracePlace};
use rx_base::{Dim, Name};
use rx_ir::{Expr, ExprKind, StructInfo};
use rx_ops::provenance::{Facet, Fact, Part};

impl Tracer<'_> {
    /// Returns the first symbol of the traced dim.
    pub(super) fn symbol_of(&self, cursor: &Cursor) -> Option<Name> {
        let Some(Fact::Integer(dim)) = cursor.facet.of(&cursor.expr.ty) else { return None };
        let mut first = None;
        dim.for_each_symbol(&mut |symbol| first = first.or(Some(symbol)));
        first
    }

    /// Continues at the parameter that binds `symbol`; if none does, `step` ends the chain.
    pub(super) fn symbol(&mut self, cursor: &Cursor, symbol: Name, mut step: Step) -> Next {
        let alone =
            matches!(cursor.facet.of(&cursor.expr.ty), Some(Fact::Integer(dim)) if dim.as_symbol() == Some(symbol));
        if !alone {
            step.formula = Some(step.fact.clone());
        }
        let mut frame = cursor.site.frame;
        loop {
            let Some(current) = self.frames.get(frame) else { return Next::End(step) };
            let params: Vec<(Name, StructInfo)> = match &current.closure {
                Some((_, function)) => function.params.clone(),
                None => current.view.text.signature.params.to_vec(),
            };
            if let Some((name, ty, facet)) = params.into_iter().find_map(|(name, ty)| {
                let facet = facet_of_symbol(&ty, symbol)?;
                Some((name, ty, facet))
            }) {
                step.text = format!("{}; `{symbol}` is {} of `{name}`", step.text, describe_part(&facet));
                // The site is in the function's own body, where the parameter is in scope.
                let site = self.innermost(&cursor.site, frame);
                let expr = Expr { kind: ExprKind::Var(name), ty, span: cursor.expr.span };
                return Next::On(step, Cursor { expr, site, facet, bound: None });
            }
            match &current.closure {
                Some((outer, _)) => frame = *outer,
                None => break,
            }
        }
        if let Some((place, name)) = self.binder(cursor, symbol, frame) {
            step.details.push(Detail { text: format!("`{name}` gets its value here"), place: Some(place) });
        }
        step.kind = if step.kind == StepKind::Literal && alone { StepKind::Symbol } else { step.kind };
        Next::End(step)
    }

    /// Returns the site in frame `frame` that encloses `site`.
    pub(super) fn innermost(&self, site: &Site, frame: usize) -> Site {
        let mut site = site.clone();
        while site.frame != frame {
            let outer = self.frames.get(site.frame).and_then(|frame| frame.closure.as_ref()).map(|(outer, _)| *outer);
            let Some(outer) = outer else { break };
            while let Some((at, inner)) = site.blocks.pop() {
                site.limit = at;
                if inner == Inner::Function {
                    break;
                }
            }
            site.frame = outer;
        }
        site
    }

    /// Returns the last place where the function bound or declared `symbol`, such as a `match_cast`.
    pub(super) fn binder(&self, cursor: &Cursor, symbol: Name, frame: usize) -> Option<(TracePlace, Name)> {
        let view = self.view_of(frame)?;
        for segment in view.exporters(symbol, cursor.site.segment.saturating_add(1)) {
            let exports = &view.text.check.segments.get(segment as usize)?.exports;
            let span = exports.iter().rev().find(|export| export.name == symbol).and_then(|export| export.span);
            if let Some(span) = span {
                return Some((view.place(segment, span), symbol));
            }
        }
        None
    }
}

/// Returns the part of a type that is exactly `symbol`.
fn facet_of_symbol(ty: &StructInfo, symbol: Name) -> Option<Facet> {
    let is_symbol = |dim: &Dim| dim.as_symbol() == Some(symbol);
    match ty {
        StructInfo::Tuple(fields) => fields.iter().enumerate().find_map(|(at, field)| {
            let mut facet = facet_of_symbol(field, symbol)?;
            facet.path.insert(0, at);
            Some(facet)
        }),
        StructInfo::Prim(prim) => {
            prim.value.as_ref().filter(|value| is_symbol(value)).map(|_| Facet::of_part(Part::Value))
        }
        StructInfo::Shape(shape) => {
            shape.dims()?.iter().position(is_symbol).map(|axis| Facet::of_part(Part::Dim(axis)))
        }
        ty => {
            let dims = ty.as_tensor()?.shape.dims()?;
            dims.iter().position(is_symbol).map(|axis| Facet::of_part(Part::Dim(axis)))
        }
    }
}
