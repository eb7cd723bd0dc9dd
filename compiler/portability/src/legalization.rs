//! Calls that the default pipelines of a release do not lower, and nested functions, which they do not lift.

use super::call_spans::call_at;
use super::{Look, Site};
use rx_base::{Code, Diagnostic, Fix, Span};
use rx_context::ItemPlace;
use rx_ir::{Argument, Expr, Function, StructInfo};
use rx_ops::tvm::{Instead, Lowering, lowering};
use rx_ops::{CallInfo, Param};

/// Type information that is required to generate a kernel, but is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Shape,
    Dtype,
}

impl Look<'_> {
    /// Reports a call that is not lowered. `ty` is the declared type of the binding, which users of the result see.
    pub(super) fn legalization(&mut self, site: &Site<'_>, info: &CallInfo<'_>, ty: &StructInfo) {
        let result = || Some((site.span, missing(ty)?, "its result".to_owned()));
        match lowering(self.version, info) {
            Lowering::Never(why, instead) => self.never_lowered(site, why, instead),
            Lowering::Kernel if matches!(ty, StructInfo::Prim(_)) => {
                self.never_lowered(site, "a kernel computes tensors, and this is a scalar", None);
            }
            Lowering::Kernel => self.unknown(site, missing_operand(site).or_else(result)),
            Lowering::DataDependent => self.unknown(site, missing_operand(site)),
            Lowering::Filled(with) => self.unknown(site, missing_of_filled(site, with, ty)),
            Lowering::HostOnly(why) => {
                let message = format!("TVM {} cannot build {} for CUDA: {why}", self.version, site.operator);
                let diagnostic = Diagnostic::new(Code::OperatorNotLegalized, self.place(site.span), message);
                self.found
                    .push(diagnostic.with_help("the CPU build works; for CUDA, write it with `R.sort` or `R.topk`"));
            }
            Lowering::Builtin => {}
        }
        if let Some(name) = rx_ops::tvm::written_shape(self.version, site.operator)
            && all_shapes(site)
            && missing(ty) != Some(Missing::Shape)
        {
            if lowering(self.version, info) == Lowering::Builtin {
                self.unknown(site, missing_operand(site).or_else(result));
            }
            self.unwritten_shape(site, name);
        }
    }

    /// Reports a shape operand that is a variable (for example a parameter) instead of an `R.shape(…)` written in the
    /// function.
    fn unwritten_shape(&mut self, site: &Site<'_>, name: &str) {
        let Some(Expr { kind: rx_ir::ExprKind::Var(variable), ty: StructInfo::Shape(shape), span }) =
            site.operand(name)
        else {
            return;
        };
        let Some(dims) = shape.written_dims().filter(|_| !self.shapes.contains(variable)) else { return };
        let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
        let new = format!("R.shape([{}])", dims.join(", "));
        let title = format!("write `{new}`");
        let message = format!(
            "TVM {} lowers {} to a shape written in the function only, not to `{variable}`",
            self.version, site.operator
        );
        self.found.push(
            Diagnostic::new(Code::OperatorNotLegalized, self.place(*span), message)
                .with_help(title.clone())
                .with_fix(Fix { title, edits: vec![(self.place(*span), new)], safe: true }),
        );
    }

    fn never_lowered(&mut self, site: &Site<'_>, why: &str, instead: Option<Instead>) {
        let message = format!("TVM {} does not lower {}: {why}", self.version, site.operator);
        let mut diagnostic = Diagnostic::new(Code::OperatorNotLegalized, self.place(site.span), message);
        let text = |operand: &Expr| self.segment.text().get(operand.span.range()).map(str::to_owned);
        let new = instead.and_then(|instead| match instead {
            Instead::Operand(name) => text(site.operand(name)?),
            Instead::Composed { outer, inner } => match site.call.arguments.as_slice() {
                [Argument::Operand(first), Argument::Operand(second), Argument::Operand(third)] => {
                    let (first, second, third) = (text(first)?, text(second)?, text(third)?);
                    Some(format!("R.{outer}(R.{inner}({first}, {second}), {third})"))
                }
                _ => None,
            },
        });
        diagnostic = match new {
            Some(new) => {
                let title = format!("write `{new}`");
                let fix = Fix { title: title.clone(), edits: vec![(self.place(site.span), new)], safe: false };
                diagnostic.with_help(title).with_fix(fix)
            }
            None => diagnostic.with_help("write it with other operators, or route it to an external code generator"),
        };
        self.found.push(diagnostic);
    }

    fn unknown(&mut self, site: &Site<'_>, found: Option<(Span, Missing, String)>) {
        let Some((span, missing, subject)) = found else { return };
        let (fact, rest) = match missing {
            Missing::Shape => ("shape", "every dim of the arguments and the result"),
            Missing::Dtype => ("dtype", "the dtype of the arguments and the result"),
        };
        self.found.push(
            Diagnostic::new(
                Code::OperatorNotLegalized,
                self.place(span),
                format!("TVM {} cannot lower {}: the {fact} of {subject} is not known", self.version, site.operator),
            )
            .with_note(format!("a kernel is generated from {rest}"))
            .with_help(
                "state it in the signature, or with `R.match_cast(value, R.Tensor((m, n), dtype=\"float32\"))`, which \
                 may introduce new symbols",
            ),
        );
    }

    /// Reports a nested function: the default pipelines do not lift it (`LambdaLift` is not among their passes).
    pub(super) fn nested_function(&mut self, function: &Function, origin: u32) {
        let statement = self.segment.tree().statements.get(origin as usize);
        let Some(statement) = statement else { return };
        let message = format!(
            "TVM {} does not build `{}`: its default pipeline lifts no nested functions",
            self.version, function.name
        );
        self.found.push(
            Diagnostic::new(Code::OperatorNotLegalized, self.place(statement.span), message)
                .with_note("VMShapeLower says `do not work for local functions, make sure to run it after LambdaLift`")
                .with_help(
                    "make it a function of the module and pass the values that it captures, or run \
                     `relax.transform.LambdaLift()` before the build",
                ),
        );
    }
}

