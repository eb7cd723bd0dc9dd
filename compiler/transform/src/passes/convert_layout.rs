//! `ConvertLayout`: changes operators to the desired data layouts, and propagates the layouts through the operators
//! around them.
//!
//! ```text
//! ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})
//! y = R.nn.conv2d(x, w, data_layout="NCHW")
//! z = R.nn.relu(y)
//! →
//! lv = R.permute_dims(x, axes=[0, 2, 3, 1])
//! lv1 = R.permute_dims(w, axes=[0, 2, 3, 1])
//! y = R.nn.conv2d(lv, lv1, data_layout="NHWC", kernel_layout="OHWI", out_layout="NHWC")
//! lv2 = R.nn.relu(y)
//! z = R.permute_dims(lv2, axes=[0, 3, 1, 2])
//! ```
//!
//! Each operator's [`LayoutRule`](rx_ops::LayoutRule) decides which layouts its operands and results have. Operands of
//! operators without a rule are converted back to the layout of the source.
//!
//! Requires dataflow blocks; other bindings do not change. Guarantees that a variable that is used outside its block,
//! or by a nested function, keeps its layout. If a rule's result does not match the types, or the operator rejects the
//! new call, the operator keeps the layout of the source.
//!
//! Reference: TVM `src/relax/transform/convert_layout.cc`.

use crate::emit::{Emitter, rewrite_bindings};
use crate::pass::{Arguments, Parameter, Pass, PassError, each_function};
use crate::substitute::retyped;
use crate::{Module, make, walk};
use rx_base::edit_distance::nearest;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::symbolic::{Bounds, prove};
use rx_base::{Answer, Name};
use rx_ir::{
    Argument, Attr, BoundValue, Call, Callee, Expr, ExprKind, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use rx_ops::layout::{Conversion, Layout};
use rx_ops::{Arg, CallInfo, Laid, LaidOut, LayoutCall, Schema};
use serde_json::Value;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "ConvertLayout",
    parameters: &[
        Parameter {
            name: "desired_layouts",
            default: None,
            doc: "For operators the layouts of data, weight and, where it is another, result: \
                  `{\"relax.nn.conv2d\": [\"NHWC\", \"OHWI\"]}`.",
        },
        Parameter {
            name: "layout_cb",
            default: Some("null"),
            doc: "In Python a function that gives the layouts for a call; here there is none.",
        },
    ],
    doc: "Computes convolutions in other layouts, and adapts the operators around them to these layouts.",
    reference: "src/relax/transform/convert_layout.cc",
    run,
};

/// The desired layouts, by operator.
type Wanted = NameMap<Vec<Layout>>;

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let wrong = |message: &str| PassError(format!("ConvertLayout: {message}"));
    if *arguments.get(1) != Value::Null {
        return Err(wrong("`layout_cb` is a function of Python, which cannot be called"));
    }
    let wanted = wanted(arguments.get(0)).map_err(|message| wrong(&message))?;
    each_function(&mut module, PASS.name, |function| in_function(function, &wanted))?;
    Ok(module)
}

/// Parses `{"relax.nn.conv2d": ["NHWC", "OHWI"]}`.
fn wanted(given: &Value) -> Result<Wanted, String> {
    let entries = given.as_object().ok_or("`desired_layouts` is a dictionary of operators and lists of layouts")?;
    let read = entries.iter().map(|(operator, layouts)| {
        let schema = operator.strip_prefix("relax.").and_then(|own| rx_ops::find(name(own)));
        let schema = schema.ok_or_else(|| {
            let known: Vec<String> = rx_ops::all().map(|schema| format!("relax.{}", schema.name)).collect();
            let near = nearest(operator, known.iter().map(String::as_str));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            format!("there is no operator `{operator}`{hint}")
        })?;
        let texts: Option<Vec<&str>> = layouts.as_array().and_then(|texts| texts.iter().map(Value::as_str).collect());
        let texts = texts.ok_or_else(|| format!("the layouts of `{operator}` are a list of strings"))?;
        let rule =
            schema.traits.layout.ok_or_else(|| format!("`{operator}` takes its operands as typed, in no layout"))?;
        let layouts = rule.wanted(schema, &texts).map_err(|why| format!("`{operator}` {why}"))?;
        Ok((name(schema.name), layouts))
    });
    read.collect()
}

