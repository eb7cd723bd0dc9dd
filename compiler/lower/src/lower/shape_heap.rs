//! Lowers the shape heap of TVM's later stages to symbolic dims. `vm.builtin.match_shape` stores integers into the
//! heap, prim_funcs compute with them, and `vm.builtin.make_shape` loads them (TVM
//! `src/relax/backend/vm/vm_shape_lower.cc`, `src/runtime/vm/builtin.cc`).
//!
//! ```text
//! match_shape(x, heap, 2, 1, 0, 0, 4)      # heap[0] = dim 0 of x; dim 1 is 4    →  check x: Tensor((h0, 4))
//! shape_func(heap)                         # heap[1] = heap[0] * 2
//! s = make_shape(heap, 1, 1, 1)            # (heap[1],)                          →  s = shape (h0 * 2,)
//! ```
//!
//! Guarantees that no heap exists at run time.

use super::FunctionLowering;
use super::known::Known;
use crate::program::{Operation, Scalar};
use rx_base::name::name;
use rx_base::{Dim, Name};
use rx_ir::{Shape, StructInfo, TensorInfo};
use rx_tir::func::{BufferId, Param, PrimFunc};
use rx_tir::{BinaryOp, Expr, Stmt};

/// The dims in a heap, by slot; `None` where nothing was stored yet.
pub(super) type Heap = Vec<Option<Dim>>;

/// The limit of a heap's size, in slots (exclusive): more than any program needs. All slots are allocated at once.
const MAX_SLOTS: i64 = 1 << 20;

impl FunctionLowering<'_, '_> {
    /// Lowers `vm.builtin.alloc_shape_heap(size)`.
    pub(super) fn alloc_shape_heap(&mut self, arguments: &[Known]) -> Result<Known, String> {
        match constants(arguments).as_deref() {
            Some([size @ 0..MAX_SLOTS]) => {
                self.heaps.push(vec![None; *size as usize]);
                Ok(Known::Heap(self.heaps.len() - 1))
            }
            _ => Err("it takes the number of slots".to_owned()),
        }
    }

    /// Lowers `vm.builtin.match_shape(value, heap, rank, (code, operand)…, context)`. The code says what happens to
    /// each dim: it must equal the number `operand` (0), is stored into the slot `operand` (1), is ignored (2), or must
    /// equal that slot (3).
    pub(super) fn match_shape(&mut self, arguments: &[Known], types: &[StructInfo]) -> Result<Known, String> {
        let [value, heap, rank, rest @ ..] = arguments else { return Err("it takes a value and a heap".to_owned()) };
        let (codes, context) = match rest {
            [codes @ .., Known::String(context)] => (codes, Some(&**context)),
            codes => (codes, None),
        };
        let codes = pairs(rank, codes).ok_or("its codes are not one pair for each dim")?;
        let mut dims = Vec::with_capacity(codes.len());
        for (code, operand) in codes {
            dims.push(match code {
                0 => Dim::constant(operand),
                3 => self.load(heap, operand)?,
                1 | 2 => {
                    let symbol = Dim::symbol(self.heap_symbol(operand));
                    if code == 1 {
                        *self.slot(heap, operand)? = Some(symbol.clone());
                    }
                    symbol
                }
                code => return Err(format!("{code} is no code of it")),
            });
        }
        let shape = Shape::known(dims);
        let ty = match types.first() {
            Some(StructInfo::Shape(_)) => StructInfo::Shape(shape),
            _ => TensorInfo { shape, dtype: None, vdevice: None, dtype_error: false, readings: None }.into(),
        };
        self.check(value.clone(), ty, context);
        Ok(Known::nothing())
    }

    /// Returns a new symbol, different from all symbols in the types so far. `slot` is a part of its name.
    fn heap_symbol(&mut self, slot: i64) -> Name {
        loop {
            self.heap_symbols += 1;
            let symbol = name(&format!("heap{slot}_{}", self.heap_symbols));
            if !self.types.iter().any(|ty| ty.symbols().contains(&symbol)) {
                return symbol;
            }
        }
    }

    /// Lowers `vm.builtin.make_shape(heap, rank, (code, operand)…)`. Each dim is the number `operand` (code 0) or is
    /// loaded from that slot (code 1).
    pub(super) fn make_shape(&mut self, arguments: &[Known]) -> Result<Known, String> {
        let [heap, rank, codes @ ..] = arguments else { return Err("it takes a heap and a rank".to_owned()) };
        let codes = pairs(rank, codes).ok_or("its codes are not one pair for each dim")?;
        let dims: Result<Vec<Dim>, String> = codes.into_iter().map(|code| self.made(heap, code)).collect();
        dims.map(Known::Shape)
    }

    /// Lowers `vm.builtin.make_prim_value(heap, code, operand)`.
    pub(super) fn make_prim_value(&mut self, arguments: &[Known]) -> Result<Known, String> {
        match (arguments.first(), constants(arguments.get(1..).unwrap_or_default()).as_deref()) {
            (Some(heap), Some([code, operand])) => {
                self.made(heap, (*code, *operand)).map(|dim| Known::Scalar(Scalar::Int(dim)))
            }
            _ => Err("it takes a heap, a code and a number".to_owned()),
        }
    }

    /// Returns the dim that a code and its operand describe.
    fn made(&mut self, heap: &Known, (code, operand): (i64, i64)) -> Result<Dim, String> {
        match code {
            0 => Ok(Dim::constant(operand)),
            1 => self.load(heap, operand),
            code => Err(format!("{code} is no code of it")),
        }
    }

