//! Bindings rewritten one by one, with new ones in front of them.

use crate::make;
use crate::names::FreshNames;
use crate::pass::PassError;
use rx_base::Name;
use rx_ir::{Argument, BoundValue, Expr, Origin, RelaxFunction, Sequence, VarBinding};

/// Takes the new bindings that stand in front of one that is rewritten, or behind it.
pub struct Emitter<'a> {
    fresh: &'a mut FreshNames,
    /// Whether they stand in a dataflow block.
    pub dataflow: bool,
    origin: Origin,
    bindings: Vec<VarBinding>,
}

impl Emitter<'_> {
    /// Binds a value to a new variable; the variable.
    pub fn emit(&mut self, value: Expr) -> Expr {
        let own = self.fresh.value(self.dataflow);
        self.bind(own, value)
    }

    /// Binds a value to a variable that nothing else binds.
    pub fn bind(&mut self, variable: Name, value: Expr) -> Expr {
        let ty = value.ty.clone();
        self.bindings.push(VarBinding::new(self.origin, variable, value));
        Expr::var(variable, ty)
    }

    /// Binds a call of an operator to a new variable, as [`make::call`] makes it.
    ///
    /// # Errors
    /// As [`make::call`].
    pub fn call(&mut self, operator: &str, given: Vec<(&str, Argument)>) -> Result<Expr, PassError> {
        Ok(self.emit(make::call(operator, given)?))
    }

    /// The value of a variable that was bound last, bound no longer; any other value as it is.
    pub fn unbound(&mut self, value: Expr) -> Expr {
        match self.bindings.pop_if(|last| value.as_var() == Some(last.variable)) {
            Some(VarBinding { value: BoundValue::Expr(own), .. }) => own,
            _ => value,
        }
    }

    /// How many bindings it has taken.
    pub fn taken(&self) -> usize {
        self.bindings.len()
    }

    /// Gives back all but the first bindings; nothing names them.
    pub fn give_back(&mut self, taken: usize) {
        self.bindings.truncate(taken);
    }

    /// A new name like `like`.
    pub fn fresh(&mut self, like: Name) -> Name {
        self.fresh.like(like)
    }
}

/// What is done with a binding: it is changed, and the emitter takes what is to stand in front of it.
pub type Rewrite<'a> = dyn FnMut(&mut VarBinding, &mut Emitter<'_>) -> Result<(), PassError> + 'a;

/// Rewrites every binding of a function, in order; those of branches and nested functions before the one they stand in.
///
/// # Errors
/// What `rewrite` says.
pub fn rewrite_bindings(function: &mut RelaxFunction, rewrite: &mut Rewrite<'_>) -> Result<(), PassError> {
    let mut fresh = FreshNames::of(function);
    rewrite_sequence(&mut function.body, &mut fresh, rewrite)
}

fn rewrite_sequence(
    sequence: &mut Sequence,
    fresh: &mut FreshNames,
    rewrite: &mut Rewrite<'_>,
) -> Result<(), PassError> {
    for block in &mut sequence.blocks {
        let dataflow = block.outputs.is_some();
        let mut rewritten = Vec::with_capacity(block.bindings.len());
        for mut binding in std::mem::take(&mut block.bindings) {
            for inner in binding.value.sequences_mut() {
                rewrite_sequence(inner, fresh, rewrite)?;
            }
            let mut emitter = Emitter { fresh, dataflow, origin: binding.origin, bindings: Vec::new() };
            let variable = binding.variable;
            rewrite(&mut binding, &mut emitter).map_err(|error| error.at(variable))?;
            rewritten.append(&mut emitter.bindings);
            rewritten.push(binding);
        }
        block.bindings = rewritten;
    }
    Ok(())
}