fn in_function(function: &mut RelaxFunction, wanted: &Wanted) -> Result<(), PassError> {
    let mut kept = NameSet::default();
    seen_outside(&function.body, &mut kept);
    let mut converter = Converter { wanted, kept, moved: NameMap::default() };
    rewrite_bindings(function, &mut |binding, emitter| match emitter.dataflow {
        true => converter.binding(binding, emitter),
        false => Ok(()),
    })
}

/// Collects the variables that are outputs of dataflow blocks, or that an `if` or a nested function uses.
fn seen_outside(sequence: &Sequence, found: &mut NameSet) {
    for block in &sequence.blocks {
        found.extend(block.outputs.iter().flatten().copied());
        for binding in &block.bindings {
            if let BoundValue::If(branches) = &binding.value {
                found.extend(branches.condition.variables());
            }
            for inner in binding.value.sequences() {
                walk::each_expression(inner, &mut |expr| found.extend(expr.variables()));
                seen_outside(inner, found);
            }
        }
    }
}

struct Converter<'a> {
    wanted: &'a Wanted,
    /// The variables that keep the layout of the source.
    kept: NameSet,
    /// The variables whose layout has changed or whose type has become more specific, with current type and layout.
    moved: NameMap<(Expr, Laid)>,
}

impl Converter<'_> {
    fn binding(&mut self, binding: &mut VarBinding, emitter: &mut Emitter<'_>) -> Result<(), PassError> {
        let VarBinding { variable, ty, value: BoundValue::Expr(value), .. } = binding else { return Ok(()) };
        let kept = self.kept.contains(variable);
        let (made, laid) = self.value(value, kept, emitter)?;
        let typed = Laid::initial(&value.ty);
        let made = match kept && laid != typed {
            true => {
                let moved = emitter.emit(made);
                let back = relaid(moved, &laid, &typed, emitter)?;
                emitter.unbound(back)
            }
            false => made,
        };
        // As in TVM, a more specific inferred type replaces the annotation of a variable that is used only inside the
        // block.
        let sharper = make::is_sharper(&made.ty, ty) && !kept;
        if made.ty != value.ty || sharper {
            *ty = made.ty.clone();
        }
        if !kept && (laid != typed || sharper) {
            self.moved.insert(*variable, (Expr::var(*variable, made.ty.clone()), laid));
        }
        *value = made;
        Ok(())
    }

    /// Converts a value to the current layouts of its operands, or an operator call to the layouts of its rule, and
    /// returns it with its own layout. A value that cannot take these layouts gets its operands in the layout of the
    /// source.
    fn value(&self, value: &Expr, kept: bool, emitter: &mut Emitter<'_>) -> Result<(Expr, Laid), PassError> {
        match &value.kind {
            ExprKind::Call(call) => match call.callee {
                Callee::Op(operator) => self.operator(operator, call, value, emitter),
                _ => self.as_typed(value, emitter),
            },
            ExprKind::Tuple(_) if !kept => Ok((self.current(value), self.laid(value))),
            ExprKind::TupleGet(tuple, at) => match self.laid(tuple) {
                Laid::Tuple(fields) => {
                    let laid = fields.get(*at).cloned().unwrap_or(Laid::AsTyped);
                    Ok((self.current(value), laid))
                }
                _ => self.as_typed(value, emitter),
            },
            ExprKind::MatchCast(inner) => {
                let laid = self.laid(inner);
                match laid.moved(&value.ty) {
                    Some(ty) if laid.suits(&value.ty) => {
                        Ok((Expr::new(ExprKind::MatchCast(Box::new(self.current(inner))), ty), laid))
                    }
                    _ => self.as_typed(value, emitter),
                }
            }
            _ => self.as_typed(value, emitter),
        }
    }

    /// Converts an operator call by the operator's rule. Falls back to the layout of the source if no rule applies, or
    /// if the converted call is invalid.
    fn operator(
        &self,
        operator: Name,
        call: &Call,
        value: &Expr,
        emitter: &mut Emitter<'_>,
    ) -> Result<(Expr, Laid), PassError> {
        let schema = rx_ops::find(operator);
        let planned = schema.and_then(|schema| Some((schema, self.planned(schema, call, &value.ty)?)));
        let Some((schema, planned)) = planned else { return self.as_typed(value, emitter) };
        let taken = emitter.taken();
        match self.call(schema, call, &planned, emitter) {
            Ok(made) if is_of(&planned.result, &value.ty, &made.ty) => Ok((made, planned.result)),
            _ => {
                emitter.give_back(taken);
                self.as_typed(value, emitter)
            }
        }
    }

    /// Applies the operator's layout rule to a call. Returns `None` if the operator has no rule, if the rank of an
    /// operand is unknown, if the rule declines the call, or if the layout of its result does not suit the type
    /// `result`.
    fn planned(&self, schema: &'static Schema, call: &Call, result: &StructInfo) -> Option<LaidOut> {
        let rule = schema.traits.layout?;
        let mut laid = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            laid.push(match argument {
                Argument::Operand(operand) if !is_ranked(&operand.ty) => return None,
                Argument::Operand(operand) => self.laid(operand),
                _ => Laid::AsTyped,
            });
        }
        let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
        let bounds = Bounds::default();
        let info = CallInfo::new(schema, &args, &bounds);
        let wanted = self.wanted.get(&name(schema.name)).map(Vec::as_slice);
        (rule.rule)(&LayoutCall { call: &info, result, laid: &laid, wanted }).filter(|out| out.result.suits(result))
    }

    /// Builds the call with its operands converted to the planned layouts.
    fn call(
        &self,
        schema: &Schema,
        call: &Call,
        planned: &LaidOut,
        emitter: &mut Emitter<'_>,
    ) -> Result<Expr, PassError> {
        let mut made = call.clone();
        for (param, argument) in schema.params.iter().zip(&mut made.arguments) {
            if let Some((_, new)) = planned.arguments.iter().find(|(of, _)| *of == param.name) {
                *argument = new.clone();
                continue;
            }
            if let Argument::Operand(operand) = argument {
                let to = planned.operands.iter().find(|(of, _)| *of == param.name);
                let to = to.map_or_else(|| Laid::initial(&operand.ty), |(_, laid)| laid.clone());
                *operand = relaid(self.current(operand), &self.laid(operand), &to, emitter)?;
            }
        }
        make::typed(made)
    }

    /// Returns a value whose operands are converted back to the layout of the source.
    fn as_typed(&self, value: &Expr, emitter: &mut Emitter<'_>) -> Result<(Expr, Laid), PassError> {
        let mut made = value.clone();
        let mut problem = None;
        let mut restore = |operand: &mut Expr| match relaid(
            self.current(operand),
            &self.laid(operand),
            &Laid::initial(&operand.ty),
            emitter,
        ) {
            Ok(restored) => *operand = restored,
            Err(error) => problem = Some(error),
        };
        match &value.kind {
            ExprKind::Var(_) => restore(&mut made),
            _ => made.each_child_mut(&mut restore),
        }
        problem.map_or(Ok((made, Laid::initial(&value.ty))), Err)
    }

    /// Returns the current layout of an operand.
    fn laid(&self, operand: &Expr) -> Laid {
        match &operand.kind {
            ExprKind::Tuple(fields) => Laid::Tuple(fields.iter().map(|field| self.laid(field)).collect()),
            ExprKind::Var(variable) => {
                self.moved.get(variable).map_or_else(|| Laid::initial(&operand.ty), |(_, laid)| laid.clone())
            }
            _ => Laid::initial(&operand.ty),
        }
    }

    /// Returns an operand with the current types of its variables.
    fn current(&self, operand: &Expr) -> Expr {
        retyped(operand, &|variable| self.moved.get(&variable).map(|(current, _)| current.clone()))
    }
}

