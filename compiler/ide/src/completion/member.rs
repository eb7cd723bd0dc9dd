//! Completions after a dot: operators, namespaces, members of `T` and `I`, functions of the module.

use super::{CompletionKind, List, Subject, uses};
use crate::call_site::CallSite;
use crate::hover::is_module;
use rx_analysis::decorators;
use rx_analysis::elaborate::{TYPES, special_forms};
use rx_analysis::prelude;
use rx_base::name::name;
use rx_context::Namespace;
use rx_db::{FunctionKind, declaration};
use rx_ops::{Default, Schema};
use rx_prim_func::functions;
use rx_prim_func::names::members;
use rx_syntax::dialect::{Dialect, Place, SPELLINGS};
use rx_syntax::document::ItemKind;
use std::collections::BTreeSet;

impl List<'_, '_> {
    pub(super) fn members(&mut self, site: Option<&CallSite<'_>>) {
        let Some(context) = self.view.context(self.location.item) else { return };
        let (head, rest) = self.path.split_once('.').unwrap_or((self.path, ""));
        let place = (self.location.item, self.location.segment, self.at);
        match context.namespace(head) {
            Some(Namespace::Relax) => self.operators(rest),
            Some(Namespace::Tir) if rest.is_empty() => self.tir_members(),
            Some(Namespace::Tir) => self.tir_members_of(rest),
            Some(Namespace::Ir) if rest.is_empty() => {
                for member in decorators::members(Namespace::Ir).iter().copied().chain(prelude::members()) {
                    if self.fits(member) {
                        let rank = uses::rank(&format!("I.{member}"));
                        self.offer(member, CompletionKind::Function, 4).rank = rank;
                    }
                }
            }
            Some(_) => {}
            None if rest.is_empty() && is_module(self.view, &context, place, name(head)) => self.functions(site),
            None if rest.is_empty() && self.fits("astype") => {
                self.offer("astype", CompletionKind::Operator, 4).subject =
                    Some(Subject::Operator("astype".to_owned()));
            }
            None => {}
        }
    }

