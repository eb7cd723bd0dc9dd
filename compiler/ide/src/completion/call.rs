//! Completions inside a call: keyword arguments that are not passed yet, and values of attributes.

use super::{CompletionKind, List, Subject, uses};
use crate::call_site::{CallSite, variadic_of};
use rx_analysis::decorators::keywords;
use rx_analysis::elaborate::Form;
use rx_ops::{AttrKind, Default, Param, ParamKind, usual_layouts};
use rx_prim_func::functions::{Function, ParamKind as TirParamKind};
use rx_syntax::dialect::Dialect;

/// The maximal number of segments before the position in which used dtypes are searched.
const MOST_SEGMENTS: usize = 100;

impl List<'_, '_> {
    /// Adds the keyword arguments and the values for the argument at the position.
    pub(super) fn in_call(&mut self, site: &CallSite<'_>) {
        if let Some(function) = site.tir_function(self.view) {
            return self.in_tir_call(site, function);
        }
        if let Some(form) = site.form(self.view) {
            return self.in_form(site, form);
        }
        if let Some(keywords) = self.decorator_keywords(site) {
            for keyword in keywords {
                let keyword = format!("{keyword}=");
                if self.fits(&keyword) {
                    self.offer(keyword, CompletionKind::Keyword, 1);
                }
            }
            return;
        }
        let Some(schema) = site.operator(self.view) else { return };
        if site.nested {
            return;
        }
        let keyword = site.arguments.get(site.active).and_then(|argument| argument.keyword);
        if let Some((_, param)) = site.param(schema) {
            self.values(self.values_of(param), true);
        }
        if keyword.is_some() {
            return;
        }
        // The dialect is detected only if it matters, because the first detection reads the whole document.
        let dialect = match schema.params.iter().any(|param| Dialect::keyword_varies(param.name)) {
            true => Dialect::detect(self.view.document()),
            false => Dialect::Tvm027,
        };
        let variadic = variadic_of(schema);
        for (index, param) in schema.params.iter().enumerate() {
            let keyword = format!("{}=", dialect.spell_keyword(param.name));
            let is_variadic = variadic == Some(index);
            if is_variadic || site.passes(index, param.name, variadic) || !self.fits(&keyword) {
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

    /// Adds the keyword arguments of a type or form that are not passed yet, and dtypes if the argument is a dtype.
    fn in_form(&mut self, site: &CallSite<'_>, form: &'static Form) {
        if site.nested {
            return;
        }
        if takes_dtype(site, form) {
            self.values(self.dtypes(), true);
        }
        if site.arguments.get(site.active).is_some_and(|argument| argument.keyword.is_some()) {
            return;
        }
        let varies = form.params.iter().any(|param| param.classic.is_some());
        let is_classic = varies && Dialect::detect(self.view.document()).is_classic();
        for (index, param) in form.params.iter().enumerate() {
            let name = param.classic.filter(|_| is_classic).unwrap_or(param.name);
            let keyword = format!("{name}=");
            if site.passes(index, param.name, None) || !self.fits(&keyword) {
                continue;
            }
            // A keyword by which programs pass the argument at the position comes before names.
            let group = if param.default.is_some() && site.form_param(form) <= Some(index) { 1 } else { 3 };
            let completion = self.offer(keyword, CompletionKind::Keyword, group);
            completion.detail = param.default.map(|default| format!("default {default}")).unwrap_or_default();
        }
    }

    /// Returns the keywords of the decorator that is called.
    fn decorator_keywords(&self, site: &CallSite<'_>) -> Option<&'static [&'static str]> {
        let before = self.segment.text().get(..site.callee_span.start as usize)?;
        let (head, decorator) = site.callee.split_once('.').filter(|_| before.trim_end().ends_with('@'))?;
        let namespace = self.view.context(self.location.item)?.namespace(head)?;
        keywords(namespace, decorator)
    }

    /// Adds the keyword arguments of a `T.` function that are not passed yet, and dtypes if the argument is a dtype.
    fn in_tir_call(&mut self, site: &CallSite<'_>, function: &'static Function<'static>) {
        if site.nested {
            return;
        }
        let bound = site.tir_params(function);
        let active = bound.get(site.active).copied().flatten().and_then(|at| function.params.get(at));
        if active.is_some_and(|param| param.name == "dtype") {
            self.values(self.dtypes(), true);
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
                self.values(self.dtypes(), false);
                return;
            }
        }
        let param = site.operator(self.view).and_then(|schema| site.param(schema));
        match param {
            Some((_, param)) if !site.nested => self.values(self.values_of(param), false),
            _ if site.form(self.view).is_some_and(|form| takes_dtype(site, form)) => self.values(self.dtypes(), false),
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
        for (rank, value) in (0..).zip(values) {
            let text = matches!(value.as_str(), "True" | "False" | "None");
            let label = if quoted && !text { format!("\"{value}\"") } else { value };
            if !quoted || self.prefix.is_empty() || self.fits(&label) {
                self.offer(label, CompletionKind::Value, 1).rank = rank;
            }
        }
    }

    /// Returns the usual dtypes: first those that the function contains, then the most frequent.
    fn dtypes(&self) -> Vec<String> {
        let nearest = self.item.segments.iter().take(self.location.segment + 1).rev().take(MOST_SEGMENTS);
        let texts: Vec<&str> = nearest.map(|segment| segment.text()).collect();
        let is_used = |dtype: &String| {
            let quoted = format!("\"{dtype}\"");
            texts.iter().any(|text| text.contains(&quoted))
        };
        let mut all = uses::dtypes();
        all.sort_by_cached_key(|dtype| !is_used(dtype));
        all
    }

    /// Returns the usual values of an attribute.
    fn values_of(&self, param: &Param) -> Vec<String> {
        let ParamKind::Attr(kind) = param.kind else { return Vec::new() };
        match kind {
            AttrKind::Choice(choices) => choices.iter().map(|choice| (*choice).to_owned()).collect(),
            AttrKind::Bool => vec!["True".to_owned(), "False".to_owned()],
            AttrKind::DType => self.dtypes(),
            AttrKind::Layout => match param.default {
                Default::Str(default) => usual_layouts(default),
                _ => ["NCHW", "OIHW"].iter().flat_map(|like| usual_layouts(like)).collect(),
            },
            _ => Vec::new(),
        }
    }
}

/// Whether the argument at the position is the dtype of a type or constant.
fn takes_dtype(site: &CallSite<'_>, form: &Form) -> bool {
    let param = site.form_param(form).and_then(|at| form.params.get(at));
    !site.nested && (form.name == "dtype" || param.is_some_and(|param| param.name == "dtype"))
}