/// Whether a type is known and all tensors in it have a known rank.
fn is_ranked(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tensor(tensor) => tensor.shape.ndim().is_some(),
        StructInfo::Tuple(fields) => fields.iter().all(is_ranked),
        StructInfo::Error => false,
        _ => true,
    }
}

/// Whether the ranks and dims of `made` fit a value of type `typed` in the layout `laid`. Always true for
/// [`Laid::AsTyped`].
fn is_of(laid: &Laid, typed: &StructInfo, made: &StructInfo) -> bool {
    let dims = |ty: &StructInfo| ty.as_tensor().and_then(|tensor| tensor.shape.dims().map(<[_]>::to_vec));
    match (laid, typed, made) {
        (Laid::Tuple(laid), StructInfo::Tuple(typed), StructInfo::Tuple(made)) => {
            let fields = laid.iter().zip(typed.iter()).zip(made.iter());
            made.len() == laid.len() && fields.into_iter().all(|((laid, typed), made)| is_of(laid, typed, made))
        }
        (Laid::Tensor(layout), _, StructInfo::Tensor(tensor)) => {
            let wanted = laid.moved(typed).as_ref().and_then(dims).zip(dims(made));
            let agree = wanted.is_none_or(|(wanted, made)| {
                let differ = |(a, b)| prove::equal(a, b, &Bounds::default()) == Answer::Refuted;
                wanted.len() == made.len() && !wanted.iter().zip(&made).any(differ)
            });
            tensor.shape.ndim() == Some(layout.ndim()) && agree
        }
        (Laid::AsTyped, ..) => true,
        _ => false,
    }
}

