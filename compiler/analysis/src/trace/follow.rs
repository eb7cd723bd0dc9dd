//! Follows one chain, step by step: from an expression to the expression that determines the traced part.

use super::descriptions::describe_part;
use super::target::Target;
use super::view::{Definition, Inner, Site, View, bindings, defines, inner_body};
use super::{MAX_STEPS, Step, StepKind, Trace, TracePlace, World, spans};
use crate::elaborate::Recorded;
use rx_base::name::NameMap;
use rx_base::symbolic::Bounds;
use rx_base::{Name, Span};
use rx_ir::{Binding, BindingKind, Call, Callee, Expr, ExprKind, Function, StructInfo};
use rx_ops::provenance::Facet;
use std::rc::Rc;
use std::sync::Arc;

/// The maximal total number of side chains.
const MAX_SIDES: usize = 1024;

/// An activation of a function that the chain passes through.
pub(super) struct Frame {
    pub(super) view: Rc<View>,
    /// The call that led here: its site and its arguments.
    pub(super) call: Option<(Site, Rc<[Expr]>)>,
    /// For a closure: the frame in which it was defined, and its function.
    pub(super) closure: Option<(usize, Arc<Function>)>,
    /// The number of calls that led here.
    pub(super) depth: usize,
}

pub(super) struct Tracer<'w> {
    pub(super) world: &'w dyn World,
    views: NameMap<Option<Rc<View>>>,
    pub(super) frames: Vec<Frame>,
    /// The number of side chains that may still be followed.
    pub(super) sides: usize,
    pub(super) no_bounds: Bounds,
}

/// The current expression of a chain, its site, and the part that is traced.
#[derive(Clone)]
pub(super) struct Cursor {
    pub(super) expr: Expr,
    pub(super) site: Site,
    pub(super) facet: Facet,
    /// The variable it was reached through, and the place of its binding.
    pub(super) bound: Option<(Name, TracePlace)>,
}

/// The result of one step.
pub(super) enum Next {
    /// The same part of another expression, without a reported step.
    Silent(Cursor),
    /// A step, and the continuation of the chain.
    On(Step, Cursor),
    /// The last step.
    End(Step),
}

