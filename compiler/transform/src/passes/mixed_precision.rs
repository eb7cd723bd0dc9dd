//! `ToMixedPrecision`: computes matmuls, convolutions and attention with 16-bit floats.
//!
//! ```text
//!                              lv = R.astype(x, dtype="float16")
//! y = R.matmul(x, w)     →     lv1 = R.astype(w, dtype="float16")
//!                              y = R.matmul(lv, lv1, out_dtype="float32")
//! ```
//!
//! The policy of an operator ([`precision`]) decides: some operators always take 16-bit floats; some take them if all
//! of their operands are 16-bit floats (or literals in their range) already, and otherwise 32-bit floats; others keep
//! their dtypes. The result of an operator of the first kind is cast to 16 bits, unless it is used outside its block
//! (as `y` is in the example) or by a nested function. A tensor that is used only by operators of the first kind is
//! stored with 16 bits ([`needs`]); other tensors are cast at each use that needs it.
//!
//! Requires dataflow blocks; other bindings do not change. Guarantees that a variable that is used outside its block,
//! or by a nested function, keeps its dtype. TVM also casts the operands of matmuls of integers and of 64-bit floats;
//! here they stay.
//!
//! Reference: TVM `src/relax/transform/to_mixed_precision.cc`.

mod needs;

use crate::names::FreshNames;
use crate::pass::{Arguments, Parameter, Pass, PassError, each_function};
use crate::substitute::retyped;
use crate::{Module, make, walk};
use needs::{Need, Needs, is_tensors};
use rx_base::name::{NameMap, NameSet};
use rx_base::{DType, Name};
use rx_ir::{
    Argument, Attr, Block, BoundValue, Call, Callee, Expr, ExprKind, Literal, Origin, RelaxFunction, Sequence,
    StructInfo, TensorInfo, VarBinding,
};
use rx_ops::tvm::{Precision, precision};
use serde_json::Value;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "ToMixedPrecision",
    parameters: &[
        Parameter {
            name: "out_dtype",
            default: Some("\"float32\""),
            doc: "The dtype that products and convolutions sum in and give: `float32` or `float16`.",
        },
        Parameter { name: "fp16_input_names", default: Some("null"), doc: "Parameters that become 16-bit floats." },
    ],
    doc: "Computes products and convolutions with 16-bit floats, and other operators on their results where possible.",
    reference: "src/relax/transform/to_mixed_precision.cc",
    run,
};

/// The largest finite `float16`.
const LARGEST: f64 = 65504.0;

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let wrong = |message: &str| PassError(format!("ToMixedPrecision: {message}"));
    let out_dtype = arguments.get(0).as_str().and_then(DType::parse);
    let out_dtype = out_dtype.filter(|dtype| [DType::FLOAT16, DType::FLOAT32].contains(dtype));
    let out_dtype = out_dtype.ok_or_else(|| wrong("`out_dtype` is \"float32\" or \"float16\""))?;
    let narrow: Option<Vec<&str>> = match arguments.get(1) {
        Value::Null => Some(Vec::new()),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let narrow = narrow.ok_or_else(|| wrong("`fp16_input_names` is a list of names"))?;
    each_function(&mut module, PASS.name, |function| in_function(function, out_dtype, &narrow))?;
    Ok(module)
}

fn in_function(function: &mut RelaxFunction, out_dtype: DType, narrow: &[&str]) -> Result<(), PassError> {
    let needs = Needs::of(function);
    let mut rewriter = Rewriter {
        out_dtype,
        needs: &needs,
        params: function.params.clone(),
        narrow: NameMap::default(),
        fresh: FreshNames::of(function),
    };
    for (param, ty) in &mut function.params {
        let tensor = ty.as_tensor().filter(|tensor| is_rewritten(tensor) && narrow.contains(&param.as_str()));
        if let Some(tensor) = tensor {
            *ty = StructInfo::from(TensorInfo { dtype: Some(DType::FLOAT16), ..tensor.clone() });
            rewriter.narrow.insert(*param, Expr::var(*param, ty.clone()));
        }
    }
    if let Some(outside) = named_outside(&function.body).into_iter().find(|named| rewriter.narrow.contains_key(named)) {
        return Err(PassError(format!(
            "the parameter `{outside}` is named outside dataflow blocks and stays as it is"
        )));
    }
    rewriter.sequence(&mut function.body)
}

