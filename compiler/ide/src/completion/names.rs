//! Completions of names that are in scope at the position.

use super::{CompletionKind, List};
use crate::call_site::{CallSite, Written};
use crate::dataflow::DataflowReader;
use rx_analysis::Entry;
use rx_analysis::elaborate::SegmentResult;
use rx_analysis::function::FunctionCheck;
use rx_analysis::position_scope::open_rows;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{DType, Name, Severity};
use rx_ir::StructInfo;
use rx_ops::ParamKind;
use rx_syntax::TokenKind;
use rx_syntax::document::{FunctionKind, ItemKind};

/// The maximal number of variables that are offered.
const MOST_NAMES: usize = 120;

/// The maximal number of segments before the position whose uses of variables count.
const MOST_SEGMENTS: usize = 10_000;

/// The maximal number of types of variables for which the inference rule of the call is run.
const MOST_TRIALS: usize = 32;

/// The maximal number of pairs of types for which it is run, if two operands are missing.
const MOST_PAIRS: usize = 256;

/// A name that is visible at the position.
struct Visible {
    name: Name,
    entry: Entry,
    /// The segment that binds the name or refines its entry; 0 for the parameters.
    segment: usize,
}

impl List<'_, '_> {
    /// Adds variables, symbolic dims and namespaces.
    pub(super) fn names(&mut self, site: Option<&CallSite<'_>>) {
        if matches!(self.item.kind, ItemKind::Function(FunctionKind::Prim | FunctionKind::Macro)) {
            self.prim_names();
        }
        let known = self.known_names();
        let fitting = site.map(|site| self.fitting(site, &known)).unwrap_or_default();
        let in_shape = site.is_some_and(is_shape);
        for (rank, (name, entry)) in (0..).zip(known) {
            let (kind, ty) = match &entry {
                Entry::Value { ty, .. } => (CompletionKind::Variable, ty.to_string()),
                Entry::Symbol { .. } => (CompletionKind::Symbol, "symbolic dim".to_owned()),
                Entry::Module => (CompletionKind::Namespace, "the module".to_owned()),
                _ => continue,
            };
            let group = match (fitting.contains(&name), kind, in_shape) {
                (true, ..) | (_, CompletionKind::Symbol, true) => 1,
                (_, CompletionKind::Symbol, _) => 6,
                _ => 5,
            };
            let completion = self.offer(name.as_str(), kind, group);
            completion.detail = ty;
            completion.rank = rank;
        }
        self.values_of_assignment();
        for namespace in self.namespaces() {
            if self.fits(&namespace) {
                self.offer(namespace, CompletionKind::Namespace, 7);
            }
        }
    }

    /// Adds the values that an assignment with the position after its `=` often has: the module in `cls = Module`,
    /// `TypeVar("n")` outside functions.
    fn values_of_assignment(&mut self) {
        let Some(target) = self.before_path().trim().strip_suffix('=').map(str::trim_end) else { return };
        let Some(context) = self.view.context(self.location.item) else { return };
        if matches!(self.item.kind, ItemKind::Function(_)) {
            let modules = context.modules.iter().filter(|module| self.fits(module));
            for module in modules.copied().collect::<Vec<_>>() {
                self.offer(module.as_str(), CompletionKind::Namespace, 2).detail = "the module".to_owned();
            }
        } else if self.fits("TypeVar") {
            let completion = self.offer("TypeVar", CompletionKind::Function, 2);
            completion.detail = "a symbolic dim".to_owned();
            completion.insert = format!("TypeVar(\"{target}\")");
        }
    }

    /// Returns the file's names for `R`, `T` and `I`.
    fn namespaces(&self) -> Vec<String> {
        let Some(context) = self.view.context(self.location.item) else { return Vec::new() };
        ["R", "T", "I"].into_iter().map(|canonical| context.spelled_namespace(canonical).to_owned()).collect()
    }

    /// Returns the names in scope that start with the typed prefix, with their entries. The names that nothing uses yet
    /// come first: the nearest bindings, then the parameters in their order (weights are mostly passed in this order).
    fn known_names(&mut self) -> Vec<(Name, Entry)> {
        let visible = self.visible_values();
        let used = self.used_names(&visible);
        let entries = visible.into_iter().map(|it| (it.name, it.entry));
        let (mut found, used): (Vec<_>, Vec<_>) = entries.partition(|(name, _)| !used.contains(name));
        found.extend(used);
        if found.len() > MOST_NAMES {
            self.found.incomplete = true;
            found.truncate(MOST_NAMES);
        }
        if let Some(context) = self.view.context(self.location.item) {
            let known: NameSet = found.iter().map(|(name, _)| *name).collect();
            let mut symbols: Vec<Name> =
                context.symbols.iter().copied().filter(|name| self.fits(name) && !known.contains(name)).collect();
            symbols.sort_unstable();
            found.extend(symbols.into_iter().map(|name| (name, Entry::Symbol { bound: false, dtype: DType::INT64 })));
        }
        found
    }

