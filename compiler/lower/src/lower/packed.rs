//! Lowers calls of packed functions, and the operators of the lower stages of TVM's pipeline (`R.memory.*`, `R.vm.*`).
//!
//! The table contains functions that TVM's own passes insert (`vm.builtin.*`, TVM `src/runtime/vm/builtin.cc`). Each
//! call is lowered to instructions or to nothing, so the program contains no call of a packed function, and an unknown
//! name is a compile-time error.
//!
//! ```text
//! s = R.call_packed("vm.builtin.alloc_storage", …)           →   (nothing: the memory plan allocates)
//! t = R.call_packed("vm.builtin.reshape", x, R.shape([8]))   →   r1 = view(r0)
//! ```

use super::FunctionLowering;
use super::known::Known;
use super::shape_heap::constant;
use crate::program::Operation;
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_ir::{Argument, Call, Expr, ExprKind, Shape, StructInfo, TensorInfo};
use rx_ops::Schema;

/// The operands of a call of a packed function.
struct Packed<'a> {
    arguments: Vec<Known>,
    /// The types of the arguments.
    types: Vec<StructInfo>,
    /// The type of the result that the call declares.
    ty: &'a StructInfo,
}

/// The type of a shape of unknown rank.
const ANY_SHAPE: StructInfo = StructInfo::Shape(Shape::Unknown);

