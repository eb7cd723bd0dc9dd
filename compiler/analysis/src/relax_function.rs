//! Converts a checked Relax function to the normal form of passes: binding blocks, each variable bound once, and no
//! nested calls (A-normal form).
//!
//! ```text
//! before:  y = R.exp(R.add(x, x))
//!          y = R.negative(y)
//! after:   gv = R.add(x, x)
//!          y = R.exp(gv)
//!          y_1 = R.negative(y)
//! ```
//!
//! Requires a function without errors. Guarantees that every variable name is unique in the function, and that no
//! operand is a call, a cast or a tuple field. TVM's `relax.transform.Normalize` has the same purpose.
//!
//! Like the body for lowering ([`crate::body`]), it is built from the recorded bindings of the function's segments.

use crate::body::each_segment;
use crate::elaborate::Recorded;
use crate::function::FunctionCheck;
use crate::unify::Bindings;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::symbolic::Bounds;
use rx_base::{Dim, Name, Span};
use rx_context::FileContext;
use rx_ir::rewrite::Renaming;
use rx_ir::{
    Argument, Binding, BindingKind, Block, Body, BoundValue, Branches, Call, Callee, Expr, ExprKind, Function,
    FunctionInfo, FunctionSignature, Origin, PrimValue, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use rx_syntax::Segments;
use std::sync::Arc;

/// Returns the function `function` in normal form. `segments` and `check` must belong to the same text, which should
/// have no errors: erroneous expressions keep their source text.
pub fn relax_function(
    function: Name,
    segments: &Segments,
    signature: &FunctionSignature,
    check: &FunctionCheck,
    file: &FileContext,
) -> RelaxFunction {
    let mut reader = Reader::new(function);
    let params = reader.params(&signature.params);
    reader.first_statement = check.segments.first().map_or(0, |header| header.statements);
    let mut attributes = Vec::new();
    let mut result = None;
    each_segment(segments, check, file, |at, segment, recorded| {
        reader.text = segment.text().into();
        let Recorded { bindings, returned, outputs, attributes: stated } = recorded;
        reader.statements(&bindings, &outputs);
        attributes.extend(stated);
        result = returned.map(|returned| reader.leaf(&returned)).or(result.take());
        let statements = check.segments.get(at).map_or(0, |result| result.statements);
        reader.first_statement = reader.first_statement.saturating_add(statements);
    });
    let blocks = reader.frames.pop().unwrap_or_default().finish();
    let mut body = Sequence { blocks, result: result.unwrap_or_else(unit) };
    if !reader.unread.is_empty() {
        discard(&mut body, &reader.unread);
    }
    RelaxFunction {
        name: function,
        private: signature.private,
        pure: signature.pure,
        attributes,
        params,
        ret: outside(signature.ret.as_ref().or(check.returned.as_ref()), &signature.params),
        body,
    }
}

/// Gives the variables `unread` the name `_` again, also in branches and nested functions.
fn discard(sequence: &mut Sequence, unread: &NameSet) {
    for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        if unread.contains(&binding.variable) {
            binding.variable = name("_");
        }
        match &mut binding.value {
            BoundValue::Expr(_) => {}
            BoundValue::If(branches) => {
                discard(&mut branches.then, unread);
                discard(&mut branches.otherwise, unread);
            }
            BoundValue::Function(function) => discard(&mut Arc::make_mut(function).body, unread),
        }
    }
}

/// Returns the return type as callers see it. Where an inferred type contains a dim that only the body binds, its
/// shape is replaced by the rank (TVM `EraseToWellDefined`).
fn outside(returned: Option<&StructInfo>, params: &[(Name, StructInfo)]) -> StructInfo {
    let bounds = Bounds::default();
    let mut known = Bindings::new(&bounds);
    for (at, (param, ty)) in params.iter().enumerate() {
        ty.each_symbol(&mut |symbol| known.bind(symbol, Dim::symbol(symbol), at));
        if let StructInfo::Prim(_) = ty {
            known.bind(*param, Dim::symbol(*param), at);
        }
    }
    let Some(returned) = returned else { return StructInfo::Object };
    let mut is_known = true;
    returned.each_symbol(&mut |symbol| is_known &= known.get(symbol).is_some());
    if is_known { returned.clone() } else { known.substitute_type(returned) }
}

