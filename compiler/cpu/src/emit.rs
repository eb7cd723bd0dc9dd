//! Code generation from prepared statements to Cranelift IR.
//!
//! The emitter visits the statements top down. If [`lanes`] finds that a loop can be vectorized, its body is emitted up
//! to three times: for several vectors (unrolled), for one vector, and for a single iteration (the remainder). The same
//! functions emit all three; they operate on an [`Operand`], which is one value or a list of vectors.

mod arithmetic;
mod control;
mod convert;
mod expr;
mod lanes;
mod math;
mod memory;
mod promote;
mod split;
mod steps;

use crate::error::CompileError;
use crate::prepare::PreparedStep;
use crate::runtime::Routine;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, FuncRef, InstBuilder, MemFlagsData, Type, Value, condcodes::IntCC, types,
};
use cranelift_frontend::FunctionBuilder;
use cranelift_jit::JITModule;
use cranelift_module::{Linkage, Module};
use promote::Promoted;
use rustc_hash::FxHashMap;
use rx_base::dtype::TypeCode;
use rx_base::{DType, Name};
use rx_tir::{BufferId, Expr, PrimFunc, Site, Stmt, VarId};

/// A run-time check. If one fails, generated code returns its index in [`Emitter::checks`], plus one.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    /// An index out of the range of its axis.
    Bounds { site: Site, buffer: BufferId, axis: u32 },
    /// An integer division by zero, or an integer zero to a negative power.
    Division { site: Site },
    /// A failed assertion.
    Assert { site: Site, message: Name },
    /// More loop iterations than the limit.
    Iterations,
}

/// The value of an expression: uniform over the lanes, or vectors of lanes.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// A scalar that is the same in every lane.
    One(Value),
    /// One vector for each unrolled copy.
    Lanes(Vec<Value>),
}

/// The loop that is being vectorized. For example, with 4 lanes and an unroll factor of 2, each iteration of the
/// emitted loop computes 8 iterations of the loop, and the variable `i` has the two vectors `[i, i + 1, i + 2, i + 3]`
/// and `[i + 4, i + 5, i + 6, i + 7]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneLoop {
    /// The loop variable, bound to its value in the first lane.
    pub(crate) var: VarId,
    /// Lanes of a vector: 4 of 32 bits or 2 of 64.
    pub(crate) lanes: u32,
    /// The number of vectors per iteration of the unrolled loop.
    pub(crate) unroll: u32,
}

/// The value of a variable, and the place of its definition.
#[derive(Clone)]
struct Binding {
    value: BindingValue,
    /// The number of loops, and of branches of `select`s that are emitted as branches, around the definition.
    depth: u32,
}

#[derive(Clone)]
enum BindingValue {
    /// An integer, extended to `int64` from its dtype.
    Index(Value),
    /// A value of any dtype.
    Value(Operand),
}

/// The state of the emission of one function.
pub(crate) struct Emitter<'e> {
    pub(crate) func: &'e PrimFunc,
    builder: FunctionBuilder<'e>,
    module: &'e mut JITModule,
    routines: FxHashMap<&'static str, FuncRef>,
    bindings: Vec<Option<Binding>>,
    bases: Vec<Value>,
    failure: Value,
    promoted: Vec<Promoted>,
    lane: Option<LaneLoop>,
    /// Start and extent of every loop in the nests, by its variable.
    ranges: Vec<Option<(Expr, Expr)>>,
    depth: u32,
    /// The number of enclosing loops for which [`Emitter::take_iterations`] was called.
    counted: u32,
    site: Site,
    pub(crate) checks: Vec<Check>,
    /// Whether the host has fused multiply-add.
    fused: bool,
}

type Emitted<T> = Result<T, CompileError>;