/// Returns the variables that are used outside of dataflow blocks, or in nested functions.
fn named_outside(of: &Sequence) -> Vec<Name> {
    let mut found = of.result.variables();
    for Block { outputs, bindings } in &of.blocks {
        for binding in bindings {
            match &binding.value {
                BoundValue::Expr(_) if outputs.is_some() => {}
                BoundValue::Expr(value) => found.extend(value.variables()),
                BoundValue::If(branches) => {
                    found.extend(branches.condition.variables());
                    found.extend(binding.value.sequences().flat_map(named_outside));
                }
                BoundValue::Function(function) => {
                    walk::each_expression(&function.body, &mut |expr| found.extend(expr.variables()));
                }
            }
        }
    }
    found
}

/// Whether the dtype of a tensor is one that the pass changes.
fn is_rewritten(tensor: &TensorInfo) -> bool {
    matches!(tensor.dtype, Some(DType::FLOAT16 | DType::FLOAT32))
}

struct Rewriter<'a> {
    out_dtype: DType,
    needs: &'a Needs,
    params: Vec<(Name, StructInfo)>,
    /// The parameters that have become 16-bit floats.
    narrow: NameMap<Expr>,
    fresh: FreshNames,
}

/// A dataflow block that is being rewritten.
struct Open {
    bindings: Vec<VarBinding>,
    origin: Origin,
    /// For each variable that the block has bound so far, and each parameter that changed or has a copy: the variable
    /// to use in later bindings. It is the same variable, with the dtype that it has now, or a 16-bit copy of it.
    current: NameMap<Expr>,
    /// The variables that are used outside of the block or by a nested function, and keep their dtype.
    kept: NameSet,
}

impl Open {
    /// If `value` is the variable of the last binding, and that is not among the first `before` bindings, removes the
    /// binding and returns the bound value. Returns any other `value` unchanged.
    fn unbound(&mut self, value: Expr, before: usize) -> Expr {
        let is_new = self.bindings.len() > before;
        match self.bindings.pop_if(|last| is_new && value.as_var() == Some(last.variable)) {
            Some(VarBinding { value: BoundValue::Expr(own), .. }) => own,
            _ => value,
        }
    }
}