    /// Returns the names that are visible at the position and start with the typed prefix: bindings, nearest first, then
    /// parameters, in their order. The variables that the statement at the position binds are not visible.
    fn visible_values(&mut self) -> Vec<Visible> {
        let Some(check) = self.view.check(self.location.item) else { return Vec::new() };
        let (mut bindings, mut params) = (Vec::new(), Vec::new());
        let mut seen = NameSet::default();
        let block = self.dataflow();
        let begun = self.segment.statement_before(self.at).map_or(self.at, |(_, statement)| statement.span.start);
        if let Some(own) = check.segments.get(self.location.segment).filter(|_| self.location.segment > 0) {
            for row in open_rows(self.segment, own, self.at) {
                if self.fits(&row.name) && row.name != "_" && seen.insert(row.name) {
                    let entry = Entry::value(row.ty.clone());
                    bindings.push(Visible { name: row.name, entry, segment: self.location.segment });
                }
            }
        }
        let segments = check.segments.iter().enumerate().take(self.location.segment + 1);
        for (segment, result) in segments.rev() {
            // In a long function only the nearest bindings are read, and all parameters.
            if segment > 0 && bindings.len() >= MOST_NAMES {
                self.found.incomplete = true;
                continue;
            }
            let here = segment == self.location.segment;
            for export in result.exports.iter().rev() {
                let is_value = matches!(export.entry, Entry::Value { .. });
                let later =
                    here && export.span.is_none_or(|span| span.end >= self.at || (is_value && span.start >= begun));
                if later || !self.fits(&export.name) || export.name.starts_with('<') || !seen.insert(export.name) {
                    continue;
                }
                let visible = match &export.entry {
                    Entry::Value { dataflow, .. } => dataflow.is_none() || *dataflow == block,
                    _ => true,
                };
                if visible {
                    let found = if segment == 0 { &mut params } else { &mut bindings };
                    found.push(Visible { name: export.name, entry: export.entry.clone(), segment });
                }
            }
        }
        params.reverse();
        bindings.extend(params);
        bindings
    }

    /// Returns the names of `visible` that the function uses between their binding and the position. The uses in segments
    /// after the one that binds the name are known from the check; those in that segment are found by its text. Only
    /// segments that may change the answer are read: in a long function these are few.
    ///
    /// The names of the header need all segments, up to the one in which the last of them is used. They are searched
    /// separately so that the other names need only the segments after the first that binds one of them.
    fn used_names(&self, visible: &[Visible]) -> NameSet {
        let mut used = NameSet::default();
        let Some(check) = self.view.check(self.location.item) else { return used };
        for of_header in [true, false] {
            let group = visible.iter().filter(|it| (it.segment == 0) == of_header);
            self.add_imported(&check, group.map(|it| (it.name, it.segment)).collect(), &mut used);
        }
        let first = self.first_of_nearest(MOST_NAMES);
        let binding = visible.iter().map(|it| it.segment);
        let mut read: Vec<usize> =
            std::iter::once(self.location.segment).chain(binding).filter(|segment| *segment >= first).collect();
        read.dedup();
        for segment in read {
            if let Some(result) = check.segments.get(segment) {
                self.add_mentioned(segment, result, &mut used);
            }
        }
        used
    }

    /// Returns the first of the `most` segments before the position, without the header's segment.
    fn first_of_nearest(&self, most: usize) -> usize {
        self.location.segment.saturating_sub(most).max(1)
    }

    /// Adds the names of `unused`, given with the segments that bind them, that such a segment or a later one imports.
    /// Only segments before that of the position count. A segment imports a name that it binds if it uses an earlier
    /// variable of this name, as in `x = R.abs(x)`, or only refines its entry.
    fn add_imported(&self, check: &FunctionCheck, mut unused: NameMap<usize>, used: &mut NameSet) {
        let Some(earliest) = unused.values().min().copied() else { return };
        let first = self.first_of_nearest(MOST_SEGMENTS).max(earliest);
        for (segment, result) in check.segments.iter().enumerate().take(self.location.segment).skip(first) {
            for (name, _) in &result.imports {
                if unused.get(name).is_some_and(|binding| *binding <= segment) {
                    unused.remove(name);
                    used.insert(*name);
                }
            }
            if unused.is_empty() {
                return;
            }
        }
    }

