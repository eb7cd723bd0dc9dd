//! The targets of prim_funcs: the virtual devices that a module declares and that tensor types refer to.

use crate::Module;
use rx_ir::{Attr, Item, StructInfo};
use rx_syntax::token::{Token, TokenKind, tokens};
use std::sync::Arc;

/// A target as the module declares it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    /// The kind, for example `llvm`.
    pub(super) kind: Arc<str>,
    /// The attribute `target` of prim_funcs for this target.
    pub(super) attribute: Attr,
}

/// Returns the targets of a module's devices, in the order of `I.module_global_infos({"vdevice": [I.vdevice(…), …]})`,
/// without those that [`target`] cannot parse.
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
    let kind = match written.starts_with('{') {
        true => kind_of_dictionary(written)?,
        false => unquoted(written)?.split_whitespace().next()?,
    };
    Some(Target { kind: kind.into(), attribute: Attr::Opaque(format!("T.target({written})").into()) })
}

/// Returns the value of the entry `kind`, not of one in a nested dictionary such as that of `host`.
fn kind_of_dictionary(text: &str) -> Option<&str> {
    let of = |token: Token| text.get(token.span.range());
    let mut depth = 0usize;
    let mut entry = tokens(text).filter(|token| {
        depth = depth_after(depth, token.kind);
        depth == 1 && !token.kind.is_trivia()
    });
    while let Some(key) = entry.next() {
        let is_kind = of(key).and_then(unquoted) == Some("kind");
        if is_kind && entry.next().is_some_and(|token| token.kind == TokenKind::Colon) {
            return entry.next().and_then(of).and_then(unquoted);
        }
    }
    None
}

/// Returns the contents of a string literal.
fn unquoted(text: &str) -> Option<&str> {
    ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

/// Returns the text before the first comma or closing parenthesis that is outside of brackets and strings.
fn first_argument(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    let end = tokens(text).find(|token| {
        let is_end = depth == 0 && matches!(token.kind, TokenKind::Comma | TokenKind::RightParen);
        depth = depth_after(depth, token.kind);
        is_end
    })?;
    text.get(..end.span.start as usize)
}

/// Returns the number of open brackets after a token.
fn depth_after(depth: usize, kind: TokenKind) -> usize {
    match kind {
        kind if kind.is_opener() => depth + 1,
        kind if kind.is_closer() => depth.saturating_sub(1),
        _ => depth,
    }
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
        let with_host = "{\'host\': {\'kind\': \'llvm\'}, \'kind\': \'cuda\'}";
        assert_eq!(read(&format!("{with_host}, 0)")), Some(("cuda".to_owned(), format!("T.target({with_host})"))));
        assert_eq!(read("\'a]\')"), Some(("a]".to_owned(), "T.target(\'a]\')".to_owned())));
        assert_eq!(read("])"), None);
        assert_eq!(read(""), None);
        assert_eq!(read("target"), None);
    }
}