/// Whether a type is that of a boolean scalar.
fn is_condition(ty: &StructInfo) -> bool {
    matches!(ty, StructInfo::Prim(info) if info.dtype.is_some_and(rx_base::DType::is_bool))
}

/// Returns the empty tuple.
fn unit() -> Expr {
    Expr::new(ExprKind::Tuple(Vec::new()), StructInfo::void())
}

/// A block to which bindings are added.
struct OpenBlock {
    dataflow: Option<u32>,
    bindings: Vec<VarBinding>,
    /// The names of the variables in the text, in the order of the bindings.
    written: Vec<Name>,
    outputs: NameSet,
}

/// The blocks of a sequence to which bindings are added.
#[derive(Default)]
struct Frame {
    blocks: Vec<OpenBlock>,
    /// The dataflow block that contains the sequence.
    around: Option<u32>,
}

impl Frame {
    fn finish(self) -> Vec<Block> {
        let block = |block: OpenBlock| {
            let seen = |binding: &VarBinding| block.outputs.contains(&binding.variable).then_some(binding.variable);
            let outputs = block.dataflow.map(|_| block.bindings.iter().filter_map(seen).collect());
            Block { outputs, bindings: block.bindings }
        };
        self.blocks.into_iter().map(block).collect()
    }
}

/// The conversion of recorded statements to blocks.
struct Reader {
    item: Name,
    /// The text of the segment.
    text: Arc<str>,
    /// The number of the function's statements before the segment.
    first_statement: u32,
    /// The origin of the current statement.
    origin: Origin,
    /// The names that are in use.
    used: NameSet,
    /// The new names of the bindings to `_` that nothing has read.
    unread: NameSet,
    /// The new names of the variables in the text, innermost scope last.
    scopes: Vec<NameMap<Name>>,
    /// The open sequences, innermost last; the first is the function's body.
    frames: Vec<Frame>,
}

impl Reader {
    fn new(item: Name) -> Reader {
        Reader {
            item,
            text: Arc::from(""),
            first_statement: 0,
            origin: Origin { item, statement: 0 },
            used: NameSet::default(),
            unread: NameSet::default(),
            scopes: vec![NameMap::default()],
            frames: vec![Frame::default()],
        }
    }

    fn renamed(&self, written: Name) -> Option<Name> {
        self.scopes.iter().rev().find_map(|scope| scope.get(&written).copied())
    }

