//! Types written as objects of TVM's Python classes: `relax.TensorStructInfo((2, 3), "float32")`.

use super::checker::Checker;
use rx_base::name::name;
use rx_context::Namespace;

impl Checker<'_> {
    /// Returns the name of the type that a class of TVM makes: `relax.TensorStructInfo`, `tvm.relax.ShapeType`, or
    /// `TensorStructInfo` where it is imported.
    pub(super) fn type_object(&self, source: &str) -> Option<&'static str> {
        let (path, class) = source.rsplit_once('.').unwrap_or(("", source));
        let class = class.trim();
        // The suffix is `StructInfo` up to TVM 0.26, and `Type` from 0.27 on.
        let known = match class.strip_suffix("StructInfo").or_else(|| class.strip_suffix("Type"))? {
            "Tensor" => "Tensor",
            "Shape" => "Shape",
            "Tuple" => "Tuple",
            "Prim" => "Prim",
            "Object" | "Any" => "Object",
            "Func" => "Callable",
            _ => return None,
        };
        let path = path.trim();
        let is_tvm = match path.split('.').next().unwrap_or_default() {
            "" => self.file.api.contains(&name(class)),
            "tvm" => self.file.captured.contains(&name("tvm")) && path.contains(".relax"),
            // The parser's namespace `R` has no classes.
            "R" => false,
            head => self.file.namespace(head) == Some(Namespace::Relax),
        };
        is_tvm.then_some(known)
    }
}