/// Emits the conversion of a value from the layout `from` to the layout `to`, and returns the converted value.
///
/// # Errors
/// There is no conversion from `from` to `to`, or `permute_dims` or `layout_transform` rejects it.
fn relaid(value: Expr, from: &Laid, to: &Laid, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
    match (from, to) {
        _ if from == to => Ok(value),
        (Laid::Tensor(from), Laid::Tensor(to)) => {
            let conversion = from.conversion(to, &|axis, _| format!("i{axis}"));
            let conversion =
                conversion.ok_or_else(|| PassError(format!("layout {} does not become {}", from.text(), to.text())))?;
            let x = ("x", Argument::Operand(value));
            match conversion {
                Conversion::Permuted(axes) => {
                    let axis = |axis: usize| Attr::Int(i64::try_from(axis).unwrap_or(i64::MAX).into());
                    let axes = Argument::Attr(Attr::List(axes.into_iter().map(axis).collect()));
                    emitter.call("permute_dims", vec![x, ("axes", axes)])
                }
                Conversion::Mapped(lambda) => {
                    let map = Argument::Attr(Attr::Opaque(format!("T.index_map({lambda})").into()));
                    emitter.call("layout_transform", vec![x, ("index_map", map)])
                }
            }
        }
        (Laid::Tuple(from), Laid::Tuple(to)) if from.len() == to.len() => {
            let fields = from.iter().zip(to).enumerate().map(|(at, (from, to))| {
                let field = field(&value, at, emitter);
                relaid(field, from, to, emitter)
            });
            Ok(Expr::tuple(fields.collect::<Result<_, _>>()?))
        }
        _ => Err(PassError("a value has another layout than its type".to_owned())),
    }
}

/// Returns a field of a tuple: the field itself if the tuple is written out, otherwise a variable bound to it.
fn field(value: &Expr, at: usize, emitter: &mut Emitter<'_>) -> Expr {
    match &value.kind {
        ExprKind::Tuple(fields) => fields.get(at).cloned().unwrap_or_else(|| value.clone()),
        _ => {
            let ty = value.ty.as_tuple().and_then(|fields| fields.get(at)).cloned().unwrap_or(StructInfo::Error);
            emitter.emit(Expr::new(ExprKind::TupleGet(Box::new(value.clone()), at), ty))
        }
    }
}
