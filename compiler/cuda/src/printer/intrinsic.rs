//! Prints intrinsic functions, mainly as calls of CUDA's functions.

use super::expr::{Bound, POSTFIX, UNARY};
use super::{Kernel, types};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::{Expr, Intrinsic};

impl Kernel<'_> {
    pub(super) fn call(&mut self, function: Intrinsic, dtype: DType, args: &[Expr]) -> Result<Bound, String> {
        let (Some(first), true) = (args.first(), args.len() == function.arity()) else {
            return Err(format!(
                "requires an operation that CUDA C has; found T.{} of {} arguments",
                function.name(),
                args.len()
            ));
        };
        self.ctype(dtype)?;
        let of = first.dtype();
        match function {
            Intrinsic::Reinterpret => return self.reinterpret(dtype, first),
            Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite if !of.is_float() => {
                return Ok(((function == Intrinsic::IsFinite).to_string(), POSTFIX));
            }
            _ if of.is_float() => {}
            _ => return self.integer_call(function, args),
        }
        if function == Intrinsic::Sigmoid {
            self.need("rx_sigmoid");
            return Ok((format!("rx_sigmoid({})", self.operand(first, 0)?), POSTFIX));
        }
        let name = float_name(function)
            .ok_or_else(|| format!("requires an operation that CUDA C has; found T.{} of {of}", function.name()))?;
        let is_test = matches!(function, Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite);
        let suffix = if types::is_single(of) && !is_test { "f" } else { "" };
        let mut arguments = Vec::with_capacity(args.len());
        for (at, arg) in args.iter().enumerate() {
            let exponent = function == Intrinsic::Ldexp && at == 1;
            arguments.push(match exponent {
                true => format!("(int){}", self.operand(arg, UNARY)?),
                false => self.operand(arg, 0)?,
            });
        }
        Ok((format!("{name}{suffix}({})", arguments.join(", ")), POSTFIX))
    }

    fn integer_call(&mut self, function: Intrinsic, args: &[Expr]) -> Result<Bound, String> {
        let unsupported = || format!("T.{} of {}", function.name(), args.first().map_or(DType::INT32, Expr::dtype));
        let value = args.first().ok_or_else(unsupported)?;
        let of = value.dtype();
        let ctype = self.ctype(of)?;
        let bits = u32::from(of.bits);
        match function {
            Intrinsic::Abs if of.code != TypeCode::Int => self.pass(value),
            Intrinsic::Abs => {
                self.need("rx_abs");
                Ok((format!("rx_abs<{ctype}>({})", self.operand(value, 0)?), POSTFIX))
            }
            Intrinsic::Ceil | Intrinsic::Floor | Intrinsic::Round | Intrinsic::NearbyInt | Intrinsic::Trunc => {
                self.pass(value)
            }
            Intrinsic::Popcount | Intrinsic::Clz if of.is_bool() => Err(unsupported()),
            Intrinsic::Popcount | Intrinsic::Clz => {
                let unsigned = if bits == 64 { "unsigned long long" } else { "unsigned" };
                let letters = if bits == 64 { "ll" } else { "" };
                // A narrow integer is zero-extended, not sign-extended.
                let narrow = match bits {
                    8 => "(unsigned char)",
                    16 => "(unsigned short)",
                    _ => "",
                };
                let value = self.operand(value, UNARY)?;
                let name = if function == Intrinsic::Clz { "clz" } else { "popc" };
                let count = format!("__{name}{letters}(({unsigned}){narrow}{value})");
                let count = match function {
                    Intrinsic::Clz if bits < 32 => format!("({count} - {})", 32 - bits),
                    _ => count,
                };
                Ok(if of == DType::INT32 { (count, POSTFIX) } else { (format!("({ctype}){count}"), UNARY) })
            }
            Intrinsic::Pow if of.is_int() && self.is_cooperative => {
                Err("requires a kernel without barriers for an integer power; found one with barriers".to_owned())
            }
            Intrinsic::Pow if of.is_int() => {
                let exponent = args.get(1).ok_or_else(unsupported)?;
                let site = self.divisor_site();
                self.need("rx_int_pow");
                let (base, exponent) = (self.operand(value, 0)?, self.operand(exponent, 0)?);
                Ok((format!("rx_int_pow<{ctype}>({base}, {exponent}, {site}, rx_error)"), POSTFIX))
            }
            _ => Err(unsupported()),
        }
    }

    fn pass(&mut self, value: &Expr) -> Result<Bound, String> {
        Ok((self.operand(value, POSTFIX)?, POSTFIX))
    }

    /// Prints the reinterpretation of bits as another dtype. A float of less than 32 bits is held as `float`, so it is
    /// first converted to its own bits.
    fn reinterpret(&mut self, to: DType, value: &Expr) -> Result<Bound, String> {
        let from = value.dtype();
        if to.is_bool() || from.is_bool() || to.bits != from.bits {
            return Err(format!("requires a reinterpretation as a dtype of the same width; found {from} as {to}"));
        }
        let text = self.operand(value, 0)?;
        let bits = types::to_storage(from, &text);
        let storage = types::storage(to).ok_or_else(|| format!("requires a dtype that has a CUDA type; found {to}"))?;
        let origin =
            types::storage(from).ok_or_else(|| format!("requires a dtype that has a CUDA type; found {from}"))?;
        self.need_storage(from);
        self.need_storage(to);
        if storage == origin {
            return Ok((format!("({text})"), POSTFIX));
        }
        self.need("rx_bits");
        Ok((types::from_storage(to, &format!("rx_bits<{storage}, {origin}>({bits})")), POSTFIX))
    }
}

