//! *Layout inference* for one call: given the layouts of its operands, determines the layout of its result and the
//! attributes that must change. `convert_layout` applies the rules to a whole function.
//!
//! ```text
//! R.nn.softmax(x, axis=1), x: [n, c, h, w] stored as NHWC (layout "ACDB")
//! →  R.nn.softmax(x, axis=3), result stored as "ACDB"
//! ```
//!
//! Requires: the operands' types stay those of the original program, with axes called A, B, C, ….
//! Guarantees: the changed call computes the same elements in the layouts that the rule returns.
//! Reference: TVM's `FRelaxInferLayout`, src/relax/transform/infer_layout_utils.h. An operator's rule is part of its
//! [`Traits`](crate::Traits). This module defines the input and output of rules, and the rules that many operators
//! share.

use crate::axes::normalize_axis;
use crate::call::CallInfo;
use crate::layout::Layout;
use crate::schema::{Default, Schema};
use rx_ir::{Argument, Attr, Shape, StructInfo, TensorInfo};

/// The storage layout of a value, relative to its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Laid {
    /// A tensor. The axes of its type are called A, B, C, …; the layout gives their order in memory.
    Tensor(Layout),
    /// A tuple, with one layout per field.
    Tuple(Vec<Laid>),
    /// The layout that the type states: for values that are not tensors, and for tensors of unknown rank.
    AsTyped,
}

impl Laid {
    /// Returns the layout of a value that is stored in the order of its type.
    pub fn initial(ty: &StructInfo) -> Laid {
        match ty {
            StructInfo::Tensor(tensor) => {
                tensor.shape.ndim().and_then(Layout::initial).map_or(Laid::AsTyped, Laid::Tensor)
            }
            StructInfo::Tuple(fields) => Laid::Tuple(fields.iter().map(Laid::initial).collect()),
            _ => Laid::AsTyped,
        }
    }

    /// Returns the layout, if the value is a tensor.
    pub fn as_layout(&self) -> Option<&Layout> {
        match self {
            Laid::Tensor(layout) => Some(layout),
            Laid::Tuple(_) | Laid::AsTyped => None,
        }
    }

    /// Returns the type of the stored value if its declared type is `ty`. For example, `[n, 8, h, w]` in layout
    /// `ACDB4b` is stored as `[n, h, w, 2, 4]`. Returns `None` if the stored shape is unknown: if a split axis has an
    /// unknown extent, or if the shape is a variable.
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

    /// Whether a value of this type can have this layout: the layout has one letter per axis, and split factors divide
    /// the extents.
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

/// A layout rule. Returns the layouts that a call's operands and result should have and the changed arguments; `None`
/// if all keep the layouts of their types.
pub type Rule = fn(&LayoutCall<'_>) -> Option<LaidOut>;

/// The layout behavior of an operator, as part of its [`Traits`](crate::Traits).
#[derive(Clone, Copy, Debug)]
pub struct LayoutRule {
    /// The layout attributes that a program may request, in TVM's order. Empty for an operator that follows the layouts
    /// of its operands.
    pub choices: &'static [&'static str],
    /// The function that computes the layouts of a call.
    pub rule: Rule,
}

impl LayoutRule {
    /// Parses the layouts that a program requests, one per attribute of `choices`. The last one may be omitted if its
    /// attribute is optional.
    ///
    /// # Errors
    /// Returns a message that continues the operator's name: the operator follows its operands, the number of layouts
    /// is wrong, or the attribute does not accept a layout.
    pub fn wanted(&self, schema: &Schema, texts: &[&str]) -> Result<Vec<Layout>, String> {
        if self.choices.is_empty() {
            return Err("follows the layouts of its operands, none can be asked for".to_owned());
        }
        let default = |choice: &str| schema.params.iter().find(|param| param.name == choice).map(|param| param.default);
        // An omitted layout defaults to that of the data.
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

/// A call whose operands may have other layouts than their types state.
pub struct LayoutCall<'a> {
    /// The call, with the original operand types.
    pub call: &'a CallInfo<'a>,
    /// The type of its result.
    pub result: &'a StructInfo,
    /// The layout of each argument, by parameter.
    pub laid: &'a [Laid],
    /// The layouts that the program requests, in the order of [`LayoutRule::choices`].
    pub wanted: Option<&'a [Layout]>,
}

/// The layouts of a call's operands and result, and the arguments that change.
#[derive(Clone, Debug)]
pub struct LaidOut {
    /// The operands' layouts, by parameter name; operands that are not listed keep the layout of their types.
    pub operands: Vec<(&'static str, Laid)>,
    /// The layout of the result.
    pub result: Laid,
    /// New values of other arguments, by parameter name.
    pub arguments: Vec<(&'static str, Argument)>,
}

impl LaidOut {
    /// Creates a decision with this result layout, in which all operands keep the layout of their types.
    pub(crate) fn result(result: Laid) -> LaidOut {
        LaidOut { operands: Vec::new(), result, arguments: Vec::new() }
    }

    /// Adds a tensor operand with this layout.
    pub(crate) fn of(self, operand: &'static str, layout: &Layout) -> LaidOut {
        self.of_laid(operand, Laid::Tensor(layout.clone()))
    }

    /// Adds an operand with this layout.
    pub(crate) fn of_laid(mut self, operand: &'static str, laid: Laid) -> LaidOut {
        self.operands.push((operand, laid));
        self
    }

    /// Adds a changed attribute.
    pub(crate) fn with(mut self, attribute: &'static str, value: Attr) -> LaidOut {
        self.arguments.push((attribute, Argument::Attr(value)));
        self
    }
}

impl<'a> LayoutCall<'a> {
    /// Returns the layout of the argument passed for a parameter.
    pub(crate) fn laid(&self, name: &str) -> &'a Laid {
        let at = self.call.schema.params.iter().position(|param| param.name == name);
        at.and_then(|at| self.laid.get(at)).unwrap_or(&Laid::AsTyped)
    }

    /// Returns the layout of a tensor operand.
    pub(crate) fn layout(&self, name: &str) -> Option<&'a Layout> {
        self.laid(name).as_layout()
    }

