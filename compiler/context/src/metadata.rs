//! The metadata section, `metadata = tvm.ir.load_json("""…""")`: the constants that a text refers to by key and index,
//! for example `metadata["ir.GenericConst"][0]`.
//!
//! For checking, only the parts of the section's node graph that determine types are kept (`graph`). Tensor data is
//! decoded by [`tensors`] when a program runs.

mod graph;

use graph::{Graph, Node};
use rustc_hash::FxHashMap;
use rx_base::dtype::TypeCode;
use rx_base::name::{NameMap, name};
use rx_base::{Code, DType, Diagnostic, Dim, Name, Span};
use rx_ir::saved_tensor::{self, Header};
use rx_ir::struct_info::Shape;
use rx_ir::{ConstantData, Constants as ModuleConstants, Elements, Known, StructInfo};
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segments};
use std::sync::Arc;

/// Maps each key to the objects under it, in order.
pub type Constants = NameMap<Vec<Constant>>;

/// A constant of a metadata section.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The struct info; [`StructInfo::Error`] if unknown.
    pub ty: StructInfo,
    /// The known values of the elements: of integers, and of floats if there are few.
    pub values: Known,
}

/// The most objects that a section may list. References may repeat, so a short text could list any number.
const MAX_OBJECTS: usize = 1 << 18;

/// The most dims of a constant.
const MAX_DIMS: usize = 256;

/// A parsed metadata section.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The constants; `None` if the section cannot be read or is not a literal.
    pub constants: Option<Arc<Constants>>,
    /// The reason why it cannot be read: the index of the segment, and a diagnostic in it.
    pub problem: Option<(u32, Diagnostic<Span>)>,
}

/// Decodes tensors of the metadata section in an item's segments, by key and index.
///
/// # Errors
/// Names the first constant that is missing or cannot be decoded, and the reason.
pub fn tensors(segments: &Segments, wanted: &[(Name, u32)]) -> Result<Vec<ConstantData>, String> {
    let (_, _, json) = literal(segments).ok_or("the file has no metadata section that holds its constants")?;
    let decoder = Decoder { graph: graph::parse(&json)?, known: FxHashMap::default() };
    let one = |(key, index): &(Name, u32)| {
        decoder.tensor(key, *index).map_err(|problem| format!("metadata[\"{key}\"][{index}]: {problem}"))
    };
    wanted.iter().map(one).collect()
}

/// Decodes all tensors of the metadata section in an item's segments; those that cannot be decoded are listed without
/// data.
pub fn constants(segments: &Segments) -> ModuleConstants {
    let text: String = segments.iter().map(|segment| segment.text()).collect();
    let listed = literal(segments).and_then(|(_, _, json)| {
        let decoder = Decoder { graph: graph::parse(&json).ok()?, known: FxHashMap::default() };
        decoder.all_tensors().ok()
    });
    match listed {
        Some(listed) => ModuleConstants::of_section(text.into(), listed),
        // The list cannot be read at all: represent it by one entry without data.
        None => ModuleConstants::of_section(text.into(), [(name("ir.GenericConst"), vec![None])].into_iter().collect()),
    }
}

/// Finds the JSON literal of the section: the segment's index, the literal's position, its value.
fn literal(segments: &Segments) -> Option<(usize, Span, std::borrow::Cow<'_, str>)> {
    segments.iter().enumerate().find_map(|(at, segment)| {
        segment.tree().statements.iter().find_map(|statement| {
            let StatementKind::Assign { value, .. } = &statement.tree.kind else { return None };
            let cursor = segment.cursor(statement);
            let (literal, json) = json_of(cursor, value)?;
            Some((at, first_line(cursor, literal), json))
        })
    })
}

/// Reads the metadata section in an item's segments.
pub fn read(segments: &Segments) -> Section {
    let Some((at, place, json)) = literal(segments) else { return Section::default() };
    match decode(&json) {
        Ok(constants) => Section { constants: constants.map(Arc::new), problem: None },
        Err(problem) => {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let message = format!("the metadata section cannot be read: {problem}");
            let diagnostic = Diagnostic::new(Code::MalformedMetadata, place, message)
                .with_help("print the module again with `show_meta=True`, or delete the section: its constants are then taken at their annotations' word");
            Section { constants: None, problem: Some((at, diagnostic)) }
        }
    }
}