impl<'e> Emitter<'e> {
    /// Begins a function `(pointers, values, failure) -> code`: one pointer per buffer, one `int64` per variable.
    pub(crate) fn new(
        func: &'e PrimFunc,
        mut builder: FunctionBuilder<'e>,
        module: &'e mut JITModule,
        steps: &[PreparedStep],
        fused: bool,
    ) -> Emitted<Emitter<'e>> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let [pointers, values, failure] = *builder.block_params(entry) else {
            return Err(CompileError::Generator("a function of three parameters".into()));
        };
        let mut emitter = Emitter {
            func,
            builder,
            module,
            routines: FxHashMap::default(),
            bindings: vec![None; func.vars.len()],
            bases: Vec::new(),
            failure,
            promoted: Vec::new(),
            lane: None,
            ranges: loop_ranges(func, steps),
            depth: 0,
            counted: 0,
            site: Site { origin: None, operator: func.name },
            checks: Vec::new(),
            fused,
        };
        for at in 0..func.buffers.len() {
            let base = emitter.load_slot(types::I64, pointers, at)?;
            emitter.bases.push(base);
        }
        for var in func.scalar_params().chain(func.symbols.iter().copied()).collect::<Vec<_>>() {
            emitter.bind_parameter(var, values)?;
        }
        Ok(emitter)
    }

    /// Ends the function and returns its checks.
    pub(crate) fn finish(mut self) -> Vec<Check> {
        let success = self.builder.ins().iconst(types::I32, 0);
        self.builder.ins().return_(&[success]);
        self.builder.seal_all_blocks();
        let config = self.module.target_config();
        self.builder.finalize(config);
        self.checks
    }

    /// Emits the subtraction of iterations from the remaining ones; the run fails if fewer remain. It is used for each
    /// iteration of a `while`, for loops whose extents are not known before the function runs, and for loops inside
    /// these whose extents are not constant.
    fn take_iterations(&mut self, iterations: Value) {
        const PLACE: i32 = std::mem::offset_of!(crate::kernel::State, iterations) as i32;
        let left = self.builder.ins().load(types::I64, MemFlagsData::trusted(), self.failure, PLACE);
        let few = self.builder.ins().icmp(IntCC::SignedLessThan, left, iterations);
        self.fail_where(few, Check::Iterations, &[]);
        let left = self.builder.ins().isub(left, iterations);
        self.builder.ins().store(MemFlagsData::trusted(), left, self.failure, PLACE);
    }

    fn load_slot(&mut self, ty: Type, array: Value, at: usize) -> Emitted<Value> {
        let offset = i32::try_from(at * 8).map_err(|_| CompileError::Unsupported("too many parameters".into()))?;
        Ok(self.builder.ins().load(ty, MemFlagsData::trusted().with_readonly(), array, offset))
    }

    /// Loads a scalar or symbol from its slot: integers directly, a `bool` from an integer, floats from the bits of a
    /// `float64`.
    fn bind_parameter(&mut self, var: VarId, values: Value) -> Emitted<()> {
        let dtype = self.func.var(var).dtype;
        let slot = var.0 as usize;
        let value = if dtype.is_float() {
            let wide = self.load_slot(types::F64, values, slot)?;
            let one = self.convert_one(wide, DType::FLOAT64, dtype)?;
            BindingValue::Value(Operand::One(one))
        } else if dtype.is_bool() {
            let wide = self.load_slot(types::I64, values, slot)?;
            let one = self.builder.ins().icmp_imm_s(IntCC::NotEqual, wide, 0);
            BindingValue::Value(Operand::One(one))
        } else {
            scalar_type(dtype)?;
            BindingValue::Index(self.load_slot(types::I64, values, slot)?)
        };
        self.bind(var, value);
        Ok(())
    }

    fn bind(&mut self, var: VarId, value: BindingValue) {
        let depth = self.depth;
        if let Some(slot) = self.bindings.get_mut(var.0 as usize) {
            *slot = Some(Binding { value, depth });
        }
    }

    fn binding(&self, var: VarId) -> Emitted<&Binding> {
        let binding = self.bindings.get(var.0 as usize).and_then(Option::as_ref);
        binding.ok_or_else(|| {
            let name = self.func.vars.get(var.0 as usize).map_or("?", |var| var.name.as_str());
            CompileError::Unsupported(format!("{name} has no value where it is used"))
        })
    }

    /// Returns a reference to a routine, for calls in this function.
    fn routine(&mut self, routine: Routine, args: &[Type], result: Type) -> Emitted<FuncRef> {
        if let Some(known) = self.routines.get(routine.symbol) {
            return Ok(*known);
        }
        let mut signature = self.module.make_signature();
        signature.params.extend(args.iter().map(|ty| AbiParam::new(*ty)));
        signature.returns.push(AbiParam::new(result));
        let id = self
            .module
            .declare_function(routine.symbol, Linkage::Import, &signature)
            .map_err(|error| CompileError::Generator(error.to_string()))?;
        let reference = self.module.declare_func_in_func(id, self.builder.func);
        self.routines.insert(routine.symbol, reference);
        Ok(reference)
    }

    /// Emits a return with the check's index plus 1 if `failed` is true. The details, which are the index and the
    /// extent of a bounds check, are stored in the state that the caller reads.
    fn fail_where(&mut self, failed: Value, check: Check, details: &[Value]) {
        let [cold, onward] = [self.builder.create_block(), self.builder.create_block()];
        self.builder.set_cold_block(cold);
        self.builder.ins().brif(failed, cold, &[], onward, &[]);
        self.begin(cold);
        for (at, detail) in details.iter().enumerate() {
            self.builder.ins().store(MemFlagsData::trusted(), *detail, self.failure, at as i32 * 8);
        }
        self.checks.push(check);
        let code = self.builder.ins().iconst(types::I32, self.checks.len() as i64);
        self.builder.ins().return_(&[code]);
        self.begin(onward);
    }

    /// Continues in a block whose predecessors are all known.
    fn begin(&mut self, block: Block) {
        self.builder.switch_to_block(block);
        self.builder.seal_block(block);
    }

    fn jump(&mut self, block: Block, args: &[Value]) {
        let args: Vec<BlockArg> = args.iter().map(|value| BlockArg::from(*value)).collect();
        self.builder.ins().jump(block, &args);
    }

    /// Returns the type of a vector of the dtype's values in the vectorized loop. Returns `None` outside such a
    /// loop, or if vectors with its number of lanes do not support the dtype.
    fn vector_type(&self, dtype: DType) -> Option<Type> {
        vector_type(dtype, self.lane?.lanes)
    }
}

