//! Semantic comparison of types: dims are compared as functions of non-negative symbols, not as text.

use rx_analysis::signature::relax_header;
use rx_base::symbolic::{Bounds, prove};
use rx_base::{Answer, Dim};
use rx_context::FileContext;
use rx_ir::{FunctionInfo, PrimInfo, Shape, Signature, StructInfo, TensorInfo};
use rx_syntax::{Document, FileKind};
use std::collections::BTreeSet;

/// Whether two types in the `tvm-0.27` dialect are equal. Names in them are symbolic dims; a name in place of a
/// tensor's shape is a shape variable. Returns `None` if one of them cannot be parsed.
pub fn same_text(a: &str, b: &str) -> Option<bool> {
    if a == b {
        return Some(true);
    }
    let ((a, devices), (b, other_devices)) = (without_devices(a), without_devices(b));
    let [a, b] = &read(&[&a, &b])?[..] else { return None };
    Some(devices == other_devices && same(a, b))
}

/// Removes the virtual devices from a type, since only a module can declare them; returns the type and the devices.
fn without_devices(ty: &str) -> (String, Vec<&str>) {
    let mut parts = ty.split("vdevice=\"");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    let mut devices = Vec::new();
    for part in parts {
        let (device, after) = part.split_once('"').unwrap_or((part, ""));
        devices.push(device);
        rest = format!("{}{after}", rest.trim_end_matches([',', ' ']));
    }
    (rest, devices)
}

/// Parses types by writing them into a function's header, after parameters that bind their names.
fn read(types: &[&str]) -> Option<Vec<StructInfo>> {
    let shapes: BTreeSet<&str> = types.iter().flat_map(|ty| shape_variables(ty)).collect();
    let symbols: BTreeSet<&str> = types.iter().flat_map(|ty| words(ty)).filter(|word| !shapes.contains(word)).collect();
    let symbols: Vec<&str> = symbols.into_iter().collect();
    let mut params = vec![format!("_symbols: R.Shape([{}])", symbols.join(", "))];
    params.extend(shapes.iter().map(|shape| format!("{shape}: R.Shape")));
    let before = params.len();
    params.extend(types.iter().enumerate().map(|(at, ty)| format!("_{at}: {ty}")));
    let text = format!("@R.function\ndef _({}):\n    return _0\n", params.join(", "));
    let document = Document::new(&text, FileKind::Rx);
    let head = document.items().first()?.segments.first()?;
    let mut file = FileContext::default();
    file.symbols.extend(symbols.iter().map(|symbol| rx_base::name::name(symbol)));
    let header = relax_header(head, &file);
    if !header.result.diagnostics.is_empty() {
        return None;
    }
    match &*header.signature {
        Signature::Relax(signature) => Some(signature.params.iter().skip(before).map(|(_, ty)| ty.clone()).collect()),
        _ => None,
    }
}

/// Returns the identifiers of a type.
fn words(ty: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| !(c.is_alphanumeric() || c == '_' || c == '.');
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_alphabetic() || c == '_') && !word.contains('.');
    ty.split(part).filter(is_name).filter(|word| !matches!(*word, "None" | "True" | "False"))
}

/// Returns the names of shape variables: `s` of `R.Tensor(s, dtype="float32")`.
fn shape_variables(ty: &str) -> impl Iterator<Item = &str> {
    ty.match_indices("Tensor(").filter_map(|(at, head)| {
        let rest = ty.get(at + head.len()..)?;
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let name = rest.get(..end)?;
        let follows = rest.get(end..)?;
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        (is_name && (follows.starts_with(',') || follows.starts_with(')'))).then_some(name)
    })
}

/// Whether two types are equal.
pub fn same(a: &StructInfo, b: &StructInfo) -> bool {
    match (a, b) {
        (StructInfo::Tensor(a), StructInfo::Tensor(b)) => same_tensor(a, b),
        (StructInfo::DTensor(a), StructInfo::DTensor(b)) => {
            same_tensor(&a.tensor, &b.tensor) && a.device_mesh == b.device_mesh && a.placement == b.placement
        }
        (StructInfo::Shape(a), StructInfo::Shape(b)) => same_shape(a, b),
        (StructInfo::Prim(a), StructInfo::Prim(b)) => same_prim(a, b),
        (StructInfo::Tuple(a), StructInfo::Tuple(b)) => same_all(a, b),
        (StructInfo::Function(a), StructInfo::Function(b)) => same_function(a, b),
        (a, b) => a == b,
    }
}

fn same_all(a: &[StructInfo], b: &[StructInfo]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same_tensor(a: &TensorInfo, b: &TensorInfo) -> bool {
    a.dtype == b.dtype && a.vdevice == b.vdevice && same_shape(&a.shape, &b.shape)
}

/// Values are not compared, because the header that `read` builds names the value of every scalar after its parameter.
fn same_prim(a: &PrimInfo, b: &PrimInfo) -> bool {
    a.dtype == b.dtype
}

fn same_function(a: &FunctionInfo, b: &FunctionInfo) -> bool {
    let params = match (&a.params, &b.params) {
        (Some(a), Some(b)) => same_all(a, b),
        (a, b) => a == b,
    };
    params && a.pure == b.pure && same(&a.ret, &b.ret)
}

fn same_shape(a: &Shape, b: &Shape) -> bool {
    let equal = |(a, b): (&Dim, &Dim)| prove::equal(a, b, &Bounds::default()) == Answer::Proved;
    match (a, b) {
        (Shape::Known(a), Shape::Known(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(equal),
        // A tensor of rank 0 has a known shape.
        (Shape::Known(dims), Shape::Rank(0)) | (Shape::Rank(0), Shape::Known(dims)) => dims.is_empty(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::same_text;

    #[test]
    fn dims_are_functions() {
        let same = |a: &str, b: &str| same_text(a, b);
        assert_eq!(same("R.Tensor((n + 1, 2), \"float32\")", "R.Tensor((1 + n, 2), dtype=\"float32\")"), Some(true));
        assert_eq!(same("R.Tensor((n // 2 * 2 + n % 2,))", "R.Tensor((n,))"), Some(true));
        assert_eq!(same("R.Tensor((n,))", "R.Tensor((m,))"), Some(false));
        assert_eq!(same("R.Tensor(ndim=0)", "R.Tensor(())"), Some(true));
        assert_eq!(same("R.Shape([n * 2])", "R.Shape([n + n])"), Some(true));
        assert_eq!(same("R.Tuple", "None"), Some(true));
        let on = |device: &str, dim: &str| format!("R.Tensor(({dim},), vdevice=\"{device}:0:global\")");
        assert_eq!(same(&on("llvm", "n * 2"), &on("llvm", "n + n")), Some(true));
        assert_eq!(same(&on("llvm", "n * 2"), &on("cuda", "n + n")), Some(false));
    }

    #[test]
    fn names_of_shapes_are_shapes() {
        assert_eq!(same_text("R.Tensor(s, dtype=\"int8\")", "R.Tensor(s, \"int8\")"), Some(true));
        assert_eq!(same_text("R.Tensor(s, dtype=\"int8\")", "R.Tensor(t, \"int8\")"), Some(false));
        assert_eq!(same_text("R.Tuple(R.Any, T.int64)", "R.Tuple(R.Object, R.Prim(\"int64\"))"), Some(true));
        assert_eq!(same_text("R.Tensor((", "R.Any"), None);
    }
}