/// Returns the literal of `load_json("…")` and its value.
fn json_of<'t, 'e>(cursor: Cursor<'t>, value: &'e Expr) -> Option<(&'e Expr, std::borrow::Cow<'t, str>)> {
    let ExprKind::Call { callee, arguments } = &value.kind else { return None };
    if !cursor.path(callee.tokens).ends_with("load_json") {
        return None;
    }
    let literal = &arguments.first()?.value;
    Some((literal, cursor.string_value(literal)?))
}

/// Returns the part of a literal on its first line; the whole literal may have megabytes.
fn first_line(cursor: Cursor<'_>, literal: &Expr) -> Span {
    let span = cursor.span(literal.tokens);
    let line = cursor.source(literal.tokens).lines().next().unwrap_or_default();
    let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
    Span { start: span.start, end: span.start.saturating_add(length).min(span.end) }
}

/// Decodes a metadata section to its constants. Returns `None` if its JSON has the floats `NaN` or `Infinity`, which TVM
/// writes and this parser does not read.
///
/// # Errors
/// A message about the mistake in it.
fn decode(json: &str) -> Result<Option<Constants>, String> {
    let graph = match graph::parse(json) {
        Ok(graph) => graph,
        // TVM writes these words for floats, though JSON does not have them (TVM
        // 3rdparty/tvm-ffi/src/ffi/extra/json_writer.cc).
        Err(_) if json.contains("NaN") || json.contains("Infinity") => return Ok(None),
        Err(problem) => return Err(problem),
    };
    Decoder { graph, known: FxHashMap::default() }.constants().map(Some)
}

struct Decoder<'j> {
    graph: Graph<'j>,
    /// The constants decoded so far, by node: a node may be listed many times.
    known: FxHashMap<usize, Constant>,
}

impl<'j> Decoder<'j> {
    fn constants(mut self) -> Result<Constants, String> {
        let root = self.graph.root.ok_or("it has no root")?;
        let root = self.node(root, "root")?;
        if !matches!(root.kind(), "Map" | "StrMap") {
            return Err("its root is no map".to_owned());
        }
        let entries = self.entries(root)?;
        let mut constants = Constants::default();
        let mut objects = 0usize;
        for (key, list) in entries {
            let list = self.node(list, "list")?.list.clone().ok_or("the value of a key is not a list")?;
            objects += list.len();
            if objects > MAX_OBJECTS {
                return Err(format!("it lists more than {MAX_OBJECTS} objects"));
            }
            let types: Result<Vec<Constant>, String> = list
                .iter()
                .enumerate()
                .map(|(at, node)| self.object(*node).map_err(|problem| format!("constant {at} of `{key}`: {problem}")))
                .collect();
            constants.insert(name(&key), types?);
        }
        Ok(constants)
    }

