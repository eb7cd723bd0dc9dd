//! How tensors lie that windows slide over: convolutions, pooling, resized images. Layouts are attributes here (TVM
//! src/relax/op/nn/convolution.cc, pooling.cc, src/relax/op/image/resize.cc).

use crate::layout::Layout;
use crate::relayout::{Laid, LaidOut, LayoutCall};
use rx_ir::Attr;

/// The layout that an attribute says, whole axes only; where it is left out, `default`.
fn said(call: &LayoutCall<'_>, attribute: &str, default: Option<&Layout>) -> Option<Layout> {
    let layout = match call.call.str(attribute).filter(|text| !text.is_empty()) {
        Some(text) => Layout::parse(text).ok()?,
        None => default?.clone(),
    };
    layout.is_plain().then_some(layout)
}

/// A tensor's layout, as an attribute would say it for one that lies as typed in `said`, and the other way round.
struct Letters {
    said: Layout,
    typed: Layout,
}

impl Letters {
    fn of(said: Layout) -> Option<Letters> {
        let typed = Layout::initial(said.ndim())?;
        Some(Letters { said, typed })
    }

    /// What the attribute says of a tensor that lies so.
    fn attribute(&self, laid: &Layout) -> Option<Layout> {
        laid.relettered(self.typed.text(), self.said.text())
    }

    /// How a tensor lies of which the attribute says this.
    fn laid(&self, attribute: &Layout) -> Option<Layout> {
        attribute.relettered(self.said.text(), self.typed.text())
    }
}

fn text(layout: &Layout) -> Attr {
    Attr::Str(layout.text().into())
}

/// A convolution lies as asked for, where the extents of data, weight and result can be split so; one of which nothing is
/// asked follows data and weight with whole axes.
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

/// Pooling follows its data; axes that windows slide along are whole.
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

/// A resized image lies as asked for, or as the image did, in whole axes.
pub(crate) fn resize(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let letters = Letters::of(said(call, "layout", None)?)?;
    let layout = match call.wanted {
        Some([wanted, ..]) if wanted.is_plain() => letters.laid(wanted)?,
        _ => call.whole("data")?,
    };
    let said = LaidOut::result(Laid::Tensor(layout.clone())).of("data", &layout);
    Some(said.with("layout", text(&letters.attribute(&layout)?)))
}
