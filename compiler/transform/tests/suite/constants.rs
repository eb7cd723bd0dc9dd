//! Tests of constants: printing and parsing them, binding parameters to constants, and constant folding.

use crate::common::{apply, read};
use rx_base::name::name;
use rx_ir::{ConstantData, Expr, ExprKind};
use rx_tensor::{Tensor, npy, npz, safetensors};
use rx_transform::equal::first_difference;
use rx_transform::{Module, constant, print};

const LINEAR: &str = "\
n = TypeVar(\"n\")
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, n), dtype=\"float32\"), w: R.Tensor((n, 3), dtype=\"float32\"), b: R.Tensor((3,), dtype=\"float32\")) -> R.Tensor((2, 3), dtype=\"float32\"):
        with R.dataflow():
            v: R.Tensor((n, 3), dtype=\"float32\") = R.multiply(w, R.const(2.0, \"float32\"))
            y: R.Tensor((2, 3), dtype=\"float32\") = R.matmul(x, v, out_dtype=None)
            z: R.Tensor((2, 3), dtype=\"float32\") = R.add(y, b)
            R.output(z)
        return z
";

/// Runs passes, and checks that the output parses back to the same module and is then printed as the same text.
fn made(passes: &str, module: Module) -> Module {
    let made = apply(passes, module).expect("a module");
    let text = print(&made);
    assert_eq!(first_difference(&made, &read(&text)), None, "{text}");
    assert_eq!(print(&read(&text)), text, "what was printed is printed so again");
    made
}

fn message(passes: &str, text: &str) -> String {
    apply(passes, read(text)).err().map(|error| error.0).unwrap_or_default()
}

/// Returns the `float32` elements of all results of a function of the module for the given inputs.
fn value(module: &Module, function: &str, inputs: &[Tensor]) -> Vec<f32> {
    let outputs = rx_driver::evaluate(module, name(function), inputs).expect("a value");
    outputs.iter().flat_map(|output| output.as_slice::<f32>().unwrap_or_default().to_vec()).collect()
}

/// Returns the printed module without its metadata section.
fn body(module: &Module) -> String {
    let text = print(module);
    text.split_once("\"\"\")\n").map_or(text.clone(), |(_, body)| body.to_owned())
}

fn floats(shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_f32s(shape, values).expect("a tensor")
}

#[test]
fn parameters_become_constants_and_settle_dims() {
    let linear = read(LINEAR);
    let bound = made("BindParams(\"main\", {\"w\": [[1, 2, 3], [4, 5, 6]], \"b\": [1.5, 0, -1]})", linear);
    let text = body(&bound);
    assert!(text.contains("def main(x: R.Tensor((2, 2), dtype=\"float32\")) -> R.Tensor((2, 3)"), "{text}");
    assert!(text.contains("R.multiply(metadata[\"ir.GenericConst\"][0], R.const(2.0, \"float32\"))"), "{text}");
    assert!(text.contains("R.add(y, metadata[\"ir.GenericConst\"][1])"), "{text}");
    let given = [floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])];
    assert_eq!(value(&bound, "main", &given), [19.5, 24.0, 29.0, 39.5, 52.0, 65.0]);
    let folded = made("FoldConstant", bound.clone());
    assert!(!body(&folded).contains("R.multiply"), "{}", body(&folded));
    assert_eq!(value(&folded, "main", &given), value(&bound, "main", &given));
}

#[test]
fn tensor_is_read_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file);
    let weight = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    npz::write(&path("w.npz"), &[("other", &weight), ("w", &weight)]).expect("written");
    npy::write_file(&path("b.npy"), &floats(&[3], &[0.0, 0.0, 1.0])).expect("written");
    let entry = |file: &str| format!("{{\"file\": {:?}, \"entry\": \"w\"}}", path(file).to_string_lossy());
    let bias = format!("{{\"file\": {:?}}}", path("b.npy").to_string_lossy());
    let bound = made(&format!("BindParams(\"main\", {{\"w\": {}, \"b\": {bias}}})", entry("w.npz")), read(LINEAR));
    let given = [floats(&[2, 2], &[1.0, 0.0, 0.0, 1.0])];
    assert_eq!(value(&bound, "main", &given), [2.0, 4.0, 7.0, 8.0, 10.0, 13.0]);
    let none = message(&format!("BindParams(\"main\", {{\"w\": {}}})", entry("w.safetensors")), LINEAR);
    assert!(none.contains("w.safetensors") && safetensors::read(&path("w.safetensors")).is_err(), "{none}");
}