    /// Returns keys and values of a map. Keys are nodes; in the classic format they are strings in the map itself.
    fn entries(&self, map: &Node<'j>) -> Result<Vec<(String, usize)>, String> {
        let items = map.list.as_deref().ok_or("its root is no map")?;
        if let Some(keys) = &map.keys {
            return match keys.len() == items.len() {
                true => Ok(keys.iter().map(|key| key.clone().into_owned()).zip(items.iter().copied()).collect()),
                false => Err(format!("its root has {} keys and {} values", keys.len(), items.len())),
            };
        }
        let pairs = items.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err("its root has a key without a value".to_owned());
        }
        pairs
            .map(|pair| {
                // INVARIANT: chunks of exactly two.
                let key = self.node(pair[0], "key")?.text.as_deref().ok_or("a key of its root is no string")?;
                Ok((key.to_owned(), pair[1]))
            })
            .collect()
    }

    fn node(&self, at: usize, subject: &str) -> Result<&Node<'j>, String> {
        let count = self.graph.nodes.len();
        self.graph.nodes.get(at).ok_or_else(|| format!("its {subject} is node {at} of {count}"))
    }

    /// Returns the type of an object; [`StructInfo::Error`] if it is not a constant.
    fn object(&mut self, at: usize) -> Result<Constant, String> {
        if let Some(known) = self.known.get(&at) {
            return Ok(known.clone());
        }
        let node = self.node(at, "object")?;
        let constant = match node.kind() {
            "GenericConst" | "Constant" => self.constant(node)?,
            _ => Constant { ty: StructInfo::Error, values: None },
        };
        self.known.insert(at, constant.clone());
        Ok(constant)
    }

    /// Decodes the tensor of constant `index` under `key`.
    fn tensor(&self, key: &str, index: u32) -> Result<ConstantData, String> {
        let root = self.node(self.graph.root.ok_or("the section has no root")?, "root")?;
        let entries = self.entries(root)?;
        let (_, list) = entries.iter().find(|(known, _)| known == key).ok_or("the section has no such key")?;
        let list = self.node(*list, "list")?.list.as_deref().ok_or("the value of the key is not a list")?;
        let at = list.get(index as usize).ok_or("the section has no such index")?;
        self.tensor_of(*at)
    }

    /// Decodes the tensor of an object.
    fn tensor_of(&self, object: usize) -> Result<ConstantData, String> {
        let text = self.tensor_text(self.node(object, "object")?)?.ok_or("the section holds no data for it")?;
        let (Header { shape, dtype }, bytes) = saved_tensor::data(text, MAX_DIMS)?;
        Ok(ConstantData { shape, dtype: dtype.ok_or("its dtype is unknown")?, bytes: bytes.into() })
    }

    /// Decodes all objects by key. An object that is listed several times is decoded once.
    fn all_tensors(&self) -> Result<NameMap<Vec<Option<ConstantData>>>, String> {
        let root = self.node(self.graph.root.ok_or("the section has no root")?, "root")?;
        let mut known: FxHashMap<usize, Option<ConstantData>> = FxHashMap::default();
        let mut listed = NameMap::default();
        let mut objects = 0usize;
        for (key, list) in self.entries(root)? {
            let list = self.node(list, "list")?.list.as_deref().ok_or("the value of a key is not a list")?;
            objects += list.len();
            if objects > MAX_OBJECTS {
                return Err(format!("it lists more than {MAX_OBJECTS} objects"));
            }
            let tensors = list.iter().map(|at| known.entry(*at).or_insert_with(|| self.tensor_of(*at).ok()).clone());
            listed.insert(name(&key), tensors.collect());
        }
        Ok(listed)
    }

    /// Returns the base64 data of a constant's tensor, if there is one.
    fn tensor_text<'s>(&'s self, node: &'s Node<'j>) -> Result<Option<&'s str>, String> {
        Ok(match node.index(&["value", "data"]) {
            None => None,
            Some(at) if node.classic => {
                let count = self.graph.tensors.len();
                Some(self.graph.tensors.get(at).ok_or_else(|| format!("its data is tensor {at} of {count}"))?)
            }
            Some(at) => match self.node(at, "data")? {
                data if matches!(data.kind(), "Tensor" | "NDArray") => {
                    Some(data.text.as_deref().ok_or("its tensor holds no data")?)
                }
                _ => None,
            },
        })
    }

    /// Returns the type of a constant: from the header of its tensor, otherwise from its type node.
    fn constant(&self, node: &Node<'j>) -> Result<Constant, String> {
        let header = match self.tensor_text(node)? {
            Some(text) => Some(saved_tensor::header(text, MAX_DIMS)?),
            None => None,
        };
        if let Some(Header { shape, dtype }) = header {
            let dims: Vec<Dim> = shape.into_iter().map(Dim::constant).collect();
            let values = self.tensor_text(node)?.and_then(|text| values_of(text, &dims, dtype?));
            return Ok(Constant { ty: StructInfo::tensor(dims, dtype), values });
        }
        let ty = match node.index(&["ty", "struct_info_"]) {
            Some(ty) => self.tensor_type(self.node(ty, "type")?)?,
            None => StructInfo::Error,
        };
        Ok(Constant { ty, values: None })
    }

    /// Reads a `relax.TensorType` node, called `relax.TensorStructInfo` in the classic format.
    fn tensor_type(&self, node: &Node<'j>) -> Result<StructInfo, String> {
        if !matches!(node.kind(), "TensorType" | "TensorStructInfo") {
            return Ok(StructInfo::Error);
        }
        let dtype = match (node.string("dtype"), node.index(&["dtype"])) {
            (_, Some(at)) if !node.classic => self.node(at, "dtype")?.string("dtype"),
            (written, _) => written,
        };
        let rank = node.index(&["ndim"]).filter(|ndim| *ndim <= MAX_DIMS);
        let dims = self.dims(node)?;
        let shape = dims.map_or_else(|| Shape::of_rank(rank), Shape::known);
        Ok(StructInfo::tensor_of(shape, dtype.and_then(DType::parse)))
    }

    /// Returns the dims of a tensor type, if all are constants.
    fn dims(&self, node: &Node<'j>) -> Result<Option<Vec<Dim>>, String> {
        let Some(shape) = node.index(&["shape"]) else { return Ok(None) };
        let shape = self.node(shape, "shape")?;
        let Some(values) = shape.index(&["values"]) else { return Ok(None) };
        let Some(values) = self.node(values, "dims")?.list.as_deref().filter(|dims| dims.len() <= MAX_DIMS) else {
            return Ok(None);
        };
        let dims: Result<Option<Vec<Dim>>, String> =
            values.iter().map(|dim| Ok(self.int_imm(self.node(*dim, "dim")?).map(Dim::constant))).collect();
        dims
    }

    /// Returns the value of an `IntImm`: that of the `"int"` node it refers to, as TVM 0.27 writes it, or the number
    /// itself.
    fn int_imm(&self, node: &Node<'j>) -> Option<i64> {
        let value = node.integer("value")?;
        let named = usize::try_from(value).ok().and_then(|at| self.graph.nodes.get(at));
        match named {
            Some(named) if !node.classic && named.kind() == "int" => named.number,
            _ => Some(value),
        }
    }
}