/// Returns the first operand whose type is not known well enough to generate a kernel: its span, the missing
/// information and its name.
fn missing_operand(site: &Site<'_>) -> Option<(Span, Missing, String)> {
    for (argument, param) in site.call.arguments.iter().zip(site.params) {
        let operands: &[Expr] = match argument {
            Argument::Operand(operand) => std::slice::from_ref(operand),
            Argument::Operands(operands) => operands,
            _ => continue,
        };
        for operand in operands {
            if let Some(missing) = missing(&operand.ty) {
                return Some((operand.span, missing, subject(param, operand)));
            }
        }
    }
    None
}

/// Whether the shapes of all operands are known.
fn all_shapes(site: &Site<'_>) -> bool {
    super::operands(site.call).all(|operand| missing(&operand.ty) != Some(Missing::Shape))
}

/// Returns the missing type information of a call that fills a tensor with the operand named `with`.
fn missing_of_filled(site: &Site<'_>, with: &str, ty: &StructInfo) -> Option<(Span, Missing, String)> {
    for (argument, param) in site.call.arguments.iter().zip(site.params) {
        let Argument::Operand(operand) = argument else { continue };
        let found = match &operand.ty {
            StructInfo::Shape(shape) => shape.ndim().is_none().then_some(Missing::Shape),
            ty if param.name == with && !matches!(operand.kind, rx_ir::ExprKind::Constant(_)) => missing(ty),
            _ => None,
        };
        if let Some(found) = found {
            return Some((operand.span, found, subject(param, operand)));
        }
    }
    let unknown = missing(ty).filter(|found| *found == Missing::Dtype)?;
    Some((site.span, unknown, "its result".to_owned()))
}

/// Names a parameter and the variable passed for it: `` `x` (`scores`) ``.
fn subject(param: &Param, operand: &Expr) -> String {
    match operand.variable_text() {
        Some(variable) if variable != param.name => format!("`{}` (`{variable}`)", param.name),
        _ => format!("`{}`", param.name),
    }
}

/// Returns the information in a type that a kernel needs but that is not known (`KnowAllShapeValues` of
/// src/relax/transform/legalize_ops.cc).
fn missing(ty: &StructInfo) -> Option<Missing> {
    match ty {
        StructInfo::Tensor(tensor) => match (&tensor.shape, tensor.dtype) {
            (rx_ir::Shape::Error, _) => None,
            (shape, _) if shape.written_dims().is_none() => Some(Missing::Shape),
            (_, None) if !tensor.dtype_error => Some(Missing::Dtype),
            _ => None,
        },
        StructInfo::Shape(shape) => shape.written_dims().is_none().then_some(Missing::Shape),
        StructInfo::Tuple(fields) => fields.iter().find_map(missing),
        StructInfo::Object => Some(Missing::Shape),
        _ => None,
    }
}

impl Look<'_> {
    /// Returns the place of an argument, or of the call if the argument is omitted.
    pub(super) fn argument_place(&self, site: &Site<'_>, name: &str) -> ItemPlace {
        let position = site.params.iter().position(|param| param.name == name);
        let written = call_at(self.segment, site.span).and_then(|written| written.argument(name, position));
        self.place(written.unwrap_or(site.span))
    }
}
