//! Reads calls in expressions, mainly of functions of `T`.

use super::expr::dtype_named;
use super::value::Value;
use super::{Outcome, Reader};
use rx_base::dtype::TypeCode;
use rx_base::{Code, DType, counted};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, UnaryOp as Prefix};
use rx_syntax::{At, Cursor};
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic};

impl Reader<'_> {
    /// Evaluates a call.
    pub(super) fn call(&mut self, at: At<'_>, callee: &Tree, arguments: &[Argument]) -> Outcome<Value> {
        if let Some(member) = self.tir_member(at.cursor, callee) {
            return self.tir_call(at, member, arguments);
        }
        match &callee.kind {
            ExprKind::Attribute { value, name } => {
                let of = self.value(at.cursor, value)?;
                self.has_member(at.cursor, &of, *name)?;
                match (of, at.cursor.text(*name)) {
                    (Value::Buffer(view), "view") => self.view(at, view, arguments),
                    (Value::Expr(expr), "astype") if arguments.len() == 1 => {
                        let dtype = self.dtype(at.cursor, &arguments[0].value)?;
                        Ok(Value::Expr(expr.cast(dtype)))
                    }
                    (_, method) => self.unsupported(at, &format!("`.{method}(…)`")),
                }
            }
            ExprKind::Name => {
                let function = at.cursor.text(callee.tokens.start);
                match function {
                    "min" | "max" if self.lookup(at.cursor.name(callee.tokens.start)).is_none() => {
                        self.tir_call(at, function, arguments)
                    }
                    _ if self.is_macro(at.cursor, callee) => {
                        let message = format!("`{function}` is a macro: its call is a statement, not a value");
                        self.mistake(at, Code::MisplacedStatement, message)
                    }
                    _ => self.unsupported(at, &format!("a call of `{function}`")),
                }
            }
            _ => self.unsupported(at, "this call"),
        }
    }

    fn tir_call(&mut self, at: At<'_>, member: &str, arguments: &[Argument]) -> Outcome<Value> {
        let trees: Vec<&Tree> = arguments.iter().map(|argument| &argument.value).collect();
        match (member, &trees[..]) {
            ("Ramp" | "ramp", _) => return self.ramp(at, arguments),
            ("Broadcast" | "broadcast", _) => return self.spread(at, arguments),
            ("Let", [body, bound]) => return self.let_expression(at.cursor, body, bound),
            ("Cast" | "cast", [dtype, value]) => return self.cast(at.cursor, member, dtype, value),
            ("reinterpret", [dtype, value]) => return self.reinterpret(at, dtype, value),
            ("max_value" | "min_value" | "infinity", [dtype]) => {
                let dtype = self.dtype(at.cursor, dtype)?;
                return match limit(member, dtype) {
                    Some(limit) => Ok(Value::Expr(limit)),
                    None => self.unsupported(at, &format!("`T.{member}` of {dtype}")),
                };
            }
            ("if_then_else" | "Select", [test, then, otherwise]) => {
                let test = self.value(at.cursor, test)?;
                // A test that is a Python constant becomes an expression, so it does not select an alternative here.
                let test = Value::Expr(self.truth(at, test)?);
                let (then, otherwise) = self.branches(at.cursor, &test, then, otherwise)?;
                return self.choice(at, test, then, otherwise);
            }
            // The value of `T.filter` is its condition; the scope names threads and does not affect the value.
            ("filter", [scope, condition]) => {
                self.value(at.cursor, scope)?;
                return self.truth_of(at.cursor, condition).map(Value::Expr);
            }
            ("likely" | "tvm_thread_invariant" | "ignore_loop_partition" | "meta_var", [value]) => {
                return self.value(at.cursor, value);
            }
            ("Not", [value]) => {
                let value = self.scalar_of(at.cursor, value)?;
                return self.prefix(at, Prefix::Not, Value::Expr(value));
            }
            ("bitwise_not", [value]) => {
                let value = self.scalar_of(at.cursor, value)?;
                return self.prefix(at, Prefix::Invert, Value::Expr(value));
            }
            ("all" | "any", [first, rest @ ..]) => {
                self.few(at, rest.len())?;
                let op = if member == "all" { BinaryOp::And } else { BinaryOp::Or };
                let mut all = self.value(at.cursor, first)?;
                for operand in rest {
                    let before = super::expr::condition_of(&all);
                    let holds = op == BinaryOp::And;
                    let operand = self.assuming(before.as_ref(), holds, |reader| reader.value(at.cursor, operand))?;
                    all = self.both(at, op, all, operand)?;
                }
                return Ok(all);
            }
            ("fma", [a, b, c]) => {
                let (a, b) = (self.scalar_of(at.cursor, a)?, self.scalar_of(at.cursor, b)?);
                let product = self.binary(at, BinaryOp::Mul, a, b)?;
                let c = self.scalar_of(at.cursor, c)?;
                return self.binary(at, BinaryOp::Add, product, c).map(Value::Expr);
            }
            ("ceildiv", [a, b]) => return self.ceildiv(at, a, b),
            _ => {}
        }
        if let Some(dtype) = dtype_named(member) {
            return self.typed(at, dtype, &trees);
        }
        if let (Some(op), [a, b]) = (binary_named(member), &trees[..]) {
            let a = self.scalar_of(at.cursor, a)?;
            let decided = matches!(op, BinaryOp::And | BinaryOp::Or).then_some(&a);
            let b = self.assuming(decided, op == BinaryOp::And, |reader| reader.scalar_of(at.cursor, b))?;
            return self.binary(at, op, a, b).map(Value::Expr);
        }
        if let (Some(op), [a, b]) = (compare_named(member), &trees[..]) {
            let (a, b) = (self.scalar_of(at.cursor, a)?, self.scalar_of(at.cursor, b)?);
            return self.compared(at, op, a, b).map(Value::Expr);
        }
        match Intrinsic::ALL.iter().find(|function| function.name() == spelled(member)) {
            Some(function) => self.intrinsic(at, *function, &trees),
            None => match self.foreign(at.cursor, member, &trees) {
                Some(function) => self.unsupported(at, &format!("`{function}`, which `T.{member}` calls")),
                None => self.unsupported(at, &format!("`T.{member}`")),
            },
        }
    }

    /// Returns the name of the external function that a call names, for example `T.call_packed("f", …)` or
    /// `T.call_extern("int32", "f", …)`.
    fn foreign(&self, cursor: Cursor<'_>, member: &str, trees: &[&Tree]) -> Option<String> {
        let at = match member {
            "call_packed" | "call_cpacked" | "call_packed_lowered" | "call_cpacked_lowered" => 0,
            "call_extern" | "call_pure_extern" | "call_llvm_intrin" | "call_llvm_pure_intrin" => 1,
            "anylist_setitem_call_packed" | "anylist_setitem_call_cpacked" => 2,
            _ => return None,
        };
        cursor.string_value(trees.get(at)?).map(|name| name.to_string())
    }

    fn intrinsic(&mut self, at: At<'_>, function: Intrinsic, trees: &[&Tree]) -> Outcome<Value> {
        let wanted = function.arity();
        if trees.len() != wanted {
            let message =
                format!("`T.{}` takes {}; found {}", function.name(), counted(wanted, "argument"), trees.len());
            let code = if trees.len() < wanted { Code::MissingArgument } else { Code::TooManyArguments };
            return self.mistake(at, code, message);
        }
        let mut args = trees.iter().map(|tree| self.scalar_of(at.cursor, tree)).collect::<Outcome<Vec<Expr>>>()?;
        if let (Intrinsic::Pow | Intrinsic::Atan2 | Intrinsic::Fmod | Intrinsic::Hypot, [a, b]) = (function, &args[..])
        {
            let (a, b) = self.promoted(at, a.clone(), b.clone())?;
            args = vec![a, b];
        }
        let dtype = match function {
            Intrinsic::IsFinite | Intrinsic::IsInf | Intrinsic::IsNan => DType::BOOL,
            // TVM returns the count as `int32` for every argument dtype.
            Intrinsic::Clz => DType::INT32,
            _ => args.first().map_or(DType::FLOAT32, Expr::dtype),
        };
        if function.is_of_reals() && !dtype.is_float() {
            let (name, cast) = (function.name(), "T.Cast(\"float32\", …)");
            let subject =
                format!("`T.{name}` of {dtype}, which TVM can build for no target; convert the argument: `{cast}`");
            return self.unsupported(at, &subject);
        }
        // Rounding an integer returns the integer.
        let rounds = matches!(
            function,
            Intrinsic::Floor | Intrinsic::Ceil | Intrinsic::Trunc | Intrinsic::Round | Intrinsic::NearbyInt
        );
        if let (true, [value]) = (rounds && !dtype.is_float(), &args[..]) {
            return Ok(Value::Expr(value.clone()));
        }
        Ok(Value::Expr(Expr::Call { function, dtype, args }))
    }

    /// Reads `T.float32(x)`: a constant or a conversion.
    fn typed(&mut self, at: At<'_>, dtype: DType, trees: &[&Tree]) -> Outcome<Value> {
        if dtype.lanes != 1 {
            return self.unsupported(at, &format!("vectors of {dtype}"));
        }
        let [value, ..] = trees else {
            return self.mistake(
                at,
                Code::UndefinedSymbolicVar,
                "a variable must be declared by an assignment, such as `n = T.int64()`",
            );
        };
        let made = match self.value(at.cursor, value)? {
            text @ Value::Text(_) => self.constant(at.cursor.at(value.tokens), dtype, &text)?,
            value_of => self.converted(at.cursor.at(value.tokens), value_of, dtype)?,
        };
        Ok(Value::Expr(made))
    }

    /// Reads `T.Cast("float32", x)`, which becomes a cast unless `x` has this dtype, or `T.cast(x, "float32")`, which
    /// converts Python numbers and most integer constants directly.
    fn cast(&mut self, cursor: Cursor<'_>, member: &str, first: &Tree, second: &Tree) -> Outcome<Value> {
        if member == "cast" {
            let dtype = self.dtype(cursor, second)?;
            return self.scalar_as(cursor, first, dtype).map(Value::Expr);
        }
        let dtype = self.dtype(cursor, first)?;
        let value = self.scalar_of(cursor, second)?;
        Ok(Value::Expr(match value.dtype() == dtype {
            true => value,
            false => Expr::Cast { dtype, value: Box::new(value) },
        }))
    }

    fn reinterpret(&mut self, at: At<'_>, dtype: &Tree, value: &Tree) -> Outcome<Value> {
        let dtype = self.dtype(at.cursor, dtype)?;
        let value = self.scalar_of(at.cursor, value)?;
        if value.dtype().bits != dtype.bits {
            let message =
                format!("`T.reinterpret` requires dtypes of equal width; found {} and {dtype}", value.dtype());
            return self.mistake(at, Code::DtypeMismatch, message);
        }
        Ok(Value::Expr(Expr::Call { function: Intrinsic::Reinterpret, dtype, args: vec![value] }))
    }

    /// Reads `T.Let(body, where={x: value})` by substituting the value for the variable.
    fn let_expression(&mut self, cursor: Cursor<'_>, body: &Tree, bound: &Tree) -> Outcome<Value> {
        let ExprKind::Dict(entries) = &bound.kind else {
            return self.unsupported(cursor.at(bound.tokens), "`T.Let` of this expression");
        };
        let mut values = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match key {
                Some(key) if matches!(key.kind, ExprKind::Name) => {
                    values.push((cursor.name(key.tokens.start), self.scalar_of(cursor, value)?));
                }
                _ => return self.unsupported(cursor.at(value.tokens), "`T.Let` of anything other than a variable"),
            }
        }
        self.scoped(|reader| {
            for (name, value) in values {
                reader.bind(name, Value::Expr(value));
            }
            reader.value(cursor, body)
        })
    }

    /// Reads `T.ceildiv(a, b)` as `(a + b - 1) // b`, as TVM does.
    fn ceildiv(&mut self, at: At<'_>, a: &Tree, b: &Tree) -> Outcome<Value> {
        let (a, b) = (self.integer_of(at.cursor, a)?, self.integer_of(at.cursor, b)?);
        let (a, b) = self.promoted(at, a, b)?;
        let one = Expr::Int { value: 1, dtype: b.dtype() };
        Ok(Value::Expr((a + b.clone() - one).floor_div(b)))
    }
}

