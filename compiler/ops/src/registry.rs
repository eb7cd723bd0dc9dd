//! All operators, and the way from a name to its schema.

use crate::{Schema, call_functions, ccl, distributed, effects, grad, image, inspect, memory, nn, tensor, vision, vm};
use rustc_hash::FxHashMap;
use rx_base::Name;
use std::sync::LazyLock;

/// The families, in the order of the docs.
static FAMILIES: &[&[Schema]] = &[
    nn::activation::OPERATORS,
    tensor::elementwise::OPERATORS,
    tensor::binary::OPERATORS,
    tensor::ternary::OPERATORS,
    tensor::create::OPERATORS,
    tensor::statistical::OPERATORS,
    tensor::linear_algebra::OPERATORS,
    tensor::datatype::OPERATORS,
    tensor::qdq::OPERATORS,
    tensor::shape_functions::OPERATORS,
    tensor::reshape::OPERATORS,
    tensor::manipulate::OPERATORS,
    tensor::join::OPERATORS,
    tensor::layout_transform::OPERATORS,
    tensor::manipulate_gather::OPERATORS,
    tensor::scatter::OPERATORS,
    tensor::index::OPERATORS,
    tensor::slice::OPERATORS,
    tensor::search::OPERATORS,
    tensor::sorting::OPERATORS,
    tensor::set_functions::OPERATORS,
    tensor::sampling::OPERATORS,
    nn::attention::OPERATORS,
    nn::conv::OPERATORS,
    nn::loss::OPERATORS,
    nn::norm::OPERATORS,
    nn::pool::OPERATORS,
    nn::rearrange::OPERATORS,
    image::OPERATORS,
    vision::multibox::OPERATORS,
    vision::nms::OPERATORS,
    vision::roi::OPERATORS,
    grad::OPERATORS,
    call_functions::OPERATORS,
    memory::OPERATORS,
    vm::OPERATORS,
    ccl::OPERATORS,
    distributed::OPERATORS,
    inspect::OPERATORS,
    effects::OPERATORS,
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

#[cfg(test)]
mod tests {
    use super::{all, find};
    use crate::{AttrKind, Default, ParamKind};
    use rx_base::name::name;

    #[test]
    fn names_are_unique_and_everything_is_documented() {
        for schema in all() {
            assert!(find(name(schema.name)).is_some_and(|found| std::ptr::eq(found, schema)), "{} twice", schema.name);
            let sentence = |text: &str| text.ends_with('.') && !text.contains("  ");
            assert!(sentence(schema.doc) && !schema.reference.is_empty(), "{}: {}", schema.name, schema.doc);
            for (at, param) in schema.params.iter().enumerate() {
                assert!(sentence(param.doc), "{}({}): {}", schema.name, param.name, param.doc);
                assert!(schema.params[..at].iter().all(|other| other.name != param.name), "{} twice", param.name);
                if let (ParamKind::Attr(AttrKind::Choice(choices)), Default::Str(default)) = (param.kind, param.default)
                {
                    assert!(choices.contains(&default), "{}({}): {default}", schema.name, param.name);
                }
            }
        }
    }
}
