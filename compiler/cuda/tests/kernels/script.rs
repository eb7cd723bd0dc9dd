//! Reads functions in TVMScript, with checked indices as for a compiled target.

use rx_context::FileContext;
use rx_prim_func::reader;
use rx_syntax::Document;
use rx_syntax::document::{FileKind, FunctionKind, ItemKind};
use rx_tir::PrimFunc;

const HEAD: &str = "from tvm.script import ir as I\nfrom tvm.script import tirx as T\n\n";

/// Returns the prim_funcs of a text, in order. The imports are added.
pub fn read(text: &str) -> Vec<PrimFunc> {
    read_module(&format!("{HEAD}{text}"))
}

/// Returns the prim_funcs of a text that contains its imports.
pub fn read_module(text: &str) -> Vec<PrimFunc> {
    let document = Document::new(text, FileKind::Python);
    let context = context(&document);
    let functions = document.items().iter().filter(|item| item.kind == ItemKind::Function(FunctionKind::Prim));
    let read = functions.filter_map(|item| Some(reader::prim_func(&item.segments, &context, item.name?)));
    read.map(|func| func.unwrap_or_else(|said| panic!("{:?}\n{text}", said.first().map(|first| &first.message))))
        .map(|func| rx_loops::guards(&rx_loops::simplify(&func)).0)
        .collect()
}

/// Returns the names that the functions of a file may use.
pub fn context(document: &Document) -> FileContext {
    let mut context = FileContext::default();
    for item in document.items() {
        match item.kind {
            ItemKind::Function(_) => context.items.extend(item.name),
            ItemKind::Foreign | ItemKind::Metadata => {}
            _ => item.segments.iter().for_each(|segment| context.read(segment)),
        }
    }
    context
}

/// Returns the prim_func with this signature and body.
pub fn function(head: &str, body: &str) -> PrimFunc {
    let indented: String = body.lines().map(|line| format!("    {line}\n")).collect();
    read(&format!("@T.prim_func(s_tir=True)\ndef {head}:\n{indented}")).into_iter().next().expect("a function")
}
