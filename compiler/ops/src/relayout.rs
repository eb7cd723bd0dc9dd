//! Calls whose operands lie otherwise than their types say: how results lie then, and which attributes change.
//!
//! TVM's `FRelaxInferLayout` (src/relax/transform/infer_layout_utils.h). An operator's rule is a part of its
//! [`Flow`](crate::Flow); this file has what rules are given and give, and the rules that many operators share.

use crate::axes::normalize_axis;
use crate::call::CallInfo;
use crate::layout::Layout;
use crate::schema::{Default, Schema};
use rx_ir::{Argument, Attr, Shape, StructInfo, TensorInfo};

/// How a value lies in memory, as compared with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Laid {
    /// A tensor: the axes of its type are called A, B, C, …; the layout says where they are.
    Tensor(Layout),
    /// A tuple, field by field.
    Tuple(Vec<Laid>),
    /// As its type says: what is no tensor, or of no known rank.
    AsTyped,
}

impl Laid {
    /// How a value lies that is laid out as its type says.
    pub fn initial(ty: &StructInfo) -> Laid {
        match ty {
            StructInfo::Tensor(tensor) => {
                tensor.shape.ndim().and_then(Layout::initial).map_or(Laid::AsTyped, Laid::Tensor)
            }
            StructInfo::Tuple(fields) => Laid::Tuple(fields.iter().map(Laid::initial).collect()),
            _ => Laid::AsTyped,
        }
    }

    /// The layout of a tensor.
    pub fn as_layout(&self) -> Option<&Layout> {
        match self {
            Laid::Tensor(layout) => Some(layout),
            Laid::Tuple(_) | Laid::AsTyped => None,
        }
    }

    /// The type that a value of type `ty` has as it lies; `None` where that is not known: pieces of axes of unknown extents, or
    /// a shape that a variable stands for.
    pub fn moved(&self, ty: &StructInfo) -> Option<StructInfo> {
        match (self, ty) {
            (Laid::Tensor(layout), StructInfo::Tensor(tensor)) => {
                let initial = Layout::initial(tensor.shape.ndim()?)?;
                if *layout == initial {
                    return Some(ty.clone());
                }
                let shape = match &tensor.shape {
                    Shape::Known(dims) if self.suits(ty) => Shape::known(layout.physical(initial.text(), dims)),
                    Shape::Rank(_) if layout.is_plain() => tensor.shape.clone(),
                    _ => return None,
                };
                Some(TensorInfo { shape, readings: None, ..TensorInfo::clone(tensor) }.into())
            }
            (Laid::Tuple(laid), StructInfo::Tuple(fields)) if laid.len() == fields.len() => {
                let moved = laid.iter().zip(fields.iter()).map(|(laid, ty)| laid.moved(ty));
                Some(StructInfo::tuple(moved.collect::<Option<Vec<_>>>()?))
            }
            (Laid::AsTyped, ty) => Some(ty.clone()),
            _ => None,
        }
    }

    /// Whether values of this type can lie so: the layout has a letter for each axis, and what it splits, the axes fill.
    pub fn suits(&self, ty: &StructInfo) -> bool {
        match (self, ty) {
            (Laid::Tensor(layout), StructInfo::Tensor(tensor)) => {
                let Some(initial) = tensor.shape.ndim().and_then(Layout::initial) else { return false };
                let filled = || tensor.shape.dims().is_some_and(|dims| layout.is_filled_by(initial.text(), dims));
                layout.wrong_letters(initial.text()).is_none() && (layout.is_plain() || filled())
            }
            (Laid::Tuple(laid), StructInfo::Tuple(fields)) => {
                laid.len() == fields.len() && laid.iter().zip(fields.iter()).all(|(laid, ty)| laid.suits(ty))
            }
            (laid, ty) => *laid == Laid::AsTyped && Laid::initial(ty) == Laid::AsTyped,
        }
    }
}

/// A rule: how a call's operands and result are to lie, and what of the call changes by it; `None` where all stay as typed.
pub type Rule = fn(&LayoutCall<'_>) -> Option<LaidOut>;

/// What an operator does where operands lie otherwise: a part of its [`Flow`](crate::Flow).
#[derive(Clone, Copy, Debug)]
pub struct LayoutRule {
    /// The attributes with layouts that a program may ask for, in TVM's order; where there are none, the operator follows its
    /// operands.
    pub choices: &'static [&'static str],
    /// The rule.
    pub rule: Rule,
}

