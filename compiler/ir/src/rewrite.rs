//! Traversal and renaming of expressions and types: their variables, symbolic dims, and references to functions of the
//! module.

use crate::expr::{Argument, Attr, Call, Callee, Expr, ExprKind, PrimValue};
use crate::struct_info::{DTensorInfo, FunctionInfo, PrimInfo, Shape, StructInfo, TensorInfo};
use rx_base::name::NameSet;
use rx_base::{Dim, Name};
use std::sync::Arc;

impl Expr {
    /// Creates an expression without a source position.
    pub fn new(kind: ExprKind, ty: StructInfo) -> Expr {
        Expr { kind, ty, span: rx_base::Span::default() }
    }

    /// Creates a variable expression.
    pub fn var(name: Name, ty: StructInfo) -> Expr {
        Expr::new(ExprKind::Var(name), ty)
    }

    /// Creates a tuple of these fields.
    pub fn tuple(fields: Vec<Expr>) -> Expr {
        let ty = StructInfo::Tuple(fields.iter().map(|field| field.ty.clone()).collect());
        Expr::new(ExprKind::Tuple(fields), ty)
    }

    /// Creates a shape of these dims.
    pub fn shape(dims: Vec<Dim>) -> Expr {
        let ty = StructInfo::shape(dims.clone());
        Expr::new(ExprKind::Shape(dims), ty)
    }

    /// For a value with a tuple type, returns an expression for each field.
    pub fn each_field(&self) -> impl Iterator<Item = Expr> {
        let types = self.ty.as_tuple().unwrap_or_default().iter().enumerate();
        types.map(|(at, ty)| Expr::new(ExprKind::TupleGet(Box::new(self.clone()), at), ty.clone()))
    }

    /// The variable, if it is one.
    pub fn as_var(&self) -> Option<Name> {
        match self.kind {
            ExprKind::Var(name) => Some(name),
            _ => None,
        }
    }

    /// The text of a variable or of a field of one: `x`, `x[1]`. `None` for other expressions.
    pub fn variable_text(&self) -> Option<String> {
        match &self.kind {
            ExprKind::Var(name) => Some(name.to_string()),
            ExprKind::TupleGet(tuple, at) => Some(format!("{}[{at}]", tuple.variable_text()?)),
            _ => None,
        }
    }

    /// The call, if it is one.
    pub fn as_call(&self) -> Option<&Call> {
        match &self.kind {
            ExprKind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The name of the called operator, without `relax.`.
    pub fn as_op(&self) -> Option<&'static str> {
        match self.as_call()?.callee {
            Callee::Op(name) => Some(name.as_str()),
            _ => None,
        }
    }

    /// Calls `visit` on the direct children, in source order.
    pub fn each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match &self.kind {
            ExprKind::Tuple(items) => items.iter().for_each(visit),
            ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => visit(inner),
            ExprKind::Call(call) => {
                if let Callee::Value(callee) = &call.callee {
                    visit(callee);
                }
                call.operands().for_each(visit);
            }
            _ => {}
        }
    }