#[test]
fn tensor_that_does_not_fit_its_parameter_is_an_error() {
    let wrong = |params: &str| message(&format!("BindParams(\"main\", {params})"), LINEAR);
    assert!(wrong("{\"v\": 1}").contains("no parameter `v`"), "{}", wrong("{\"v\": 1}"));
    assert!(wrong("{\"b\": [1, 2]}").contains("3 is not 2"), "{}", wrong("{\"b\": [1, 2]}"));
    assert!(wrong("{\"b\": [[1], [2, 3]]}").contains("unequal lengths"));
    assert!(wrong("{\"b\": [1, \"two\", 3]}").contains("\"two\" is no element of float32"));
    let other = "{\"b\": {\"__ndarray__\": \"int8\", \"shape\": [3], \"data\": [1, 2, 3]}}";
    assert!(wrong(other).contains("int8 (3,)"), "{}", wrong(other));
    let large = "{\"b\": {\"__ndarray__\": \"int8\", \"shape\": [3], \"data\": [1, 2, 300]}}";
    assert!(wrong(large).contains("300 is no element of int8"), "{}", wrong(large));
    for (dtype, value) in [("int64", "18446744073709551615"), ("uint64", "-1")] {
        let said = wrong(&format!("{{\"b\": {{\"__ndarray__\": \"{dtype}\", \"shape\": [1], \"data\": [{value}]}}}}"));
        assert!(said.contains(&format!("{value} is no element of {dtype}")), "{said}");
    }
    let both = "{\"w\": [[1, 2, 3]], \"x\": [[1, 2], [3, 4]]}";
    assert!(wrong(both).contains("makes `n` both"), "{}", wrong(both));
    assert!(message("BindParams(\"min\", {})", LINEAR).contains("no Relax function `min`"));
}

