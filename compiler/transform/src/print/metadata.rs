//! The metadata section of a printed module: the constants that it holds, their indices, and its text.
//!
//! A section that holds exactly the constants in use with their data, or that cannot be rewritten, is printed
//! unchanged. Otherwise a new section is written in the format of TVM 0.27 (`json_writer.cc` of tvm-ffi), with the
//! constants that functions use, in the order of their first use; one whose dtype the section cannot store is left
//! out. For example, if a pass removes the only use of `metadata["ir.GenericConst"][0]`, the former constant 1 becomes
//! constant 0.

use crate::{Module, constant, walk};
use rx_base::Name;
use rx_base::name::name;
use rx_ir::{ConstantData, Constants, Expr, ExprKind, Item, LoopBody, saved_tensor};
use rx_tensor::Tensor;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

/// The key of tensor constants in the metadata of TVM 0.27.
const KEY: &str = "ir.GenericConst";

/// Returns the module with its constants renumbered by their index in the printed section, and the text of the section.
pub(super) fn numbered(module: &Module) -> (Cow<'_, Module>, Cow<'_, str>) {
    let used = used(module);
    let anew = can_be_written_anew(module, &used);
    let makes_none = used.iter().all(|(key, _)| !module.constants.is_made(*key));
    let as_read = module.constants.section();
    if makes_none && (!anew || module.constants.is_as_read() && module.constants.listed() == Some(used.len())) {
        return (Cow::Borrowed(module), Cow::Borrowed(as_read));
    }
    let mut section = Writer::default();
    let mut indices: HashMap<(Name, u32), Option<u32>> = HashMap::new();
    for constant in used.iter().filter(|_| anew) {
        let data = module.constants.get(constant.0, constant.1);
        indices.insert(*constant, data.and_then(|data| section.constant(data)));
    }
    let text = if anew { Cow::Owned(section.text()) } else { Cow::Borrowed(&**as_read) };
    let mut module = module.clone();
    let constants = module.constants.clone();
    for function in module.functions_mut() {
        walk::each_part_mut(&mut function.body, &mut |expr| rename(expr, &indices, &constants));
    }
    (Cow::Owned(module), text)
}

/// Renames a constant to its index in the section. A constant that a pass made and that has no index becomes the list
/// of its elements, if literals can represent these.
fn rename(expr: &mut Expr, indices: &HashMap<(Name, u32), Option<u32>>, constants: &Constants) {
    let ExprKind::Metadata { key, index } = &expr.kind else { return };
    match (indices.get(&(*key, *index)), constants.get(*key, *index)) {
        (Some(Some(own)), _) => expr.kind = ExprKind::Metadata { key: name(KEY), index: *own },
        (_, Some(data)) if constants.is_made(*key) => {
            let tensor = Tensor::from_bytes(data.dtype, &data.shape, &data.bytes).ok();
            if let Some(elements) = tensor.as_ref().and_then(constant::literals) {
                expr.kind = ExprKind::Elements(elements.into());
            }
        }
        _ => {}
    }
}

/// Returns the constants that functions use, in the order of their first use.
fn used(module: &Module) -> Vec<(Name, u32)> {
    let mut seen = std::collections::HashSet::new();
    let mut used = Vec::new();
    for function in module.functions() {
        walk::each_part(&function.body, &mut |expr| {
            if let ExprKind::Metadata { key, index } = &expr.kind
                && seen.insert((*key, *index))
            {
                used.push((*key, *index));
            }
        });
    }
    used
}

/// Whether the section can be rewritten: it holds tensors only, no item that is kept as text refers to it, and the data
/// of all used constants is known.
fn can_be_written_anew(module: &Module, used: &[(Name, u32)]) -> bool {
    let texts = module.items.iter().any(|item| match item {
        Item::Text { text, .. } => text.contains("metadata["),
        Item::Loops(function) => match &function.body {
            LoopBody::Written { .. } => super::loop_function(function).contains("metadata["),
            LoopBody::Made(_) => false,
        },
        Item::Relax(_) => false,
    });
    !texts
        && module.constants.listed().is_some()
        && used.iter().all(|(key, index)| module.constants.get(*key, *index).is_some())
}

