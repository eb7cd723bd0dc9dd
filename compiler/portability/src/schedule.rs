//! Calls for which a schedule rule of a release fails when it builds for CUDA.

use super::call_spans::call_at;
use super::{Look, Site, Uses};
use rx_base::{Code, Diagnostic, Fix, Name, Span};
use rx_context::ItemPlace;
use rx_ir::{Argument, Attr, StructInfo};
use rx_ops::CallInfo;
use rx_ops::tvm::{ScheduleFailure, schedule_failure};

/// A failure that depends on the uses of the call's result.
pub(super) struct Candidate {
    /// The variable that the result is bound to, or `None` for a call nested in another expression.
    pub variable: Option<Name>,
    /// Whether the rule succeeds if all uses are elementwise operators, which are then fused into the kernel.
    pub joined_away: bool,
    pub diagnostic: Diagnostic<ItemPlace>,
}

impl Candidate {
    /// Whether the rule fails for this kernel. Calls whose result is unused are removed before scheduling.
    pub fn counts(&self, uses: &Uses) -> bool {
        let Some(variable) = self.variable else { return true };
        let Some(by) = uses.by.get(&variable) else { return false };
        let joined = self.joined_away
            && !uses.visible.contains(&variable)
            && by.iter().all(|operator| operator.is_some_and(rx_ops::tvm::is_elementwise));
        !joined
    }
}

impl Look<'_> {
    /// Records a call for which a schedule rule fails.
    pub(super) fn schedule(&mut self, site: &Site<'_>, info: &CallInfo<'_>, variable: Option<Name>) {
        let Some(failure) = schedule_failure(self.version, info) else { return };
        let said = |why: String| format!("TVM {} cannot build {} for CUDA: {why}", self.version, site.operator);
        let at_call = |why: String| Diagnostic::new(Code::ScheduleRuleFails, self.place(site.span), said(why));
        let diagnostic = match &failure {
            ScheduleFailure::Int8TensorCores { extents: [rows, columns, summed] } => {
                let why = format!("rule Matmul fails on {rows}×{columns}×{summed} products of int8 summed in int32");
                at_call(why).with_note(
                    "with rows, columns and summed extent above 64 it takes int8 tensor cores; `fragment_info_` fails",
                )
            }
            ScheduleFailure::NothingSummed => {
                at_call("rule GEMV fails, as nothing is summed: every reduction has extent 1".to_owned())
                    .with_note("`assert r_loops` in dlight/analysis/gemv.py")
            }
            ScheduleFailure::NoRows => {
                at_call("rule GEMV fails, as no loop runs over results of one factor alone".to_owned())
                    .with_note("`assert s_loops` in dlight/analysis/gemv.py")
            }
            ScheduleFailure::Tiles { extents: [outer, inner] } => {
                let why =
                    format!("rule GEMV computes 16 results at once, and {outer} rows of {inner} do not fall into 16s");
                at_call(why).with_note(
                    "it works where 16 divides the inner extent or is divided by it, or where there are at most 16 results",
                )
            }
            ScheduleFailure::VectorFactor => at_call("rule GEMV fails on a factor of one axis".to_owned())
                .with_note("it fuses two loops of the copy of the factor, which has one: `fuse` fails"),
            ScheduleFailure::FusedResults { extents } => {
                let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
                let why = format!(
                    "rule Reduction fails on a sum that keeps its innermost axis, with results of {}",
                    extents.join("×")
                );
                at_call(why).with_note(
                    "it works where at most two extents beyond 1 are kept, not counting an innermost one of at most 16",
                )
            }
            ScheduleFailure::ScalarEpilogue => {
                at_call("rule Reduction fails on a kernel with a sum over all axes and a step after it".to_owned())
                    .with_note(
                        "`block_realize == old_block_realize_` fails: without an axis the two have no loop in common",
                    )
            }
            ScheduleFailure::SplitChannels => {
                let why = "rule Reduction splits the output channels by group inside a sum across threads".to_owned();
                let message = said(why);
                Diagnostic::new(Code::ScheduleRuleFails, self.argument_place(site, "groups"), message).with_note(
                    "it does so where the sum is innermost in memory, nothing is padded, and a group has several output channels",
                )
            }
        };
        let diagnostic = match self.instead(site, info, &failure) {
            Some(fix) => diagnostic.with_help(fix.title.clone()).with_fix(fix),
            None => diagnostic.with_help(match failure {
                ScheduleFailure::SplitChannels => {
                    "split data and weight by group with `R.split`, convolve each, and join with `R.concat`"
                }
                ScheduleFailure::VectorFactor => {
                    "multiply by a matrix of one column, `R.expand_dims(w, axis=[1])`, and squeeze the result"
                }
                ScheduleFailure::FusedResults { .. } if matches!(site.operator, "sum" | "mean") => {
                    "the CPU build works; for CUDA, join the kept axes with `R.reshape` before the sum"
                }
                ScheduleFailure::FusedResults { .. } => {
                    "the CPU build works; for CUDA, pool with the channels before the spatial axes"
                }
                _ => "the CPU build works; for CUDA, reshape the operands so that another rule takes it",
            }),
        };
        let joined_away = failure == ScheduleFailure::NothingSummed;
        self.candidates.push(Candidate { variable, joined_away, diagnostic });
    }

    /// Returns a fix that computes the same in a way that no rule fails for.
    fn instead(&self, site: &Site<'_>, info: &CallInfo<'_>, failure: &ScheduleFailure) -> Option<Fix<ItemPlace>> {
        if *failure == ScheduleFailure::ScalarEpilogue {
            return self.kept_axes(site);
        }
        let names = if site.operator == "matmul" { ["x1", "x2"] } else { ["data", "weight"] };
        let [left, right] = [site.operand(names[0])?, site.operand(names[1])?];
        let text = |span: Span| self.segment.text().get(span.range());
        let (a, b) = (text(left.span)?, text(right.span)?);
        let whole = |title: &str, new: String| Fix {
            title: title.to_owned(),
            edits: vec![(self.place(site.span), new)],
            safe: true,
        };
        match failure {
            ScheduleFailure::Int8TensorCores { .. } => {
                let cast = |span: Span| {
                    let before = (self.place(Span::empty(span.start)), "R.astype(".to_owned());
                    [before, (self.place(Span::empty(span.end)), ", dtype=\"int32\")".to_owned())]
                };
                let edits = [cast(left.span), cast(right.span)].into_iter().flatten().collect();
                Some(Fix { title: "cast both factors to int32".to_owned(), edits, safe: true })
            }
            ScheduleFailure::NothingSummed if site.operator == "matmul" => {
                let matrices =
                    [left, right].iter().all(|it| it.ty.as_tensor().and_then(|it| it.shape.ndim()) >= Some(2));
                (matrices && same_dtype(info, &left.ty))
                    .then(|| whole("multiply with `R.multiply`", format!("R.multiply({a}, {b})")))
            }
            ScheduleFailure::NothingSummed => {
                let axes = depthwise_axes(site)?;
                (same_dtype(info, &left.ty)).then(|| {
                    let new = format!("R.multiply({a}, R.permute_dims({b}, axes={axes}))");
                    whole("multiply with `R.multiply`: the kernel is one number per channel", new)
                })
            }
            ScheduleFailure::Tiles { .. } if site.operator == "matmul" => {
                let StructInfo::Tensor(result) = (info.schema.infer)(info).ok()? else { return None };
                let dims = left.ty.as_tensor()?.shape.dims()?;
                if right.ty.as_tensor()?.shape.ndim()? > 2 {
                    return None;
                }
                let (last, rows) = dims.split_last()?;
                let rows = rows.iter().try_fold(1i64, |product, dim| product.checked_mul(dim.as_constant()?))?;
                let shape: Vec<String> = result.shape.dims()?.iter().map(ToString::to_string).collect();
                let new = format!(
                    "R.reshape(R.matmul(R.reshape({a}, R.shape([{rows}, {last}])), {b}{}), R.shape([{}]))",
                    info.str("out_dtype").map_or(String::new(), |dtype| format!(", out_dtype=\"{dtype}\"")),
                    shape.join(", ")
                );
                Some(whole("multiply as one matrix", new))
            }
            _ => None,
        }
    }
}