/// Returns the name of the intrinsic of which a member of `T` is an alias: `abs` for `T.fabs`. Other names are
/// returned unchanged.
fn spelled(member: &str) -> &str {
    match member {
        "fabs" => "abs",
        "power" => "pow",
        other => other,
    }
}

fn binary_named(member: &str) -> Option<BinaryOp> {
    Some(match member {
        "Add" => BinaryOp::Add,
        "Sub" => BinaryOp::Sub,
        "Mul" => BinaryOp::Mul,
        "Div" | "div" => BinaryOp::Div,
        "truncdiv" => BinaryOp::TruncDiv,
        "Mod" | "truncmod" => BinaryOp::TruncMod,
        "FloorDiv" | "floordiv" | "indexdiv" => BinaryOp::FloorDiv,
        "FloorMod" | "floormod" | "indexmod" => BinaryOp::FloorMod,
        "Min" | "min" => BinaryOp::Min,
        "Max" | "max" => BinaryOp::Max,
        "And" => BinaryOp::And,
        "Or" => BinaryOp::Or,
        "bitwise_and" => BinaryOp::BitAnd,
        "bitwise_or" => BinaryOp::BitOr,
        "bitwise_xor" => BinaryOp::BitXor,
        "shift_left" => BinaryOp::ShiftLeft,
        "shift_right" => BinaryOp::ShiftRight,
        _ => return None,
    })
}

