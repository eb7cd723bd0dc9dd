//! *Layout inference of operators with layout attributes*: convolutions, pooling and image resizing.
//!
//! ```text
//! conv2d(x, w, data_layout="NCHW"), layouts "NHWC", "OHWI" requested
//! →  conv2d(x in "ACDB", w in "ACDB", data_layout="NHWC", kernel_layout="OHWI"), result in "ACDB"
//! ```
//!
//! Requires: layout attributes of the original call are plain.
//! Guarantees: attributes and storage layouts change together, so the call computes the same elements.
//! Reference: TVM src/relax/op/nn/convolution.cc, src/relax/op/nn/pooling.cc and src/relax/op/image/resize.cc.

use crate::infer_layout::{Laid, LaidOut, LayoutCall};
use crate::layout::Layout;
use rx_ir::Attr;

/// Returns the layout that an attribute states, or `default` if the attribute is absent; `None` if the layout splits
/// axes.
fn said(call: &LayoutCall<'_>, attribute: &str, default: Option<&Layout>) -> Option<Layout> {
    let layout = match call.call.str(attribute).filter(|text| !text.is_empty()) {
        Some(text) => Layout::parse(text).ok()?,
        None => default?.clone(),
    };
    layout.is_plain().then_some(layout)
}

/// Translation between the letters of a layout attribute (`NCHW`) and the letters of a type's axes (`ABCD`).
struct Letters {
    said: Layout,
    typed: Layout,
}

impl Letters {
    fn of(said: Layout) -> Option<Letters> {
        let typed = Layout::initial(said.ndim())?;
        Some(Letters { said, typed })
    }

    /// Returns the attribute's value for a tensor with the layout `laid`.
    fn attribute(&self, laid: &Layout) -> Option<Layout> {
        laid.relettered(self.typed.text(), self.said.text())
    }

    /// Returns the tensor's layout for the attribute's value `attribute`.
    fn laid(&self, attribute: &Layout) -> Option<Layout> {
        attribute.relettered(self.said.text(), self.typed.text())
    }
}

fn text(layout: &Layout) -> Attr {
    Attr::Str(layout.text().into())
}

/// Layout rule of convolutions. Uses the requested layouts, if the extents of data, weight and result fit split axes.
/// Without a request, follows data and weight, without split axes.
pub(super) fn conv(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let data = Letters::of(said(call, "data_layout", None)?)?;
    let kernel = Letters::of(said(call, "kernel_layout", None)?)?;
    let out = Letters::of(said(call, "out_layout", Some(&data.said))?)?;
    let [of_data, of_weight, of_out] = match call.wanted {
        Some([wanted, weight, rest @ ..]) => [wanted.clone(), weight.clone(), rest.first().unwrap_or(wanted).clone()],
        _ => {
            let (laid, weight) = (call.layout("data")?, call.layout("weight")?);
            if !laid.is_plain() || !weight.is_plain() {
                return None;
            }
            [data.attribute(laid)?, kernel.attribute(weight)?, out.attribute(laid)?]
        }
    };
    let (laid, weight) = (data.laid(&of_data)?, kernel.laid(&of_weight)?);
    if !call.fits("data", &laid) || !call.fits("weight", &weight) {
        return None;
    }
    let result = LaidOut::result(Laid::Tensor(out.laid(&of_out)?)).of("data", &laid).of("weight", &weight);
    let said = result.with("data_layout", text(&of_data)).with("kernel_layout", text(&of_weight));
    Some(said.with("out_layout", text(&of_out)))
}

/// Layout rule of pooling: follows the data. Axes along which windows slide must not be split.
pub(super) fn pool(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let data = Letters::of(said(call, "layout", None)?)?;
    let out = Letters::of(said(call, "out_layout", Some(&data.said))?)?;
    let given = call.layout("data")?;
    let slides =
        |layout: &Layout| layout.letters().any(|letter| layout.factor_of(letter) > 1 && !"NC".contains(letter));
    let layout = if slides(&data.attribute(given)?) { call.whole("data")? } else { given.clone() };
    let said = LaidOut::result(Laid::Tensor(layout.clone())).of("data", &layout);
    Some(said.with("layout", text(&data.attribute(&layout)?)).with("out_layout", text(&out.attribute(&layout)?)))
}

/// Layout rule of image resizing: uses the requested layout, or the image's, without split axes.
pub(crate) fn resize(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let letters = Letters::of(said(call, "layout", None)?)?;
    let layout = match call.wanted {
        Some([wanted, ..]) if wanted.is_plain() => letters.laid(wanted)?,
        _ => call.whole("data")?,
    };
    let said = LaidOut::result(Laid::Tensor(layout.clone())).of("data", &layout);
    Some(said.with("layout", text(&letters.attribute(&layout)?)))
}
