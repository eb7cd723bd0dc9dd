//! A function that takes raw weights, beside one that `LiftTransformParams` left with prepared ones.

use rx_base::fix::Edit;
use rx_base::name::name;
use rx_base::{Name, Span};
use rx_db::{FileView, FunctionKind};
use rx_ir::{FunctionSignature, Signature};
use rx_syntax::ast::StatementKind;
use rx_syntax::document::{Item, ItemKind};

/// The new function's name, and the edit that writes it behind the function at a byte of a file: it takes the inputs of this
/// one and the tuple of raw weights, prepares them, and calls it. `None` where nothing prepares the function's weights.
///
/// Types stand in its header as they do in those of the two functions; in its body they are inferred.
pub fn raw_entry(view: &FileView<'_>, offset: usize) -> Option<(Name, Edit)> {
    let document = view.document();
    let at = document.locate(offset)?.item;
    let item = document.items().get(at)?;
    let (ItemKind::Function(FunctionKind::Relax), Some(own)) = (item.kind, item.name) else { return None };
    let class = class_of(view, at)?;
    let signature = relax(view, at)?;
    let inputs = usize::try_from(signature.num_input?).ok().filter(|inputs| *inputs < signature.params.len())?;
    let transform = name(&format!("{own}_transform_params"));
    let transform_at = view.function(at, transform)?;
    let prepares = relax(view, transform_at)?;
    let prepared = prepares.ret.as_ref()?.as_tuple()?.len();
    if prepares.params.len() != 1 || inputs + prepared != signature.params.len() {
        return None;
    }
    let (header, weights) = (Header::of(item)?, Header::of(document.items().get(transform_at)?)?);
    let taken = header.params.get(..inputs)?;
    let used = |wanted: &str| taken.iter().any(|(param, _)| param == wanted) || wanted == "cls";
    let fresh = |like: &str| numbered(like, &used);
    let raw = fresh(weights.params.first()?.0.as_str());
    let annotation = weights.params.first()?.1.as_deref()?;
    let params = taken.iter().map(|(param, ty)| match ty {
        Some(ty) => format!("{param}: {ty}"),
        None => param.clone(),
    });
    let params: Vec<String> = params.chain([format!("{raw}: {annotation}")]).collect();
    let mut dims = header.type_params;
    weights.type_params.iter().for_each(|dim| {
        if !dims.contains(dim) {
            dims.push(dim.clone());
        }
    });
    let dims = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(", ")) };
    let names = |wanted: &str| document.items().iter().any(|item| item.name == Some(name(wanted)));
    let entry = numbered(&format!("{own}_raw"), &names);
    let (all, result) = (fresh("prepared"), fresh("result"));
    let arguments = taken.iter().map(|(param, _)| param.clone());
    let arguments: Vec<String> = arguments.chain((0..prepared).map(|field| format!("{all}[{field}]"))).collect();
    let pure = if signature.pure && prepares.pure { "" } else { "(pure=False)" };
    let lines = [
        format!("@R.function{pure}"),
        format!("def {entry}{dims}({}):", params.join(", ")),
        format!("    cls = {class}"),
        format!("    {all} = cls.{transform}({raw})"),
        format!("    {result} = cls.{own}({})", arguments.join(", ")),
        format!("    return {result}"),
    ];
    let (end, indent) = (document.line_end(), " ".repeat(item.indent as usize));
    let text: String = lines.iter().map(|line| format!("{end}{indent}{line}")).collect();
    let length: usize = item.segments.iter().map(|segment| segment.text().len()).sum();
    let blank = trailing_blanks(item);
    let place = u32::try_from(document.item_start(at) + length.saturating_sub(blank)).ok()?;
    Some((name(&entry), (Span::empty(place), format!("{end}{text}"))))
}

/// The class that an item stands in.
fn class_of(view: &FileView<'_>, at: usize) -> Option<Name> {
    let before = view.document().items().get(..at)?;
    before.iter().rev().find(|item| item.kind == ItemKind::ModuleHeader)?.name
}

fn relax(view: &FileView<'_>, at: usize) -> Option<FunctionSignature> {
    match &*view.signature(at)? {
        Signature::Relax(signature) => Some(signature.clone()),
        _ => None,
    }
}

/// `like`, or `like_1`, `like_2`, … where that is used.
fn numbered(like: &str, used: &dyn Fn(&str) -> bool) -> String {
    let mut own = like.to_owned();
    let mut number = 0;
    while used(&own) {
        number += 1;
        own = format!("{like}_{number}");
    }
    own
}

/// How many bytes of blanks an item ends in.
fn trailing_blanks(item: &Item) -> usize {
    let mut blank = 0;
    for segment in item.segments.iter().rev() {
        let text = segment.text();
        let kept = text.trim_end().len();
        blank += text.len() - kept;
        if kept > 0 {
            break;
        }
    }
    blank
}

/// A function's header as it is written.
struct Header {
    /// The names in brackets behind its name.
    type_params: Vec<String>,
    /// Names and annotations.
    params: Vec<(String, Option<String>)>,
}

impl Header {
    fn of(item: &Item) -> Option<Header> {
        let segment = item.segments.first()?;
        segment.tree().statements.iter().find_map(|statement| {
            let StatementKind::Def { type_params, params, .. } = &statement.tree.kind else { return None };
            let cursor = segment.cursor(statement);
            let written = |param: &rx_syntax::ast::Parameter| {
                let own = cursor.parameter(param);
                let annotation = param.tree.annotation.as_ref().map(|ty| own.source(ty.tokens).to_owned());
                Some((own.text(param.tree.name?).to_owned(), annotation))
            };
            Some(Header {
                type_params: type_params.iter().map(|token| cursor.text(*token).to_owned()).collect(),
                params: params.iter().map(written).collect::<Option<_>>()?,
            })
        })
    }
}
