//! Reads loops and thread axes.

use super::statement::Binder;
use super::tree::Node;
use super::value::Value;
use super::{Outcome, Reader};
use rx_base::name::name;
use rx_base::{Code, DType, Name};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, TokenRange};
use rx_syntax::{At, Cursor};
use rx_tir::{Expr, LoopKind, Stmt, VarId};

/// A loop in the source: its first value, its number of iterations, and its step if that is not 1.
struct Range {
    start: Expr,
    extent: Expr,
    step: Option<Expr>,
    kind: LoopKind,
}

impl Reader<'_> {
    /// Reads `for targets in iter:`.
    pub(super) fn for_loop(&mut self, node: &Node<'_>, target: &Tree, iter: &Tree) -> Outcome<Stmt> {
        let cursor = node.cursor;
        let ranges = self.ranges_of(cursor, iter)?;
        let targets: Vec<&Tree> = match &target.kind {
            ExprKind::Tuple(targets) | ExprKind::List(targets) => targets.iter().collect(),
            ExprKind::Parenthesized(inner) => vec![inner],
            _ => vec![target],
        };
        if targets.len() != ranges.len() || targets.iter().any(|target| !matches!(target.kind, ExprKind::Name)) {
            let message = format!("the loop has {} variables for {} ranges", targets.len(), ranges.len());
            return self.mistake(cursor.at(target.tokens), Code::SyntaxError, message);
        }
        self.few(cursor.at(iter.tokens), targets.len() + self.depth)?;
        let read = |reader: &mut Self| {
            let mut loops = Vec::with_capacity(targets.len());
            for (target, range) in targets.iter().zip(ranges) {
                loops.push(reader.loop_variable(cursor, target.tokens, range));
            }
            let before = reader.depth;
            reader.depth += loops.len();
            reader.loops += 1;
            let body = reader.body(cursor.at(iter.tokens), &node.children);
            reader.loops -= 1;
            reader.depth = before;
            let nest = |body, (var, start, extent, kind)| Stmt::For { var, start, extent, kind, body: Box::new(body) };
            Ok(loops.into_iter().rev().fold(body?, nest))
        };
        self.noted(|reader| reader.scoped(read))
    }

    /// Binds a loop's variable. A loop with a step becomes one that starts at 0 and has step 1, and the name is bound
    /// to `start + var * step`.
    fn loop_variable(&mut self, cursor: Cursor<'_>, target: TokenRange, range: Range) -> (VarId, Expr, Expr, LoopKind) {
        let bound = cursor.name(target.start);
        let dtype = range.extent.dtype();
        let var = self.func.add_var(bound, dtype);
        let counted = self.func.var_expr(var);
        let (start, value) = match range.step {
            None => {
                self.ranges.insert(var, (range.start.clone(), range.extent.clone()));
                (range.start, counted)
            }
            Some(step) => (Expr::Int { value: 0, dtype }, range.start + counted * step),
        };
        let (extent, kind) = (range.extent, range.kind);
        self.note_loop((bound, self.place(cursor.at(target))), var, (&start, &extent, kind), &value);
        self.enter_threads(kind, &extent, &value);
        self.bind(bound, Value::Expr(value));
        (var, start, extent, kind)
    }

    /// Returns the ranges of `T.grid(…)`, `range(…)`, `T.serial(…)` and the other kinds of loops.
    fn ranges_of(&mut self, cursor: Cursor<'_>, iter: &Tree) -> Outcome<Vec<Range>> {
        let ExprKind::Call { callee, arguments } = &iter.kind else {
            return self.unsupported(cursor.at(iter.tokens), "a loop over this");
        };
        let member = match self.tir_member(cursor, callee) {
            Some(member) => member,
            None if cursor.path(callee.tokens) == "range" && self.lookup(name("range")).is_none() => "serial",
            None => return self.unsupported(cursor.at(iter.tokens), "a loop over this"),
        };
        if member == "grid" {
            let mut ranges = Vec::with_capacity(arguments.len());
            for argument in arguments.iter().filter(|argument| argument.keyword.is_none()) {
                let (start, extent) = self.domain(cursor, &argument.value)?;
                ranges.push(Range { start, extent, step: None, kind: LoopKind::Serial });
            }
            return Ok(ranges);
        }
        let kind = match member {
            "serial" | "range" => LoopKind::Serial,
            "parallel" => LoopKind::Parallel,
            "vectorized" => LoopKind::Vectorized,
            "unroll" | "unrolled" => LoopKind::Unrolled,
            "thread_binding" => LoopKind::ThreadBinding(self.thread_of(cursor.at(iter.tokens), arguments)?),
            other => return self.unsupported(cursor.at(iter.tokens), &format!("a loop over `T.{other}`")),
        };
        Ok(vec![self.range(cursor.at(iter.tokens), arguments, kind)?])
    }

    /// Returns the thread axis of `T.thread_binding(…, thread="threadIdx.x")`.
    fn thread_of(&mut self, at: At<'_>, arguments: &[Argument]) -> Outcome<Name> {
        let named = arguments.iter().find_map(|argument| at.cursor.string_value(&argument.value));
        match named {
            Some(axis) => Ok(name(&axis)),
            None => self.mistake(at, Code::MissingArgument, "a thread binding requires `thread`"),
        }
    }

    /// Reads the arguments `(stop)`, `(start, stop)` or `(start, stop, step)`.
    fn range(&mut self, at: At<'_>, arguments: &[Argument], kind: LoopKind) -> Outcome<Range> {
        let (mut positional, mut start, mut stop, mut step) = (Vec::new(), None, None, None);
        for argument in arguments {
            match argument.keyword.map(|keyword| at.cursor.text(keyword)) {
                None if matches!(argument.value.kind, ExprKind::String | ExprKind::None) => {}
                None => positional.push(&argument.value),
                Some("start") => start = Some(&argument.value),
                Some("stop") => stop = Some(&argument.value),
                Some("step") => step = Some(&argument.value),
                // `thread` is read by `thread_of`; annotations are hints for TVM's compiler.
                Some(_) => {}
            }
        }
        match positional[..] {
            [] => {}
            [only] if stop.is_none() => stop = Some(only),
            [only] => start = Some(only),
            [from, to] => (start, stop) = (Some(from), Some(to)),
            [from, to, by, ..] => (start, stop, step) = (Some(from), Some(to), Some(by)),
        }
        // With only a start, as in `T.serial(start=n)`, the start is the stop.
        if stop.is_none() {
            stop = start.take();
        }
        let Some(stop) = stop else {
            return self.mistake(at, Code::MissingArgument, "a loop requires an extent");
        };
        let stop = self.integer_of(at.cursor, stop)?;
        let start = match start {
            Some(start) => self.integer_of(at.cursor, start)?,
            None => Expr::Int { value: 0, dtype: stop.dtype() },
        };
        let extent = self.difference(at, stop, start.clone())?;
        let start = start.cast(extent.dtype());
        let step = match step {
            Some(step) => Some(self.integer_of(at.cursor, step)?).filter(|step| step.as_int() != Some(1)),
            None => None,
        };
        let Some(step) = step else { return Ok(Range { start, extent, step: None, kind }) };
        if let Some(step) = step.as_int().filter(|step| *step <= 0) {
            let message = format!("a loop requires a positive step; found {step}");
            return self.mistake(at, Code::AttrBadValue, message);
        }
        let (extent, step) = self.promoted(at, extent, step)?;
        let one = Expr::Int { value: 1, dtype: step.dtype() };
        let start = start.cast(step.dtype());
        let count = (extent + (step.clone() - one)).floor_div(step.clone());
        Ok(Range { start, extent: count, step: Some(step), kind })
    }

    /// Reads a `while` loop, whose body `read` reads.
    pub(super) fn while_loop(
        &mut self,
        cursor: Cursor<'_>,
        test: &Tree,
        read: impl FnOnce(&mut Self) -> Outcome<Stmt>,
    ) -> Outcome<Stmt> {
        let condition = self.truth_of(cursor, test)?;
        self.loops += 1;
        let body = self.assuming(Some(&condition), true, read);
        self.loops -= 1;
        Ok(Stmt::While { condition, body: Box::new(body?) })
    }

    /// Reads a range of values: an extent, `(start, stop)`, `T.Range(start, stop)` or `T.Range(stop)`. Returns the
    /// start and the extent.
    pub(super) fn domain(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<(Expr, Expr)> {
        let bounds = match &tree.kind {
            ExprKind::Tuple(parts) | ExprKind::List(parts) => match &parts[..] {
                [start, stop] => Some((start, stop)),
                _ => None,
            },
            ExprKind::Call { callee, arguments } if self.tir_member(cursor, callee) == Some("Range") => {
                match &arguments[..] {
                    [start, stop] => Some((&start.value, &stop.value)),
                    [stop] => return self.domain(cursor, &stop.value),
                    _ => None,
                }
            }
            ExprKind::Parenthesized(inner) => return self.domain(cursor, inner),
            _ => None,
        };
        let Some((start, stop)) = bounds else {
            let extent = self.integer_of(cursor, tree)?;
            return Ok((Expr::Int { value: 0, dtype: extent.dtype() }, extent));
        };
        let (start, stop) = (self.integer_of(cursor, start)?, self.integer_of(cursor, stop)?);
        let extent = self.difference(cursor.at(tree.tokens), stop, start.clone())?;
        let start = start.cast(extent.dtype());
        Ok((start, extent))
    }

    /// Reads `T.launch_thread("blockIdx.x", extent)`, or the launch of a `T.env_thread`. `bound` is the name that the
    /// text binds, if any.
    pub(super) fn launch_thread(
        &mut self,
        at: At<'_>,
        bound: Option<Name>,
        arguments: &[Argument],
    ) -> Outcome<(Binder, Value)> {
        let [thread, extent] = arguments else {
            return self.mistake(at, Code::MissingArgument, "`T.launch_thread` requires a thread and its extent");
        };
        let axis = match self.value(at.cursor, &thread.value)? {
            Value::Text(axis) => name(&axis),
            Value::Thread(axis) => axis,
            _ => return self.unsupported(at.cursor.at(thread.value.tokens), "a thread of this kind"),
        };
        let extent = self.integer_of(at.cursor, &extent.value)?;
        let start = Expr::Int { value: 0, dtype: extent.dtype() };
        let declared = matches!(thread.value.kind, ExprKind::Name).then(|| at.cursor.name(thread.value.tokens.start));
        let var = self.func.add_var(bound.or(declared).unwrap_or(name("thread")), extent.dtype());
        let value = self.func.var_expr(var);
        let kind = LoopKind::ThreadBinding(axis);
        // A thread without a name is shown under its axis. This is not a name of the text, so it shadows nothing.
        let shown = bound.or(declared).unwrap_or(axis);
        self.note_loop((shown, self.place(at)), var, (&start, &extent, kind), &value);
        self.enter_threads(kind, &extent, &value);
        self.ranges.insert(var, (start, extent.clone()));
        let value = Value::Expr(value);
        // The name that `T.env_thread` declared also refers to the axis.
        if let Some(declared) = declared {
            self.bind(declared, value.clone());
        }
        Ok((Binder::Launch { var, extent, kind }, value))
    }

    /// Returns the first value and the extent of the loop variable to which `T.axis.remap` binds an axis.
    pub(super) fn loop_range(&self, value: &Expr) -> Option<(Expr, Expr)> {
        match value {
            Expr::Var { var, .. } => self.ranges.get(var).cloned(),
            _ => None,
        }
    }

    /// Returns the dtype of a block's axis over a domain: signed, with at least 32 bits (TVM `AxisSpatial`).
    pub(super) fn axis_dtype(start: &Expr, extent: &Expr) -> DType {
        match start.dtype().bits.max(extent.dtype().bits) > 32 {
            true => DType::INT64,
            false => DType::INT32,
        }
    }
}