    /// Returns the layout of a tensor operand, or the layout of its type if axes are split.
    pub(crate) fn whole(&self, name: &str) -> Option<Layout> {
        let layout = self.layout(name)?;
        if layout.is_plain() { Some(layout.clone()) } else { Layout::initial(self.ndim(name)?) }
    }

    /// Returns the rank of a tensor operand.
    pub(crate) fn ndim(&self, name: &str) -> Option<usize> {
        self.call.ty(name).as_tensor()?.shape.ndim()
    }

    /// Whether an operand can have this layout.
    pub(crate) fn fits(&self, name: &str, layout: &Layout) -> bool {
        Laid::Tensor(layout.clone()).suits(self.call.ty(name))
    }
}

/// Returns the letter of axis number `axis` of a type: A for 0, B for 1.
pub(crate) fn letter(axis: usize) -> Option<char> {
    Layout::initial(axis.checked_add(1)?)?.text().chars().next_back()
}

/// Returns the position in a layout of the type's axis number `axis`. For a split axis it is the position of the outer
/// part.
pub(crate) fn place(layout: &Layout, axis: usize) -> Option<usize> {
    layout.axis_of(letter(axis)?)
}

/// Returns the positions in a layout of several axes of the type; `None` if one of them is split.
pub(crate) fn places(layout: &Layout, axes: &[usize]) -> Option<Vec<usize>> {
    let whole = |axis: &usize| letter(*axis).is_some_and(|letter| layout.factor_of(letter) == 1);
    axes.iter().all(whole).then(|| axes.iter().map(|axis| place(layout, *axis)).collect())?
}

/// Returns the layout of a tensor of rank `ndim` whose last axes are ordered as in `layout`, with the other axes in
/// order before them. For example, `BA` for rank 4 gives `ABDC`. Returns `None` if `ndim` is less than the rank of
/// `layout` (TVM's `FollowDecision`).
pub(crate) fn with_new_last_axes(layout: &Layout, ndim: usize) -> Option<Layout> {
    let own = Layout::initial(layout.letters().count())?;
    let all = Layout::initial(ndim)?;
    let (front, last) = all.text().split_at_checked(ndim.checked_sub(own.ndim())?)?;
    let shifted = layout.relettered(own.text(), last)?;
    Layout::parse(&format!("{front}{}", shifted.text())).ok()
}

/// Converts an axis to an attribute.
pub(crate) fn axis_attr(axis: usize) -> Attr {
    Attr::Int(i64::try_from(axis).unwrap_or(i64::MAX).into())
}

/// Converts a list of axes to an attribute.
pub(crate) fn axes_attr(axes: &[usize]) -> Attr {
    Attr::List(axes.iter().map(|axis| axis_attr(*axis)).collect())
}

/// Layout rule of unary elementwise operators: the result, or each field of a result tuple, has the layout of the first
/// operand (TVM's `InferLayoutUnaryEwise`).
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

/// Layout rule of operators along `axis` of the first operand, such as softmax and flip. The operand must not have
/// split axes; the result has its layout.
pub(crate) fn along_axis(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let operand = call.call.schema.params.first()?.name;
    let layout = call.whole(operand)?;
    along(call, layout, &[operand])
}

/// Layout rule of operators along `axis` whose operands have the same rank and all get the layout `layout`. The layout
/// must not split axes; the result also has it.
pub(crate) fn along(call: &LayoutCall<'_>, layout: Layout, operands: &[&'static str]) -> Option<LaidOut> {
    let axis = normalize_axis(call.call, "axis", layout.ndim(), call.call.int("axis")?).ok()?;
    let out = LaidOut::result(Laid::Tensor(layout.clone())).with("axis", axis_attr(place(&layout, axis)?));
    Some(operands.iter().fold(out, |out, operand| out.of(operand, &layout)))
}

#[cfg(test)]
mod tests {
    use super::{Laid, letter, places, with_new_last_axes};
    use crate::layout::Layout;
    use crate::tests::ty;
    use rx_base::name::name;
    use rx_ir::StructInfo;

    fn layout(text: &str) -> Layout {
        Layout::parse(text).unwrap_or_else(|why| panic!("{text} {why}"))
    }

    #[test]
    fn positions_of_axes_follow_the_layout() {
        let laid = layout("ACDB4b");
        assert_eq!((letter(0), letter(25), letter(26)), (Some('A'), Some('Z'), None));
        assert_eq!(places(&laid, &[2, 3, 0]), Some(vec![1, 2, 0]));
        // A split axis has no single position, although its outer part has one.
        assert_eq!(places(&laid, &[1]), None);
        assert_eq!(with_new_last_axes(&layout("BA"), 4), Some(layout("ABDC")));
        assert_eq!(with_new_last_axes(&layout("ABC"), 2), None);
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
    fn layouts_are_requested_by_attributes() {
        let wanted = |operator: &str, texts: &[&str]| {
            let schema = crate::find(name(operator)).unwrap_or_else(|| panic!("no operator {operator}"));
            let rule = schema.traits.layout.unwrap_or_else(|| panic!("{operator} has no rule"));
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
