//! Formats types for insertion at a position in the source: in the dialect of the file, and with only the symbols
//! that are visible there.

use super::checker::Checker;
use crate::entry::Entry;
use rx_base::name::NameSet;
use rx_base::{Dim, Name};
use rx_context::FileContext;
use rx_ir::{DTensorInfo, FunctionInfo, PrimInfo, Shape, Spelling, StructInfo, TensorInfo};
use rx_syntax::dialect::Dialect;
use std::sync::Arc;

impl Checker<'_> {
    /// Formats a type as an annotation at the current position; `None` if it contains an error. A shape with a symbol
    /// that is not visible is replaced by its rank.
    pub(super) fn written_type(&mut self, ty: &StructInfo) -> Option<String> {
        let mut names = NameSet::default();
        collect_names(ty, &mut names);
        names.retain(|name| self.is_bound(*name));
        Some(spelled(&widened(ty, &names)?, self.file, self.dialect(), &Dim::to_string))
    }

    /// Formats a dim at the current position; `None` if it contains a symbol that is not visible.
    pub(super) fn written_dim(&mut self, dim: &Dim) -> Option<String> {
        let mut names = NameSet::default();
        dim.collect_symbols(&mut names);
        (!dim.is_error() && names.iter().all(|name| self.is_bound(*name))).then(|| dim.to_string())
    }

    /// Formats a type for the signature of the enclosing function, as the annotation of a parameter or the return
    /// type.
    pub(super) fn written_in_signature(&mut self, ty: &StructInfo) -> Option<String> {
        let context = self.function_context()?;
        let dims = &context.dims;
        let visible = widened(ty, &dims.bound.iter().copied().collect())?;
        let file = self.file;
        let dim = |dim: &Dim| match dim.as_symbol() {
            _ if dim.as_constant().is_some() || dims.type_params => dim.to_string(),
            Some(symbol) if file.symbols.contains(&symbol) => dim.to_string(),
            _ => format!("\"{dim}\""),
        };
        Some(spelled(&visible, file, self.dialect(), &dim))
    }

    /// Returns the type with only the symbols that the function's parameters bind; `None` if it contains an error.
    pub(super) fn visible_outside(&mut self, ty: &StructInfo) -> Option<StructInfo> {
        let context = self.function_context()?;
        widened(ty, &context.dims.bound.iter().copied().collect())
    }

    /// Whether a type contains a symbol that the module declares and no parameter of the function binds, so that it
    /// has no value in the function.
    pub(super) fn speaks_of_unbound(&mut self, ty: &StructInfo) -> bool {
        let mut names = NameSet::default();
        collect_names(ty, &mut names);
        let Some(context) = self.function_context() else { return false };
        names.iter().any(|name| self.file.symbols.contains(name) && context.dims.bound.binary_search(name).is_err())
    }

    /// Whether a name denotes a known integer or a shape here.
    fn is_bound(&mut self, name: Name) -> bool {
        match self.lookup(name) {
            Some(Entry::Symbol { bound, .. }) => bound,
            Some(Entry::Value { ty: StructInfo::Prim(prim), .. }) => prim.dtype.is_none_or(|dtype| dtype.is_int()),
            Some(Entry::Value { ty: StructInfo::Shape(_), .. }) => true,
            _ => false,
        }
    }
}

/// Returns the type with each shape that contains a symbol outside `visible` replaced by its rank; `None` if the type
/// contains an error.
fn widened(ty: &StructInfo, visible: &NameSet) -> Option<StructInfo> {
    let all = |types: &[StructInfo], visible: &NameSet| -> Option<Vec<StructInfo>> {
        types.iter().map(|ty| widened(ty, visible)).collect()
    };
    Some(match ty {
        StructInfo::Error => return None,
        StructInfo::Tuple(types) => StructInfo::tuple(all(types, visible)?),
        StructInfo::Function(function) => {
            // The symbols of a function type are local to it, bound by its parameters.
            let mut inside = visible.clone();
            function.params.iter().flatten().for_each(|param| collect_names(param, &mut inside));
            let params = match &function.params {
                Some(params) => Some(all(params, &inside)?),
                None => None,
            };
            let ret = widened(&function.ret, &inside)?;
            StructInfo::Function(Arc::new(FunctionInfo { params, ret, pure: function.pure }))
        }
        StructInfo::Tensor(tensor) => widened_tensor(tensor, visible)?.into(),
        StructInfo::DTensor(tensor) => {
            let inner = widened_tensor(&tensor.tensor, visible)?;
            StructInfo::DTensor(Arc::new(DTensorInfo { tensor: inner, ..DTensorInfo::clone(tensor) }))
        }
        StructInfo::Shape(shape) => StructInfo::Shape(widened_shape(shape, visible)?),
        StructInfo::Prim(prim) => StructInfo::Prim(PrimInfo { dtype: prim.dtype, value: None }),
        StructInfo::Object | StructInfo::String => ty.clone(),
    })
}

fn widened_tensor(tensor: &TensorInfo, visible: &NameSet) -> Option<TensorInfo> {
    let shape = widened_shape(&tensor.shape, visible)?;
    (!tensor.dtype_error).then_some(TensorInfo { shape, ..tensor.clone() })
}

fn widened_shape(shape: &Shape, visible: &NameSet) -> Option<Shape> {
    Some(match shape {
        Shape::Error => return None,
        Shape::Unknown | Shape::Rank(_) => shape.clone(),
        Shape::Known(dims) if dims.iter().any(Dim::is_error) => return None,
        Shape::Known(dims) => {
            let mut all = true;
            dims.iter().for_each(|dim| dim.for_each_symbol(&mut |symbol| all &= visible.contains(&symbol)));
            if all { shape.clone() } else { Shape::Rank(dims.len()) }
        }
        Shape::Var { name, .. } if visible.contains(name) => shape.clone(),
        Shape::Var { dims: Some(dims), .. } => widened_shape(&Shape::Known(dims.clone()), visible)?,
        Shape::Var { ndim, .. } => Shape::of_rank(*ndim),
    })
}

/// Collects the symbols and shape variables in a type.
fn collect_names(ty: &StructInfo, into: &mut NameSet) {
    let mut of_shape = |shape: &Shape| {
        shape.dims().unwrap_or_default().iter().for_each(|dim| dim.collect_symbols(into));
        if let Shape::Var { name, .. } = shape {
            into.insert(*name);
        }
    };
    match ty {
        StructInfo::Tuple(types) => types.iter().for_each(|ty| collect_names(ty, into)),
        StructInfo::Tensor(tensor) => of_shape(&tensor.shape),
        StructInfo::DTensor(tensor) => of_shape(&tensor.tensor.shape),
        StructInfo::Shape(shape) => of_shape(shape),
        StructInfo::Function(function) => {
            function.params.iter().flatten().chain([&function.ret]).for_each(|ty| collect_names(ty, into));
        }
        _ => {}
    }
}

/// Formats a type in the dialect of a file.
fn spelled(ty: &StructInfo, file: &FileContext, dialect: Dialect, dim: &dyn Fn(&Dim) -> String) -> String {
    let path = |canonical: &str| {
        let scalar = canonical.strip_prefix("T.").filter(|_| dialect.is_classic());
        let spelled = match scalar {
            Some(dtype) => format!("R.Prim(\"{dtype}\")"),
            None => dialect.spell_call(canonical).to_owned(),
        };
        match spelled.split_once('.') {
            Some((head, rest)) => format!("{}.{rest}", file.spelled_namespace(head)),
            None => spelled,
        }
    };
    ty.spell(&Spelling { path: &path, dim })
}
