//! Rewriting of a function's bindings one by one, with new bindings inserted before each.

use crate::make;
use crate::names::FreshNames;
use crate::pass::PassError;
use rx_base::Name;
use rx_ir::{Argument, BoundValue, Expr, Origin, RelaxFunction, Sequence, VarBinding};

/// A collector of the new bindings that are inserted before the binding being rewritten.
pub struct Emitter<'a> {
    fresh: &'a mut FreshNames,
    /// Whether the bindings are in a dataflow block.
    pub dataflow: bool,
    origin: Origin,
    bindings: Vec<VarBinding>,
}

impl Emitter<'_> {
    /// Binds a value to a fresh variable, and returns the variable.
    pub fn emit(&mut self, value: Expr) -> Expr {
        let own = self.fresh.value(self.dataflow);
        self.bind(own, value)
    }

    /// Binds a value to `variable`, and returns the variable. No other binding may bind it, unless it is `_`.
    pub fn bind(&mut self, variable: Name, value: Expr) -> Expr {
        let ty = value.ty.clone();
        self.bindings.push(VarBinding::new(self.origin, variable, value));
        Expr::var(variable, ty)
    }

    /// Binds an operator call, built by [`make::call`], to a fresh variable, and returns the variable.
    ///
    /// # Errors
    /// Those of [`make::call`].
    pub fn call(&mut self, operator: &str, given: Vec<(&str, Argument)>) -> Result<Expr, PassError> {
        Ok(self.emit(make::call(operator, given)?))
    }

    /// Removes the last emitted binding if `value` is its variable, and returns the bound value. Returns any other
    /// `value` unchanged.
    pub fn unbound(&mut self, value: Expr) -> Expr {
        match self.bindings.pop_if(|last| value.as_var() == Some(last.variable)) {
            Some(VarBinding { value: BoundValue::Expr(own), .. }) => own,
            _ => value,
        }
    }

    /// Returns the number of bindings emitted so far.
    pub fn taken(&self) -> usize {
        self.bindings.len()
    }

    /// Drops all bindings except the first `taken`. No remaining binding may use their variables.
    pub fn give_back(&mut self, taken: usize) {
        self.bindings.truncate(taken);
    }

    /// Returns an unused name that resembles `like`.
    pub fn fresh(&mut self, like: Name) -> Name {
        self.fresh.like(like)
    }
}

/// A function that rewrites one binding in place and emits the bindings that are needed before it.
pub type Rewrite<'a> = dyn FnMut(&mut VarBinding, &mut Emitter<'_>) -> Result<(), PassError> + 'a;

/// Rewrites every binding of a function, in order. Bindings in branches and nested functions are rewritten before the
/// binding that contains them.
///
/// # Errors
/// The first error of `rewrite`, with the name of the variable.
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
