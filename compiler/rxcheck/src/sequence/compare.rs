//! A checked phase, and the comparison of two phases.

use crate::check::{Options, reported, workspace};
use crate::discover::Input;
use rx_base::{Code, Diagnostic, Severity, Span};
use rx_db::{Document, FileId, FileKind, OUTSIDE, Workspace};
use rx_report::{Content, Source};
use rx_syntax::Segment;
use rx_syntax::document::ItemKind;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A checked dump of one phase.
pub struct Phase {
    /// The path as shown to users.
    pub shown: String,
    content: Content,
    kind: FileKind,
    workspace: Workspace,
    file: FileId,
    modules: Modules,
    /// The functions with their declarations.
    pub declared: BTreeMap<Function, String>,
    /// The functions with their printed text. Equal text means equal functions: the printer normalizes spelling and
    /// comments.
    pub printed: HashMap<Function, String>,
    /// The errors, in order.
    pub errors: Vec<Found>,
}

/// The identity of a function within a phase.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    /// The label of the module: the class name, with a number where several classes have that name (`Net#2`).
    module: Arc<str>,
    name: &'static str,
}

impl Function {
    /// Formats the function's name; if files have `several` modules, with the module's name.
    pub fn shown(&self, several: bool) -> String {
        let Function { module, name } = self;
        if several && **module != *OUTSIDE { format!("{module}.{name}") } else { (*name).to_owned() }
    }
}

/// The labels of a file's modules, by the module index of items.
struct Modules(HashMap<Option<u32>, Arc<str>>);

impl Modules {
    fn of(document: &Document) -> Modules {
        // `Net#1` becomes `Net`, so that the first class has the same label whether or not there are others of that
        // name.
        let named = |label: &str| label.strip_suffix("#1").unwrap_or(label).into();
        Modules(rx_db::modules(document).iter().map(|row| (row.module, named(&row.label))).collect())
    }

    fn function(&self, module: Option<u32>, name: &'static str) -> Function {
        Function { module: self.0.get(&module).cloned().unwrap_or_else(|| OUTSIDE.into()), name }
    }

    /// The label, if the file has exactly one module.
    fn only(&self) -> Option<&Arc<str>> {
        self.0.values().next().filter(|_| self.0.len() == 1)
    }
}

/// An error, with the function and binding that contain it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The diagnostic.
    pub diagnostic: Diagnostic<Span>,
    /// The function that contains it.
    pub function: Option<Function>,
    /// The variable bound by the statement that contains it.
    pub binding: Option<&'static str>,
}

/// The changes that one phase makes.
#[derive(Debug, Default)]
pub struct Step {
    /// The number of the phase, from 1.
    pub number: usize,
    /// Whether to show functions with their modules: this phase or the previous one has several modules.
    pub several: bool,
    /// Functions that are new; empty for the first phase.
    pub appeared: Vec<Function>,
    /// Functions that are gone.
    pub vanished: Vec<Function>,
    /// Functions whose body or signature changed, apart from formatting and comments.
    pub changed: Vec<Function>,
    /// Functions whose declaration changed: function, old declaration, new declaration.
    pub signatures: Vec<(Function, String, String)>,
    /// Errors that the previous phase did not have.
    pub new_errors: Vec<Found>,
    /// The number of errors that the previous phase already had.
    pub old_errors: usize,
}

impl Phase {
    /// Checks a dump with the settings of rx.toml and the command line.
    pub fn new(input: &Input, content: Content, options: &Options) -> Phase {
        let kind = input.kind;
        let (workspace, file) = workspace(&content.code(&content.text), input, options);
        let modules = Modules::of(workspace.document(file));
        let declared = workspace.declarations(file).into_iter();
        let declared = declared.map(|it| (modules.function(it.module, it.name.as_str()), it.text)).collect();
        let printed = printed(workspace.document(file), kind);
        let errors = reported(&workspace, file, input, options).into_iter().filter(|it| it.severity == Severity::Error);
        let errors = errors
            .map(|diagnostic| {
                let owner = workspace.owner(file, diagnostic.primary.start as usize);
                let function = owner.map(|owner| modules.function(owner.module, owner.function.as_str()));
                let binding = owner.and_then(|owner| owner.binding).map(|name| name.as_str());
                Found { diagnostic, function, binding }
            })
            .collect();
        Phase { shown: input.shown.clone(), content, kind, workspace, file, modules, declared, printed, errors }
    }

    /// Returns the text with its name, for the places of diagnostics.
    pub fn source(&self) -> Source<'_> {
        self.content.source(&self.shown, &self.content.text)
    }

    /// Whether the dump contains code that rx checks.
    pub fn has_relax(&self) -> bool {
        let relax = |kind| !matches!(kind, ItemKind::Foreign | ItemKind::Prelude);
        self.kind != FileKind::Python || self.workspace.document(self.file).items().iter().any(|it| relax(it.kind))
    }

    /// Finds the position of a function's name.
    pub fn function_span(&self, function: &Function) -> Option<Span> {
        let rows = self.workspace.functions(self.file);
        let is_it = |module, name: &'static str| self.modules.function(module, name) == *function;
        rows.iter().rev().find(|row| is_it(row.module, row.name.as_str())).map(|row| row.span)
    }

    /// Returns the identity in this phase of a function of another phase. Modules are matched by name; if both phases
    /// have a single module, these match whatever their names.
    pub fn own(&self, other: &Phase, function: &Function) -> Function {
        match (self.modules.only(), other.modules.only()) {
            (Some(module), Some(_)) => Function { module: module.clone(), name: function.name },
            _ => function.clone(),
        }
    }
}

