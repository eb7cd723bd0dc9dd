//! The data of a module's tensor constants.

use crate::expr::{Expr, ExprKind};
use crate::struct_info::StructInfo;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name};
use std::collections::HashMap;
use std::sync::Arc;

/// The elements of a tensor. Clones share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantData {
    /// The extents.
    pub shape: Vec<i64>,
    /// The element type.
    pub dtype: DType,
    /// The elements, row-major and little-endian.
    pub bytes: Arc<[u8]>,
}

impl ConstantData {
    /// The tensor type with this shape and dtype.
    pub fn ty(&self) -> StructInfo {
        StructInfo::tensor(self.shape.iter().copied().map(Dim::constant).collect::<Vec<_>>(), Some(self.dtype))
    }
}

/// The constants to which a module's functions refer by [`ExprKind::Metadata`]: those listed in the metadata section,
/// and those that passes created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    section: Arc<str>,
    listed: Arc<NameMap<Vec<Option<ConstantData>>>>,
    made: Vec<ConstantData>,
    /// Data that was loaded from outside the section, for constants that the section lists without data.
    given: Arc<HashMap<(Name, u32), ConstantData>>,
}

impl Constants {
    /// Creates the constants of a metadata section, from its text and, for each key, the list of its entries. An entry
    /// that is not a tensor is `None`.
    pub fn of_section(section: Arc<str>, listed: NameMap<Vec<Option<ConstantData>>>) -> Constants {
        Constants { section, listed: Arc::new(listed), ..Constants::default() }
    }

    /// The text of the section in the source; empty if there was none.
    pub fn section(&self) -> &Arc<str> {
        &self.section
    }

    /// The number of constants that the section lists; `None` if some entry is not a tensor.
    pub fn listed(&self) -> Option<usize> {
        let tensors = self.listed.values().map(|list| list.iter().all(Option::is_some).then_some(list.len()));
        tensors.sum()
    }

    /// Returns the constant with this key and index, if its data is known.
    pub fn get(&self, key: Name, index: u32) -> Option<&ConstantData> {
        match self.is_made(key) {
            false if self.given.contains_key(&(key, index)) => self.given.get(&(key, index)),
            true => self.made.get(index as usize),
            false => self.listed.get(&key)?.get(index as usize)?.as_ref(),
        }
    }

    /// Whether this is the key of constants that passes created: the empty name.
    pub fn is_made(&self, key: Name) -> bool {
        key.as_str().is_empty()
    }

    /// Sets data that was loaded from outside the section. It takes precedence over the section's data.
    pub fn give(&mut self, given: HashMap<(Name, u32), ConstantData>) {
        self.given = Arc::new(given);
    }

    /// Whether all known data of the listed constants is in the section's text, because none was loaded from elsewhere.
    pub fn is_as_read(&self) -> bool {
        self.given.is_empty()
    }

    /// Adds a constant; returns an expression that refers to it.
    pub fn add(&mut self, data: ConstantData) -> Expr {
        let ty = data.ty();
        let index = u32::try_from(self.made.len()).unwrap_or(u32::MAX);
        self.made.push(data);
        Expr::new(ExprKind::Metadata { key: name(""), index }, ty)
    }
}