/// Returns start and extent of every loop in the nests, by its variable.
fn loop_ranges(func: &PrimFunc, steps: &[PreparedStep]) -> Vec<Option<(Expr, Expr)>> {
    let mut ranges = vec![None; func.vars.len()];
    PreparedStep::each(steps, &mut |step| {
        let PreparedStep::Nest(body) = step else { return };
        body.walk(&mut |stmt| {
            if let Stmt::For { var, start, extent, .. } = stmt
                && let Some(range) = ranges.get_mut(var.0 as usize)
            {
                *range = Some((start.clone(), extent.clone()));
            }
        });
    });
    ranges
}

/// Returns the type of a scalar of the dtype; narrow floats are computed as `float32`.
///
/// # Errors
/// [`CompileError::Dtype`] for dtypes that are not computed with.
pub(crate) fn scalar_type(dtype: DType) -> Emitted<Type> {
    let ty = match (dtype.code, dtype.bits) {
        (TypeCode::Bool, _) => types::I8,
        (TypeCode::Int | TypeCode::UInt, 8) => types::I8,
        (TypeCode::Int | TypeCode::UInt, 16) => types::I16,
        (TypeCode::Int | TypeCode::UInt, 32) => types::I32,
        (TypeCode::Int | TypeCode::UInt, 64) => types::I64,
        (TypeCode::Float, 16 | 32) | (TypeCode::BFloat, 16) => types::F32,
        (TypeCode::Float, 64) => types::F64,
        _ => return Err(CompileError::Dtype(dtype)),
    };
    if dtype.lanes == 1 { Ok(ty) } else { Err(CompileError::Dtype(dtype)) }
}

/// Returns the type of a vector of `lanes` values of a dtype: 4 of at most 32 bits, 2 of 64; a `bool` is a mask of that
/// width. Narrow values are widened: for example, 4 values of `int8` are an `I32X4`.
pub(crate) fn vector_type(dtype: DType, lanes: u32) -> Option<Type> {
    let scalar = scalar_type(dtype).ok()?;
    match lanes {
        4 if scalar == types::F32 => Some(types::F32X4),
        4 if scalar.is_int() && scalar.bits() <= 32 => Some(types::I32X4),
        2 if scalar == types::F64 => Some(types::F64X2),
        2 if scalar == types::I64 || dtype.is_bool() => Some(types::I64X2),
        _ => None,
    }
}