    /// Adds the names that `segment` binds and mentions again before the position. In the segment of the position, adds
    /// also the mentioned names that it imports.
    fn add_mentioned(&self, segment: usize, result: &SegmentResult, used: &mut NameSet) {
        let here = segment == self.location.segment;
        let Some(segment) = self.item.segments.get(segment) else { return };
        let tokens = &segment.tree().tokens;
        let end = if here { tokens.at_or_after(self.at) } else { tokens.len() };
        let mut bound: NameSet = result.exports.iter().map(|export| export.name).collect();
        for (name, _) in &result.imports {
            bound.remove(name);
        }
        let mut once = NameSet::default();
        for token in (0..end).filter(|token| tokens.kind(*token) == Some(TokenKind::Name)) {
            let word = tokens.span(token).and_then(|span| segment.text().get(span.range()));
            let Some(word) = word.filter(|word| self.fits(word)).map(name) else { continue };
            let is_bound = bound.contains(&word);
            if (is_bound && !once.insert(word)) || (!is_bound && here) {
                used.insert(word);
            }
        }
    }

    /// Returns the index of the dataflow block that contains the position.
    fn dataflow(&self) -> Option<u32> {
        let check = self.view.check(self.location.item)?;
        let mut reader = DataflowReader::new(&check, self.location.segment);
        for statement in self.segment.tree().statements.iter().take_while(|it| it.span.start < self.at) {
            reader.read(statement);
        }
        let column = u32::try_from(self.before_path().chars().take_while(|it| *it == ' ').count()).ok()?;
        let open = if self.begins_statement() { reader.at_column(column) } else { reader.open };
        open.map(|(_, ordinal)| ordinal)
    }

    /// Returns the variables that fit the argument at the position. A variable fits if its type matches the parameter's
    /// kind and, where the inference rule can decide it, if the call with it has no error. For example, in
    /// `R.matmul(x, |)` with `x: (n, 4)`, a tensor of shape `(8, 4)` does not fit. If one more operand is required, as in
    /// `R.matmul(|)`, a variable fits if the call has no error with some other variable for it.
    fn fitting(&self, site: &CallSite<'_>, known: &[(Name, Entry)]) -> NameSet {
        if site.nested {
            return NameSet::default();
        }
        let schema = site.operator(self.view);
        let param = schema.and_then(|schema| site.param(schema));
        if schema.is_some() && param.is_none() {
            return NameSet::default();
        }
        let fits = |kind: Option<ParamKind>, ty: &StructInfo| kind.is_none_or(|kind| may_be(kind, ty));
        let kind = param.map(|(_, param)| param.kind);
        let of_kind = Variables::of(known, |ty| fits(kind, ty));
        let trials = of_kind.types().take(MOST_TRIALS).map(|(ty, name)| (ty, self.call_with(site, name, None)));
        let mut accepted = self.accepted(trials.collect());
        if let (Some([]), Some(schema)) = (accepted.as_deref(), schema)
            && let Some(missing) = site.only_missing_operand(schema)
        {
            let others = Variables::of(known, |ty| fits(Some(missing.kind), ty));
            let pairs = of_kind.types().flat_map(|one| others.types().map(move |(_, other)| (one, other)));
            let trials = pairs
                .take(MOST_PAIRS)
                .map(|((ty, name), other)| (ty, self.call_with(site, name, Some((missing.name, other)))));
            accepted = self.accepted(trials.collect());
        }
        match accepted {
            Some(types) if !types.is_empty() => of_kind.names(|ty| types.contains(&ty)),
            // While other arguments are missing, the inference rule fails for every variable, so all variables of the
            // right kind fit.
            _ => of_kind.names(|_| true),
        }
    }

