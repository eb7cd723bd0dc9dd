//! What a kernel calls variables and buffers, and what the host passes for them.

use super::{BufferText, Kernel, types};
use crate::source::{Argument, TensorMap};
use rx_base::DType;
use rx_tir::{BufferId, Expr, Param, VarId};

impl Kernel<'_> {
    /// A buffer of the host, as what is passed.
    pub(crate) fn passed(&self, id: BufferId) -> Option<Argument> {
        match (self.buffer_params.get(&id), self.temporaries.get(&id)) {
            (Some(at), _) => Some(Argument::Buffer(*at)),
            (_, Some(at)) => Some(Argument::Temporary(*at)),
            _ => None,
        }
    }

    /// A tensor whose tiles are copied by themselves as a parameter of the kernel: its name.
    pub(crate) fn tensor_map(&mut self, name: &str, map: TensorMap) -> String {
        let name = self.names.fresh(name);
        self.maps.push((format!("const __grid_constant__ rx_tensor_map {name}"), map));
        name
    }

    /// A variable of the function.
    pub(crate) fn var_expr(&self, var: VarId) -> Expr {
        self.func.var_expr(var)
    }

    /// A buffer of the host as a parameter of the kernel.
    pub(crate) fn global_buffer(&mut self, id: BufferId) -> Option<BufferText> {
        if let Some(known) = self.buffers.get(&id) {
            return Some(known.clone());
        }
        let argument = self.passed(id)?;
        let buffer = self.func.buffer(id);
        let name = self.names.fresh(&buffer.name);
        let constant = if self.written.contains(&id) { "" } else { "const " };
        let storage = types::storage(buffer.dtype)?;
        self.parameters.push((format!("{constant}{storage}* {name}"), argument));
        self.need_storage(buffer.dtype);
        let text = BufferText { name, shape: buffer.shape.clone() };
        self.buffers.insert(id, text.clone());
        Some(text)
    }

    /// The name of a new variable of the text.
    pub(crate) fn fresh_name(&mut self, wanted: &str) -> String {
        self.names.fresh(wanted)
    }

    /// From here on the variable is written as this text, which binds as tightly as a name. `is_natural`: it is never
    /// negative.
    pub(crate) fn name_var(&mut self, var: VarId, text: &str, is_natural: bool) {
        self.vars.insert(var, text.to_owned());
        if is_natural {
            self.natural.insert(var)
        } else {
            self.natural.remove(&var)
        };
    }

    /// From here on the variable, which holds data, is written as this text, which binds as tightly as a name.
    pub(crate) fn name_value(&mut self, var: VarId, text: &str) {
        self.name_var(var, text, false);
        self.data.insert(var);
    }

    /// From here on loads of the buffer are this text, a value of its dtype, whatever their indices are.
    pub(crate) fn hold(&mut self, buffer: BufferId, text: &str) {
        self.held.insert(buffer, text.to_owned());
    }

    /// From here on the buffer lies where this pointer or array says, dense and of this shape. Elements are in their
    /// storage type.
    pub(crate) fn name_buffer(&mut self, buffer: BufferId, name: &str, shape: &[Expr]) {
        self.buffers.insert(buffer, BufferText { name: name.to_owned(), shape: shape.to_vec() });
    }

    /// The name of the schedule's scratch buffer of this number, as a pointer of this type.
    pub(crate) fn scratch_buffer(&mut self, number: usize, name: &str, ctype: &str) -> String {
        let name = self.names.fresh(name);
        self.parameters.push((format!("{ctype}* {name}"), Argument::Temporary(self.first_of_schedule + number)));
        name
    }

    /// The dtype of a variable.
    pub(crate) fn dtype_of(&self, var: VarId) -> DType {
        self.func.var(var).dtype
    }

    /// Names a variable that is bound here.
    pub(crate) fn bind(&mut self, var: VarId) -> String {
        let name = self.names.fresh(&self.func.var(var).name);
        self.vars.insert(var, name.clone());
        name
    }

    /// The name of a variable; one that nothing in the nest binds is a scalar the host passes.
    pub(super) fn var(&mut self, var: VarId) -> Result<String, String> {
        if let Some(name) = self.vars.get(&var) {
            return Ok(name.clone());
        }
        let is_passed = self.func.params.contains(&Param::Scalar(var)) || self.func.symbols.contains(&var);
        let dtype = self.func.var(var).dtype;
        if !is_passed {
            return Err(format!("the variable {} is bound nowhere", self.func.var(var).name));
        }
        let storage = types::storage(dtype).ok_or_else(|| format!("a scalar of dtype {dtype}"))?;
        self.need_storage(dtype);
        let name = self.names.fresh(&self.func.var(var).name);
        self.parameters.push((format!("{storage} {name}"), Argument::Scalar(var)));
        if !self.symbols.contains(&var) {
            self.data.insert(var);
        }
        let text = types::from_storage(dtype, &name);
        self.vars.insert(var, text.clone());
        Ok(text)
    }
}
