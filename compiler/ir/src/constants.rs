//! The tensor constants of a module as data.

use crate::expr::{Expr, ExprKind};
use crate::struct_info::StructInfo;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name};
use std::collections::HashMap;
use std::sync::Arc;

/// A tensor's elements. A copy shares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantData {
    /// Its extents.
    pub shape: Vec<i64>,
    /// Its element type.
    pub dtype: DType,
    /// Its elements, row-major and little-endian.
    pub bytes: Arc<[u8]>,
}

impl ConstantData {
    /// Its type.
    pub fn ty(&self) -> StructInfo {
        StructInfo::tensor(self.shape.iter().copied().map(Dim::constant).collect::<Vec<_>>(), Some(self.dtype))
    }
}

/// What a module's functions name by [`ExprKind::Metadata`]: what its metadata section lists, and what passes have made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    section: Arc<str>,
    listed: Arc<NameMap<Vec<Option<ConstantData>>>>,
    made: Vec<ConstantData>,
    /// Those whose data the section leaves out, given beside it.
    given: Arc<HashMap<(Name, u32), ConstantData>>,
}

impl Constants {
    /// Those of a metadata section: its text, and under each key what it lists; `None` stands for what is no tensor.
    pub fn of_section(section: Arc<str>, listed: NameMap<Vec<Option<ConstantData>>>) -> Constants {
        Constants { section, listed: Arc::new(listed), ..Constants::default() }
    }

    /// The text of the section as it was read; empty where there was none.
    pub fn section(&self) -> &Arc<str> {
        &self.section
    }

    /// How many constants the section lists; `None` where it lists something that is no tensor.
    pub fn listed(&self) -> Option<usize> {
        let tensors = self.listed.values().map(|list| list.iter().all(Option::is_some).then_some(list.len()));
        tensors.sum()
    }

    /// The constant of a key and an index, where its data is known.
    pub fn get(&self, key: Name, index: u32) -> Option<&ConstantData> {
        match self.is_made(key) {
            false if self.given.contains_key(&(key, index)) => self.given.get(&(key, index)),
            true => self.made.get(index as usize),
            false => self.listed.get(&key)?.get(index as usize)?.as_ref(),
        }
    }

    /// Whether a key is that of constants that passes have made.
    pub fn is_made(&self, key: Name) -> bool {
        key.as_str().is_empty()
    }

    /// Takes constants' data from elsewhere; it goes before what the section lists.
    pub fn give(&mut self, given: HashMap<(Name, u32), ConstantData>) {
        self.given = Arc::new(given);
    }

    /// Whether the section's text has all that is known of its constants.
    pub fn is_as_read(&self) -> bool {
        self.given.is_empty()
    }

    /// Adds a constant, and names it.
    pub fn add(&mut self, data: ConstantData) -> Expr {
        let ty = data.ty();
        let index = u32::try_from(self.made.len()).unwrap_or(u32::MAX);
        self.made.push(data);
        Expr::new(ExprKind::Metadata { key: name(""), index }, ty)
    }
}
