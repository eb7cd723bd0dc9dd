//! Questions that the elaboration of a segment asks of the world outside it, recorded with the answers.

use crate::entry::{Entry, Outer};
use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::{Signature, Summary};
use std::sync::Arc;

/// Asks [`Outer`] each question once, and keeps the answers: a memo is right as long as they are the same.
pub(super) struct Asked<'a> {
    outer: &'a dyn Outer,
    pub(super) imports: Vec<(Name, Option<Entry>)>,
    import_index: NameMap<usize>,
    pub(super) globals: Vec<(Name, Option<Arc<Signature>>)>,
    global_index: NameMap<usize>,
    pub(super) summaries: Vec<(Name, Option<Arc<Summary>>)>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(outer: &'a dyn Outer) -> Asked<'a> {
        Asked {
            outer,
            imports: Vec::new(),
            import_index: NameMap::default(),
            globals: Vec::new(),
            global_index: NameMap::default(),
            summaries: Vec::new(),
        }
    }

    /// Makes room for so many definitions.
    pub(super) fn reserve(&mut self, count: usize) {
        self.imports.reserve(count);
        self.import_index.reserve(count);
    }

    /// The definition of `name` in an earlier segment, or the header.
    pub(super) fn entry(&mut self, name: Name) -> Option<Entry> {
        if let Some(&at) = self.import_index.get(&name) {
            return self.imports.get(at).and_then(|(_, entry)| entry.clone());
        }
        let entry = self.outer.lookup(name);
        self.import_index.insert(name, self.imports.len());
        self.imports.push((name, entry.clone()));
        entry
    }

    /// The signature of the module's item `name`.
    pub(super) fn signature(&mut self, name: Name) -> Option<Arc<Signature>> {
        if let Some(&at) = self.global_index.get(&name) {
            return self.globals.get(at).and_then(|(_, signature)| signature.clone());
        }
        let signature = self.outer.signature(name);
        self.global_index.insert(name, self.globals.len());
        self.globals.push((name, signature.clone()));
        signature
    }

    /// The summary of the values that the module's function `name` returns.
    pub(super) fn summary(&mut self, name: Name) -> Option<Arc<Summary>> {
        // Few functions are asked of in one segment.
        if let Some((_, known)) = self.summaries.iter().find(|(known, _)| *known == name) {
            return known.clone();
        }
        let summary = self.outer.summary(name);
        self.summaries.push((name, summary.clone()));
        summary
    }
}
