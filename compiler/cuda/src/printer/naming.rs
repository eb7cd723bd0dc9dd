//! Names the variables and buffers of a kernel, and declares its parameters with the arguments that the host passes.

use super::{BufferText, Kernel, types};
use crate::source::{Argument, TensorMap};
use rx_base::DType;
use rx_tir::{BufferId, Expr, Param, VarId};

impl Kernel<'_> {
    /// Returns the argument for a buffer that the host passes: a parameter or a temporary of the function.
    pub(crate) fn passed(&self, id: BufferId) -> Option<Argument> {
        match (self.buffer_params.get(&id), self.temporaries.get(&id)) {
            (Some(at), _) => Some(Argument::Buffer(*at)),
            (_, Some(at)) => Some(Argument::Temporary(*at)),
            _ => None,
        }
    }

    /// Declares a parameter with a tensor map, of a tensor whose tiles are copied by TMA. Returns its name.
    pub(crate) fn tensor_map(&mut self, name: &str, map: TensorMap) -> String {
        let name = self.names.fresh(name);
        self.maps.push((format!("const __grid_constant__ rx_tensor_map {name}"), map));
        name
    }

    /// Returns a variable of the function as an expression.
    pub(crate) fn var_expr(&self, var: VarId) -> Expr {
        self.func.var_expr(var)
    }

    /// Returns the name and shape of a buffer. A buffer that the host passes is declared as a parameter at the first
    /// use. Returns `None` for other buffers without a name, and for dtypes without a C type.
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

    /// Returns an unused name for a new variable of the text.
    pub(crate) fn fresh_name(&mut self, wanted: &str) -> String {
        self.names.fresh(wanted)
    }

    /// From here on prints the variable as this text, which must bind as tightly as a name. `is_natural`: whether the
    /// variable is known to be nonnegative.
    pub(crate) fn name_var(&mut self, var: VarId, text: &str, is_natural: bool) {
        self.vars.insert(var, text.to_owned());
        if is_natural {
            self.natural.insert(var)
        } else {
            self.natural.remove(&var)
        };
    }

    /// From here on prints the variable as this text, which must bind as tightly as a name. Its value comes from data.
    pub(crate) fn name_value(&mut self, var: VarId, text: &str) {
        self.name_var(var, text, false);
        self.data.insert(var);
    }

    /// From here on prints every load of the buffer as this text, a value of its dtype. The indices of the load are
    /// ignored.
    pub(crate) fn hold(&mut self, buffer: BufferId, text: &str) {
        self.held.insert(buffer, text.to_owned());
    }

    /// From here on accesses the buffer through this pointer or array, which is dense and has this shape. Its elements
    /// have the storage type.
    pub(crate) fn name_buffer(&mut self, buffer: BufferId, name: &str, shape: &[Expr]) {
        self.buffers.insert(buffer, BufferText { name: name.to_owned(), shape: shape.to_vec() });
    }

    /// Declares the schedule's scratch buffer `number` as a parameter, a pointer to `ctype`. Returns its name.
    pub(crate) fn scratch_buffer(&mut self, number: usize, name: &str, ctype: &str) -> String {
        let name = self.names.fresh(name);
        self.parameters.push((format!("{ctype}* {name}"), Argument::Temporary(self.first_of_schedule + number)));
        name
    }

    /// Returns the dtype of a variable.
    pub(crate) fn dtype_of(&self, var: VarId) -> DType {
        self.func.var(var).dtype
    }

    /// Gives a variable an unused name, and returns it: the caller prints the declaration.
    pub(crate) fn bind(&mut self, var: VarId) -> String {
        let name = self.names.fresh(&self.func.var(var).name);
        self.vars.insert(var, name.clone());
        name
    }

    /// Returns the text of a variable. A variable that no statement declares must be a scalar or symbol that the host
    /// passes, and is declared as a parameter.
    pub(super) fn var(&mut self, var: VarId) -> Result<String, String> {
        if let Some(name) = self.vars.get(&var) {
            return Ok(name.clone());
        }
        let is_passed = self.func.params.contains(&Param::Scalar(var)) || self.func.symbols.contains(&var);
        let dtype = self.func.var(var).dtype;
        if !is_passed {
            return Err(format!("requires a definition of the variable `{}`; found none", self.func.var(var).name));
        }
        let storage =
            types::storage(dtype).ok_or_else(|| format!("requires a dtype that has a CUDA type; found {dtype}"))?;
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
