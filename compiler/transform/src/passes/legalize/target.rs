//! The targets of prim_funcs: the virtual devices that a module declares and that tensor types refer to.

use crate::Module;
use rx_ir::{Attr, Item, StructInfo};
use std::sync::Arc;

/// A target as the module declares it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    /// The kind, for example `llvm`.
    pub(super) kind: Arc<str>,
    /// The attribute `target` of prim_funcs for this target.
    pub(super) attribute: Attr,
}

/// Returns the targets of a module's devices, in the order of `I.module_global_infos({"vdevice": [I.vdevice(…), …]})`.
pub(super) fn of_module(module: &Module) -> Vec<Target> {
    let texts = module.items.iter().filter_map(|item| match item {
        Item::Text { text, .. } if text.contains("module_global_infos") => Some(&**text),
        _ => None,
    });
    texts.flat_map(|text| text.split("I.vdevice(").skip(1)).filter_map(target).collect()
}

/// Returns the target for results of these types: that of the first tensor with a device (TVM
/// `LegalizeMutator::GetTarget`).
pub(super) fn of_types<'t>(targets: &'t [Target], types: &[StructInfo]) -> Option<&'t Target> {
    let device = types.iter().find_map(|ty| ty.as_tensor()?.vdevice)?;
    // In `llvm:0:global`, the number is the index among the devices of the kind `llvm`.
    let mut parts = device.0.as_str().split(':');
    let (kind, number) = (parts.next()?, parts.next().map_or(Some(0), |number| number.parse().ok())?);
    targets.iter().filter(|target| &*target.kind == kind).nth(number)
}

/// Parses the target at the start of a device's arguments, which is a dictionary or a string.
fn target(arguments: &str) -> Option<Target> {
    let written = first_argument(arguments)?.trim();
    let kind = match written.split_once("\"kind\": \"") {
        Some((_, rest)) => rest.split('"').next()?,
        None => written.strip_prefix('"')?.split(['"', ' ']).next()?,
    };
    Some(Target { kind: kind.into(), attribute: Attr::Opaque(format!("T.target({written})").into()) })
}

/// Returns the text before the first comma or closing parenthesis that is outside of brackets and double quotes.
fn first_argument(text: &str) -> Option<&str> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ',' | ')' if depth == 0 => return text.get(..at),
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn a_target_is_a_dictionary_or_a_string() {
        let read = |text: &str| target(text).map(|target| (target.kind.to_string(), format!("{}", target.attribute)));
        let dictionary = "{\"keys\": [\"cpu\"], \"kind\": \"llvm\"}";
        assert_eq!(
            read(&format!("{dictionary}, 0, \"global\")]")),
            Some(("llvm".to_owned(), format!("T.target({dictionary})")))
        );
        assert_eq!(
            read("\"cuda -arch=sm_80\", 0)"),
            Some(("cuda".to_owned(), "T.target(\"cuda -arch=sm_80\")".to_owned()))
        );
        assert_eq!(read(""), None);
        assert_eq!(read("target"), None);
    }
}