fn compare_named(member: &str) -> Option<CompareOp> {
    Some(match member {
        "EQ" => CompareOp::Eq,
        "NE" => CompareOp::Ne,
        "LT" => CompareOp::Lt,
        "LE" => CompareOp::Le,
        "GT" => CompareOp::Gt,
        "GE" => CompareOp::Ge,
        _ => return None,
    })
}

/// Returns the largest, smallest or infinite value of a dtype (TVM `max_value`, `min_value`, `infinity`).
fn limit(member: &str, dtype: DType) -> Option<Expr> {
    let bits = u32::from(dtype.bits);
    if dtype.is_float() {
        let largest = super::constant::largest(dtype)?;
        let value = match member {
            "max_value" => largest,
            "min_value" => -largest,
            _ if matches!(dtype.code, TypeCode::Float8E4M3Fn) => return None,
            _ => f64::INFINITY,
        };
        return Some(Expr::Float { value, dtype });
    }
    let value = match (member, dtype.code) {
        ("max_value", TypeCode::Int) => i64::MAX >> (64 - bits.clamp(1, 64)),
        ("min_value", TypeCode::Int) => i64::MIN >> (64 - bits.clamp(1, 64)),
        // The largest `uint64` has the bit pattern of -1.
        ("max_value", TypeCode::UInt) => (u64::MAX >> (64 - bits.clamp(1, 64))) as i64,
        ("min_value", TypeCode::UInt) => 0,
        ("max_value", TypeCode::Bool) => 1,
        ("min_value", TypeCode::Bool) => 0,
        _ => return None,
    };
    Some(Expr::Int { value, dtype })
}