impl Rewriter<'_> {
    fn sequence(&mut self, of: &mut Sequence) -> Result<(), PassError> {
        for block in &mut of.blocks {
            for binding in &mut block.bindings {
                binding.value.sequences_mut().try_for_each(|inner| self.sequence(inner))?;
            }
            if block.outputs.is_some() {
                self.block(block)?;
            }
        }
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), PassError> {
        let Some(origin) = block.bindings.first().map(|binding| binding.origin) else { return Ok(()) };
        let mut kept: NameSet = block.outputs.iter().flatten().copied().collect();
        let mut used = NameSet::default();
        for binding in &block.bindings {
            match &binding.value {
                BoundValue::Expr(value) => used.extend(value.variables()),
                BoundValue::Function(function) => {
                    walk::each_expression(&function.body, &mut |expr| kept.extend(expr.variables()));
                }
                BoundValue::If(_) => {}
            }
        }
        let mut open = Open { bindings: Vec::new(), origin, current: self.narrow.clone(), kept };
        for (param, ty) in self.params.clone() {
            if used.contains(&param) {
                self.keep_narrow(param, &ty, &mut open)?;
            }
        }
        for binding in std::mem::take(&mut block.bindings) {
            open.origin = binding.origin;
            self.binding(binding, &mut open)?;
        }
        block.bindings = open.bindings;
        Ok(())
    }

    fn binding(&mut self, mut binding: VarBinding, open: &mut Open) -> Result<(), PassError> {
        let BoundValue::Expr(value) = &binding.value else {
            open.bindings.push(binding);
            return Ok(());
        };
        let kept = open.kept.contains(&binding.variable);
        let before = open.bindings.len();
        let made = self.value(value, kept, open)?;
        let made = if kept { self.cast_to(made, &binding.ty, open)? } else { made };
        let made = open.unbound(made, before);
        // If the dtype does not change, the declared type stays, since it may be more specific.
        if !kept && made.ty != value.ty {
            binding.ty = made.ty.clone();
        }
        binding.value = BoundValue::Expr(made);
        let (variable, ty) = (binding.variable, binding.ty.clone());
        open.bindings.push(binding);
        open.current.insert(variable, Expr::var(variable, ty.clone()));
        self.keep_narrow(variable, &ty, open)
    }

    /// If a variable, or a field of a tuple variable, has 32 bits and is needed only with 16, emits a 16-bit copy of
    /// the variable that replaces it in later bindings.
    fn keep_narrow(&mut self, variable: Name, ty: &StructInfo, open: &mut Open) -> Result<(), PassError> {
        let current = open.current.get(&variable).cloned().unwrap_or_else(|| Expr::var(variable, ty.clone()));
        let need = self.needs.get(variable).narrow_parts();
        let copy = self.cast(current, &need, open)?;
        if copy.as_var() != Some(variable) {
            let copy = if copy.as_var().is_some() { copy } else { self.emit(copy, open) };
            open.current.insert(variable, copy);
        }
        Ok(())
    }

    fn value(&mut self, value: &Expr, kept: bool, open: &mut Open) -> Result<Expr, PassError> {
        match &value.kind {
            ExprKind::Call(call) => match call.callee {
                Callee::Op(operator) => self.operator(operator, call, value, kept, open),
                _ => self.as_it_was(value, open),
            },
            ExprKind::Tuple(_) | ExprKind::TupleGet(..) => Ok(replaced(value, open)),
            _ => self.as_it_was(value, open),
        }
    }

    fn operator(
        &mut self,
        operator: Name,
        call: &Call,
        value: &Expr,
        kept: bool,
        open: &mut Open,
    ) -> Result<Expr, PassError> {
        if operator.as_str() == "wrap_param" {
            let data = operands(call).first().map(|data| replaced(data, open));
            return data.map_or_else(|| self.as_it_was(value, open), Ok);
        }
        let mut call = call.clone();
        // The type of a constant without data is unknown.
        let mut unknown = false;
        value.each_child(&mut |operand| unknown |= operand.ty.is_error());
        let policy = match precision(operator.as_str()) {
            _ if unknown => Precision::Never,
            Precision::Always if !operands(&call).iter().all(|operand| may_be_narrow(&operand.ty)) => Precision::Never,
            policy => policy,
        };
        let narrow = match policy {
            Precision::Never => return self.as_it_was(value, open),
            Precision::Always => true,
            Precision::Follow => operands(&call).iter().all(|operand| is_narrow(&replaced(operand, open))),
        };
        let need = if narrow { Need::Narrow } else { Need::Wide };
        for operand in call.operands_mut() {
            *operand = self.operand(operand, &need, open)?;
        }
        let params = rx_ops::find(operator).map_or(&[][..], |schema| schema.params);
        let out_dtype = params.iter().position(|param| param.name == "out_dtype");
        if let (Precision::Always, Some(argument)) = (policy, out_dtype.and_then(|at| call.arguments.get_mut(at))) {
            *argument = Argument::Attr(Attr::Str(self.out_dtype.to_string().into()));
        }
        let same = matches!(&value.kind, ExprKind::Call(before) if **before == call);
        let made = if same { value.clone() } else { make::typed(call)? };
        match policy == Precision::Always && !kept {
            true => {
                let need = Need::of(&made.ty, &Need::Narrow);
                self.cast(made, &need, open)
            }
            false => Ok(made),
        }
    }

    fn operand(&mut self, operand: &Expr, need: &Need, open: &mut Open) -> Result<Expr, PassError> {
        let current = replaced(operand, open);
        match is_tensors(&current.ty) {
            true => {
                let need = Need::of(&current.ty, need);
                self.cast(current, &need, open)
            }
            false => Ok(current),
        }
    }

    /// Returns a value whose operands are cast back to their original dtypes.
    fn as_it_was(&mut self, value: &Expr, open: &mut Open) -> Result<Expr, PassError> {
        let mut made = value.clone();
        let mut problem = None;
        let mut restore = |operand: &mut Expr| match self.restored(operand, open) {
            Ok(restored) => *operand = restored,
            Err(error) => problem = Some(error),
        };
        match &value.kind {
            ExprKind::Var(_) => restore(&mut made),
            _ => made.each_child_mut(&mut restore),
        }
        problem.map_or(Ok(made), Err)
    }

    fn restored(&mut self, operand: &Expr, open: &mut Open) -> Result<Expr, PassError> {
        let current = replaced(operand, open);
        match current == *operand {
            true => Ok(current),
            false => self.cast_to(current, &operand.ty, open),
        }
    }

    /// Casts the `float16` and `float32` tensors of a value to those of these dtypes in a type.
    fn cast_to(&mut self, value: Expr, ty: &StructInfo, open: &mut Open) -> Result<Expr, PassError> {
        self.cast(value, &needed_for(ty), open)
    }

    /// Casts a value to the needed dtypes. Tensors that have them already, whose need is unknown, or that are neither
    /// `float16` nor `float32` stay unchanged.
    fn cast(&mut self, value: Expr, need: &Need, open: &mut Open) -> Result<Expr, PassError> {
        match need {
            Need::Unknown => Ok(value),
            Need::Tuple(needs) => self.cast_tuple(value, needs, open),
            Need::Narrow | Need::Wide => {
                let wanted = if *need == Need::Narrow { DType::FLOAT16 } else { DType::FLOAT32 };
                let is_other =
                    value.ty.as_tensor().is_some_and(|tensor| is_rewritten(tensor) && tensor.dtype != Some(wanted));
                if !is_other {
                    return Ok(value);
                }
                let value = self.named(value, open);
                let dtype = Argument::Attr(Attr::Str(wanted.to_string().into()));
                let cast = make::call("astype", vec![("x", Argument::Operand(value)), ("dtype", dtype)])?;
                Ok(self.emit(cast, open))
            }
        }
    }

    fn cast_tuple(&mut self, value: Expr, needs: &[Need], open: &mut Open) -> Result<Expr, PassError> {
        let types = value.ty.as_tuple().map(<[_]>::to_vec).unwrap_or_default();
        if types.iter().zip(needs).all(|(ty, need)| has(ty, need)) {
            return Ok(value);
        }
        let fields: Vec<Expr> = match value.kind {
            ExprKind::Tuple(fields) => fields,
            _ => {
                let tuple = self.named(value, open);
                tuple.each_field().map(|field| self.emit(field, open)).collect()
            }
        };
        let mut cast = Vec::with_capacity(fields.len());
        for (field, need) in fields.into_iter().zip(needs) {
            cast.push(self.cast(field, need, open)?);
        }
        Ok(Expr::tuple(cast))
    }

    /// Returns a value as an operand: a call, a field or a cast is bound to a variable first.
    fn named(&mut self, value: Expr, open: &mut Open) -> Expr {
        match value.kind {
            ExprKind::Call(_) | ExprKind::TupleGet(..) | ExprKind::MatchCast(_) => self.emit(value, open),
            _ => value,
        }
    }

    fn emit(&mut self, value: Expr, open: &mut Open) -> Expr {
        let variable = self.fresh.value(true);
        let ty = value.ty.clone();
        open.bindings.push(VarBinding::new(open.origin, variable, value));
        Expr::var(variable, ty)
    }
}