/// Returns the name of CUDA's function for `double`; the one for `float` has the suffix `f`, except `isfinite`, `isinf`
/// and `isnan`.
fn float_name(function: Intrinsic) -> Option<&'static str> {
    Some(match function {
        Intrinsic::Abs => "fabs",
        Intrinsic::Acos => "acos",
        Intrinsic::Acosh => "acosh",
        Intrinsic::Asin => "asin",
        Intrinsic::Asinh => "asinh",
        Intrinsic::Atan => "atan",
        Intrinsic::Atan2 => "atan2",
        Intrinsic::Atanh => "atanh",
        Intrinsic::Ceil => "ceil",
        Intrinsic::CopySign => "copysign",
        Intrinsic::Cos => "cos",
        Intrinsic::Cosh => "cosh",
        Intrinsic::Erf => "erf",
        Intrinsic::Exp => "exp",
        Intrinsic::Exp10 => "exp10",
        Intrinsic::Exp2 => "exp2",
        Intrinsic::Floor => "floor",
        Intrinsic::Fmod => "fmod",
        Intrinsic::Hypot => "hypot",
        Intrinsic::IsFinite => "isfinite",
        Intrinsic::IsInf => "isinf",
        Intrinsic::IsNan => "isnan",
        Intrinsic::Ldexp => "ldexp",
        Intrinsic::Log => "log",
        Intrinsic::Log10 => "log10",
        Intrinsic::Log1p => "log1p",
        Intrinsic::Log2 => "log2",
        // Both round halves to even, as `rint` does.
        Intrinsic::NearbyInt | Intrinsic::Round => "rint",
        Intrinsic::NextAfter => "nextafter",
        Intrinsic::Pow => "pow",
        Intrinsic::Rsqrt => "rsqrt",
        Intrinsic::Sin => "sin",
        Intrinsic::Sinh => "sinh",
        Intrinsic::Sqrt => "sqrt",
        Intrinsic::Tan => "tan",
        Intrinsic::Tanh => "tanh",
        Intrinsic::Trunc => "trunc",
        Intrinsic::Clz | Intrinsic::Popcount | Intrinsic::Reinterpret | Intrinsic::Sigmoid => return None,
    })
}
