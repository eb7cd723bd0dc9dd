//! The float width that the uses of each variable need, found by a backward analysis from uses to definitions. For
//! example, if `y` is used only as an operand of `R.matmul`, then it is needed with 16 bits, and so is the tensor in a
//! tuple from which `y` is taken.

use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::{Block, BoundValue, Callee, Expr, ExprKind, RelaxFunction, Sequence, StructInfo, VarBinding};
use rx_ops::tvm::{Precision, precision};

/// The float width that the uses of a value need.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Need {
    /// No need: no use of the variable is known; a cast for this need leaves the dtype as it is.
    Unknown,
    /// 16 bits. A variable has this need if only operators that always take 16-bit floats, such as matmuls, use it.
    Narrow,
    /// Not narrow: a variable is needed with its original width, and a cast for this need is to `float32`.
    Wide,
    /// A tuple, with the need of each field.
    Tuple(Vec<Need>),
}

impl Need {
    /// Returns the same need for every tensor in a type.
    pub fn of(ty: &StructInfo, need: &Need) -> Need {
        match ty {
            StructInfo::Tuple(fields) => Need::Tuple(fields.iter().map(|field| Need::of(field, need)).collect()),
            _ => need.clone(),
        }
    }

    /// Returns the need restricted to the tensors that are needed with 16 bits; the need of other tensors is unknown.
    pub fn narrow_parts(&self) -> Need {
        match self {
            Need::Narrow => Need::Narrow,
            Need::Unknown | Need::Wide => Need::Unknown,
            Need::Tuple(fields) => Need::Tuple(fields.iter().map(Need::narrow_parts).collect()),
        }
    }

    fn join(self, other: Need) -> Need {
        match (self, other) {
            (Need::Unknown, need) | (need, Need::Unknown) => need,
            (Need::Tuple(a), Need::Tuple(b)) if a.len() == b.len() => {
                Need::Tuple(a.into_iter().zip(b).map(|(a, b)| a.join(b)).collect())
            }
            (Need::Narrow, Need::Narrow) => Need::Narrow,
            _ => Need::Wide,
        }
    }
}

/// Whether a type is a tensor, or a tuple of tensors.
pub(super) fn is_tensors(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tensor(_) => true,
        StructInfo::Tuple(fields) => fields.iter().all(is_tensors),
        _ => false,
    }
}

/// The needs of all variables of a function.
#[derive(Default)]
pub(super) struct Needs {
    needs: NameMap<Need>,
}

impl Needs {
    /// Analyzes a function. Uses outside of dataflow blocks need the original width.
    pub fn of(function: &RelaxFunction) -> Needs {
        let mut needs = Needs::default();
        needs.sequence(&function.body);
        needs
    }

    /// Returns the need of a variable.
    pub fn get(&self, variable: Name) -> &Need {
        self.needs.get(&variable).unwrap_or(&Need::Unknown)
    }

    fn sequence(&mut self, of: &Sequence) {
        self.wide(&of.result);
        for Block { outputs, bindings } in of.blocks.iter().rev() {
            for binding in bindings.iter().rev() {
                self.binding(binding, outputs.is_some());
            }
        }
    }

    fn binding(&mut self, binding: &VarBinding, dataflow: bool) {
        match &binding.value {
            BoundValue::Expr(value) if dataflow => self.value(binding.variable, value),
            BoundValue::Expr(value) => self.wide(value),
            BoundValue::If(branches) => {
                self.sequence(&branches.then);
                self.sequence(&branches.otherwise);
                self.wide(&branches.condition);
            }
            BoundValue::Function(function) => self.sequence(&function.body),
        }
    }

    fn value(&mut self, variable: Name, value: &Expr) {
        match &value.kind {
            ExprKind::Call(call) => {
                let always = matches!(call.callee, Callee::Op(op) if precision(op.as_str()) == Precision::Always);
                let need = if always { Need::Narrow } else { Need::Wide };
                call.operands().for_each(|operand| self.need_all(operand, &need));
            }
            ExprKind::Tuple(fields) => {
                let own = self.get(variable).clone();
                for (at, field) in fields.iter().enumerate() {
                    let need = match &own {
                        Need::Tuple(needs) => needs.get(at).cloned().unwrap_or(Need::Unknown),
                        other => Need::of(&field.ty, other),
                    };
                    self.need(field, need);
                }
            }
            ExprKind::TupleGet(tuple, at) => {
                let own = self.get(variable).clone();
                let fields = tuple.ty.as_tuple().unwrap_or_default();
                let need = |place: usize| if place == *at { own.clone() } else { Need::Unknown };
                let needs = (0..fields.len()).map(need).collect();
                self.need(tuple, Need::Tuple(needs));
            }
            _ => self.wide(value),
        }
    }

    /// Records the same need for all tensors of an expression; nothing if it has parts that are not tensors.
    fn need_all(&mut self, expr: &Expr, need: &Need) {
        if is_tensors(&expr.ty) {
            self.need(expr, Need::of(&expr.ty, need));
        }
    }

    fn need(&mut self, expr: &Expr, need: Need) {
        match (&expr.kind, need) {
            (ExprKind::Var(variable), need) => {
                let own = self.needs.entry(*variable).or_insert(Need::Unknown);
                *own = std::mem::replace(own, Need::Unknown).join(need);
            }
            (ExprKind::Tuple(fields), Need::Tuple(needs)) => {
                fields.iter().zip(needs).for_each(|(field, need)| self.need(field, need));
            }
            _ => {}
        }
    }

    /// Records that all variables in an expression are needed with the original width.
    fn wide(&mut self, expr: &Expr) {
        expr.each(&mut |expr| {
            if let ExprKind::Var(variable) = &expr.kind {
                self.needs.insert(*variable, Need::of(&expr.ty, &Need::Wide));
            }
        });
    }
}