/// Returns the known elements of a tensor. Large float tensors are weights, which are not used as indices.
fn values_of(text: &str, dims: &[Dim], dtype: DType) -> Known {
    /// The most integers: decoding more costs more than it is worth.
    const MOST_INTEGERS: i64 = 1 << 16;
    let count = dims.iter().try_fold(1i64, |count, dim| count.checked_mul(dim.as_constant()?))?;
    let most = if dtype.is_float() { rx_ir::values::MAX_ELEMENTS as i64 } else { MOST_INTEGERS };
    let width = usize::from(dtype.bits.max(8) / 8);
    if count > most || dtype.lanes != 1 {
        return None;
    }
    let (_, bytes) = saved_tensor::data(text, MAX_DIMS).ok()?;
    let words = bytes.chunks_exact(width).map(|word| {
        let mut wide = [0u8; 8];
        wide.get_mut(..width)?.copy_from_slice(word);
        Some(u64::from_le_bytes(wide))
    });
    let words = words.take(usize::try_from(count).ok()?).collect::<Option<Vec<u64>>>()?;
    let elements = match (dtype.code, dtype.bits) {
        (TypeCode::Int, bits @ (8 | 16 | 32 | 64)) => {
            let unused = 64 - u32::from(bits);
            Elements::Ints(words.iter().map(|word| (word << unused).cast_signed() >> unused).collect())
        }
        (TypeCode::UInt, 8 | 16 | 32 | 64) | (TypeCode::Bool, _) => {
            Elements::Ints(words.iter().map(|word| i64::try_from(*word).ok()).collect::<Option<_>>()?)
        }
        (TypeCode::Float, 32) => {
            let float = |word: &u64| Some(f64::from(f32::from_bits(u32::try_from(*word).ok()?)));
            Elements::Floats(words.iter().map(float).collect::<Option<_>>()?)
        }
        (TypeCode::Float, 64) => Elements::Floats(words.iter().map(|word| f64::from_bits(*word)).collect()),
        _ => return None,
    };
    rx_ops::values::of_elements(elements, dtype)
}

#[cfg(test)]
mod tests {
    use super::{Section, decode, read};
    use rx_base::name::name;
    use rx_syntax::{Segment, Segments};
    use std::sync::Arc;

    /// A tensor of int32 `[0, 5, 15]`.
    const INT32_3: &str = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAAgAQADAAAAAAAAAAwAAAAAAAAAAAAAAAUAAAAPAAAA";