    /// Defines a unique name for the variable `written` of the text.
    fn define(&mut self, written: Name) -> Name {
        let own = self.fresh(written.as_str(), "_");
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(written, own);
        }
        own
    }

    /// Defines the name of a binding to `_`, a bare statement or an `if` without a value. Passes take `_` for a value
    /// that nothing reads, and several bindings may have this name. But a text may read `_`, so a value gets a unique
    /// name, which [`discard`] replaces by `_` if nothing reads it. Scalars keep `_`, since dims may name them.
    fn define_discarded(&mut self, written: Name, ty: &StructInfo) -> Name {
        if *ty == StructInfo::void() {
            return written;
        }
        if let StructInfo::Prim(_) = ty {
            if let Some(scope) = self.scopes.last_mut() {
                scope.insert(written, written);
            }
            return written;
        }
        self.used.insert(written);
        let own = self.define(written);
        self.unread.insert(own);
        own
    }

    /// Returns the new name of a variable that is read.
    fn read(&mut self, written: Name) -> Name {
        let own = self.renamed(written).unwrap_or(written);
        self.unread.remove(&own);
        own
    }

    /// Returns an unused name: `like`, or `like` with a number appended.
    fn fresh(&mut self, like: &str, separator: &str) -> Name {
        let mut own = name(like);
        let mut number = 0;
        while !self.used.insert(own) {
            number += 1;
            own = name(&format!("{like}{separator}{number}"));
        }
        own
    }

    fn params(&mut self, params: &[(Name, StructInfo)]) -> Vec<(Name, StructInfo)> {
        let names: Vec<Name> = params.iter().map(|(param, _)| self.define(*param)).collect();
        names.into_iter().zip(params).map(|(own, (_, ty))| (own, self.ty(ty))).collect()
    }

    /// Calls `with` with the current renaming of the text's names.
    fn renaming<T>(&self, with: impl FnOnce(&Renaming<'_>) -> T) -> T {
        let variable = |written: Name| self.renamed(written);
        // The name of a scalar is also a symbol in dims.
        let dim = |symbol: Name| self.renamed(symbol).filter(|own| *own != symbol).map(Dim::symbol);
        with(&Renaming { dim: &dim, variable: &variable })
    }

    fn ty(&self, ty: &StructInfo) -> StructInfo {
        self.renaming(|renaming| renaming.ty(ty))
    }

    /// Adds bindings in order, and the outputs of their dataflow blocks.
    fn statements(&mut self, bindings: &[Binding], outputs: &[(u32, Name)]) {
        bindings.iter().for_each(|binding| self.statement(binding));
        let Some(frame) = self.frames.last_mut() else { return };
        for (ordinal, output) in outputs {
            let block = frame.blocks.iter_mut().rfind(|block| block.dataflow == Some(*ordinal));
            let Some(block) = block else { continue };
            if let Some(at) = block.written.iter().rposition(|written| written == output)
                && let Some(binding) = block.bindings.get(at)
            {
                block.outputs.insert(binding.variable);
                self.unread.remove(&binding.variable);
            }
        }
    }

    fn statement(&mut self, binding: &Binding) {
        let statement = self.first_statement.saturating_add(binding.origin.statement);
        self.origin = Origin { item: self.item, statement };
        let dataflow = binding.dataflow;
        match &binding.kind {
            BindingKind::Value { variable, ty, value } => {
                let value = self.value(value, dataflow);
                self.bind(*variable, ty, BoundValue::Expr(value), dataflow);
            }
            BindingKind::Unpack { variables, value } => self.unpack(variables, value, dataflow),
            BindingKind::If { variable, arms, otherwise } => self.branches(*variable, arms, otherwise, dataflow),
            BindingKind::Function(function) => self.nested(function, dataflow),
        }
    }

    /// Adds a binding of a variable of the text.
    fn bind(&mut self, variable: Name, ty: &StructInfo, value: BoundValue, dataflow: Option<u32>) {
        let own = if variable.as_str() == "_" { self.define_discarded(variable, ty) } else { self.define(variable) };
        let ty = self.ty(ty);
        self.add(VarBinding { origin: self.origin, variable: own, ty, value }, variable, dataflow);
    }

    fn add(&mut self, binding: VarBinding, written: Name, dataflow: Option<u32>) {
        let Some(frame) = self.frames.last_mut() else { return };
        // Dataflow blocks do not nest.
        let dataflow = dataflow.filter(|ordinal| frame.around != Some(*ordinal));
        if frame.blocks.last().is_none_or(|block| block.dataflow != dataflow) {
            frame.blocks.push(OpenBlock {
                dataflow,
                bindings: Vec::new(),
                written: Vec::new(),
                outputs: NameSet::default(),
            });
        }
        if let Some(block) = frame.blocks.last_mut() {
            block.bindings.push(binding);
            block.written.push(written);
        }
    }

    /// Binds an intermediate value to a new variable.
    fn emit(&mut self, value: Expr, dataflow: Option<u32>) -> Expr {
        let own = self.fresh(if dataflow.is_some() { "lv" } else { "gv" }, "");
        let ty = value.ty.clone();
        let binding = VarBinding { origin: self.origin, variable: own, ty: ty.clone(), value: BoundValue::Expr(value) };
        self.add(binding, own, dataflow);
        Expr::var(own, ty)
    }

    fn unpack(&mut self, variables: &[Option<Name>], value: &Expr, dataflow: Option<u32>) {
        let tuple = self.operand(value, dataflow);
        for (at, variable) in variables.iter().enumerate() {
            let ty = tuple.ty.as_tuple().and_then(|fields| fields.get(at)).cloned().unwrap_or(StructInfo::Object);
            let field = Expr::new(ExprKind::TupleGet(Box::new(tuple.clone()), at), ty.clone());
            if let Some(variable) = variable {
                self.bind(*variable, &ty, BoundValue::Expr(field), dataflow);
            }
        }
    }

    /// Converts an expression; its operands are bound to variables where they are calls.
    fn value(&mut self, expr: &Expr, dataflow: Option<u32>) -> Expr {
        let kind = match &expr.kind {
            ExprKind::Call(call) => {
                let mut call = Call::clone(call);
                if let Callee::Value(callee) = &mut call.callee {
                    **callee = self.operand(callee, dataflow);
                }
                for argument in &mut call.arguments {
                    match argument {
                        Argument::Operand(operand) => *operand = self.operand(operand, dataflow),
                        Argument::Operands(operands) => {
                            operands.iter_mut().for_each(|operand| *operand = self.operand(operand, dataflow));
                        }
                        Argument::Absent | Argument::Attr(_) | Argument::Types(_) => {}
                    }
                }
                let mut made = Expr::new(ExprKind::Call(Arc::new(call)), self.ty(&expr.ty));
                self.rename_attributes(&mut made);
                return made;
            }
            ExprKind::MatchCast(inner) => ExprKind::MatchCast(Box::new(self.operand(inner, dataflow))),
            ExprKind::TupleGet(inner, at) => ExprKind::TupleGet(Box::new(self.operand(inner, dataflow)), *at),
            ExprKind::Tuple(items) => ExprKind::Tuple(items.iter().map(|item| self.operand(item, dataflow)).collect()),
            ExprKind::Var(variable) => ExprKind::Var(self.read(*variable)),
            // A condition over dims also keeps its source text.
            ExprKind::Prim(PrimValue::Int(_)) if is_condition(&expr.ty) => ExprKind::Written(self.written(expr.span)),
            ExprKind::Prim(PrimValue::Opaque) | ExprKind::Error => ExprKind::Written(self.written(expr.span)),
            ExprKind::Shape(_) | ExprKind::Prim(_) => {
                let mut own = Expr { span: Span::default(), ..expr.clone() };
                self.renaming(|renaming| renaming.expr(&mut own));
                return own;
            }
            other => other.clone(),
        };
        Expr::new(kind, self.ty(&expr.ty))
    }

    /// Renames in the attributes and types of a call; its operands are renamed already.
    fn rename_attributes(&self, call: &mut Expr) {
        self.renaming(|renaming| {
            let no_variable = |_: Name| None;
            let Renaming { dim, .. } = *renaming;
            if let ExprKind::Call(call) = &mut call.kind {
                for argument in &mut Arc::make_mut(call).arguments {
                    match argument {
                        Argument::Attr(attr) => Renaming { dim, variable: &no_variable }.attr(attr),
                        Argument::Types(types) => types.iter_mut().for_each(|ty| *ty = renaming.ty(ty)),
                        _ => {}
                    }
                }
            }
        });
    }

    /// Like [`Reader::value`], but binds a call, a cast or a tuple field to a new variable.
    fn operand(&mut self, expr: &Expr, dataflow: Option<u32>) -> Expr {
        let value = self.value(expr, dataflow);
        match value.kind {
            ExprKind::Call(_) | ExprKind::MatchCast(_) | ExprKind::TupleGet(..) => self.emit(value, dataflow),
            _ => value,
        }
    }

    /// Converts the value that a function returns.
    fn leaf(&mut self, expr: &Expr) -> Expr {
        self.operand(expr, None)
    }

    fn written(&self, span: Span) -> Arc<str> {
        self.text.get(span.range()).unwrap_or_default().into()
    }

    /// Converts a branch. If its last statement binds the variable to a value that is no computation, that value
    /// becomes the result of the branch, as in TVM.
    fn sequence(&mut self, body: &Body, dataflow: Option<u32>) -> Sequence {
        self.frames.push(Frame { blocks: Vec::new(), around: dataflow });
        self.scopes.push(NameMap::default());
        let origin = self.origin;
        self.statements(&body.bindings, &body.outputs);
        self.origin = origin;
        let mut result = body.result.as_ref().map_or_else(unit, |result| self.operand(result, None));
        self.scopes.pop();
        let mut frame = self.frames.pop().unwrap_or_default();
        if let Some(last) = frame.blocks.last_mut().filter(|block| block.dataflow.is_none())
            && let Some(VarBinding { variable, value: BoundValue::Expr(value), .. }) = last.bindings.last()
            && result.as_var() == Some(*variable)
            && !matches!(value.kind, ExprKind::Call(_) | ExprKind::MatchCast(_) | ExprKind::TupleGet(..))
        {
            result = value.clone();
            self.used.remove(variable);
            last.bindings.pop();
            if last.bindings.is_empty() {
                frame.blocks.pop();
            }
        }
        Sequence { blocks: frame.finish(), result }
    }

    /// Converts an `if` with its `elif`s to nested branches.
    fn branches(&mut self, variable: Option<Name>, arms: &[(Expr, Body)], otherwise: &Body, dataflow: Option<u32>) {
        let Some(((condition, body), rest)) = arms.split_first() else { return };
        let condition = self.operand(condition, dataflow);
        let origin = self.origin;
        let then = self.sequence(body, dataflow);
        let otherwise = match rest {
            [] => self.sequence(otherwise, dataflow),
            rest => {
                self.frames.push(Frame { blocks: Vec::new(), around: dataflow });
                self.scopes.push(NameMap::default());
                self.branches(variable, rest, otherwise, dataflow);
                self.scopes.pop();
                let frame = self.frames.pop().unwrap_or_default();
                let last = frame.blocks.last().and_then(|block| block.bindings.last());
                let result = last.filter(|_| variable.is_some()).map(|last| {
                    self.unread.remove(&last.variable);
                    Expr::var(last.variable, last.ty.clone())
                });
                Sequence { result: result.unwrap_or_else(unit), blocks: frame.finish() }
            }
        };
        self.origin = origin;
        // All branches end in the variable, with the type that its uses see.
        let ty = body.result.as_ref().filter(|_| variable.is_some()).map_or(StructInfo::void(), |end| end.ty.clone());
        let value = BoundValue::If(Box::new(Branches { condition, then, otherwise }));
        self.bind(variable.unwrap_or_else(|| name("_")), &ty, value, dataflow);
    }

    fn nested(&mut self, function: &Function, dataflow: Option<u32>) {
        let own = self.define(function.name);
        let origin = self.origin;
        self.scopes.push(NameMap::default());
        let params = self.params(&function.params);
        let body = self.function_body(&function.body);
        let ret = self.ty(&function.ret);
        self.scopes.pop();
        self.origin = origin;
        let info = FunctionInfo {
            params: Some(params.iter().map(|(_, ty)| ty.clone()).collect()),
            ret: ret.clone(),
            pure: function.pure,
        };
        let nested = RelaxFunction {
            name: own,
            private: function.private,
            pure: function.pure,
            attributes: function.attributes.clone(),
            params,
            ret,
            body,
        };
        let ty = StructInfo::Function(Arc::new(info));
        let value = BoundValue::Function(Arc::new(nested));
        self.add(VarBinding { origin, variable: own, ty, value }, function.name, dataflow);
    }

    /// Converts the body of a nested function.
    fn function_body(&mut self, body: &Body) -> Sequence {
        self.frames.push(Frame::default());
        self.statements(&body.bindings, &body.outputs);
        let result = body.result.as_ref().map_or_else(unit, |result| self.leaf(result));
        Sequence { blocks: self.frames.pop().unwrap_or_default().finish(), result }
    }
}
