//! A builder of a Relax function's text.

/// Formats `R.Tensor((dims), dtype="float32")`; dims are numbers or names.
pub(super) fn tensor<D: std::fmt::Display>(dims: &[D]) -> String {
    let listed: Vec<String> = dims.iter().map(ToString::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    format!("R.Tensor(({}{comma}), dtype=\"float32\")", listed.join(", "))
}

/// A function with parameters and dataflow bindings.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) private: bool,
    /// Names and annotations.
    pub(super) params: Vec<(String, String)>,
    bindings: Vec<String>,
}

impl Function {
    pub(super) fn new(name: String, private: bool) -> Function {
        Function { name, private, params: Vec::new(), bindings: Vec::new() }
    }

    /// Adds a parameter and returns its name.
    pub(super) fn param(&mut self, name: impl Into<String>, annotation: impl Into<String>) -> String {
        let name = name.into();
        self.params.push((name.clone(), annotation.into()));
        name
    }

    /// Adds `lvN: annotation = value` and returns `lvN`.
    pub(super) fn bind(&mut self, annotation: &str, value: &str) -> String {
        let variable = format!("lv{}", self.bindings.len());
        self.bindings.push(format!("            {variable}: {annotation} = {value}\n"));
        variable
    }

    /// The number of bindings.
    pub(super) fn len(&self) -> usize {
        self.bindings.len()
    }

    /// Returns the function's text; `head` is inserted between the signature and the dataflow block.
    pub(super) fn text(&self, head: &str, returned: &str, returned_type: &str) -> String {
        let decorator = if self.private { "(private=True)" } else { "" };
        let params: Vec<String> =
            self.params.iter().map(|(name, annotation)| format!("{name}: {annotation}")).collect();
        format!(
            "    @R.function{decorator}\n    def {}({}) -> {returned_type}:\n{head}        with R.dataflow():\n{}            \
             gv: {returned_type} = {returned}\n            R.output(gv)\n        return gv\n",
            self.name,
            params.join(", "),
            self.bindings.concat(),
        )
    }
}
