//! Signature help: the signature of the call around a position.

use crate::call_site::CallSite;
use crate::hover::is_module;
use crate::schema_text;
use rx_base::name::name;
use rx_db::{FileView, declaration, prim_param};
use rx_ir::Signature;
use rx_prim_func::functions::Function;

/// A signature with its parameters and the active one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureHelp {
    /// The signature: `R.nn.conv2d(data, weight, strides=[1, 1], …)`.
    pub label: String,
    /// The parameters in order: the span in bytes of the label, and the documentation as Markdown.
    pub params: Vec<(std::ops::Range<usize>, String)>,
    /// The index of the parameter at the position; `None` if the argument there matches no parameter.
    pub active: Option<usize>,
    /// The documentation of the operator or function, as Markdown.
    pub doc: String,
}

/// Returns the signature of the operator, type or function whose parentheses contain the byte at `offset`.
pub fn signature_help(view: &FileView<'_>, offset: usize) -> Option<SignatureHelp> {
    let site = CallSite::at(view, offset)?;
    if let Some(schema) = site.operator(view) {
        let params = schema.params.iter().map(|param| (param.text(), schema_text::param(schema, param))).collect();
        let mut doc = schema.doc.to_owned();
        if let Some(url) = schema.url() {
            doc.push_str(&format!("\n\n[R.{}]({url})", schema.name));
        }
        let active = site.param(schema).map(|(index, _)| index);
        return Some(assembled(&format!("R.{}", schema.name), params, "", active, doc));
    }
    if let Some(form) = site.form(view) {
        let params = form.params.iter().map(|param| (param.text(), param.doc.to_owned())).collect();
        return Some(assembled(&format!("R.{}", form.name), params, "", site.form_param(form), form.doc.to_owned()));
    }
    if let Some(called) = site.tir_function(view) {
        return Some(of_tir(&site, called));
    }
    function(view, &site)
}

/// Returns the signature of a function of `T`.
fn of_tir(site: &CallSite<'_>, function: &'static Function<'static>) -> SignatureHelp {
    let bound = site.tir_params(function).get(site.active).copied().flatten();
    let active = function.current_params().position(|(at, _)| Some(at) == bound);
    let params = function.current_params().map(|(_, param)| (param.to_string(), String::new())).collect();
    assembled(&format!("T.{}", function.name), params, "", active, String::new())
}

fn function(view: &FileView<'_>, site: &CallSite<'_>) -> Option<SignatureHelp> {
    let item = site.location.item;
    let (head, called) = site.callee.split_once('.').unwrap_or(("", &site.callee));
    let context = view.context(item)?;
    let at = (item, site.location.segment, site.callee_span.start);
    if !head.is_empty() && !is_module(view, &context, at, name(head)) {
        return None;
    }
    let called = name(called);
    let signature = match view.function(item, called) {
        Some(declared) => view.signature(declared)?,
        None => view.signature_of(item, called)?,
    };
    let positional = Some(site.active);
    match &*signature {
        Signature::Relax(relax) => {
            let params: Vec<(String, String)> =
                relax.params.iter().map(|(name, ty)| (format!("{name}: {ty}"), String::new())).collect();
            let active = positional.filter(|active| *active < params.len());
            let ret = relax.ret.as_ref().map_or_else(String::new, |ret| format!(" -> {ret}"));
            Some(assembled(&format!("def {called}"), params, &ret, active, String::new()))
        }
        Signature::Prim(prim) => {
            let params: Vec<(String, String)> =
                prim.params.iter().map(|param| (prim_param(param), String::new())).collect();
            let active = positional.filter(|active| *active < params.len());
            Some(assembled(&format!("def {called}"), params, "", active, String::new()))
        }
        other => {
            let label = declaration(called, other);
            Some(SignatureHelp { label, params: Vec::new(), active: None, doc: String::new() })
        }
    }
}

fn assembled(
    head: &str,
    params: Vec<(String, String)>,
    tail: &str,
    active: Option<usize>,
    doc: String,
) -> SignatureHelp {
    let mut label = format!("{head}(");
    let mut placed = Vec::with_capacity(params.len());
    for (at, (text, doc)) in params.into_iter().enumerate() {
        if at > 0 {
            label.push_str(", ");
        }
        let start = label.len();
        label.push_str(&text);
        placed.push((start..label.len(), doc));
    }
    label.push(')');
    label.push_str(tail);
    SignatureHelp { label, params: placed, active, doc }
}