/// Returns a variable, a tuple or a tuple field with its variables replaced by their current versions. Returns other
/// expressions unchanged.
fn replaced(expr: &Expr, open: &Open) -> Expr {
    retyped(expr, &|variable| open.current.get(&variable).cloned())
}

/// Returns the operands of a call that are tensors, or tuples of tensors.
fn operands(call: &Call) -> Vec<&Expr> {
    call.operands().filter(|operand| is_tensors(&operand.ty)).collect()
}

fn may_be_narrow(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().all(may_be_narrow),
        ty => ty.as_tensor().is_some_and(is_rewritten),
    }
}

/// Whether each tensor of a value is a `float16`, or a literal number or list of numbers in the range of `float16`.
fn is_narrow(value: &Expr) -> bool {
    let fits = |literal: &Literal| match literal {
        Literal::Float(value) => value.abs() <= LARGEST,
        Literal::Int(value) => (*value as f64).abs() <= LARGEST,
        Literal::Bool(_) => false,
    };
    match &value.kind {
        ExprKind::Tuple(fields) => fields.iter().all(is_narrow),
        ExprKind::Constant(literal) => fits(literal),
        ExprKind::Elements(literals) => literals.iter().all(fits),
        _ => value.ty.as_tensor().is_some_and(|tensor| tensor.dtype == Some(DType::FLOAT16)),
    }
}

/// Returns the need that a type's dtypes express: `float16` is narrow, `float32` is wide, others are unknown.
fn needed_for(ty: &StructInfo) -> Need {
    match ty {
        StructInfo::Tuple(fields) => Need::Tuple(fields.iter().map(needed_for).collect()),
        ty => match ty.as_tensor().and_then(|tensor| tensor.dtype) {
            Some(DType::FLOAT16) => Need::Narrow,
            Some(DType::FLOAT32) => Need::Wide,
            _ => Need::Unknown,
        },
    }
}

/// Whether a type has the needed dtypes. A tensor that is neither `float16` nor `float32` has any needed dtype.
fn has(ty: &StructInfo, need: &Need) -> bool {
    match (ty, need) {
        (StructInfo::Tuple(fields), Need::Tuple(needs)) => fields.iter().zip(needs).all(|(ty, need)| has(ty, need)),
        (_, Need::Unknown) => true,
        (ty, need) => {
            let other = if *need == Need::Narrow { DType::FLOAT32 } else { DType::FLOAT16 };
            ty.as_tensor().is_none_or(|tensor| tensor.dtype != Some(other))
        }
    }
}
