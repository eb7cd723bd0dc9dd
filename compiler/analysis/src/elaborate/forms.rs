//! Parameters of the forms of `R` that are not operators and so have no schema: types such as `R.Tensor`, and functions
//! such as `R.const` and `R.match_cast`. Checks, signature help and completion read the same tables.

use super::checker::Checker;
use rx_base::edit_distance::nearest;
use rx_base::{Code, counted};
use rx_syntax::Cursor;
use rx_syntax::ast::{Argument, ExprKind, TokenRange};

use crate::entry::{mistake, replace_fix};

/// A form of `R` that is not an operator: a type or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Its name without `R.`: `match_cast`.
    pub name: &'static str,
    /// Its description, as one sentence.
    pub doc: &'static str,
    /// Its parameters, by position.
    pub params: &'static [FormParam],
}

/// A parameter of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormParam {
    /// Its name in TVM 0.27.
    pub name: &'static str,
    /// Its classic name, if that is another one.
    pub classic: Option<&'static str>,
    /// Its default value in Python syntax; `None` if the argument is required.
    pub default: Option<&'static str>,
    /// Its description.
    pub doc: &'static str,
}

impl FormParam {
    /// Returns the parameter in Python syntax: `ndim=-1`.
    pub fn text(&self) -> String {
        match self.default {
            Some(default) => format!("{}={default}", self.name),
            None => self.name.to_owned(),
        }
    }
}

impl Form {
    /// Returns the index of the parameter with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name || param.classic == Some(name))
    }
}

/// Finds a form by its name without `R.`.
pub fn form(name: &str) -> Option<&'static Form> {
    const TYPES: &[Form] = &[TENSOR, DTENSOR, SHAPE, PRIM, CALLABLE];
    let name = if name == "dist.DTensor" { "DTensor" } else { name };
    TYPES.iter().chain(FUNCTIONS).find(|form| form.name == name)
}

const fn required(name: &'static str, doc: &'static str) -> FormParam {
    FormParam { name, classic: None, default: None, doc }
}

const fn optional(name: &'static str, default: &'static str, doc: &'static str) -> FormParam {
    FormParam { name, classic: None, default: Some(default), doc }
}

const DIMS: FormParam =
    optional("shape", "None", "The dims, for example `(n, 64)`, or a shape variable; without it the shape is unknown.");
const DTYPE: FormParam = optional("dtype", "None", "The element type, for example `\"float32\"`.");
const VDEVICE: FormParam = optional("vdevice", "None", "The virtual device, for example `\"cuda:0\"`.");
const NDIM: FormParam = optional("ndim", "-1", "The number of dims of an unknown shape; -1 if it is unknown, too.");
const TYPE: FormParam = FormParam {
    name: "ty",
    classic: Some("struct_info"),
    default: None,
    doc: "The type, for example `R.Tensor((n, 4))`.",
};

/// The type `R.Tensor` (TVM `script/parser/relax/entry.py`).
pub(super) const TENSOR: Form =
    Form { name: "Tensor", doc: "The type of a tensor.", params: &[DIMS, DTYPE, VDEVICE, NDIM] };

/// The type `R.DTensor` (TVM `script/parser/relax/entry.py`).
pub(super) const DTENSOR: Form = Form {
    name: "DTensor",
    doc: "The type of a tensor that is distributed over a device mesh.",
    params: &[
        DIMS,
        DTYPE,
        optional("device_mesh", "None", "The device mesh, for example `\"mesh[0]\"`."),
        optional("placement", "\"\"", "For each axis of the mesh, `R` (replicated) or `S[axis]` (split)."),
        NDIM,
        VDEVICE,
    ],
};

/// The type `R.Shape` (TVM `script/parser/relax/entry.py`).
pub(super) const SHAPE: Form = Form {
    name: "Shape",
    doc: "The type of a shape.",
    params: &[optional("values", "None", "The dims, for example `[n, 64]`."), NDIM],
};

/// The type `R.Prim` (TVM `script/parser/relax/entry.py`).
pub(super) const PRIM: Form = Form {
    name: "Prim",
    doc: "The type of a scalar that is known at compile time or symbolic.",
    params: &[DTYPE, optional("value", "None", "The value, for example `n + 1`.")],
};

/// The type `R.Callable` (TVM `script/parser/relax/entry.py`).
pub(super) const CALLABLE: Form = Form {
    name: "Callable",
    doc: "The type of a function.",
    params: &[
        optional("params", "None", "The types of the parameters, as a tuple; without it they are unknown."),
        optional("ret", "None", "The type of the result."),
        optional("purity", "None", "Whether calls have no side effects."),
        optional("derive_func", "None", "The function that infers the type of the result."),
    ],
};

/// The functions (TVM `script/parser/relax/entry.py`).
const FUNCTIONS: &[Form] = &[
    Form {
        name: "const",
        doc: "A constant tensor.",
        params: &[
            required("value", "A number, or nested lists of numbers."),
            optional("dtype", "None", "The element type; by default that of the value, with 32 bits."),
        ],
    },
    Form { name: "shape", doc: "A shape.", params: &[required("value", "The dims, for example `[n, 64]`.")] },
    Form { name: "str", doc: "A string.", params: &[required("value", "The string.")] },
    Form { name: "dtype", doc: "A dtype as a value.", params: &[required("value", "The dtype's name.")] },
    Form {
        name: "prim_value",
        doc: "A scalar that is known at compile time or symbolic.",
        params: &[required("value", "The value, for example `n + 1`.")],
    },
    Form {
        name: "match_cast",
        doc: "A cast that is checked when the program runs; it binds the symbolic dims of the type that are new.",
        params: &[required("value", "The value to cast."), TYPE],
    },
    Form {
        name: "ExternFunc",
        doc: "A function of the runtime, by its global name.",
        params: &[
            required("global_symbol", "The global name."),
            FormParam { default: Some("None"), ..TYPE },
            optional("span", "None", "The source position, which is ignored."),
        ],
    },
];

impl Checker<'_> {
    /// Reports arguments that the form `function` does not take. The elaboration of the form reports missing ones.
    pub(super) fn check_form(&mut self, cursor: Cursor<'_>, arguments: &[Argument], function: &str) {
        let Some(form) = FUNCTIONS.iter().find(|form| form.name == function) else { return };
        if arguments.iter().any(|argument| matches!(argument.value.kind, ExprKind::Starred { .. })) {
            return;
        }
        for (at, argument) in arguments.iter().enumerate() {
            let before = self.diagnostics.len();
            match argument.keyword {
                Some(keyword) => self.check_form_keyword(cursor, keyword, form),
                None if at >= form.params.len() => {
                    let most = counted(form.params.len(), "argument");
                    let place = cursor.span(argument.value.tokens);
                    let message = format!("{function}: takes at most {most}, more are passed");
                    self.error(Code::TooManyArguments, place, message);
                }
                None => {}
            }
            self.offer_removal(before, cursor, arguments, at);
        }
    }

    fn check_form_keyword(&mut self, cursor: Cursor<'_>, keyword: u32, form: &Form) {
        let written = cursor.text(keyword);
        if form.position(written).is_some() {
            return;
        }
        let function = form.name;
        let place = cursor.span(TokenRange::one(keyword));
        let message = format!("{function}: there is no argument `{written}`");
        let mut diagnostic = mistake(Code::UnknownArgument, place, message);
        if let Some(near) = nearest(written, form.params.iter().map(|param| param.name)) {
            let fix = replace_fix(place, format!("change to {near}"), near);
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?")).with_fix(fix);
        }
        self.report(diagnostic);
    }
}