/// Prints the functions of a document in the printer's normal form.
fn printed(document: &Document, kind: FileKind) -> HashMap<Function, String> {
    let text = rx_syntax::printer::print(document, rx_syntax::dialect::Dialect::Tvm027);
    let document = Document::new(&text, kind);
    let modules = Modules::of(&document);
    let mut functions = HashMap::new();
    for item in document.items() {
        if let (ItemKind::Function(_), Some(name)) = (item.kind, item.name) {
            let text: String = item.segments.iter().map(|segment| without_comments(segment)).collect();
            functions.insert(modules.function(item.module, name.as_str()), text);
        }
    }
    functions
}

/// Returns the text of a segment without comments, and without lines that become empty. For example, the lines
/// `# a copy` and `y = x  # of x` become the line `y = x`.
fn without_comments(segment: &Segment) -> String {
    let text = segment.text();
    let mut code = String::with_capacity(text.len());
    let mut from = 0;
    for comment in segment.comments() {
        code.push_str(text.get(from..comment.start as usize).unwrap_or_default());
        from = comment.end as usize;
    }
    code.push_str(text.get(from..).unwrap_or_default());
    code.lines().map(str::trim_end).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

impl Step {
    /// Compares `now` with the previous phase.
    pub fn between(before: Option<&Phase>, now: &Phase, number: usize) -> Step {
        let (new_errors, old_errors) = new_errors(before, now);
        let several = before.into_iter().chain([now]).any(|phase| phase.modules.0.len() > 1);
        let mut step = Step { number, several, new_errors, old_errors, ..Step::default() };
        let Some(before) = before else { return step };
        let mut kept = BTreeSet::new();
        for (function, is) in &now.declared {
            let old = before.own(now, function);
            let Some(was) = before.declared.get(&old) else {
                step.appeared.push(function.clone());
                continue;
            };
            if was != is {
                step.signatures.push((function.clone(), was.clone(), is.clone()));
            }
            if before.printed.get(&old) != now.printed.get(function) {
                step.changed.push(function.clone());
            }
            kept.insert(old);
        }
        step.vanished = before.declared.keys().filter(|function| !kept.contains(function)).cloned().collect();
        step
    }
}

/// The identity of an error, independent of its line.
type Key = (Option<Function>, Option<&'static str>, Code);

/// Returns the errors of `now` that `before` did not have, and the number of the others. Two errors are the same if
/// function, binding and code are equal. If a pass renamed the function or binding, code and message must be equal,
/// except for the variables that the message names.
/// For example, an RX0301 of binding `lv1` in `main` is not new if `before` has one of the same binding, even if its
/// message changed.
fn new_errors(before: Option<&Phase>, now: &Phase) -> (Vec<Found>, usize) {
    let key = |found: &Found| -> Key {
        let function = found.function.as_ref();
        let function = function.map(|function| before.map_or(function.clone(), |before| before.own(now, function)));
        (function, found.binding, found.diagnostic.code)
    };
    let mut same: HashMap<Key, Vec<&Found>> = HashMap::new();
    for found in before.iter().flat_map(|before| &before.errors) {
        let key = (found.function.clone(), found.binding, found.diagnostic.code);
        same.entry(key).or_default().push(found);
    }
    let unmatched: Vec<&Found> =
        now.errors.iter().filter(|found| same.get_mut(&key(found)).and_then(Vec::pop).is_none()).collect();
    let text = |found: &Found| (found.diagnostic.code, without_variables(&found.diagnostic.message));
    let mut moved: HashMap<(Code, String), usize> = HashMap::new();
    for found in same.values().flatten() {
        *moved.entry(text(found)).or_default() += 1;
    }
    let mut new = Vec::new();
    for found in unmatched {
        match moved.get_mut(&text(found)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => new.push(found.clone()),
        }
    }
    let old = now.errors.len() - new.len();
    (new, old)
}

/// Removes the variables that a message names beside parameters, since a pass renames them: `` `x1` (`lv3`) `` becomes
/// `` `x1` ``.
fn without_variables(message: &str) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, variable)) = rest.split_once(" (`") {
        text.push_str(before);
        let after = variable.split_once('`').and_then(|(_, after)| after.strip_prefix(')'));
        if after.is_none() {
            text.push_str(" (`");
        }
        rest = after.unwrap_or(variable);
    }
    text + rest
}

/// Compares texts in natural order: runs of digits are compared as numbers, so `phase2` is before `phase10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(first), Some(second)) = (left.chars().next(), right.chars().next()) {
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (one, rest_one) = digits(left);
            let (two, rest_two) = digits(right);
            let order = one.len().cmp(&two.len()).then_with(|| one.cmp(two));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (rest_one, rest_two);
            continue;
        }
        if first != second {
            return first.cmp(&second);
        }
        left = left.get(first.len_utf8()..).unwrap_or_default();
        right = right.get(second.len_utf8()..).unwrap_or_default();
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Splits the leading digits, without leading zeros, from the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    (digits.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::{natural, without_variables};

    #[test]
    fn variables_of_messages_are_not_compared() {
        let message = "add: `x1` (`lv3`) has dtype float32, `x2` (`t[0]`) has dtype float16 (here)";
        assert_eq!(without_variables(message), "add: `x1` has dtype float32, `x2` has dtype float16 (here)");
        for kept in ["a (`x` of `f`), b", "a (`x", "a (`x`"] {
            assert_eq!(without_variables(kept), kept);
        }
    }

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["debug-phase10.py", "debug-phase2.py", "export.py", "debug-phase1.py", "debug-phase02b.py"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["debug-phase1.py", "debug-phase2.py", "debug-phase02b.py", "debug-phase10.py", "export.py"]);
    }
}