/// A function that emits the instructions of a packed function's call. `Err` is the message about a malformed call.
type Builtin = fn(&mut FunctionLowering<'_, '_>, Packed<'_>) -> Result<Known, String>;

/// The supported packed functions, by name.
const BUILTINS: &[(&str, Builtin)] = &[
    ("vm.builtin.alloc_shape_heap", |lowering, call| lowering.alloc_shape_heap(&call.arguments)),
    ("vm.builtin.alloc_storage", |_, _| Ok(Known::Null)),
    ("vm.builtin.alloc_tensor", |lowering, call| match &call.arguments[..] {
        [_, _, shape, dtype, ..] => Ok(lowering.allocate(shape, dtype)),
        _ => Err("it takes a storage, an offset, a shape and a dtype".to_owned()),
    }),
    ("vm.builtin.check_func_info", nothing),
    ("vm.builtin.check_prim_value_info", nothing),
    ("vm.builtin.check_shape_info", |lowering, call| {
        let ndim = call.arguments.get(1).and_then(rank).unwrap_or_default();
        checked(lowering, &call, StructInfo::Shape(Shape::of_rank(ndim)))
    }),
    ("vm.builtin.check_tensor_info", |lowering, call| {
        let ndim = call.arguments.get(1).and_then(rank).unwrap_or_default();
        let dtype = match call.arguments.get(2) {
            Some(Known::String(text)) => DType::parse(text),
            _ => None,
        };
        let shape = Shape::of_rank(ndim);
        let ty = TensorInfo { shape, dtype, vdevice: None, dtype_error: false, readings: None };
        checked(lowering, &call, ty.into())
    }),
    ("vm.builtin.check_tuple_info", |lowering, call| {
        let count = call.arguments.get(1).and_then(rank).flatten().unwrap_or_default();
        checked(lowering, &call, StructInfo::tuple(vec![StructInfo::Object; count]))
    }),
    ("vm.builtin.copy", |lowering, call| {
        let from = lowering.materialize(first(call.arguments)?);
        // A separate register: a later write into the source must not change the copy.
        let to = lowering.register(lowering.type_of(from));
        lowering.emit(Operation::Copy { to, from });
        if let Some((dims, dtype)) = call.ty.as_tensor().and_then(|ty| Some((ty.shape.shared_dims()?, ty.dtype?))) {
            lowering.tensors.add(to, dims, dtype);
        }
        Ok(Known::Register(to))
    }),
    ("vm.builtin.make_prim_value", |lowering, call| lowering.make_prim_value(&call.arguments)),
    ("vm.builtin.make_shape", |lowering, call| lowering.make_shape(&call.arguments)),
    ("vm.builtin.match_shape", |lowering, call| lowering.match_shape(&call.arguments, &call.types)),
    ("vm.builtin.null_value", |_, _| Ok(Known::Null)),
    ("vm.builtin.read_if_cond", |_, call| first(call.arguments)),
    ("vm.builtin.reshape", |lowering, call| {
        let mut arguments = call.arguments.into_iter();
        match (arguments.next(), arguments.next(), rx_ops::find(name("reshape"))) {
            (Some(value), Some(Known::Shape(dims)), _) => Ok(lowering.view_of(value, &dims.into())),
            (Some(value), Some(shape), Some(reshape)) => Ok(lowering.open_values(reshape, vec![value, shape], call.ty)),
            _ => Err("it takes a tensor and a shape".to_owned()),
        }
    }),
    ("vm.builtin.shape_of", |lowering, call| match call.types.first().and_then(|ty| ty.as_tensor()?.shape.dims()) {
        Some(dims) => Ok(Known::Shape(dims.to_vec())),
        None => Ok(lowering.host_function("shape_of", call.arguments, false, &ANY_SHAPE)),
    }),
    ("vm.builtin.tensor_to_shape", |lowering, call| {
        Ok(lowering.host_function("tensor_to_shape", call.arguments, false, &ANY_SHAPE))
    }),
    ("vm.builtin.to_device", |_, call| first(call.arguments)),
    ("vm.builtin.tuple_getitem", |lowering, call| {
        let at = call.arguments.get(1).and_then(constant).and_then(|at| usize::try_from(at).ok());
        let at = at.ok_or("it takes a tuple and an index")?;
        first(call.arguments).map(|tuple| lowering.field(tuple, at))
    }),
];

impl FunctionLowering<'_, '_> {
    /// Lowers `R.call_packed("name", …)` and the similar operators.
    pub(super) fn packed_call(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        let function = match schema.operand(call, "func").map(|expr| &expr.kind) {
            Some(ExprKind::Extern(symbol)) => symbol.as_str().to_owned(),
            Some(ExprKind::Str(text)) => text.to_string(),
            _ => return self.problem(format!("R.{} calls no function that is known by name", schema.name)),
        };
        let arguments: Vec<Expr> = match schema.argument(call, "args") {
            Some(Argument::Operands(exprs)) => exprs.clone(),
            Some(Argument::Operand(Expr { kind: ExprKind::Tuple(fields), .. })) => fields.clone(),
            Some(Argument::Operand(expr)) => vec![expr.clone()],
            _ => Vec::new(),
        };
        self.packed(&function, arguments, ty)
    }

    /// Lowers a call of the packed function `function`.
    pub(super) fn packed(&mut self, function: &str, arguments: Vec<Expr>, ty: &StructInfo) -> Known {
        let Some((_, builtin)) = BUILTINS.iter().find(|(name, _)| *name == function) else {
            let known = nearest(function, BUILTINS.iter().map(|(name, _)| *name));
            let known = known.map(|known| format!("; it knows \"{known}\"")).unwrap_or_default();
            return self.problem(format!("rx does not know the packed function \"{function}\"{known}"));
        };
        let types = arguments.iter().map(|argument| argument.ty.clone()).collect();
        let arguments: Vec<Known> = arguments.iter().map(|argument| self.expression(argument)).collect();
        if arguments.contains(&Known::Broken) {
            return Known::Broken;
        }
        match builtin(self, Packed { arguments, types, ty }) {
            Ok(known) => known,
            Err(message) => self.problem(format!("\"{function}\": {message}")),
        }
    }

    /// Lowers `R.memory.*`, `R.vm.*` and `R.builtin.alloc_tensor`.
    pub(super) fn memory_call(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        match schema.name {
            "memory.alloc_storage" | "vm.alloc_storage" => Known::Null,
            "memory.kill_storage" | "memory.kill_tensor" | "vm.kill_object" => Known::nothing(),
            "memory.alloc_tensor" | "vm.alloc_tensor" | "builtin.alloc_tensor" => {
                let [shape, dtype] = ["shape", "dtype"].map(|param| schema.operand(call, param).cloned());
                let (Some(shape), Some(dtype)) = (shape, dtype) else { return Known::Broken };
                let (shape, dtype) = (self.expression(&shape), self.expression(&dtype));
                self.allocate(&shape, &dtype)
            }
            "memory.view" => self.memory_view(schema, call, ty),
            "vm.call_tir_dyn" => self.call_tir_dyn(schema, call),
            _ => self.computed(schema, call, ty),
        }
    }

    /// Lowers `R.memory.view`. A view that certainly has all elements and the same dtype is a view instruction; any
    /// other view of known shape and dtype is a copy of bytes, made on the host; a view of unknown type is lowered at
    /// run time.
    fn memory_view(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        let source = schema.operand(call, "data").and_then(|expr| expr.ty.as_tensor());
        let elements = |dims: &[Dim]| dims.iter().fold(Dim::constant(1), |count, dim| &count * dim);
        // Whether the result has the source's dtype and as many elements.
        let is_whole = |dims: &[Dim], dtype| {
            let source = source.filter(|source| source.dtype == Some(dtype));
            source.and_then(|source| source.shape.dims()).is_some_and(|own| elements(own) == elements(dims))
        };
        let result = ty.as_tensor().and_then(|tensor| Some((tensor.shape.dims()?.to_vec(), tensor.dtype?)));
        let offset = schema.operand(call, "relative_byte_offset").cloned();
        let offset = offset.map(|offset| self.expression(&offset));
        let at_start = offset.as_ref().is_none_or(|offset| constant(offset) == Some(0));
        let data = schema.operand(call, "data").cloned();
        match (result, data) {
            (Some((dims, dtype)), Some(data)) if at_start && is_whole(&dims, dtype) => {
                let data = self.expression(&data);
                self.view_of(data, &dims.into())
            }
            (Some((dims, dtype)), Some(data)) => {
                let data = self.expression(&data);
                let dtype = Known::String(dtype.to_string().into());
                let offset = offset.unwrap_or(Known::Null);
                self.host_function("memory.view", vec![data, Known::Shape(dims), dtype, offset], false, ty)
            }
            _ if self.is_open(call, ty) => self.open(schema, call, ty),
            _ => self.problem(format!("R.memory.view: the shape of the result is not known: it is {ty}")),
        }
    }

    /// Lowers `R.vm.call_tir_dyn(cls.f, (tensors…, R.shape([…])))`. The dims of the shape are the function's scalar
    /// arguments.
    fn call_tir_dyn(&mut self, schema: &'static Schema, call: &Call) -> Known {
        let Some(ExprKind::Global(function)) = schema.operand(call, "func").map(|expr| &expr.kind) else {
            return self.problem("R.vm.call_tir_dyn calls no prim_func of the module");
        };
        let func = match self.lowerer.module.prim_func(*function) {
            Some(Ok(func)) => func,
            Some(Err(reason)) => return self.problem(format!("the prim_func `{function}` cannot be run: {reason}")),
            None => return self.problem(format!("the module has no prim_func `{function}`")),
        };
        let mut flat = Vec::new();
        for argument in self.tuple_argument(schema, call, "args") {
            match argument {
                Known::Shape(dims) => flat.extend(dims.into_iter().map(scalar)),
                other => flat.push(other),
            }
        }
        self.call_in_place(*function, &func, flat)
    }
}

/// Returns a dim as a scalar value.
fn scalar(dim: Dim) -> Known {
    Known::Scalar(crate::program::Scalar::Int(dim))
}

/// Returns the first argument.
fn first(arguments: Vec<Known>) -> Result<Known, String> {
    arguments.into_iter().next().ok_or_else(|| "it takes a value".to_owned())
}

/// Returns the rank that an argument gives: `Some(None)` for a negative number, which means any rank; `None` if the
/// argument is not a constant.
fn rank(known: &Known) -> Option<Option<usize>> {
    constant(known).map(|rank| usize::try_from(rank).ok())
}

/// Lowers a call of one of the type checks that rx leaves out, `vm.builtin.check_func_info` and
/// `vm.builtin.check_prim_value_info`, to nothing. A parameter is checked without them, by the [`Operation::Match`] at
/// the start of its procedure.
fn nothing(_: &mut FunctionLowering<'_, '_>, _: Packed<'_>) -> Result<Known, String> {
    Ok(Known::nothing())
}

/// Emits a check that the first argument has type `ty`. The last argument describes the value in the message, if it is
/// a string that contains `loc=`.
fn checked(lowering: &mut FunctionLowering<'_, '_>, call: &Packed<'_>, ty: StructInfo) -> Result<Known, String> {
    let context = match call.arguments.last() {
        Some(Known::String(text)) if text.contains("loc=") => Some(&**text),
        _ => None,
    };
    let value = call.arguments.first().cloned().ok_or("it takes a value")?;
    lowering.check(value, ty, context);
    Ok(Known::nothing())
}
