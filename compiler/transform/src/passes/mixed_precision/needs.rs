//! With how many bits the tensors of a function are needed: found backwards, from uses to what is used.

use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::{Block, BoundValue, Callee, Expr, ExprKind, RelaxFunction, Sequence, StructInfo, VarBinding};
use rx_ops::tvm::{Precision, precision};

/// With how many bits a value is needed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Need {
    /// By nobody yet.
    Unknown,
    /// With 16: only products and convolutions take it.
    Narrow,
    /// With those it has.
    Wide,
    /// A tuple, field by field.
    Tuple(Vec<Need>),
}

impl Need {
    /// The same need of every tensor of a type.
    pub fn of(ty: &StructInfo, need: &Need) -> Need {
        match ty {
            StructInfo::Tuple(fields) => Need::Tuple(fields.iter().map(|field| Need::of(field, need)).collect()),
            _ => need.clone(),
        }
    }

    /// Where 16 bits are needed; nothing is known of the rest.
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

/// Whether a type is a tensor, or a tuple of such.
pub(super) fn is_tensors(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tensor(_) => true,
        StructInfo::Tuple(fields) => fields.iter().all(is_tensors),
        _ => false,
    }
}

/// What every variable of a function is needed with.
#[derive(Default)]
pub(super) struct Needs {
    needs: NameMap<Need>,
}

impl Needs {
    /// Of a function. What stands outside dataflow blocks needs values as they are.
    pub fn of(function: &RelaxFunction) -> Needs {
        let mut needs = Needs::default();
        needs.sequence(&function.body);
        needs
    }

    /// What a variable is needed with.
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

    /// Notes that all tensors of an expression are needed alike.
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

    /// Notes that everything an expression names is needed as it is.
    fn wide(&mut self, expr: &Expr) {
        expr.each(&mut |expr| {
            if let ExprKind::Var(variable) = &expr.kind {
                self.needs.insert(*variable, Need::of(&expr.ty, &Need::Wide));
            }
        });
    }
}