impl Look<'_> {
    /// Returns a fix for a full reduction: keep the reduced axes and reshape the result to a scalar.
    fn kept_axes(&self, site: &Site<'_>) -> Option<Fix<ItemPlace>> {
        let position = site.params.iter().position(|param| param.name == "keepdims")?;
        let written = call_at(self.segment, site.span)?;
        let keepdims = match written.argument("keepdims", Some(position)) {
            Some(given) => (self.place(given), "True".to_owned()),
            None => {
                let last = written.cursor.span(written.arguments.last()?.value.tokens);
                (self.place(Span::empty(last.end)), ", keepdims=True".to_owned())
            }
        };
        let before = (self.place(Span::empty(site.span.start)), "R.reshape(".to_owned());
        let after = (self.place(Span::empty(site.span.end)), ", R.shape([]))".to_owned());
        let title = "keep the axes and reshape to a scalar".to_owned();
        Some(Fix { title, edits: vec![before, keepdims, after], safe: true })
    }
}

/// Whether the result has the dtype of the operand.
fn same_dtype(info: &CallInfo<'_>, operand: &StructInfo) -> bool {
    let given = operand.as_tensor().and_then(|tensor| tensor.dtype);
    info.dtype("out_dtype").is_none_or(|wanted| Some(wanted) == given)
}

/// Returns the permutation of a depthwise convolution's weight that aligns its channel axis with that of the data, so
/// that the two can be multiplied elementwise. Returns `None` unless stride is 1 and padding is 0. For example, a
/// weight `(C, 1, 1, 1)` in `OIHW` and data in `NCHW` give `[1, 0, 2, 3]`.
fn depthwise_axes(site: &Site<'_>) -> Option<String> {
    let all = |name: &str, wanted: i64| match site.argument(name) {
        Some(Argument::Attr(Attr::List(items))) => items.iter().all(|item| item.as_int() == Some(wanted)),
        Some(Argument::Attr(attr)) => attr.as_int() == Some(wanted),
        _ => false,
    };
    if !all("strides", 1) || !all("padding", 0) {
        return None;
    }
    let (data, kernel) = (site.text("data_layout")?, site.text("kernel_layout")?);
    let extent = |name: &str, axis: usize| site.operand(name)?.ty.as_tensor()?.shape.dims()?.get(axis)?.as_constant();
    // The axis of the weight that indexes the result's channels. In a transposed convolution with one output channel
    // per group, that is the input axis.
    let transposed = site.operator.ends_with("_transpose");
    let outputs = match transposed && extent("weight", kernel.find('O')?)? == 1 {
        true => kernel.find('I')?,
        false => kernel.find('O')?,
    };
    let channels = data.find('C')?;
    let given = extent("data", channels)?;
    if given != 1 && given != extent("weight", outputs)? {
        return None;
    }
    let mut others = (0..kernel.len()).filter(|axis| *axis != outputs);
    let axes: Option<Vec<String>> = (0..data.len())
        .map(|axis| if axis == channels { Some(outputs) } else { others.next() })
        .map(|axis| axis.map(|axis| axis.to_string()))
        .collect();
    Some(format!("[{}]", axes?.join(", ")))
}
