//! The function and binding that contain a position, and the declarations of functions: identities that do not change
//! when lines move.

use crate::position::part_span;
use crate::queries::{check_item, full_signature};
use crate::workspace::{FileId, Workspace};
use rx_base::Name;
use rx_context::ItemPart;
use rx_ir::{PrimParam, PrimParamKind, Signature};
use rx_syntax::document::{FunctionKind, ItemKind};

/// The declaration of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The function's module, as in [`crate::ModuleRow`].
    pub module: Option<u32>,
    /// The function's name.
    pub name: Name,
    /// The declaration in one line: `def main(x: R.Tensor((n,), dtype="float32")) -> …`.
    pub text: String,
}

/// The function and binding that contain a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The function's module, as in [`crate::ModuleRow`].
    pub module: Option<u32>,
    /// The function's name.
    pub function: Name,
    /// The variable that the statement binds; `return` for a return statement, `None` in a header and in a prim_func.
    pub binding: Option<Name>,
}

impl Workspace {
    /// Returns the function that contains the byte at `offset`, and the variable that its statement binds.
    pub fn owner(&self, file: FileId, offset: usize) -> Option<Owner> {
        let (db, document, inputs) = self.parts(file)?;
        let location = document.locate(offset)?;
        let item = document.items().get(location.item)?;
        let ItemKind::Function(kind) = item.kind else { return None };
        let binding = || {
            let check = check_item(db, *inputs.items.get(location.item)?).function?;
            let segment = item.segments.get(location.segment)?;
            let at = u32::try_from(location.offset).ok()?;
            let statements = &segment.tree().statements;
            let index = statements.partition_point(|statement| statement.span.start <= at).checked_sub(1)?;
            let rows = &check.segments.get(location.segment)?.rows;
            rows.iter().find(|row| row.statement as usize == index).map(|row| row.name)
        };
        let binding = if kind == FunctionKind::Relax && location.segment > 0 { binding() } else { None };
        Some(Owner { module: item.module, function: item.name?, binding })
    }

    /// Returns the declarations of a file's functions, in order.
    pub fn declarations(&self, file: FileId) -> Vec<Declaration> {
        let Some((db, document, inputs)) = self.parts(file) else { return Vec::new() };
        let rows = document.items().iter().zip(&inputs.items).filter_map(|(item, input)| {
            let (ItemKind::Function(_), Some(name)) = (item.kind, item.name) else { return None };
            let text = match &*full_signature(db, *input) {
                Signature::Opaque => {
                    // A header that could not be parsed is shown as written.
                    let head = item.segments.first()?;
                    let span = part_span(head, ItemPart::Name)?;
                    head.text().get(span.start as usize..)?.lines().next()?.to_owned()
                }
                signature => declaration(name, signature),
            };
            Some(Declaration { module: item.module, name, text })
        });
        rows.collect()
    }
}

/// Formats a signature in one line: `def main(x: R.Tensor((n,), dtype="float32")) -> …`.
pub fn declaration(function: Name, signature: &Signature) -> String {
    match signature {
        Signature::Relax(signature) => {
            let params: Vec<String> = signature.params.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
            let ret = signature.ret.as_ref().map_or_else(String::new, |ret| format!(" -> {ret}"));
            format!("def {function}({}){ret}", params.join(", "))
        }
        Signature::Prim(prim) => {
            let params = prim.params.iter().map(prim_param);
            format!("def {function}({})", params.collect::<Vec<_>>().join(", "))
        }
        Signature::Extern(ty) => format!("{function}: {ty}"),
        Signature::Opaque => format!("def {function}"),
    }
}

/// Formats a parameter of a prim_func: `x: T.Buffer((4, 8), "float32")`.
pub fn prim_param(param: &PrimParam) -> String {
    match &param.kind {
        PrimParamKind::Buffer(buffer) => {
            let dims: Vec<String> = buffer.shape.iter().map(ToString::to_string).collect();
            let comma = if dims.len() == 1 { "," } else { "" };
            format!("{}: T.Buffer(({}{comma}), \"{}\")", param.name, dims.join(", "), buffer.dtype)
        }
        PrimParamKind::Scalar(dtype) => format!("{}: T.{dtype}", param.name),
        PrimParamKind::Opaque => format!("{}: T.handle", param.name),
    }
}
