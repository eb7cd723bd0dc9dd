//! Completions of decorators: `@R.function` with the skeleton of a function.

use super::{CompletionKind, List, uses};
use rx_analysis::decorators::members;

/// The usual decorators: namespace, name, description, snippet of the definition. The first ones are offered first.
pub(super) const USUAL: [(&str, &str, &str, &str); 3] = [
    ("R", "function", "a Relax function", FUNCTION),
    ("I", "ir_module", "a module", MODULE),
    ("T", "prim_func", "a prim_func", PRIM_FUNC),
];

/// The definition of a Relax function.
const FUNCTION: &str =
    "def ${1:main}(${2:x}: R.Tensor((\"${3:n}\",), dtype=\"${4:float32}\")):\n    $0\n    return ${2:x}";

/// The definition of a prim_func.
const PRIM_FUNC: &str = "def ${1:f}(x: T.Buffer((${2:16},), \"${3:float32}\"), \
    y: T.Buffer((${2:16},), \"${3:float32}\")):\n    for i in range(${2:16}):\n        \
    with T.sblock(\"${1:f}\"):\n            vi = T.axis.spatial(${2:16}, i)\n            y[vi] = ${0:x[vi]}";

/// The definition of a module.
const MODULE: &str = "class ${1:Module}:\n    $0";

impl List<'_, '_> {
    /// Adds the usual decorators after `@`. The `@` is part of the replaced text, so that editors which do not count it
    /// as part of a word filter by it.
    pub(super) fn decorators(&mut self) {
        let Some(context) = self.view.context(self.location.item) else { return };
        self.replace.start = self.replace.start.saturating_sub(1);
        let in_module = !self.before_path().starts_with('@');
        let allowed = USUAL.iter().filter(|(namespace, ..)| !in_module || *namespace != "I");
        for (rank, (namespace, decorator, description, definition)) in (0..).zip(allowed) {
            let path = format!("{}.{decorator}", context.spelled_namespace(namespace));
            if !self.fits(&path) {
                continue;
            }
            let snippet = self.snippets && !self.is_followed_by_definition();
            let completion = self.offer(format!("@{path}"), CompletionKind::Function, 0);
            completion.detail = (*description).to_owned();
            completion.rank = rank;
            if snippet {
                completion.insert = format!("@{path}\n{definition}");
                completion.snippet = true;
            }
        }
    }

    /// Adds the decorators of the namespace before the position: `function` after `@R.`.
    pub(super) fn decorators_of_namespace(&mut self) {
        let namespace = self.view.context(self.location.item).and_then(|context| context.namespace(self.path));
        let Some(namespace) = namespace else { return };
        let canonical = namespace.name();
        for decorator in members(namespace).iter().copied() {
            if !self.fits(decorator) {
                continue;
            }
            let definition = USUAL.iter().find(|(of, name, ..)| *of == canonical && *name == decorator);
            let definition = definition.filter(|_| self.snippets && !self.is_followed_by_definition());
            let completion = self.offer(decorator, CompletionKind::Function, 0);
            completion.rank = uses::rank(&format!("{canonical}.{decorator}"));
            if let Some((_, _, description, definition)) = definition {
                completion.detail = (*description).to_owned();
                completion.insert = format!("{decorator}\n{definition}");
                completion.snippet = true;
            }
        }
    }

    /// Whether the decorator at the position already has its definition on the next line, or has arguments.
    fn is_followed_by_definition(&self) -> bool {
        let after = self.segment.text().get(self.at as usize..).unwrap_or_default();
        let after = after.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_').trim_start();
        ["def ", "class ", "@", "("].iter().any(|start| after.starts_with(start))
    }
}