impl LayoutRule {
    /// The layouts that a program asks for, read; one per attribute of `choices`, where the last may be left out if the
    /// attribute may.
    ///
    /// # Errors
    /// An operator that follows its operands, too many or too few layouts, or one that the attribute does not take; in words
    /// that follow the operator's name.
    pub fn wanted(&self, schema: &Schema, texts: &[&str]) -> Result<Vec<Layout>, String> {
        if self.choices.is_empty() {
            return Err("follows the layouts of its operands, none can be asked for".to_owned());
        }
        let default = |choice: &str| schema.params.iter().find(|param| param.name == choice).map(|param| param.default);
        // What is left out is laid out as the data is.
        let data = self.choices.first().and_then(|first| default(first));
        let letters = self.choices.iter().map(|choice| match (default(choice), data) {
            (Some(Default::Str(letters)), _) => (letters, false),
            (_, Some(Default::Str(letters))) => (letters, true),
            _ => ("", true),
        });
        let letters: Vec<(&str, bool)> = letters.collect();
        let needed = letters.iter().filter(|(_, may_lack)| !may_lack).count();
        if texts.len() < needed || texts.len() > letters.len() {
            return Err(format!("takes a list of {}; {} are given", self.choices.join(", "), texts.len()));
        }
        let read = texts.iter().zip(&letters).map(|(text, (letters, _))| {
            let wrong = |why: String| format!("takes no layout \"{text}\": it {why}");
            let layout = Layout::parse(text).map_err(wrong)?;
            layout.wrong_letters(letters).map_or(Ok(layout), |why| Err(wrong(why)))
        });
        read.collect()
    }
}

/// A call whose operands may lie otherwise than their types say.
pub struct LayoutCall<'a> {
    /// The call, with operands as typed.
    pub call: &'a CallInfo<'a>,
    /// The type of its result.
    pub result: &'a StructInfo,
    /// How the argument of each parameter lies.
    pub laid: &'a [Laid],
    /// The layouts that a program asks for, in the order of [`LayoutRule::choices`].
    pub wanted: Option<&'a [Layout]>,
}

/// How operands and result of a call are to lie.
#[derive(Clone, Debug)]
pub struct LaidOut {
    /// Operands that are to lie so, by parameter; others lie as typed.
    pub operands: Vec<(&'static str, Laid)>,
    /// How the result lies then.
    pub result: Laid,
    /// What is to be passed for other parameters.
    pub arguments: Vec<(&'static str, Argument)>,
}

impl LaidOut {
    /// A result that lies so, of operands as typed.
    pub(crate) fn result(result: Laid) -> LaidOut {
        LaidOut { operands: Vec::new(), result, arguments: Vec::new() }
    }

    /// The same, of an operand that is a tensor in this layout.
    pub(crate) fn of(self, operand: &'static str, layout: &Layout) -> LaidOut {
        self.of_laid(operand, Laid::Tensor(layout.clone()))
    }

    /// The same, of an operand that lies so.
    pub(crate) fn of_laid(mut self, operand: &'static str, laid: Laid) -> LaidOut {
        self.operands.push((operand, laid));
        self
    }

    /// The same with another attribute.
    pub(crate) fn with(mut self, attribute: &'static str, value: Attr) -> LaidOut {
        self.arguments.push((attribute, Argument::Attr(value)));
        self
    }
}

impl<'a> LayoutCall<'a> {
    /// How the argument for a parameter lies.
    pub(crate) fn laid(&self, name: &str) -> &'a Laid {
        let at = self.call.schema.params.iter().position(|param| param.name == name);
        at.and_then(|at| self.laid.get(at)).unwrap_or(&Laid::AsTyped)
    }

    /// The layout of a tensor operand.
    pub(crate) fn layout(&self, name: &str) -> Option<&'a Layout> {
        self.laid(name).as_layout()
    }

    /// As [`LayoutCall::layout`]; where that splits axes, the layout of the type.
    pub(crate) fn whole(&self, name: &str) -> Option<Layout> {
        let layout = self.layout(name)?;
        if layout.is_plain() { Some(layout.clone()) } else { Layout::initial(self.ndim(name)?) }
    }

    /// The rank of a tensor operand.
    pub(crate) fn ndim(&self, name: &str) -> Option<usize> {
        self.call.ty(name).as_tensor()?.shape.ndim()
    }

    /// Whether an operand can be laid out so.
    pub(crate) fn fits(&self, name: &str, layout: &Layout) -> bool {
        Laid::Tensor(layout.clone()).suits(self.call.ty(name))
    }
}

/// The letter of an axis as types count them.
pub(crate) fn letter(axis: usize) -> Option<char> {
    Layout::initial(axis.checked_add(1)?)?.text().chars().next_back()
}

/// Where an axis that a type counts so is in a layout; of one that is split, what is left of it.
pub(crate) fn place(layout: &Layout, axis: usize) -> Option<usize> {
    layout.axis_of(letter(axis)?)
}

/// Where axes are in a layout, which splits none of them.
pub(crate) fn places(layout: &Layout, axes: &[usize]) -> Option<Vec<usize>> {
    let whole = |axis: &usize| letter(*axis).is_some_and(|letter| layout.factor_of(letter) == 1);
    axes.iter().all(whole).then(|| axes.iter().map(|axis| place(layout, *axis)).collect())?
}

/// The layout of a tensor of a larger rank, whose last axes lie as those of `layout`; axes in front are in order (TVM's
/// `FollowDecision`).
pub(crate) fn behind_others(layout: &Layout, ndim: usize) -> Option<Layout> {
    let own = Layout::initial(layout.letters().count())?;
    let all = Layout::initial(ndim)?;
    let (front, last) = all.text().split_at_checked(ndim.checked_sub(own.ndim())?)?;
    let shifted = layout.relettered(own.text(), last)?;
    Layout::parse(&format!("{front}{}", shifted.text())).ok()
}