    /// Adds the operators and namespaces of a namespace below `R`. If a prefix is typed, it also adds matching
    /// operators of inner namespaces: for example, `R.conv2` offers `nn.conv2d`.
    fn operators(&mut self, namespace: &str) {
        let Some(context) = self.view.context(self.location.item) else { return };
        let declared = context.operators.iter().flat_map(|all| all.all()).map(|operator| &operator.schema);
        let mut inner: BTreeSet<&str> = BTreeSet::new();
        for schema in rx_ops::all().chain(declared) {
            let below = match namespace {
                "" => Some(schema.name),
                _ => schema.name.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('.')),
            };
            let Some(below) = below else { continue };
            match below.split_once('.') {
                None if self.fits(below) => self.operator(schema, below, 2),
                None => {}
                Some((first, _)) => {
                    inner.insert(first);
                    let last = below.rsplit('.').next().unwrap_or(below);
                    if !self.prefix.is_empty() && self.fits(last) {
                        self.found.incomplete = true;
                        self.operator(schema, below, 3);
                    }
                }
            }
        }
        // The operators of inner namespaces depend on the typed prefix, so the list has to be requested again.
        self.found.incomplete |= !inner.is_empty();
        let path = if namespace.is_empty() { "R".to_owned() } else { format!("R.{namespace}") };
        for inner in inner {
            if self.fits(inner) {
                let rank = uses::rank_of_namespace(&format!("{path}.{inner}"));
                let completion = self.offer(inner, CompletionKind::Namespace, 2);
                completion.detail = "namespace".to_owned();
                completion.rank = rank;
            }
        }
        let of_namespace = |form: &&str| match form.rsplit_once('.') {
            Some((before, _)) => before == namespace,
            None => namespace.is_empty(),
        };
        for form in special_forms().filter(of_namespace) {
            let short = form.rsplit('.').next().unwrap_or(form);
            if self.fits(short) {
                let rank = uses::rank(&format!("R.{form}"));
                self.offer(short, CompletionKind::Function, 2).rank = rank;
            }
        }
        if namespace.is_empty() {
            for ty in TYPES {
                if self.fits(ty) {
                    let group = if self.in_type_place() { 1 } else { 2 };
                    let path = format!("R.{ty}");
                    let deprecated = self.is_old(&path);
                    let completion = self.offer(ty, CompletionKind::Type, group);
                    completion.deprecated = deprecated;
                    completion.rank = uses::rank(&path);
                }
            }
        }
    }

    fn operator(&mut self, schema: &'static Schema, label: &str, group: u8) {
        let called = self.segment.text().get(self.at as usize..).is_some_and(|rest| rest.starts_with('('));
        let snippets = self.snippets && !called;
        let detail = schema.doc.split_inclusive(". ").next().unwrap_or(schema.doc).trim_end().to_owned();
        let completion = self.offer(label, CompletionKind::Operator, group);
        completion.detail = detail;
        completion.rank = uses::rank(&format!("R.{}", schema.name));
        completion.subject = Some(Subject::Operator(schema.name.to_owned()));
        if snippets {
            let required = schema.params.iter().filter(|param| param.default == Default::Required);
            let places: Vec<String> =
                required.enumerate().map(|(at, param)| format!("${{{}:{}}}", at + 1, param.name)).collect();
            completion.insert = format!("{label}({})$0", places.join(", "));
            completion.snippet = true;
        }
    }

    fn tir_members(&mut self) {
        for member in members::all() {
            if self.fits(member) {
                let path = format!("T.{member}");
                let deprecated = self.is_old(&path);
                let completion = self.offer(member, CompletionKind::Function, 3);
                completion.deprecated = deprecated;
                completion.rank = uses::rank(&path).min(uses::rank_of_namespace(&path));
            }
        }
        // A `with` needs a block, not a number.
        let group = if self.before_path().trim() == "with" { 4 } else { 3 };
        for dtype in rx_base::DType::USUAL {
            if self.fits(dtype) {
                self.offer(dtype, CompletionKind::Type, group).rank = uses::rank(&format!("T.{dtype}"));
            }
        }
    }

    /// Adds the functions of a namespace below `T`, such as `T.axis`.
    fn tir_members_of(&mut self, namespace: &str) {
        for function in functions::names() {
            let member = function.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('.'));
            if let Some(member) = member.filter(|member| self.fits(member)) {
                let rank = uses::rank(&format!("T.{function}"));
                self.offer(member, CompletionKind::Function, 3).rank = rank;
            }
        }
    }

    /// Whether the file's dialect has another spelling of the name.
    fn is_old(&self, path: &str) -> bool {
        let row = |row: &&rx_syntax::dialect::Spelling| row.place == Place::Path && row.classic == path;
        SPELLINGS.iter().find(row).is_some_and(|row| !row.ambiguous)
            && !Dialect::detect(self.view.document()).is_classic()
    }

    fn in_type_place(&self) -> bool {
        self.in_annotation() || self.before_path().trim_end().ends_with(':')
    }

    /// Adds the functions of the module. In a call of `R.call_tir`, prim_funcs are first; otherwise Relax functions
    /// are.
    fn functions(&mut self, site: Option<&CallSite<'_>>) {
        let wanted = match site.map(|site| site.callee.contains("call_tir")) {
            Some(true) => FunctionKind::Prim,
            _ => FunctionKind::Relax,
        };
        let module = self.item.module;
        let items = self.view.document().items().iter().enumerate();
        for (at, item) in items.filter(|(_, item)| item.module == module) {
            let (ItemKind::Function(kind), Some(function)) = (item.kind, item.name) else { continue };
            if !self.fits(&function) {
                continue;
            }
            let signature = self.view.signature(at);
            let completion =
                self.offer(function.as_str(), CompletionKind::Function, if kind == wanted { 1 } else { 2 });
            completion.detail = signature.map(|it| declaration(function, &it)).unwrap_or_default();
        }
    }
}
