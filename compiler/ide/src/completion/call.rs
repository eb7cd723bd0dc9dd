//! Completions inside a call: keyword arguments that are not passed yet, and values of attributes.

use super::{CompletionKind, List, Subject};
use crate::call_site::CallSite;
use rx_base::DType;
use rx_ops::{AttrKind, Default, Param, ParamKind, usual_layouts};
use rx_prim_func::functions::{Function, ParamKind as TirParamKind};

impl List<'_, '_> {
    /// Adds the keyword arguments and the values for the argument at the position.
    pub(super) fn in_call(&mut self, site: &CallSite<'_>) {
        if let Some(function) = site.tir_function(self.view) {
            return self.in_tir_call(site, function);
        }
        let Some(schema) = site.operator(self.view) else {
            if takes_dtype(site) {
                self.values(DType::USUAL.map(str::to_owned).into(), true);
            }
            return;
        };
        if site.nested {
            return;
        }
        let keyword = site.arguments.get(site.active).and_then(|argument| argument.keyword);
        if let Some((_, param)) = site.param(schema) {
            self.values(values_of(param), true);
        }
        if keyword.is_some() {
            return;
        }
        for (index, param) in schema.params.iter().enumerate() {
            let keyword = format!("{}=", param.name);
            if param.kind == ParamKind::Variadic || site.passes(index, param.name) || !self.fits(&keyword) {
                continue;
            }
            let required = param.default == Default::Required;
            let completion = self.offer(keyword, CompletionKind::Keyword, if required { 2 } else { 3 });
            completion.detail = match param.default.text() {
                Some(default) => format!("{}, default {default}", param.kind),
                None => param.kind.to_string(),
            };
            completion.subject = Some(Subject::Param(schema.name.to_owned(), param.name.to_owned()));
        }
    }

    /// Adds the keyword arguments of a `T.` function that are not passed yet, and dtypes if the argument is a dtype.
    fn in_tir_call(&mut self, site: &CallSite<'_>, function: &'static Function<'static>) {
        if site.nested {
            return;
        }
        let bound = site.tir_params(function);
        let active = bound.get(site.active).copied().flatten().and_then(|at| function.params.get(at));
        if active.is_some_and(|param| param.name == "dtype") {
            self.values(DType::USUAL.map(str::to_owned).into(), true);
        }
        if site.arguments.get(site.active).is_some_and(|argument| argument.keyword.is_some()) {
            return;
        }
        for (index, param) in function.current_params() {
            let keyword = format!("{}=", param.name);
            let by_keyword = matches!(param.kind, TirParamKind::Positional | TirParamKind::Keyword);
            let passed = bound.iter().enumerate().any(|(at, of)| *of == Some(index) && at != site.active);
            if !by_keyword || passed || !self.fits(&keyword) {
                continue;
            }
            let completion = self.offer(keyword, CompletionKind::Keyword, if param.is_required() { 2 } else { 3 });
            completion.detail = match param.default {
                Some(default) => format!("T.{}, default {default}", function.name),
                None => format!("T.{}", function.name),
            };
        }
    }

    /// Adds the values of the string at the position.
    pub(super) fn in_string(&mut self, site: Option<&CallSite<'_>>) {
        let Some(site) = site else { return };
        if let Some(function) = site.tir_function(self.view).filter(|_| !site.nested) {
            let active = site.tir_params(function).get(site.active).copied().flatten();
            if active.and_then(|at| function.params.get(at)).is_some_and(|param| param.name == "dtype") {
                self.values(DType::USUAL.map(str::to_owned).into(), false);
                return;
            }
        }
        let param = site.operator(self.view).and_then(|schema| site.param(schema));
        match param {
            Some((_, param)) if !site.nested => self.values(values_of(param), false),
            _ if takes_dtype(site) => self.values(DType::USUAL.map(str::to_owned).into(), false),
            _ if super::names::is_shape(site) => {
                // A quoted symbolic dim.
                self.prefix = "";
                self.symbols();
            }
            _ => {}
        }
    }

    fn symbols(&mut self) {
        let Some(context) = self.view.context(self.location.item) else { return };
        let mut symbols: Vec<&str> = context.symbols.iter().map(|symbol| symbol.as_str()).collect();
        symbols.sort_unstable();
        for symbol in symbols {
            self.offer(symbol, CompletionKind::Symbol, 1);
        }
    }

    fn values(&mut self, values: Vec<String>, quoted: bool) {
        for value in values {
            let text = matches!(value.as_str(), "True" | "False" | "None");
            let label = if quoted && !text { format!("\"{value}\"") } else { value };
            if !quoted || self.prefix.is_empty() || self.fits(&label) {
                self.offer(label, CompletionKind::Value, 1);
            }
        }
    }
}

/// Returns the usual values of an attribute.
fn values_of(param: &Param) -> Vec<String> {
    let ParamKind::Attr(kind) = param.kind else { return Vec::new() };
    match kind {
        AttrKind::Choice(choices) => choices.iter().map(|choice| (*choice).to_owned()).collect(),
        AttrKind::Bool => vec!["True".to_owned(), "False".to_owned()],
        AttrKind::DType => DType::USUAL.map(str::to_owned).into(),
        AttrKind::Layout => match param.default {
            Default::Str(default) => usual_layouts(default),
            _ => ["NCHW", "OIHW"].iter().flat_map(|like| usual_layouts(like)).collect(),
        },
        _ => Vec::new(),
    }
}

/// Whether the argument at the position is the dtype of a type or constant.
fn takes_dtype(site: &CallSite<'_>) -> bool {
    let last = site.callee.rsplit('.').next().unwrap_or_default();
    let keyword = site.arguments.get(site.active).and_then(|argument| argument.keyword);
    match last {
        _ if site.nested => false,
        "Tensor" | "DTensor" | "Buffer" | "const" => keyword.map_or(site.active == 1, |keyword| keyword == "dtype"),
        _ => false,
    }
}
