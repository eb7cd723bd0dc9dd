//! All operators, and the way from a name to its schema.

use crate::{Schema, nn};
use rustc_hash::FxHashMap;
use rx_base::Name;
use std::sync::LazyLock;

/// The families, in the order of the docs.
static FAMILIES: &[&[Schema]] = &[
    nn::activation::OPERATORS,
];

static BY_NAME: LazyLock<FxHashMap<Name, &'static Schema>> =
    LazyLock::new(|| all().map(|schema| (Name::from(schema.name), schema)).collect());

/// Every operator, family by family.
pub fn all() -> impl Iterator<Item = &'static Schema> {
    FAMILIES.iter().copied().flatten()
}

/// The operator called `name`, without `relax.` or `R.`: `nn.conv2d`.
pub fn find(name: Name) -> Option<&'static Schema> {
    BY_NAME.get(&name).copied()
}