/// A JSON graph of nodes that represents the section; equal nodes are shared, except for tensor data.
#[derive(Default)]
struct Writer {
    nodes: Vec<String>,
    known: HashMap<String, usize>,
    constants: Vec<usize>,
}

impl Writer {
    fn node(&mut self, kind: &str, data: &str) -> usize {
        let data = if data.is_empty() { String::new() } else { format!(",\n      \"data\": {data}") };
        let text = format!("    {{\n      \"type\": \"{kind}\"{data}\n    }}");
        let next = self.nodes.len();
        *self.known.entry(text).or_insert_with_key(|text| {
            self.nodes.push(text.clone());
            next
        })
    }

    fn object(&mut self, kind: &str, fields: &[(&str, String)]) -> usize {
        let fields: Vec<String> = fields.iter().map(|(field, value)| format!("        \"{field}\": {value}")).collect();
        self.node(kind, &format!("{{\n{}\n      }}", fields.join(",\n")))
    }

    fn array(&mut self, kind: &str, items: &[usize]) -> usize {
        let items: Vec<String> = items.iter().map(|item| format!("        {item}")).collect();
        let list = if items.is_empty() { "[]".to_owned() } else { format!("[\n{}\n      ]", items.join(",\n")) };
        self.node(kind, &list)
    }

    fn prim_type(&mut self, dtype: &str, none: usize) -> usize {
        self.object("ir.PrimType", &[("span", none.to_string()), ("dtype", format!("\"{dtype}\""))])
    }

    /// Adds a tensor and returns its index; `None` if a section cannot store its dtype.
    fn constant(&mut self, data: &ConstantData) -> Option<u32> {
        let encoded = saved_tensor::write(&data.shape, data.dtype, &data.bytes)?;
        let index = u32::try_from(self.constants.len()).ok()?;
        let none = self.node("None", "");
        let span = || ("span", none.to_string());
        let int64 = self.prim_type("int64", none);
        let mut extents = Vec::with_capacity(data.shape.len());
        for extent in &data.shape {
            let value = ("value", self.node("int", &extent.to_string()).to_string());
            extents.push(self.object("ir.IntImm", &[span(), ("ty", int64.to_string()), value]));
        }
        let values = self.array("ffi.Array", &extents);
        let ndim = ("ndim", data.shape.len().to_string());
        let values = ("values", values.to_string());
        let shape_type = self.object("relax.ShapeType", &[span(), values.clone(), ndim.clone()]);
        let shape = self.object("relax.expr.ShapeExpr", &[span(), ("ty", shape_type.to_string()), values]);
        let dtype = self.prim_type(&data.dtype.to_string(), none);
        let ty = self.object(
            "relax.TensorType",
            &[span(), ("shape", shape.to_string()), ("dtype", dtype.to_string()), ("vdevice", none.to_string()), ndim],
        );
        // The text may be large, so it is not deduplicated.
        let tensor = self.nodes.len();
        self.nodes.push(format!("    {{\n      \"type\": \"ffi.Tensor\",\n      \"data\": \"{encoded}\"\n    }}"));
        let constant = self.object(KEY, &[span(), ("ty", ty.to_string()), ("value", tensor.to_string())]);
        self.constants.push(constant);
        Some(index)
    }

    /// Returns the text of the section; empty if there are no constants.
    fn text(mut self) -> String {
        if self.constants.is_empty() {
            return String::new();
        }
        let key = self.node("ffi.String", &format!("\"{KEY}\""));
        let constants = std::mem::take(&mut self.constants);
        let list = self.array("ffi.Array", &constants);
        let root = self.array("ffi.Map", &[key, list]);
        let mut json = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            json,
            "{{\n  \"root_index\": {root},\n  \"nodes\": [\n{}\n  ],\n  \"metadata\": {{\n    \"tvm_version\": \"0.27.0\"\n  }}\n}}",
            self.nodes.join(",\n")
        );
        format!("metadata = tvm.ir.load_json(\"\"\"{}\"\"\")\n", json.replace('"', "\\\""))
    }
}