/// An axis as an attribute.
pub(crate) fn axis_attr(axis: usize) -> Attr {
    Attr::Int(i64::try_from(axis).unwrap_or(i64::MAX).into())
}

/// Axes as an attribute.
pub(crate) fn axes_attr(axes: &[usize]) -> Attr {
    Attr::List(axes.iter().map(|axis| axis_attr(*axis)).collect())
}

/// Element by element: the result lies as the first operand does, each field of a tuple so (TVM's `InferLayoutUnaryEwise`).
pub(crate) fn elementwise(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let operand = call.call.schema.params.first()?.name;
    let layout = call.layout(operand)?;
    let laid = Laid::Tensor(layout.clone());
    let result = match call.result {
        StructInfo::Tuple(fields) => Laid::Tuple(vec![laid; fields.len()]),
        _ => laid,
    };
    Some(LaidOut::result(result).of(operand, layout))
}

/// Along `axis` of the first operand, which lies in whole axes, and so does the result: softmax, flips.
pub(crate) fn along_axis(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let operand = call.call.schema.params.first()?.name;
    let layout = call.whole(operand)?;
    along(call, layout, &[operand])
}

/// Along `axis` of operands of one rank that lie alike, in whole axes, and so does the result.
pub(crate) fn along(call: &LayoutCall<'_>, layout: Layout, operands: &[&'static str]) -> Option<LaidOut> {
    let axis = normalize_axis(call.call, "axis", layout.ndim(), call.call.int("axis")?).ok()?;
    let out = LaidOut::result(Laid::Tensor(layout.clone())).with("axis", axis_attr(place(&layout, axis)?));
    Some(operands.iter().fold(out, |out, operand| out.of(operand, &layout)))
}

#[cfg(test)]
mod tests {
    use super::{Laid, behind_others, letter, places};
    use crate::layout::Layout;
    use crate::tests::ty;
    use rx_base::name::name;
    use rx_ir::StructInfo;

    fn layout(text: &str) -> Layout {
        Layout::parse(text).unwrap_or_else(|why| panic!("{text} {why}"))
    }

    #[test]
    fn axes_are_found_where_they_lie() {
        let laid = layout("ACDB4b");
        assert_eq!((letter(0), letter(25), letter(26)), (Some('A'), Some('Z'), None));
        assert_eq!(places(&laid, &[2, 3, 0]), Some(vec![1, 2, 0]));
        // What is left of a split axis is not the axis.
        assert_eq!(places(&laid, &[1]), None);
        assert_eq!(behind_others(&layout("BA"), 4), Some(layout("ABDC")));
        assert_eq!(behind_others(&layout("ABC"), 2), None);
    }

    #[test]
    fn types_move_with_layouts_that_suit_them() {
        let moved = |layout_text: &str, text: &str| Laid::Tensor(layout(layout_text)).moved(&ty(text));
        assert_eq!(moved("ACDB", "n 8 h w:float32"), Some(ty("n h w 8:float32")));
        assert_eq!(moved("ACDB4b", "n 8 h w:float32"), Some(ty("n h w 2 4:float32")));
        assert_eq!(moved("ACDB", "?4:float32"), Some(ty("?4:float32")));
        for (layout_text, text) in
            [("AB4b", "2 6"), ("AB4b", "2 n"), ("AB4b", "?2"), ("ABC", "2 6"), ("BA", "*"), ("BA", "$s/2")]
        {
            assert_eq!(moved(layout_text, text), None, "{layout_text} {text}");
        }
        let pair = StructInfo::tuple([ty("2 3:int8"), StructInfo::Object]);
        assert_eq!(Laid::initial(&pair), Laid::Tuple(vec![Laid::Tensor(layout("AB")), Laid::AsTyped]));
    }

    #[test]
    fn layouts_are_asked_for_by_attributes() {
        let wanted = |operator: &str, texts: &[&str]| {
            let schema = crate::find(name(operator)).unwrap_or_else(|| panic!("no operator {operator}"));
            let rule = schema.flow.layout.unwrap_or_else(|| panic!("{operator} has no rule"));
            rule.wanted(schema, texts).map(|layouts| layouts.len())
        };
        assert_eq!(wanted("nn.conv2d", &["NHWC", "OHWI"]), Ok(2));
        assert_eq!(wanted("nn.conv2d_transpose", &["NHWC4c", "IHWO", "NCHW"]), Ok(3));
        assert_eq!(wanted("image.resize3d", &["NDHWC"]), Ok(1));
        for (operator, texts) in
            [("nn.relu", &["NHWC"][..]), ("nn.conv2d", &["NHWC"]), ("nn.conv1d", &["NHWC", "OHWI"])]
        {
            assert!(wanted(operator, texts).is_err(), "{operator}");
        }
    }
}