    /// Returns the types whose calls have no error; `None` if it cannot be decided.
    fn accepted<'t>(&self, trials: Vec<(&'t StructInfo, Option<String>)>) -> Option<Vec<&'t StructInfo>> {
        let statements: Vec<String> = trials.iter().map(|(_, statement)| statement.clone()).collect::<Option<_>>()?;
        let place = (self.location.item, self.location.segment, self.at);
        let result = self.view.suppose(place, self.dataflow(), &statements)?;
        let mut from = 0u32;
        let mut accepted = Vec::new();
        for (at, ((ty, _), statement)) in trials.into_iter().zip(&statements).enumerate() {
            let end = from + 5 + u32::try_from(statement.len()).unwrap_or(0);
            let wrong = result.diagnostics.iter().any(|it| {
                let here =
                    matches!(it.primary, rx_analysis::Place::Here(span) if span.start >= from && span.start < end);
                here && it.severity == Severity::Error
            });
            let typed = result.rows.iter().any(|row| row.statement as usize == at && !row.ty.is_error());
            if typed && !wrong {
                accepted.push(ty);
            }
            from = end;
        }
        Some(accepted)
    }

    /// Returns the call with `variable` as the active argument, and with a further keyword argument, as a separate
    /// statement.
    fn call_with(&self, site: &CallSite<'_>, variable: Name, further: Option<(&str, Name)>) -> Option<String> {
        let text = self.segment.text();
        let mut arguments: Vec<String> = Vec::new();
        let source = |argument: &Written<'_>| text.get(argument.from as usize..argument.span.end as usize);
        for (at, argument) in site.arguments.iter().enumerate() {
            arguments.push(match (at == site.active, argument.keyword) {
                (true, Some(keyword)) => format!("{keyword}={variable}"),
                (true, None) => variable.to_string(),
                (false, _) => source(argument)?.to_owned(),
            });
        }
        if site.active >= site.arguments.len() {
            arguments.push(variable.to_string());
        }
        arguments.extend(further.map(|(keyword, value)| format!("{keyword}={value}")));
        let call = format!("{}({})", site.callee, arguments.join(", "));
        (!call.contains(['\n', '\r', '#'])).then(|| format!("fit = {call}"))
    }
}

/// The variables that a call may pass, by type. Variables of one type fit the same calls, so one of each is tried.
struct Variables<'k>(Vec<(&'k StructInfo, Vec<Name>)>);

impl<'k> Variables<'k> {
    /// Returns the variables among `known` whose types satisfy `is_wanted`.
    fn of(known: &'k [(Name, Entry)], is_wanted: impl Fn(&StructInfo) -> bool) -> Variables<'k> {
        let mut by_type: Vec<(&StructInfo, Vec<Name>)> = Vec::new();
        for (name, entry) in known {
            let Entry::Value { ty, .. } = entry else { continue };
            match by_type.iter_mut().find(|(known, _)| *known == ty) {
                Some((_, names)) => names.push(*name),
                None if is_wanted(ty) => by_type.push((ty, vec![*name])),
                None => {}
            }
        }
        Variables(by_type)
    }

    /// Returns the types, each with its first variable.
    fn types(&self) -> impl Iterator<Item = (&'k StructInfo, Name)> {
        self.0.iter().filter_map(|(ty, names)| Some((*ty, *names.first()?)))
    }

    /// Returns the variables whose types satisfy `is_wanted`.
    fn names(&self, is_wanted: impl Fn(&StructInfo) -> bool) -> NameSet {
        self.0.iter().filter(|(ty, _)| is_wanted(ty)).flat_map(|(_, names)| names).copied().collect()
    }
}

/// Whether the position is in a shape: the first argument of a type, or an argument of a shape.
pub(super) fn is_shape(site: &CallSite<'_>) -> bool {
    let last = site.callee.rsplit('.').next().unwrap_or_default();
    match last {
        "Tensor" | "DTensor" | "Buffer" => site.active == 0,
        "Shape" | "shape" | "ShapeExpr" => true,
        _ => false,
    }
}

/// Whether a value of this type may be passed for a parameter of this kind.
fn may_be(kind: ParamKind, ty: &StructInfo) -> bool {
    match kind {
        ParamKind::Tensor => ty.as_tensor().is_some(),
        ParamKind::Tensors | ParamKind::Arguments => ty.as_tuple().is_some(),
        ParamKind::Shape | ParamKind::ShapeValue => matches!(ty, StructInfo::Shape(_)),
        ParamKind::Prim => matches!(ty, StructInfo::Prim(_)),
        ParamKind::Prims => matches!(ty, StructInfo::Tuple(_) | StructInfo::Shape(_)),
        ParamKind::Function => matches!(ty, StructInfo::Function(_)),
        ParamKind::Any | ParamKind::Variadic => !ty.is_error(),
        ParamKind::Types | ParamKind::Attr(_) => false,
    }
}