impl<'w> Tracer<'w> {
    /// Creates a tracer whose first frame is of function `name`.
    pub(super) fn new(world: &'w dyn World, name: Name) -> Option<Tracer<'w>> {
        let mut tracer = Tracer {
            world,
            views: NameMap::default(),
            frames: Vec::new(),
            sides: MAX_SIDES,
            no_bounds: Bounds::default(),
        };
        let view = tracer.view(name)?;
        tracer.frames.push(Frame { view, call: None, closure: None, depth: 0 });
        Some(tracer)
    }

    pub(super) fn view(&mut self, name: Name) -> Option<Rc<View>> {
        let world = self.world;
        let load = || world.function(name).map(|text| Rc::new(View::new(name, text)));
        self.views.entry(name).or_insert_with(load).clone()
    }

    /// Returns the function of a frame.
    pub(super) fn view_of(&self, frame: usize) -> Option<Rc<View>> {
        self.frames.get(frame).map(|frame| frame.view.clone())
    }

    /// Traces `facet` of the target.
    pub(super) fn trace(&mut self, target: &Target, facet: Facet) -> Option<Trace> {
        let fact = facet.of(&target.expr.ty)?;
        let part = describe_part(&facet);
        let cursor = Cursor {
            expr: target.expr.clone(),
            site: target.site.clone(),
            facet: facet.clone(),
            bound: target.bound.clone(),
        };
        let most = self.world.most_steps();
        let steps = self.chain(cursor, most, most >= MAX_STEPS);
        Some(Trace { facet, part, fact: fact.to_string(), steps })
    }

    pub(super) fn chain(&mut self, mut cursor: Cursor, most: usize, with_details: bool) -> Vec<Step> {
        let frames = self.frames.len();
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..most {
            match self.next(&cursor, with_details) {
                Next::Silent(next) => cursor = next,
                Next::On(step, next) => {
                    steps.push(step);
                    cursor = next;
                }
                Next::End(step) => {
                    steps.push(step);
                    self.frames.truncate(frames);
                    return steps;
                }
            }
        }
        steps.push(self.end(&cursor, StepKind::Unknown, format!("the chain is longer than {most} steps")));
        self.frames.truncate(frames);
        steps
    }

    fn next(&mut self, cursor: &Cursor, with_details: bool) -> Next {
        let Cursor { expr, site, facet, .. } = cursor;
        match &expr.kind {
            ExprKind::Var(name) => self.variable(cursor, *name),
            ExprKind::Tuple(items) => match facet.path.split_first() {
                Some((at, rest)) if *at < items.len() => {
                    let facet = Facet { path: rest.to_vec(), part: facet.part };
                    // INVARIANT: `at` is less than the length.
                    Next::Silent(Cursor { expr: items[*at].clone(), facet, site: site.clone(), bound: None })
                }
                _ => Next::End(self.end(cursor, StepKind::Literal, "a tuple written here".to_owned())),
            },
            ExprKind::TupleGet(inner, at) => {
                let mut path = vec![*at];
                path.extend(&facet.path);
                let facet = Facet { path, part: facet.part };
                Next::Silent(Cursor { expr: (**inner).clone(), facet, site: site.clone(), bound: None })
            }
            ExprKind::Call(call) if !is_external(call) => self.call(cursor, call, with_details),
            ExprKind::MatchCast(inner) => self.match_cast(cursor, inner),
            ExprKind::Shape(_) | ExprKind::Prim(_) => self.literal(cursor),
            ExprKind::Constant(_) | ExprKind::Elements(_) | ExprKind::Metadata { .. } => {
                Next::End(self.end(cursor, StepKind::Constant, format!("a constant: {}", expr.ty)))
            }
            // A call whose type is declared: `R.call_packed("f", …, ty_args=…)`.
            ExprKind::Call(_) | ExprKind::Error if facet.of(&expr.ty).is_some() => {
                let mut step = self.end(cursor, StepKind::OutTy, format!("declared here: {}", expr.ty));
                let span = self.segment(site).and_then(|segment| spans::ty_args_span(&segment, expr.span, facet));
                if let Some(span) = span {
                    step.place = self.place(site, span);
                }
                Next::End(step)
            }
            ExprKind::Call(_) | ExprKind::Error => {
                Next::End(self.end(cursor, StepKind::Unknown, "this could not be understood".into()))
            }
            _ => Next::End(self.end(cursor, StepKind::Literal, format!("written here: {}", expr.ty))),
        }
    }

    /// Creates a step at the cursor.
    pub(super) fn step(&self, cursor: &Cursor, kind: StepKind, text: String) -> Step {
        let fact = cursor.facet.of(&cursor.expr.ty).map_or_else(|| "?".to_owned(), |fact| fact.to_string());
        Step {
            kind,
            place: self.place(&cursor.site, cursor.expr.span),
            variable: cursor.bound.as_ref().map(|(name, _)| *name),
            callee: None,
            part: describe_part(&cursor.facet),
            fact,
            formula: None,
            text,
            unchanged: false,
            details: Vec::new(),
        }
    }

    /// Creates the last step, at the cursor.
    pub(super) fn end(&self, cursor: &Cursor, kind: StepKind, text: String) -> Step {
        self.step(cursor, kind, text)
    }

    pub(super) fn place(&self, site: &Site, span: Span) -> TracePlace {
        match self.view_of(site.frame) {
            Some(view) => view.place(site.segment, span),
            None => TracePlace {
                function: rx_base::name::name(""),
                place: rx_context::ItemPlace::Segment(site.segment, span),
            },
        }
    }

    pub(super) fn segment(&self, site: &Site) -> Option<Arc<rx_syntax::Segment>> {
        self.view_of(site.frame)?.text.segments.get(site.segment as usize).cloned()
    }

    // Variables.

    /// Returns the definition of `name` at `site`.
    pub(super) fn lookup(&self, name: Name, site: &Site) -> Option<Definition> {
        let mut frame = site.frame;
        let recorded = self.view_of(frame)?.recorded(site.segment);
        for depth in (0..=site.blocks.len()).rev() {
            let blocks = site.blocks.get(..depth)?;
            let limit = match site.blocks.get(depth) {
                None => site.limit,
                // A nested function sees itself.
                Some((at, Inner::Function)) => at + 1,
                Some((at, _)) => *at,
            };
            let block = bindings(&recorded, blocks)?;
            if let Some(at) = block.iter().take(limit).rposition(|binding| defines(binding, name)) {
                let site = Site { frame, segment: site.segment, blocks: blocks.to_vec(), limit: at };
                return Some(Definition::Binding(site, at));
            }
            if let Some((_, Inner::Function)) = blocks.last() {
                let (outer, function) = self.frames.get(frame)?.closure.clone()?;
                if let Some(index) = function.params.iter().rposition(|(param, _)| *param == name) {
                    return Some(Definition::Param { frame, index });
                }
                frame = outer;
            }
        }
        let view = self.view_of(frame)?;
        for segment in view.exporters(name, site.segment) {
            let recorded = view.recorded(segment);
            if let Some(at) = recorded.bindings.iter().rposition(|binding| defines(binding, name)) {
                return Some(Definition::Binding(Site { frame, segment, blocks: Vec::new(), limit: at }, at));
            }
        }
        let params = &view.text.signature.params;
        params.iter().rposition(|(param, _)| *param == name).map(|index| Definition::Param { frame, index })
    }

    /// Returns the binding of a definition.
    pub(super) fn binding(&self, site: &Site, at: usize) -> Option<(Rc<Recorded>, Binding)> {
        let recorded = self.view_of(site.frame)?.recorded(site.segment);
        let binding = bindings(&recorded, &site.blocks)?.get(at)?.clone();
        Some((recorded, binding))
    }

    fn variable(&mut self, cursor: &Cursor, name: Name) -> Next {
        match self.lookup(name, &cursor.site) {
            Some(Definition::Param { frame, index }) => self.param(cursor, name, frame, index),
            Some(Definition::Binding(site, at)) => match self.binding(&site, at) {
                Some((_, binding)) => self.bound(cursor, name, site, at, &binding),
                None => Next::End(self.end(cursor, StepKind::Unknown, format!("`{name}` is not bound"))),
            },
            None => Next::End(self.end(cursor, StepKind::Unknown, format!("`{name}` is not bound"))),
        }
    }

    fn param(&mut self, cursor: &Cursor, name: Name, frame: usize, index: usize) -> Next {
        let Some(view) = self.view_of(frame) else {
            return Next::End(self.end(cursor, StepKind::Unknown, format!("`{name}` is not bound")));
        };
        let closure = self.frames.get(frame).and_then(|frame| frame.closure.clone());
        let ty = match &closure {
            Some((_, function)) => function.params.get(index).map(|(_, ty)| ty.clone()),
            None => view.param(index).map(|(_, ty)| ty.clone()),
        };
        let function = closure.as_ref().map_or(view.name, |(_, function)| function.name);
        let ty = ty.unwrap_or(StructInfo::Error);
        let mut step = self.step(cursor, StepKind::Parameter, format!("parameter `{name}: {ty}` of `{function}`"));
        step.variable = Some(name);
        if closure.is_none()
            && let Some(span) =
                view.text.segments.first().and_then(|head| spans::param_span(head, None, name, &cursor.facet))
        {
            step.place = view.place(0, span);
        }
        let call = self.frames.get(frame).and_then(|frame| frame.call.clone());
        let argument = call.and_then(|(site, arguments)| Some((site, arguments.get(index)?.clone())));
        match argument {
            Some((site, expr)) if cursor.facet.of(&expr.ty).is_some() => {
                step.kind = StepKind::Argument;
                step.unchanged = true;
                step.text = format!("{} is argument {index} of the call", step.text);
                Next::On(step, Cursor { expr, site, facet: cursor.facet.clone(), bound: None })
            }
            _ => Next::End(step),
        }
    }

    fn bound(&mut self, cursor: &Cursor, name: Name, site: Site, at: usize, binding: &Binding) -> Next {
        let statement = binding.origin.statement;
        let place = |span: Span| self.place(&site, span);
        let name_span = |name| {
            self.view_of(site.frame).map(|view| view.name_span(site.segment, statement, name)).unwrap_or_default()
        };
        let facet = cursor.facet.clone();
        match &binding.kind {
            BindingKind::Value { ty, value, .. } => {
                if facet.of(&value.ty).is_none() && facet.of(ty).is_some() {
                    let text = format!("annotated {ty}; checked when the program runs");
                    let mut step = self.step(cursor, StepKind::Annotation, text);
                    step.variable = Some(name);
                    let span =
                        self.segment(&site).and_then(|segment| spans::annotation_span(&segment, statement, &facet));
                    step.place = place(span.unwrap_or_else(|| name_span(Some(name))));
                    return Next::End(step);
                }
                let bound = Some((name, place(name_span(Some(name)))));
                Next::Silent(Cursor { expr: Expr::clone(value), site, facet, bound })
            }
            BindingKind::Unpack { variables, value } => {
                let index = variables.iter().rposition(|variable| *variable == Some(name)).unwrap_or(0);
                let mut path = vec![index];
                path.extend(&facet.path);
                let bound = Some((name, place(name_span(Some(name)))));
                Next::Silent(Cursor { expr: Expr::clone(value), site, facet: Facet { path, part: facet.part }, bound })
            }
            BindingKind::If { arms, .. } => self.branch(cursor, name, &site, at, binding, arms.len()),
            BindingKind::Function(_) => {
                Next::End(self.end(cursor, StepKind::Declared, format!("`{name}` is a function")))
            }
        }
    }

    fn branch(&mut self, cursor: &Cursor, name: Name, site: &Site, at: usize, binding: &Binding, arms: usize) -> Next {
        let wanted = cursor.facet.of(&cursor.expr.ty);
        let blocks = (0..arms).map(Inner::Arm).chain([Inner::Otherwise]);
        let candidates: Vec<(Inner, Expr, usize)> = blocks
            .filter_map(|inner| {
                let body = inner_body(binding, inner)?;
                let result = body.result.clone()?;
                Some((inner, result, body.bindings.len()))
            })
            .collect();
        let chosen = candidates.first().cloned();
        let Some((inner, expr, count)) = chosen.filter(|_| wanted.is_some()) else {
            return Next::End(self.end(
                cursor,
                StepKind::Unknown,
                format!("no branch gives `{name}` a value that can be followed"),
            ));
        };
        let text = format!("`{name}` is bound by every branch; the first is followed");
        let mut step = self.step(cursor, StepKind::Branch, text);
        step.variable = Some(name);
        step.unchanged = true;
        let view = self.view_of(site.frame);
        let span = view.map(|view| view.name_span(site.segment, binding.origin.statement, Some(name)));
        step.place = self.place(site, span.unwrap_or_default());
        let site = site.inside(at, inner, count);
        Next::On(step, Cursor { expr, site, facet: cursor.facet.clone(), bound: None })
    }

    fn match_cast(&mut self, cursor: &Cursor, inner: &Expr) -> Next {
        let span =
            self.segment(&cursor.site).and_then(|segment| spans::cast_span(&segment, cursor.expr.span, &cursor.facet));
        let place = self.place(&cursor.site, span.unwrap_or(cursor.expr.span));
        let mut step = self.step(cursor, StepKind::MatchCast, String::new());
        step.place = place;
        if cursor.facet.of(&inner.ty).is_some_and(|fact| Some(fact) == cursor.facet.of(&cursor.expr.ty)) {
            step.kind = StepKind::Cast;
            step.unchanged = true;
            step.text = format!("R.match_cast keeps {}", describe_part(&cursor.facet));
            let next =
                Cursor { expr: inner.clone(), site: cursor.site.clone(), facet: cursor.facet.clone(), bound: None };
            return Next::On(step, next);
        }
        step.text = format!("R.match_cast to {}; checked when the program runs", cursor.expr.ty);
        Next::End(step)
    }

    fn literal(&mut self, cursor: &Cursor) -> Next {
        let step = self.step(cursor, StepKind::Literal, "written here".to_owned());
        match self.symbol_of(cursor) {
            Some(symbol) => self.symbol(cursor, symbol, step),
            None => Next::End(step),
        }
    }
}

/// Whether a call is of a function outside the program, such as a packed function: its type is declared, not inferred.
fn is_external(call: &Call) -> bool {
    match &call.callee {
        Callee::Value(function) => matches!(function.kind, ExprKind::Extern(_)),
        Callee::Op(operator) => operator.as_str() == "call_packed",
        Callee::Global(_) => false,
    }
}
