//! The table of all operators, and the lookup of a schema by name.

use crate::{Schema, call_functions, ccl, distributed, effects, grad, image, inspect, memory, nn, tensor, vision, vm};
use rustc_hash::FxHashMap;
use rx_base::Name;
use std::sync::LazyLock;

/// The families in the order of the documentation, each with the source that defines its operators.
static FAMILIES: &[(&str, &[Schema])] = &[
    ("TVM src/relax/op/nn/nn.cc", nn::activation::OPERATORS),
    ("TVM src/relax/op/tensor/unary.cc", tensor::elementwise::OPERATORS),
    ("TVM src/relax/op/tensor/binary.cc", tensor::binary::OPERATORS),
    ("TVM src/relax/op/tensor/ternary.cc", tensor::ternary::OPERATORS),
    ("TVM src/relax/op/tensor/create.cc", tensor::create::OPERATORS),
    ("TVM src/relax/op/tensor/statistical.cc", tensor::statistical::OPERATORS),
    ("TVM src/relax/op/tensor/linear_algebra.cc", tensor::linear_algebra::OPERATORS),
    ("TVM src/relax/op/tensor/datatype.cc", tensor::datatype::OPERATORS),
    ("TVM src/relax/op/tensor/qdq.cc", tensor::qdq::OPERATORS),
    ("TVM src/relax/op/op.cc", tensor::shape_functions::OPERATORS),
    ("TVM src/relax/op/tensor/manipulate.cc", tensor::reshape::OPERATORS),
    ("TVM src/relax/op/tensor/manipulate.cc", tensor::manipulate::OPERATORS),
    ("TVM src/relax/op/tensor/manipulate.cc", tensor::join::OPERATORS),
    ("TVM src/relax/op/tensor/manipulate.cc, src/tirx/ir/index_map.cc", tensor::layout_transform::OPERATORS),
    ("TVM src/relax/op/tensor/manipulate.cc", tensor::manipulate_gather::OPERATORS),
    ("TVM src/relax/op/tensor/manipulate.cc", tensor::scatter::OPERATORS),
    ("TVM src/relax/op/tensor/index.cc", tensor::index::OPERATORS),
    ("TVM src/relax/op/tensor/index.cc, include/tvm/topi/transform.h", tensor::slice::OPERATORS),
    ("TVM src/relax/op/tensor/search.cc", tensor::search::OPERATORS),
    ("TVM src/relax/op/tensor/sorting.cc", tensor::sorting::OPERATORS),
    ("TVM src/relax/op/tensor/set.cc", tensor::set_functions::OPERATORS),
    ("TVM src/relax/op/tensor/sampling.cc", tensor::sampling::OPERATORS),
    ("TVM src/relax/op/nn/attention.cc", nn::attention::OPERATORS),
    ("TVM src/relax/op/nn/convolution.cc", nn::conv::OPERATORS),
    ("TVM src/relax/op/nn/nn.cc", nn::loss::OPERATORS),
    ("TVM src/relax/op/nn/nn.cc", nn::norm::OPERATORS),
    ("TVM src/relax/op/nn/pooling.cc", nn::pool::OPERATORS),
    ("TVM src/relax/op/nn/nn.cc", nn::rearrange::OPERATORS),
    ("TVM src/relax/op/image/resize.cc", image::OPERATORS),
    ("TVM src/relax/op/vision/multibox_transform_loc.cc", vision::multibox::OPERATORS),
    ("TVM src/relax/op/vision/nms.cc", vision::nms::OPERATORS),
    ("TVM src/relax/op/vision/roi_align.cc", vision::roi::OPERATORS),
    ("TVM src/relax/op/tensor/grad.cc", grad::OPERATORS),
    ("TVM src/relax/op/op.cc", call_functions::OPERATORS),
    ("TVM src/relax/op/op.cc", memory::OPERATORS),
    ("TVM src/relax/op/op.cc", vm::OPERATORS),
    ("TVM src/relax/op/ccl/ccl.cc", ccl::OPERATORS),
    ("TVM src/relax/op/distributed/distributed.cc", distributed::OPERATORS),
    ("TVM src/relax/op/tensor/inspect.cc", inspect::OPERATORS),
    ("TVM src/relax/op/op.cc", effects::OPERATORS),
];

static ALL: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let of_family = |(reference, family): &(&'static str, &[Schema])| -> Vec<Schema> {
        family.iter().map(|schema| schema.defined_in(reference)).collect()
    };
    FAMILIES.iter().flat_map(of_family).collect()
});

static BY_NAME: LazyLock<FxHashMap<Name, &'static Schema>> =
    LazyLock::new(|| all().map(|schema| (Name::from(schema.name), schema)).collect());

/// Returns all operators, family by family.
pub fn all() -> impl Iterator<Item = &'static Schema> {
    ALL.iter()
}

/// Returns the operator called `name`, without `relax.` or `R.`, such as `nn.conv2d`.
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
