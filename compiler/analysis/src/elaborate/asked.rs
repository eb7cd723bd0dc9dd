//! The questions that the elaboration of a segment asks about the code outside it, recorded with their answers.

use crate::entry::{Entry, Outer};
use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::{Signature, Summary};
use std::sync::Arc;

/// A recording cache over [`Outer`]: asks each question once. A memoized result of the segment is valid as long as
/// all recorded answers are the same.
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

    /// Reserves capacity for `count` names.
    pub(super) fn reserve(&mut self, count: usize) {
        self.imports.reserve(count);
        self.import_index.reserve(count);
    }

    /// Returns the definition of `name` in an earlier segment or in the header.
    pub(super) fn entry(&mut self, name: Name) -> Option<Entry> {
        if let Some(&at) = self.import_index.get(&name) {
            return self.imports.get(at).and_then(|(_, entry)| entry.clone());
        }
        let entry = self.outer.lookup(name);
        self.import_index.insert(name, self.imports.len());
        self.imports.push((name, entry.clone()));
        entry
    }

    /// Returns the signature of the module's item `name`.
    pub(super) fn signature(&mut self, name: Name) -> Option<Arc<Signature>> {
        if let Some(&at) = self.global_index.get(&name) {
            return self.globals.get(at).and_then(|(_, signature)| signature.clone());
        }
        let signature = self.outer.signature(name);
        self.global_index.insert(name, self.globals.len());
        self.globals.push((name, signature.clone()));
        signature
    }

    /// Returns the summary of the values that the module's function `name` returns.
    pub(super) fn summary(&mut self, name: Name) -> Option<Arc<Summary>> {
        // A linear search suffices: few functions are summarized for one segment.
        if let Some((_, known)) = self.summaries.iter().find(|(known, _)| *known == name) {
            return known.clone();
        }
        let summary = self.outer.summary(name);
        self.summaries.push((name, summary.clone()));
        summary
    }
}