#[test]
fn a_function_that_others_call_keeps_its_parameters() {
    let caller = format!(
        "{LINEAR}
    @R.function
    def twice(x: R.Tensor((2, 2), dtype=\"float32\"), w: R.Tensor((2, 3), dtype=\"float32\"), b: R.Tensor((3,), dtype=\"float32\")) -> R.Tensor((2, 3), dtype=\"float32\"):
        cls = Module
        y: R.Tensor((2, 3), dtype=\"float32\") = cls.main(x, w, b)
        return y
"
    );
    assert!(message("BindParams(\"main\", {\"b\": [1, 2, 3]})", &caller).contains("`twice` calls `main`"));
}

const THREE: &str = "\
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2,), dtype=\"float32\"), b: R.Tensor((2,), dtype=\"float32\"), c: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
        with R.dataflow():
            unused: R.Tensor((2,), dtype=\"float32\") = R.negative(a)
            z: R.Tensor((2,), dtype=\"float32\") = R.add(b, c)
            R.output(z)
        return z
";

#[test]
fn unused_constants_are_dropped_and_the_others_counted_anew() {
    // The elements include an unusual NaN and a subnormal number, whose bits must not change.
    let odd = ConstantData {
        shape: vec![2],
        dtype: rx_base::DType::FLOAT32,
        bytes: [0xffc1_2345u32, 0x0000_0001].iter().flat_map(|bits| bits.to_le_bytes()).collect(),
    };
    let mut module = made("BindParams(\"main\", {\"a\": [1, 2], \"b\": [3, 4]})", read(THREE));
    let stored = module.constants.add(odd.clone());
    for function in module.functions_mut() {
        function.params.clear();
        rx_transform::walk::each_expression_mut(&mut function.body, &mut |expr| {
            expr.each_mut(&mut |expr| {
                if expr.as_var() == Some(name("c")) {
                    *expr = stored.clone();
                }
            });
        });
    }
    let three = read(&print(&module));
    assert_eq!(three.constants.listed(), Some(3));
    let two = made("DeadCodeElimination", three);
    assert!(body(&two).contains("R.add(metadata[\"ir.GenericConst\"][0], metadata[\"ir.GenericConst\"][1])"));
    let two = read(&print(&two));
    assert_eq!(two.constants.listed(), Some(2));
    assert_eq!(two.constants.get(name("ir.GenericConst"), 1), Some(&odd));
}

#[test]
fn a_section_is_printed_as_it_was_read() {
    let mut text = print(&made("BindParams(\"main\", {\"a\": [1, 2], \"b\": [3, 4], \"c\": [5, 6]})", read(THREE)));
    // The text is like that of a section that another release wrote, with other white space.
    text = text.replace("0.27.0", "0.26.9").replace("      \\\"data\\\"", " \\\"data\\\"");
    assert_eq!(print(&read(&text)), text);
}

#[test]
fn constants_beside_non_tensors_are_printed_as_lists() {
    let section = r#"metadata = tvm.ir.load_json("""{\"root_index\": 4, \"nodes\": [{\"type\": \"ffi.String\", \"data\": \"ffi.String\"}, {\"type\": \"ffi.String\", \"data\": \"text\"}, {\"type\": \"None\"}, {\"type\": \"ffi.Array\", \"data\": [1]}, {\"type\": \"ffi.Map\", \"data\": [0, 3]}]}""")
"#;
    let module =
        apply("BindParams(\"main\", {\"b\": [3, 0.1]})", read(&format!("{section}{THREE}"))).expect("a module");
    let text = print(&module);
    assert!(text.starts_with(section) && text.contains("R.add(R.const([3.0, "), "{text}");
    let elements = read(&text);
    assert_eq!(elements.constants.section().trim_end(), section.trim_end());
}

#[test]
fn every_scalar_keeps_its_bits() {
    let mut constants = rx_ir::Constants::default();
    for dtype in ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64"] {
        let dtype = rx_base::DType::parse(dtype).expect("a dtype");
        for byte in [0u8, 1, 0x7f, 0xff] {
            let byte = if dtype == rx_base::DType::BOOL { byte & 1 } else { byte };
            let bytes = vec![byte; usize::try_from(dtype.bytes()).unwrap_or(1)];
            let scalar = Tensor::from_bytes(dtype, &[], &bytes).expect("a tensor");
            let expr: Expr = constant::expression(&scalar, &mut constants);
            let again = constant::tensor(&expr, &constants).expect("a constant");
            assert_eq!((again.dtype(), again.bytes()), (dtype, bytes.as_slice()), "{expr:?}");
        }
    }
    let two = constant::expression(&floats(&[], &[2.0]), &mut constants);
    assert!(matches!(two.kind, ExprKind::Constant(_)));
}

#[test]
fn printed_nan_keeps_its_bits() {
    for bits in [0x7fc0_0000u32, 0xffc0_0000, 0x7fc1_2345, 0xffc1_2345] {
        let scalar = Tensor::from_bytes(rx_base::DType::FLOAT32, &[], &bits.to_le_bytes()).expect("a tensor");
        let mut module = read(LINEAR);
        let nan = constant::expression(&scalar, &mut module.constants);
        for function in module.functions_mut() {
            rx_transform::walk::each_part_mut(&mut function.body, &mut |expr| {
                if matches!(expr.kind, ExprKind::Constant(_)) {
                    *expr = nan.clone();
                }
            });
        }
        let text = print(&module);
        let again = read(&text);
        let mut found = Vec::new();
        for function in again.functions() {
            rx_transform::walk::each_part(&function.body, &mut |expr| {
                found.extend(constant::tensor(expr, &again.constants).map(|tensor| tensor.bytes().to_vec()));
            });
        }
        assert_eq!(found, [bits.to_le_bytes()], "{text}");
    }
}

#[test]
fn tensor_to_shape_of_known_elements_becomes_a_shape() {
    let text = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((6,), dtype=\"float32\"), s: R.Tensor((2,), dtype=\"int64\")) -> R.Tensor(dtype=\"float32\", ndim=2):
        with R.dataflow():
            t: R.Tensor((2,), dtype=\"int64\") = R.add(s, R.const(1, \"int64\"))
            d: R.Shape(ndim=2) = R.tensor_to_shape(t)
            y: R.Tensor(dtype=\"float32\", ndim=2) = R.reshape(x, d)
            z: R.Tensor(dtype=\"float32\", ndim=2) = R.exp(y)
            R.output(z)
        return z
";
    let folded = made("BindParams(\"main\", {\"s\": [1, 2]}), FoldConstant", read(text));
    let text = body(&folded);
    assert!(text.contains("R.reshape(x, R.shape([2, 3]))"), "{text}");
    assert!(text.contains("-> R.Tensor((2, 3), dtype=\"float32\"):") && !text.contains("metadata"), "{text}");
}

#[test]
fn effects_and_unknown_values_are_not_folded() {
    let text = "\
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(i: R.Tensor((2,), dtype=\"int64\")) -> R.Tensor((2,), dtype=\"float32\"):
        R.print(i, format=R.str(\"{}\"))
        with R.dataflow():
            large: R.Tensor((1025,), dtype=\"float32\") = R.ones(R.shape([1025]), dtype=\"float32\")
            part: R.Tensor((2,), dtype=\"float32\") = R.take(large, i, axis=0, mode=\"fast\")
            small: R.Tensor((2,), dtype=\"float32\") = R.ones(R.shape([2]), dtype=\"float32\")
            sum: R.Tensor((2,), dtype=\"float32\") = R.add(part, small)
            R.output(sum)
        return sum
";
    let folded = made("FoldConstant", read(text));
    let text = body(&folded);
    assert!(text.contains("R.print(") && text.contains("R.ones(R.shape([1025])"), "{text}");
    assert!(text.contains("R.add(part, metadata["), "{text}");
}