    /// Returns a slot of a heap.
    fn slot(&mut self, heap: &Known, at: i64) -> Result<&mut Option<Dim>, String> {
        let Known::Heap(heap) = heap else { return Err("it takes a shape heap".to_owned()) };
        let slots = self.heaps.get_mut(*heap);
        let slot = slots.and_then(|slots| slots.get_mut(usize::try_from(at).ok()?));
        slot.ok_or_else(|| format!("the shape heap has no slot {at}"))
    }

    /// Returns the dim in a slot, which must have been stored.
    fn load(&mut self, heap: &Known, at: i64) -> Result<Dim, String> {
        self.slot(heap, at)?.clone().ok_or_else(|| format!("slot {at} of the shape heap is read before it is written"))
    }

    /// Evaluates a prim_func whose only argument is a shape heap: its stores are done on dims. Returns `None` for other
    /// calls.
    pub(super) fn shape_function(&mut self, func: &PrimFunc, arguments: &[Known]) -> Option<Known> {
        let ([heap @ Known::Heap(_)], [Param::Buffer(buffer)]) = (arguments, &func.params[..]) else { return None };
        match self.store_dims(&func.body, heap, *buffer) {
            Ok(()) => Some(Known::nothing()),
            Err(message) => Some(self.problem(format!("`{}`: {message}", func.name))),
        }
    }

    /// Evaluates the stores of a statement.
    fn store_dims(&mut self, stmt: &Stmt, heap: &Known, buffer: BufferId) -> Result<(), String> {
        match stmt {
            Stmt::Seq(statements) => {
                statements.iter().try_for_each(|statement| self.store_dims(statement, heap, buffer))
            }
            Stmt::Block(block) if block.only_holds() => self.store_dims(&block.body, heap, buffer),
            Stmt::Store { buffer: to, indices, value, .. } if *to == buffer => {
                let at = slot_of(indices).ok_or(NOT_DIMS)?;
                let value = self.dim_of(value, heap, buffer)?;
                *self.slot(heap, at)? = Some(value);
                Ok(())
            }
            _ => Err(NOT_DIMS.to_owned()),
        }
    }

    /// Evaluates an integer expression as a dim.
    fn dim_of(&mut self, expr: &Expr, heap: &Known, buffer: BufferId) -> Result<Dim, String> {
        Ok(match expr {
            Expr::Int { value, .. } => Dim::constant(*value),
            Expr::Load { buffer: from, indices, .. } if *from == buffer => {
                self.load(heap, slot_of(indices).ok_or(NOT_DIMS)?)?
            }
            Expr::Cast { value, dtype } if dtype.is_int() => self.dim_of(value, heap, buffer)?,
            Expr::Checked { index, .. } => self.dim_of(index, heap, buffer)?,
            Expr::Binary { op, left, right } => {
                let (left, right) = (self.dim_of(left, heap, buffer)?, self.dim_of(right, heap, buffer)?);
                match op {
                    BinaryOp::Add => &left + &right,
                    BinaryOp::Sub => &left - &right,
                    BinaryOp::Mul => &left * &right,
                    BinaryOp::FloorDiv => left.floor_div(&right),
                    BinaryOp::FloorMod => left.floor_mod(&right),
                    BinaryOp::Min => left.minimum(&right),
                    BinaryOp::Max => left.maximum(&right),
                    _ => return Err(NOT_DIMS.to_owned()),
                }
            }
            _ => return Err(NOT_DIMS.to_owned()),
        })
    }

    /// Emits a run-time check that a value has type `ty`. `context` is TVM's description of the value, for the message.
    pub(super) fn check(&mut self, value: Known, ty: StructInfo, context: Option<&str>) {
        let part = |key: &str| {
            let (_, rest) = context?.split_once(key)?;
            Some(rest.split([',', ')']).next().unwrap_or(rest).trim().to_owned())
        };
        let subject = match (part("param="), part("loc=")) {
            (Some(param), _) => format!("parameter `{param}`"),
            (None, Some(place)) if place == "return" => "the result".to_owned(),
            _ => "the value".to_owned(),
        };
        let value = self.materialize(value);
        self.emit(Operation::Match { value, ty, subject });
    }
}

const NOT_DIMS: &str = "it uses a shape heap in a way that rx does not support";

/// Returns the slot that constant indices address.
fn slot_of(indices: &[Expr]) -> Option<i64> {
    match indices {
        [Expr::Checked { index, .. }] => index.as_int(),
        [index] => index.as_int(),
        _ => None,
    }
}

/// Splits integer constants into `count` pairs.
fn pairs(count: &Known, rest: &[Known]) -> Option<Vec<(i64, i64)>> {
    let count = usize::try_from(constant(count)?).ok()?;
    let rest = constants(rest)?;
    let pair = |pair: &[i64]| match pair {
        [code, operand] => Some((*code, *operand)),
        _ => None,
    };
    if rest.len() == count.checked_mul(2)? { rest.chunks(2).map(pair).collect() } else { None }
}

/// Returns the values as integers, if all are constants.
fn constants(values: &[Known]) -> Option<Vec<i64>> {
    values.iter().map(constant).collect()
}

/// Returns the value of an integer constant.
pub(super) fn constant(value: &Known) -> Option<i64> {
    match value {
        Known::Scalar(Scalar::Int(dim)) => dim.as_constant(),
        _ => None,
    }
}