    fn types(json: &str, key: &str) -> Vec<String> {
        let constants = decode(json).expect("readable").expect("JSON without NaN");
        constants.get(&name(key)).expect("the key").iter().map(|constant| constant.ty.to_string()).collect()
    }

    #[test]
    fn a_constant_is_decoded_when_it_is_asked_for() {
        let json = one(TYPE, &tensor_of(INT32_3));
        let text = format!("metadata = tvm.ir.load_json(\"\"\"{json}\"\"\")\n");
        let segments = Segments::from_iter([Arc::new(Segment::new(text.as_str().into()))]);
        let key = name("ir.GenericConst");
        let [tensor] = &super::tensors(&segments, &[(key, 0)]).expect("there")[..] else { panic!("one") };
        assert_eq!((&tensor.shape[..], tensor.dtype), (&[3][..], rx_base::DType::INT32));
        let values: Vec<u8> = tensor.bytes.iter().step_by(4).copied().collect();
        assert_eq!(values, [0, 5, 15]);
        assert!(super::tensors(&segments, &[(key, 1)]).is_err_and(|problem| problem.contains("no such index")));
        assert!(super::tensors(&Segments::default(), &[(key, 0)]).is_err());
    }

    fn problem(json: &str) -> String {
        decode(json).expect_err("broken")
    }

