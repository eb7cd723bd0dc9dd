//! Reads the axes of blocks: `T.axis.remap`, `T.axis.spatial` and the other kinds.

use super::statement::Step;
use super::trace::{Event, TracedAxis};
use super::value::Value;
use super::{Outcome, Reader};
use rx_base::{Code, DType, Name};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, TokenRange};
use rx_syntax::{At, Cursor};
use rx_tir::{Expr, Iter, IterKind};

impl Reader<'_> {
    /// Reads an assignment that defines axes of a block, such as `vi, vj = T.axis.remap("SR", [i, j])` or
    /// `vi = T.axis.spatial(n, i)`, or that unpacks a list or tuple: `a, b = items`.
    pub(super) fn assign_axes(&mut self, cursor: Cursor<'_>, target: &Tree, value: &Tree) -> Outcome<Step> {
        let targets: Vec<&Tree> = match &target.kind {
            ExprKind::Tuple(targets) | ExprKind::List(targets) => targets.iter().collect(),
            _ => vec![target],
        };
        let member = match &value.kind {
            ExprKind::Call { callee, .. } => self.tir_member(cursor, callee),
            _ => None,
        };
        let (Some(member), ExprKind::Call { arguments, .. }) = (member, &value.kind) else {
            return self.assign_items(cursor, &targets, value);
        };
        let Some(axis) = member.strip_prefix("axis.") else { return self.assign_items(cursor, &targets, value) };
        if targets.iter().any(|target| !matches!(target.kind, ExprKind::Name)) {
            return self.unsupported(cursor.at(target.tokens), "axes bound to anything other than a name");
        }
        let names: Vec<(Name, TokenRange)> =
            targets.iter().map(|target| (cursor.name(target.tokens.start), target.tokens)).collect();
        if self.frames.is_empty() {
            return self.mistake(cursor.at(value.tokens), Code::MisplacedStatement, "`T.axis` must be inside a block");
        }
        match axis {
            "remap" => self.remap(cursor.at(value.tokens), &names, arguments)?,
            "spatial" => self.axis(cursor.at(value.tokens), &names, IterKind::Spatial, arguments)?,
            "reduce" => self.axis(cursor.at(value.tokens), &names, IterKind::Reduce, arguments)?,
            "scan" | "opaque" => self.axis(cursor.at(value.tokens), &names, IterKind::Ordered, arguments)?,
            other => return self.unsupported(cursor.at(value.tokens), &format!("`T.axis.{other}`")),
        }
        Ok(Step::NOTHING)
    }

    /// Reads `a, b = items`.
    fn assign_items(&mut self, cursor: Cursor<'_>, targets: &[&Tree], value: &Tree) -> Outcome<Step> {
        match self.value(cursor, value)? {
            Value::Many(items) if items.len() == targets.len() => {
                for (target, item) in targets.iter().zip(items) {
                    let ExprKind::Name = target.kind else {
                        return self.unsupported(cursor.at(target.tokens), "an assignment to this");
                    };
                    self.bind(cursor.name(target.tokens.start), item);
                }
                Ok(Step::NOTHING)
            }
            _ => self.unsupported(cursor.at(value.tokens), "this value for several variables"),
        }
    }

    fn remap(&mut self, at: At<'_>, names: &[(Name, TokenRange)], arguments: &[Argument]) -> Outcome<()> {
        let [kinds, bindings, ..] = arguments else {
            return self.mistake(at, Code::MissingArgument, "`T.axis.remap` requires kinds and loops");
        };
        let letters = at.cursor.string_value(&kinds.value).unwrap_or_default();
        let Value::Many(bindings) = self.value(at.cursor, &bindings.value)? else {
            return self.mistake(at, Code::ArgumentType, "`T.axis.remap` requires a list of loops");
        };
        if letters.chars().count() != bindings.len() || names.len() != bindings.len() {
            let message = format!(
                "`T.axis.remap` requires equal numbers of axes, kinds and loops; found {}, {} and {}",
                names.len(),
                letters.len(),
                bindings.len()
            );
            return self.mistake(at, Code::ArgumentType, message);
        }
        for ((letter, binding), (axis, target)) in letters.chars().zip(bindings).zip(names) {
            let kind = match letter {
                'S' => IterKind::Spatial,
                'R' => IterKind::Reduce,
                _ => {
                    return self.mistake(
                        at.cursor.at(kinds.value.tokens),
                        Code::AttrBadValue,
                        "the kind of an axis must be `S` or `R`",
                    );
                }
            };
            let binding = self.scalar(at, binding)?;
            let Some((start, extent)) = self.loop_range(&binding) else {
                let message = format!("`{axis}` is not bound to a loop's variable; write `T.axis.spatial`");
                return self.mistake(at, Code::ArgumentType, message);
            };
            let dtype = binding.dtype();
            self.push_axis(at.cursor, (*axis, *target), kind, dtype, (start, extent, binding));
        }
        Ok(())
    }

    fn axis(
        &mut self,
        at: At<'_>,
        names: &[(Name, TokenRange)],
        kind: IterKind,
        arguments: &[Argument],
    ) -> Outcome<()> {
        let ([domain, binding, ..], [axis]) = (arguments, names) else {
            return self.mistake(at, Code::MissingArgument, "an axis requires its domain and its value");
        };
        let (start, extent) = self.domain(at.cursor, &domain.value)?;
        let binding = self.integer_of(at.cursor, &binding.value)?;
        let dtype = Self::axis_dtype(&start, &extent);
        self.push_axis(at.cursor, *axis, kind, dtype, (start, extent, binding));
        Ok(())
    }

    fn push_axis(
        &mut self,
        cursor: Cursor<'_>,
        (axis, target): (Name, TokenRange),
        kind: IterKind,
        dtype: DType,
        parts: (Expr, Expr, Expr),
    ) {
        let var = self.func.add_var(axis, dtype);
        let (start, extent, binding) = parts;
        let iter =
            Iter { var, kind, start: start.cast(dtype), extent: extent.cast(dtype), binding: binding.cast(dtype) };
        let value = self.func.var_expr(var);
        self.enter_axis(&iter.binding, &value);
        self.bind(axis, Value::Expr(value));
        self.note(|reader| {
            let place = reader.place(cursor.at(target));
            Event::Axis(Box::new(TracedAxis { iter: iter.clone(), name: axis, place }))
        });
        if let Some(frame) = self.frames.last_mut() {
            frame.iters.push(iter);
        }
    }
}