    /// Visits the direct children as in [`Expr::each_child`], mutably.
    pub fn each_child_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            ExprKind::Tuple(items) => items.iter_mut().for_each(visit),
            ExprKind::TupleGet(inner, _) | ExprKind::MatchCast(inner) => visit(inner),
            ExprKind::Call(call) => {
                let call = Arc::make_mut(call);
                if let Callee::Value(callee) = &mut call.callee {
                    visit(callee);
                }
                call.operands_mut().for_each(visit);
            }
            _ => {}
        }
    }

    /// Calls `visit` on the expression and all nested ones, in pre-order. The recursion is as deep as the nesting that
    /// the parser allows.
    pub fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        self.each_child(&mut |child| child.each(visit));
    }

    /// Calls `visit` on the expression and all nested ones, innermost first, mutably.
    pub fn each_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.each_child_mut(&mut |child| child.each_mut(visit));
        visit(self);
    }

    /// The variables in the expression, in source order, with repetitions.
    pub fn variables(&self) -> Vec<Name> {
        let mut found = Vec::new();
        self.each(&mut |expr| found.extend(expr.as_var()));
        found
    }

    /// Calls `visit` on every symbolic dim in the expression, types included.
    pub fn each_symbol(&self, visit: &mut dyn FnMut(Name)) {
        self.each(&mut |expr| {
            expr.ty.each_symbol(visit);
            match &expr.kind {
                ExprKind::Shape(dims) => dims.iter().for_each(|dim| dim.for_each_symbol(&mut |symbol| visit(symbol))),
                ExprKind::Prim(PrimValue::Int(dim)) => dim.for_each_symbol(&mut |symbol| visit(symbol)),
                ExprKind::Call(call) => call.arguments.iter().for_each(|argument| match argument {
                    Argument::Attr(attr) => attr_symbols(attr, visit),
                    Argument::Types(types) => types.iter().for_each(|ty| ty.each_symbol(visit)),
                    _ => {}
                }),
                _ => {}
            }
        });
    }
}

fn attr_symbols(attr: &Attr, visit: &mut dyn FnMut(Name)) {
    match attr {
        Attr::Int(dim) => dim.for_each_symbol(&mut |symbol| visit(symbol)),
        Attr::List(items) => items.iter().for_each(|item| attr_symbols(item, visit)),
        Attr::Dict(entries) => entries.iter().for_each(|(_, value)| attr_symbols(value, visit)),
        _ => {}
    }
}

/// A renaming of symbolic dims, and of variables, which may be the shape of a tensor.
pub struct Renaming<'a> {
    /// The replacement of a symbolic dim; `None` to keep it.
    pub dim: &'a dyn Fn(Name) -> Option<Dim>,
    /// The new name of a variable; `None` to keep it.
    pub variable: &'a dyn Fn(Name) -> Option<Name>,
}

impl Renaming<'_> {
    fn shape(&self, shape: &Shape) -> Shape {
        let map = |dims: &Arc<[Dim]>| dims.iter().map(|dim| dim.substitute(self.dim)).collect();
        match shape {
            Shape::Known(dims) => Shape::Known(map(dims)),
            Shape::Var { name, ndim, dims } => {
                let name = (self.variable)(*name).unwrap_or(*name);
                Shape::Var { name, ndim: *ndim, dims: dims.as_ref().map(map) }
            }
            other => other.clone(),
        }
    }

    fn tensor(&self, tensor: &TensorInfo) -> TensorInfo {
        TensorInfo { shape: self.shape(&tensor.shape), ..tensor.clone() }
    }

    /// Returns the type with renamed symbols and variables.
    pub fn ty(&self, ty: &StructInfo) -> StructInfo {
        match ty {
            StructInfo::Tensor(tensor) => self.tensor(tensor).into(),
            StructInfo::DTensor(tensor) => StructInfo::DTensor(Arc::new(DTensorInfo {
                tensor: self.tensor(&tensor.tensor),
                ..DTensorInfo::clone(tensor)
            })),
            StructInfo::Shape(shape) => StructInfo::Shape(self.shape(shape)),
            StructInfo::Prim(prim) => StructInfo::Prim(PrimInfo {
                dtype: prim.dtype,
                value: prim.value.as_ref().map(|value| value.substitute(self.dim)),
            }),
            StructInfo::Tuple(fields) => StructInfo::Tuple(fields.iter().map(|field| self.ty(field)).collect()),
            StructInfo::Function(function) => StructInfo::Function(Arc::new(FunctionInfo {
                params: function.params.as_ref().map(|params| params.iter().map(|param| self.ty(param)).collect()),
                ret: self.ty(&function.ret),
                pure: function.pure,
            })),
            StructInfo::Object | StructInfo::String | StructInfo::Error => ty.clone(),
        }
    }

    /// Renames in the expression and all nested ones.
    pub fn expr(&self, expr: &mut Expr) {
        expr.each_mut(&mut |expr| {
            expr.ty = self.ty(&expr.ty);
            match &mut expr.kind {
                ExprKind::Var(variable) => *variable = (self.variable)(*variable).unwrap_or(*variable),
                ExprKind::Shape(dims) => dims.iter_mut().for_each(|dim| *dim = dim.substitute(self.dim)),
                ExprKind::Prim(PrimValue::Int(dim)) => *dim = dim.substitute(self.dim),
                ExprKind::Call(call) => Arc::make_mut(call).arguments.iter_mut().for_each(|argument| match argument {
                    Argument::Attr(attr) => self.attr(attr),
                    Argument::Types(types) => types.iter_mut().for_each(|ty| *ty = self.ty(ty)),
                    _ => {}
                }),
                _ => {}
            }
        });
    }

    /// Renames in an attribute.
    pub fn attr(&self, attr: &mut Attr) {
        match attr {
            Attr::Int(dim) => *dim = dim.substitute(self.dim),
            Attr::List(items) => items.iter_mut().for_each(|item| self.attr(item)),
            Attr::Dict(entries) => entries.iter_mut().for_each(|(_, value)| self.attr(value)),
            _ => {}
        }
    }
}