    /// Returns a section of one constant with this type node and this value node.
    fn one(ty: &str, value: &str) -> String {
        format!(
            r#"{{"root_index": 4, "nodes": [{{"type": "ffi.String", "data": "ir.GenericConst"}}, {{"type": "None"}},
            {{"type": "ir.GenericConst", "data": {{"span": 1, "ty": 6, "value": 5}}}}, {{"type": "ffi.Array", "data": [2]}},
            {{"type": "ffi.Map", "data": [0, 3]}}, {value}, {ty}, {{"type": "ir.PrimType", "data": {{"span": 1, "dtype": "float16"}}}},
            {{"type": "relax.expr.ShapeExpr", "data": {{"span": 1, "ty": 1, "values": 9}}}}, {{"type": "ffi.Array", "data": [10]}},
            {{"type": "ir.IntImm", "data": {{"span": 1, "ty": 1, "value": 7}}}}]}}"#
        )
    }

    fn tensor_of(data: &str) -> String {
        format!(r#"{{"type": "ffi.Tensor", "data": "{data}"}}"#)
    }

    const TYPE: &str =
        r#"{"type": "relax.TensorType", "data": {"span": 1, "shape": 8, "dtype": 7, "vdevice": 1, "ndim": 1}}"#;

    #[test]
    fn tensor_of_a_constant_overrides_its_declared_type() {
        let key = "ir.GenericConst";
        assert_eq!(types(&one(TYPE, &tensor_of(INT32_3)), key), [r#"R.Tensor((3,), dtype="int32")"#]);
        assert_eq!(types(&one(TYPE, r#"{"type": "None"}"#), key), [r#"R.Tensor((7,), dtype="float16")"#]);
        let rank_only = TYPE.replace("\"shape\": 8", "\"shape\": 1");
        assert_eq!(types(&one(&rank_only, r#"{"type": "None"}"#), key), [r#"R.Tensor(dtype="float16", ndim=1)"#]);
    }

    /// The format of TVM 0.27: numbers are nodes, and equal numbers are the same node.
    #[test]
    fn a_dim_is_the_number_its_node_says() {
        let json = r#"{"root_index": 13, "nodes": [{"type": "ffi.String", "data": "ir.GenericConst"}, {"type": "None"},
            {"type": "ir.PrimType", "data": {"span": 1, "dtype": "int64"}}, {"type": "int", "data": 16},
            {"type": "ir.IntImm", "data": {"span": 1, "ty": 2, "value": 3}}, {"type": "int", "data": 4},
            {"type": "ir.IntImm", "data": {"span": 1, "ty": 2, "value": 5}}, {"type": "ffi.Array", "data": [4, 6]},
            {"type": "relax.expr.ShapeExpr", "data": {"span": 1, "ty": 1, "values": 7}},
            {"type": "ir.PrimType", "data": {"span": 1, "dtype": "float32"}},
            {"type": "relax.TensorType", "data": {"span": 1, "shape": 8, "dtype": 9, "vdevice": 1, "ndim": 2}},
            {"type": "ir.GenericConst", "data": {"span": 1, "ty": 10, "value": 1}}, {"type": "ffi.Array", "data": [11]},
            {"type": "ffi.Map", "data": [0, 12]}]}"#;
        assert_eq!(types(json, "ir.GenericConst"), [r#"R.Tensor((16, 4), dtype="float32")"#]);
    }

    #[test]
    fn the_classic_format_is_read() {
        let json = format!(
            r#"{{"root": 1, "nodes": [{{"type_key": ""}}, {{"type_key": "Map", "keys": ["relax.expr.Constant"], "data": [2]}},
            {{"type_key": "Array", "data": [3, 4]}},
            {{"type_key": "relax.expr.Constant", "attrs": {{"_checked_type_": "0", "data": "0", "span": "0", "struct_info_": "5"}}}},
            {{"type_key": "relax.expr.Constant", "attrs": {{"_checked_type_": "0", "span": "0", "struct_info_": "5"}}}},
            {{"type_key": "relax.TensorStructInfo", "attrs": {{"dtype": "float16", "ndim": "1", "shape": "6", "span": "0"}}}},
            {{"type_key": "relax.expr.ShapeExpr", "attrs": {{"values": "7"}}}}, {{"type_key": "Array", "data": [8]}},
            {{"type_key": "IntImm", "attrs": {{"dtype": "int64", "span": "0", "value": "7"}}}}],
            "b64ndarrays": ["{INT32_3}"], "attrs": {{"tvm_version": "0.20.0"}}}}"#
        );
        let found = types(&json, "relax.expr.Constant");
        assert_eq!(found, [r#"R.Tensor((3,), dtype="int32")"#, r#"R.Tensor((7,), dtype="float16")"#]);
    }

    #[test]
    fn malformed_metadata_is_reported_once() {
        assert!(problem("{").starts_with("EOF while parsing"), "{}", problem("{"));
        assert_eq!(problem("{}"), "it has no root");
        assert_eq!(problem(r#"{"root_index": 4, "nodes": []}"#), "its root is node 4 of 0");
        let cut = one(TYPE, &tensor_of(&INT32_3[..60]));
        assert_eq!(problem(&cut), "constant 0 of `ir.GenericConst`: its tensor is cut short");
        let magic = one(TYPE, &tensor_of(&INT32_3.replace("P6G0", "AAAA")));
        assert_eq!(problem(&magic), "constant 0 of `ir.GenericConst`: its tensor is none");
        let shape = TYPE.replace("\"shape\": 8", "\"shape\": 80");
        let missing = one(&shape, r#"{"type": "None"}"#);
        assert_eq!(problem(&missing), "constant 0 of `ir.GenericConst`: its shape is node 80 of 11");
    }

    #[test]
    fn deep_and_cyclic_metadata_is_an_error() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for json in [deep.clone(), format!(r#"{{"nodes": {deep}}}"#), format!(r#"{{"nodes": [{{"data": {deep}}}]}}"#)] {
            assert!(decode(&json).is_err());
        }
        let circle = one(
            r#"{"type": "relax.TensorType", "data": {"shape": 6, "dtype": 6, "ndim": 6, "values": 6}}"#,
            r#"{"type": "ir.GenericConst", "data": {"ty": 5, "value": 5}}"#,
        );
        assert_eq!(types(&circle, "ir.GenericConst"), ["R.Tensor(ndim=6)"]);
    }

    #[test]
    fn floats_that_json_lacks_make_it_opaque() {
        assert_eq!(decode(r#"{"nodes": [{"type": "float", "data": NaN}]}"#), Ok(None));
    }

    #[test]
    fn problem_of_a_section_has_a_place() {
        let section = |text: &str| read(&Segments::from_iter([Arc::new(Segment::new(text.into()))]));
        assert_eq!(section("metadata = tvm.ir.load_json(text)\n"), Section::default());
        let broken = section("metadata = tvm.ir.load_json(\"\"\"{\n  \\\"nodes\\\": [\n}\"\"\")\n");
        let (segment, diagnostic) = broken.problem.expect("a problem");
        assert_eq!((segment, diagnostic.primary.start, diagnostic.primary.end), (0, 28, 32));
    }
}
