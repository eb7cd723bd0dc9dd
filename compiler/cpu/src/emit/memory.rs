//! Loads and stores.

use super::{BindingValue, Emitted, Emitter, Operand, scalar_type};
use crate::error::CompileError;
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use rx_base::DType;
use rx_loops::poly::{Atom, Poly, Stride};
use rx_tir::{BufferId, Expr};

/// Accesses cannot trap: the lengths of buffers were compared with their shapes, and indices are proved or checked, or
/// in range as [`crate::CheckCost`] requires. They may be unaligned.
const FLAGS: MemFlagsData = MemFlagsData::new().with_notrap();

/// The byte order that bit casts between vector types require.
const BITS: MemFlagsData = MemFlagsData::new().with_endianness(Endianness::Little);

/// The address of an element: a base address plus a constant offset in bytes.
#[derive(Clone, Copy)]
pub(super) struct Address {
    base: Value,
    offset: i32,
}

impl Emitter<'_> {
    /// Emits the element's address. Returns it with its change from lane to lane, in elements. Terms of outer loops are
    /// added first, so that the code generator can move their sum out of the inner loops. In a vectorized loop, the
    /// address is that of the first lane.
    fn address(&mut self, buffer: BufferId, indices: &[Expr]) -> Emitted<(Address, Stride)> {
        let overflow =
            || CompileError::Unsupported("an index of too many terms, or with coefficients above int64".into());
        let poly = Poly::element(self.func, buffer, indices).ok_or_else(overflow)?;
        let stride = self.lane.map_or(Stride::Invariant, |lane| poly.stride(lane.var));
        let bytes = element_bytes(self.func.buffer(buffer).dtype)?;
        let mut base = self.bases[buffer.0 as usize];
        let mut offset = 0i32;
        let mut terms = Vec::with_capacity(poly.terms.len());
        for (mut atoms, coefficient) in poly.terms {
            let coefficient = coefficient.checked_mul(i64::from(bytes)).ok_or_else(overflow)?;
            let depths = atoms.iter().map(|atom| self.depth_of(atom)).collect::<Emitted<Vec<_>>>()?;
            atoms.sort_by_cached_key(|atom| self.depth_of(atom).unwrap_or(0));
            terms.push((depths.into_iter().max().unwrap_or(0), atoms, coefficient));
        }
        terms.sort_by_key(|(depth, ..)| *depth);
        for (_, atoms, coefficient) in terms {
            if atoms.is_empty()
                && let Ok(constant) = i32::try_from(coefficient)
                // Leave space for the offsets of unrolled vectors after it.
                && (-(1 << 30)..1 << 30).contains(&constant)
            {
                offset = constant;
                continue;
            }
            let mut product = None;
            for atom in &atoms {
                let value = self.atom(atom)?;
                product = Some(match product {
                    None => self.scaled(value, coefficient),
                    Some(product) => self.builder.ins().imul(product, value),
                });
            }
            let product = match product {
                Some(product) => product,
                None => self.builder.ins().iconst(types::I64, coefficient),
            };
            base = self.builder.ins().iadd(base, product);
        }
        Ok((Address { base, offset }, stride))
    }

    fn scaled(&mut self, value: Value, by: i64) -> Value {
        match by {
            1 => value,
            by if by > 0 && by & (by - 1) == 0 => self.builder.ins().ishl_imm_u(value, i64::from(by.trailing_zeros())),
            by => self.builder.ins().imul_imm_s(value, by),
        }
    }

    fn depth_of(&self, atom: &Atom) -> Emitted<u32> {
        match atom {
            Atom::Var(var) => Ok(self.binding(*var)?.depth),
            Atom::Opaque(expr) => {
                let mut depth = Ok(0);
                let mut loads = false;
                expr.walk(&mut |part| match part {
                    Expr::Var { var, .. } => match (&mut depth, self.binding(*var)) {
                        (Ok(depth), Ok(binding)) => *depth = binding.depth.max(*depth),
                        (depth @ Ok(_), Err(error)) => *depth = Err(error),
                        _ => {}
                    },
                    Expr::Load { .. } | Expr::Checked { .. } => loads = true,
                    _ => {}
                });
                // A loaded value may change in the current loop, so a term with a load counts as one of this loop. So
                // does a term with a check.
                Ok(if loads { depth?.max(self.depth) } else { depth? })
            }
        }
    }

    /// Emits an atom as `int64`.
    pub(super) fn atom(&mut self, atom: &Atom) -> Emitted<Value> {
        match atom {
            Atom::Var(var) => self.index_of_var(*var),
            Atom::Opaque(expr) => self.index(expr),
        }
    }

    /// Emits a variable as `int64`. The variable of a vectorized loop has its value in the first lane. Fails if the
    /// variable's value is vectors.
    pub(super) fn index_of_var(&mut self, var: rx_tir::VarId) -> Emitted<Value> {
        match self.binding(var)?.value.clone() {
            BindingValue::Index(value) => Ok(value),
            BindingValue::Value(Operand::One(value)) => self.convert_one(value, self.func.var(var).dtype, DType::INT64),
            BindingValue::Value(Operand::Lanes(_)) => {
                Err(CompileError::Unsupported("an index that differs by lane".into()))
            }
        }
    }

    /// Emits an integer expression as `int64`. The variable of a vectorized loop has its value in the first lane. Fails
    /// for any other expression whose value differs by lane.
    pub(super) fn index(&mut self, expr: &Expr) -> Emitted<Value> {
        match expr {
            Expr::Int { value, .. } => Ok(self.builder.ins().iconst(types::I64, *value)),
            Expr::Var { var, .. } => self.index_of_var(*var),
            expr => {
                let value = self.one(expr)?;
                self.convert_one(value, expr.dtype(), DType::INT64)
            }
        }
    }

    /// Emits `buffer[indices]`: the registers of a promoted element, otherwise a load. In a vectorized loop, an
    /// invariant element is loaded as a scalar, elements with stride 1 as vectors, and those with another constant
    /// stride lane by lane.
    pub(super) fn load(&mut self, buffer: BufferId, indices: &[Expr]) -> Emitted<Operand> {
        if let Some(value) = self.load_promoted(buffer, indices) {
            return Ok(value);
        }
        let dtype = self.func.buffer(buffer).dtype;
        let (address, stride) = self.address(buffer, indices)?;
        let Some(lane) = self.lane else { return Ok(Operand::One(self.load_one(address, dtype)?)) };
        let (lanes, unroll) = (lane.lanes as i32, lane.unroll as i32);
        match stride {
            Stride::Invariant => Ok(Operand::One(self.load_one(address, dtype)?)),
            Stride::Constant(1) => {
                let bytes = element_bytes(dtype)? as i32;
                let mut vectors = Vec::new();
                for vector in 0..unroll {
                    let address = Address { offset: address.offset + vector * lanes * bytes, ..address };
                    vectors.push(self.load_vector(address, dtype)?);
                }
                Ok(Operand::Lanes(vectors))
            }
            Stride::Constant(stride) => {
                let bytes = i64::from(element_bytes(dtype)?) * stride;
                let mut vectors = Vec::new();
                for vector in 0..unroll {
                    let mut elements = Vec::new();
                    for at in 0..lanes {
                        let offset = i64::from(address.offset) + i64::from(vector * lanes + at) * bytes;
                        let offset = i32::try_from(offset)
                            .map_err(|_| CompileError::Unsupported("a stride above 2 GB".into()))?;
                        elements.push(self.load_one(Address { offset, ..address }, dtype)?);
                    }
                    vectors.push(self.gathered(&elements, dtype)?);
                }
                Ok(Operand::Lanes(vectors))
            }
            Stride::Other => Err(CompileError::Unsupported("a load that lanes cannot do".into())),
        }
    }

    /// Emits the store `buffer[indices] = value`: a scalar, or in a vectorized loop vectors with stride 1.
    pub(super) fn store(&mut self, buffer: BufferId, indices: &[Expr], value: Operand) -> Emitted<()> {
        let dtype = self.func.buffer(buffer).dtype;
        let (address, stride) = self.address(buffer, indices)?;
        match (self.lane, stride, value) {
            (None, _, Operand::One(value)) => self.store_one(address, dtype, value),
            (Some(lane), Stride::Constant(1), value) => {
                let bytes = element_bytes(dtype)? as i32 * lane.lanes as i32;
                for (at, vector) in self.widened(value, dtype)?.into_iter().enumerate() {
                    let address = Address { offset: address.offset + at as i32 * bytes, ..address };
                    self.store_vector(address, dtype, vector)?;
                }
                Ok(())
            }
            _ => Err(CompileError::Unsupported("a store that lanes cannot do".into())),
        }
    }

    fn load_one(&mut self, address: Address, dtype: DType) -> Emitted<Value> {
        let bits = scalar_type(dtype)?;
        if dtype.is_float() && dtype.bits == 16 {
            let bits = self.builder.ins().uload16(types::I32, FLAGS, address.base, address.offset);
            return Ok(self.float_of_half_bits(bits, dtype));
        }
        Ok(self.builder.ins().load(bits, FLAGS, address.base, address.offset))
    }

    fn store_one(&mut self, address: Address, dtype: DType, value: Value) -> Emitted<()> {
        if dtype.is_float() && dtype.bits == 16 {
            let bits = self.half_bits(value, dtype);
            self.builder.ins().istore16(FLAGS, bits, address.base, address.offset);
        } else {
            self.builder.ins().store(FLAGS, value, address.base, address.offset);
        }
        Ok(())
    }

    fn load_vector(&mut self, address: Address, dtype: DType) -> Emitted<Value> {
        let ty = self.lane_type(dtype)?;
        let Address { base, offset } = address;
        let whole = u64::from(ty.lane_bits() / 8) == dtype.bytes() && !dtype.is_bool();
        if whole {
            return Ok(self.builder.ins().load(ty, FLAGS, base, offset));
        }
        let signed = dtype.code == rx_base::dtype::TypeCode::Int;
        match dtype.bytes() {
            2 if ty == types::F32X4 => {
                let bits = self.builder.ins().uload16x4(FLAGS, base, offset);
                Ok(self.float_of_half_bits(bits, dtype))
            }
            2 if signed => Ok(self.builder.ins().sload16x4(FLAGS, base, offset)),
            2 => Ok(self.builder.ins().uload16x4(FLAGS, base, offset)),
            1 if ty == types::I32X4 => {
                let packed = self.builder.ins().load(types::I32, FLAGS, base, offset);
                let low = self.builder.ins().scalar_to_vector(types::I32X4, packed);
                let bytes = self.builder.ins().bitcast(types::I8X16, BITS, low);
                let widened = if signed {
                    let words = self.builder.ins().swiden_low(bytes);
                    self.builder.ins().swiden_low(words)
                } else {
                    let words = self.builder.ins().uwiden_low(bytes);
                    self.builder.ins().uwiden_low(words)
                };
                Ok(if dtype.is_bool() { self.nonzero(widened) } else { widened })
            }
            _ => Err(CompileError::Unsupported(format!("vectors of {dtype} in memory"))),
        }
    }

    fn store_vector(&mut self, address: Address, dtype: DType, value: Value) -> Emitted<()> {
        let ty = self.lane_type(dtype)?;
        let Address { base, offset } = address;
        let whole = u64::from(ty.lane_bits() / 8) == dtype.bytes() && !dtype.is_bool();
        if whole {
            self.builder.ins().store(FLAGS, value, base, offset);
            return Ok(());
        }
        // Keep only the low bits of each lane, so that the narrowing instructions do not saturate.
        let bits = if ty == types::F32X4 { self.half_bits(value, dtype) } else { value };
        let narrow = |emitter: &mut Self, mask: i64| {
            let mask = emitter.builder.ins().iconst(types::I32, mask);
            let mask = emitter.builder.ins().splat(types::I32X4, mask);
            let low = emitter.builder.ins().band(bits, mask);
            emitter.builder.ins().unarrow(low, low)
        };
        match dtype.bytes() {
            2 => {
                let words = narrow(self, 0xffff);
                let pairs = self.builder.ins().bitcast(types::I64X2, BITS, words);
                let packed = self.builder.ins().extractlane(pairs, 0u8);
                self.builder.ins().store(FLAGS, packed, base, offset);
            }
            1 if ty == types::I32X4 => {
                let words = narrow(self, if dtype.is_bool() { 1 } else { 0xff });
                let bytes = self.builder.ins().unarrow(words, words);
                let quads = self.builder.ins().bitcast(types::I32X4, BITS, bytes);
                let packed = self.builder.ins().extractlane(quads, 0u8);
                self.builder.ins().store(FLAGS, packed, base, offset);
            }
            _ => return Err(CompileError::Unsupported(format!("vectors of {dtype} in memory"))),
        }
        Ok(())
    }

    /// Returns the vectorized loop's vector type of a dtype; fails if there is none.
    pub(super) fn lane_type(&self, dtype: DType) -> Emitted<Type> {
        self.vector_type(dtype).ok_or_else(|| CompileError::Unsupported(format!("lanes of {dtype}")))
    }

    /// Builds a vector from scalars.
    pub(super) fn gathered(&mut self, elements: &[Value], dtype: DType) -> Emitted<Value> {
        let ty = self.lane_type(dtype)?;
        let mut vector = None;
        for (at, element) in elements.iter().enumerate() {
            let element = self.lane_element(*element, dtype, ty);
            vector = Some(match vector {
                None => self.builder.ins().splat(ty, element),
                Some(vector) => self.builder.ins().insertlane(vector, element, at as u8),
            });
        }
        vector.ok_or_else(|| CompileError::Unsupported("a vector of nothing".into()))
    }

    /// Converts a scalar to the lane type of a vector: narrow integers are widened, and a `bool` becomes a mask (0 or
    /// −1).
    fn lane_element(&mut self, value: Value, dtype: DType, vector: Type) -> Value {
        let lane = vector.lane_type();
        if dtype.is_bool() {
            let wide = self.builder.ins().uextend(lane, value);
            return self.builder.ins().ineg(wide);
        }
        if self.builder.func.dfg.value_type(value) == lane {
            return value;
        }
        match dtype.code {
            rx_base::dtype::TypeCode::Int => self.builder.ins().sextend(lane, value),
            _ => self.builder.ins().uextend(lane, value),
        }
    }

    /// Returns the operand's vectors; a scalar is broadcast.
    pub(super) fn widened(&mut self, value: Operand, dtype: DType) -> Emitted<Vec<Value>> {
        match value {
            Operand::Lanes(vectors) => Ok(vectors),
            Operand::One(value) => {
                let ty = self.lane_type(dtype)?;
                let element = self.lane_element(value, dtype, ty);
                let vector = self.builder.ins().splat(ty, element);
                Ok(vec![vector; self.lane.map_or(1, |lane| lane.unroll as usize)])
            }
        }
    }
}

/// Returns the size of an element in memory, in bytes.
fn element_bytes(dtype: DType) -> Emitted<u32> {
    scalar_type(dtype)?;
    Ok(dtype.bytes() as u32)
}