impl StructInfo {
    /// Calls `visit` on every symbolic dim in the type, in source order, with repetitions.
    pub fn each_symbol(&self, visit: &mut dyn FnMut(Name)) {
        let of_dims = |dims: Option<&[Dim]>, visit: &mut dyn FnMut(Name)| {
            dims.into_iter().flatten().for_each(|dim| dim.for_each_symbol(&mut |symbol| visit(symbol)));
        };
        match self {
            StructInfo::Tensor(tensor) => of_dims(tensor.shape.dims(), visit),
            StructInfo::DTensor(tensor) => of_dims(tensor.tensor.shape.dims(), visit),
            StructInfo::Shape(shape) => of_dims(shape.dims(), visit),
            StructInfo::Prim(prim) => {
                prim.value.iter().for_each(|dim| dim.for_each_symbol(&mut |symbol| visit(symbol)))
            }
            StructInfo::Tuple(fields) => fields.iter().for_each(|field| field.each_symbol(visit)),
            StructInfo::Function(function) => {
                function.params.iter().flatten().for_each(|param| param.each_symbol(visit));
                function.ret.each_symbol(visit);
            }
            StructInfo::Object | StructInfo::String | StructInfo::Error => {}
        }
    }

    /// Calls `visit` on the symbolic dims whose values a value of this type determines: those that are a whole dim or
    /// scalar. For example, a tensor of type `R.Tensor((n, m * 2))` determines `n` only.
    pub fn each_told_symbol(&self, visit: &mut dyn FnMut(Name)) {
        let alone = |dims: Option<&[Dim]>, visit: &mut dyn FnMut(Name)| {
            dims.into_iter().flatten().filter_map(Dim::as_symbol).for_each(visit);
        };
        match self {
            StructInfo::Tensor(tensor) => alone(tensor.shape.dims(), visit),
            StructInfo::DTensor(tensor) => alone(tensor.tensor.shape.dims(), visit),
            StructInfo::Shape(shape) => alone(shape.dims(), visit),
            StructInfo::Prim(prim) => alone(prim.value.as_ref().map(std::slice::from_ref), visit),
            StructInfo::Tuple(fields) => fields.iter().for_each(|field| field.each_told_symbol(visit)),
            StructInfo::Function(_) | StructInfo::Object | StructInfo::String | StructInfo::Error => {}
        }
    }

    /// The set of symbolic dims in the type.
    pub fn symbols(&self) -> NameSet {
        let mut found = NameSet::default();
        self.each_symbol(&mut |symbol| {
            found.insert(symbol);
        });
        found
    }
}
