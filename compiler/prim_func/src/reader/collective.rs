//! Reads collective operations of threads: barriers and all-reduces.
//!
//! Each becomes a placeholder statement, which [`rx_tir::spmd`] later converts to loops over threads. For example,
//! `T.tvm_storage_sync("shared")` usually splits a loop over the threads of a block into two loops.

use super::statement::Step;
use super::value::Value;
use super::{Outcome, Reader};
use rx_base::name::name;
use rx_base::{Code, DType};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind};
use rx_syntax::{At, Cursor};
use rx_tir::spmd::{AllReduce, Collective};
use rx_tir::{BufferId, Expr, VarId};

/// The operation of an all-reduce: `T.comm_reducer(lambda x, y: x + y, [identity])`. It may combine several values at
/// once.
#[derive(Clone)]
pub(super) struct Reducer {
    /// The identity element of each value.
    identities: Vec<Expr>,
    /// The parameters of the lambda: the left and the right operands, one of each for each value.
    operands: [Vec<VarId>; 2],
    /// The results of combining the operands.
    combined: Vec<Expr>,
}

impl Reader<'_> {
    /// Reads `T.tvm_storage_sync("shared", …)`, a barrier for the threads of a block. A barrier for a warp becomes a
    /// barrier for the block.
    pub(super) fn storage_sync(&mut self, at: At<'_>, arguments: &[Argument]) -> Outcome<Step> {
        let scope = arguments.first().and_then(|argument| at.cursor.string_value(&argument.value));
        match scope.as_deref() {
            Some("shared" | "shared.dyn" | "warp") => Ok(self.together(at, Collective::Barrier)),
            Some(scope) => {
                let subject =
                    format!("`T.tvm_storage_sync` of the scope \"{scope}\", where all blocks wait for each other");
                self.unsupported(at, &subject)
            }
            None => self.mistake(at, Code::MissingArgument, "`T.tvm_storage_sync` requires a scope"),
        }
    }

    /// Creates the placeholder of a collective operation.
    fn together(&mut self, at: At<'_>, of: Collective) -> Step {
        let (var, mark) = self.mark(at, "together");
        self.collectives.insert(var, of);
        Step::Done(mark)
    }

    /// Reads `T.attr(T.comm_reducer(…), "reduce_scope", …)`, which sets the operation of later all-reduces.
    pub(super) fn reduce_scope(&mut self, cursor: Cursor<'_>, reducer: &Tree) -> Outcome<Step> {
        let ExprKind::Call { callee, arguments } = &reducer.kind else {
            return self.unsupported(cursor.at(reducer.tokens), "a reducer of this kind");
        };
        let (Some("comm_reducer"), [of, identities, ..]) = (self.tir_member(cursor, callee), &arguments[..]) else {
            return self.unsupported(cursor.at(reducer.tokens), "a reducer of this kind");
        };
        let ExprKind::Lambda { params, body } = &of.value.kind else {
            return self.unsupported(cursor.at(of.value.tokens), "a reducer that is not a lambda");
        };
        let identities = self.value(cursor, &identities.value)?.into_items().into_iter();
        let identities = identities.map(|value| self.scalar(cursor.at(reducer.tokens), value));
        let identities = identities.collect::<Outcome<Vec<Expr>>>()?;
        let count = identities.len();
        if params.len() != 2 * count {
            let message =
                format!("a reducer of {count} values requires {} parameters; found {}", 2 * count, params.len());
            return self.mistake(cursor.at(of.value.tokens), Code::ArgumentType, message);
        }
        let mut vars = Vec::with_capacity(params.len());
        let combined = self.scoped(|reader| {
            for (param, identity) in params.iter().zip(identities.iter().chain(&identities)) {
                let named = param.tree.name.map(|token| cursor.parameter(param).name(token)).unwrap_or(name("_"));
                let var = reader.func.add_var(named, identity.dtype());
                reader.bind(named, Value::Expr(reader.func.var_expr(var)));
                vars.push(var);
            }
            let values = reader.value(cursor, body)?.into_items().into_iter().zip(identities.iter().map(Expr::dtype));
            let values = values.map(|(value, dtype)| reader.converted(cursor.at(body.tokens), value, dtype));
            values.collect::<Outcome<Vec<Expr>>>()
        })?;
        if combined.len() != count {
            let message = format!("a reducer of {count} values must return as many; found {}", combined.len());
            return self.mistake(cursor.at(body.tokens), Code::ArgumentType, message);
        }
        let right = vars.split_off(count);
        self.reducer = Some(Reducer { identities, operands: [vars, right], combined });
        Ok(Step::NOTHING)
    }

    /// Reads `T.tvm_thread_allreduce(count, values…, condition, targets…, threads…)`.
    pub(super) fn thread_all_reduce(&mut self, at: At<'_>, arguments: &[Argument]) -> Outcome<Step> {
        let Some(Reducer { identities, operands, combined }) = self.reducer.clone() else {
            let message =
                "`T.tvm_thread_allreduce` requires `T.attr(T.comm_reducer(…), \"reduce_scope\", …)` before it";
            return self.mistake(at, Code::MisplacedStatement, message);
        };
        let trees: Vec<&Tree> = arguments.iter().map(|argument| &argument.value).collect();
        let Some((first, trees)) = trees.split_first() else {
            return self.mistake(at, Code::MissingArgument, "`T.tvm_thread_allreduce` requires the number of values");
        };
        let count = self.scalar_of(at.cursor, first)?.as_int().and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| *count == identities.len());
        let Some(count) = count else {
            let message = format!("the reducer combines {} values, but this is another number", identities.len());
            return self.mistake(at.cursor.at(first.tokens), Code::ArgumentType, message);
        };
        // The remaining arguments are the values, a condition, the targets and at least one thread.
        if trees.len() < count.saturating_mul(2).saturating_add(2) {
            return self.mistake(
                at,
                Code::MissingArgument,
                "`T.tvm_thread_allreduce` requires values, a condition, targets and threads",
            );
        }
        let (values, rest) = trees.split_at(count);
        let (condition, rest) = rest.split_at(1);
        let (targets, over) = rest.split_at(count);
        let mut brought = Vec::with_capacity(count);
        for (tree, identity) in values.iter().zip(&identities) {
            let value = self.scalar_of(at.cursor, tree)?;
            if value.dtype() != identity.dtype() {
                let message =
                    format!("the value has dtype {}, but the reducer requires {}", value.dtype(), identity.dtype());
                return self.mistake(at.cursor.at(tree.tokens), Code::DtypeMismatch, message);
            }
            brought.push(value);
        }
        let condition = self.truth_of(at.cursor, condition[0])?; // INVARIANT: split at 1.
        let mut places = Vec::with_capacity(count);
        for (tree, value) in targets.iter().zip(&brought) {
            let target = self.target(at.cursor, tree)?;
            let dtype = self.func.buffer(target.0).dtype;
            if dtype != value.dtype() {
                let message = format!("the value has dtype {}, but the buffer has {dtype}", value.dtype());
                return self.mistake(at.cursor.at(tree.tokens), Code::DtypeMismatch, message);
            }
            places.push(target);
        }
        let over = over.iter().map(|tree| self.scalar_of(at.cursor, tree)).collect::<Outcome<Vec<Expr>>>()?;
        let (values, targets, site) = (brought, places, self.site());
        let reduction = AllReduce { values, condition, identities, operands, combined, targets, over, site };
        Ok(self.together(at, Collective::AllReduce(Box::new(reduction))))
    }

    /// Returns the element that receives a result: `t0[0]`, or the first element if there are no indices, as in
    /// `t0.data`.
    fn target(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<(BufferId, Vec<Expr>)> {
        let (of, index) = match &tree.kind {
            ExprKind::Subscript { value, index } => (&**value, Some(&**index)),
            _ => (tree, None),
        };
        let value = self.value(cursor, of)?;
        let view = self.memory(cursor.at(tree.tokens), value, "a reduction into")?;
        let indices = match index {
            Some(index) => self.indices(cursor.at(tree.tokens), &view, index)?,
            None => view.shape.iter().map(|_| (Expr::Int { value: 0, dtype: DType::INT32 }, tree.tokens)).collect(),
        };
        self.note_access(cursor.at(tree.tokens), cursor.source(of.tokens), (&view, &indices), Some(None));
        Ok(self.element(&view, super::expr::exprs(indices)))
    }
}
