//! The shape heap of TVM's lowered stages: integers that `vm.builtin.match_shape` stores, prim_funcs compute with and
//! `vm.builtin.make_shape` loads (TVM `src/runtime/vm/builtin.cc`). Here it is dims: nothing of it is left when a program runs.

use super::FunctionLowering;
use super::known::Known;
use crate::program::{Operation, Scalar};
use rx_base::name::name;
use rx_base::{Dim, Name};
use rx_ir::{Shape, StructInfo, TensorInfo};
use rx_tir::func::{BufferId, Param, PrimFunc};
use rx_tir::{BinaryOp, Expr, Stmt};

/// The dims that were stored, by slot.
pub(super) type Heap = Vec<Option<Dim>>;

/// More slots than any program has; a heap is made at once.
const MAX_SLOTS: i64 = 1 << 20;

impl FunctionLowering<'_, '_> {
    /// `vm.builtin.alloc_shape_heap(size)`.
    pub(super) fn alloc_shape_heap(&mut self, arguments: &[Known]) -> Result<Known, String> {
        match constants(arguments).as_deref() {
            Some([size @ 0..MAX_SLOTS]) => {
                self.heaps.push(vec![None; *size as usize]);
                Ok(Known::Heap(self.heaps.len() - 1))
            }
            _ => Err("it takes the number of slots".to_owned()),
        }
    }

    /// `vm.builtin.match_shape(value, heap, rank, (code, operand)…, context)`: each extent is compared with a number (0) or a
    /// slot (3), stored into a slot (1) or passed over (2).
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

    /// A new symbol for what a slot holds, which no type so far names.
    fn heap_symbol(&mut self, slot: i64) -> Name {
        loop {
            self.heap_symbols += 1;
            let symbol = name(&format!("heap{slot}_{}", self.heap_symbols));
            if !self.types.iter().any(|ty| ty.symbols().contains(&symbol)) {
                return symbol;
            }
        }
    }

    /// `vm.builtin.make_shape(heap, rank, (code, operand)…)`: each dim is a number (0) or from a slot (1).
    pub(super) fn make_shape(&mut self, arguments: &[Known]) -> Result<Known, String> {
        let [heap, rank, codes @ ..] = arguments else { return Err("it takes a heap and a rank".to_owned()) };
        let codes = pairs(rank, codes).ok_or("its codes are not one pair for each dim")?;
        let dims: Result<Vec<Dim>, String> = codes.into_iter().map(|code| self.made(heap, code)).collect();
        dims.map(Known::Shape)
    }

    /// `vm.builtin.make_prim_value(heap, code, operand)`.
    pub(super) fn make_prim_value(&mut self, arguments: &[Known]) -> Result<Known, String> {
        match (arguments.first(), constants(arguments.get(1..).unwrap_or_default()).as_deref()) {
            (Some(heap), Some([code, operand])) => {
                self.made(heap, (*code, *operand)).map(|dim| Known::Scalar(Scalar::Int(dim)))
            }
            _ => Err("it takes a heap, a code and a number".to_owned()),
        }
    }

    fn made(&mut self, heap: &Known, (code, operand): (i64, i64)) -> Result<Dim, String> {
        match code {
            0 => Ok(Dim::constant(operand)),
            1 => self.load(heap, operand),
            code => Err(format!("{code} is no code of it")),
        }
    }

    fn slot(&mut self, heap: &Known, at: i64) -> Result<&mut Option<Dim>, String> {
        let Known::Heap(heap) = heap else { return Err("it takes a shape heap".to_owned()) };
        let slots = self.heaps.get_mut(*heap);
        let slot = slots.and_then(|slots| slots.get_mut(usize::try_from(at).ok()?));
        slot.ok_or_else(|| format!("the shape heap has no slot {at}"))
    }

    fn load(&mut self, heap: &Known, at: i64) -> Result<Dim, String> {
        self.slot(heap, at)?.clone().ok_or_else(|| format!("slot {at} of the shape heap is read before it is written"))
    }

    /// A call of a prim_func on a shape heap alone: its stores, done on dims. `None`: it is called on something else.
    pub(super) fn shape_function(&mut self, func: &PrimFunc, arguments: &[Known]) -> Option<Known> {
        let ([heap @ Known::Heap(_)], [Param::Buffer(buffer)]) = (arguments, &func.params[..]) else { return None };
        match self.store_dims(&func.body, heap, *buffer) {
            Ok(()) => Some(Known::nothing()),
            Err(message) => Some(self.problem(format!("`{}`: {message}", func.name))),
        }
    }

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

    /// Checks, when the program runs, that the value is of the type. `context` is TVM's word for what it is.
    pub(super) fn check(&mut self, value: Known, ty: StructInfo, context: Option<&str>) {
        let part = |key: &str| {
            let (_, rest) = context?.split_once(key)?;
            Some(rest.split([',', ')']).next().unwrap_or(rest).trim().to_owned())
        };
        let what = match (part("param="), part("loc=")) {
            (Some(param), _) => format!("parameter `{param}`"),
            (None, Some(place)) if place == "return" => "the result".to_owned(),
            _ => "the value".to_owned(),
        };
        let value = self.materialize(value);
        self.emit(Operation::Match { value, ty, what });
    }
}

const NOT_DIMS: &str = "it computes with a shape heap what rx does not follow";

fn slot_of(indices: &[Expr]) -> Option<i64> {
    match indices {
        [Expr::Checked { index, .. }] => index.as_int(),
        [index] => index.as_int(),
        _ => None,
    }
}

/// Pairs of integer constants, as many as `count` says.
fn pairs(count: &Known, rest: &[Known]) -> Option<Vec<(i64, i64)>> {
    let count = usize::try_from(constant(count)?).ok()?;
    let rest = constants(rest)?;
    let pair = |pair: &[i64]| match pair {
        [code, operand] => Some((*code, *operand)),
        _ => None,
    };
    if rest.len() == count.checked_mul(2)? { rest.chunks(2).map(pair).collect() } else { None }
}

fn constants(values: &[Known]) -> Option<Vec<i64>> {
    values.iter().map(constant).collect()
}

/// The integer, where it is a constant one.
pub(super) fn constant(value: &Known) -> Option<i64> {
    match value {
        Known::Scalar(Scalar::Int(dim)) => dim.as_constant(),
        _ => None,
    }
}
