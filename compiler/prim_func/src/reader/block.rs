//! Reads blocks and the other statements that begin with `with`.

use super::statement::Binder;
use super::trace::Event;
use super::tree::Node;
use super::value::Value;
use super::{Outcome, Reader};
use rx_base::Code;
use rx_base::name::name;
use rx_syntax::ast::{ExprKind, WithItem};
use rx_tir::{Block, Expr, Iter, Stmt};

/// The parts of a block that its body declares: axes, predicate and initialization.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) iters: Vec<Iter>,
    predicate: Option<Expr>,
    init: Option<Stmt>,
}

impl Frame {
    /// Adds the predicate of a `T.where(predicate)`. The block's predicate is the conjunction of all of them.
    pub(super) fn add_predicate(&mut self, predicate: Expr) {
        self.predicate = Some(match self.predicate.take() {
            None => predicate,
            Some(before) => before.and(predicate),
        });
    }
}

impl Reader<'_> {
    /// Reads `with items:`. Each item is open while the later ones are read.
    pub(super) fn with(&mut self, node: &Node<'_>, items: &[WithItem]) -> Outcome<Stmt> {
        let cursor = node.cursor;
        let Some((item, rest)) = items.split_first() else {
            let tokens = rx_syntax::ast::TokenRange::one(0);
            return self.body(cursor.at(tokens), &node.children);
        };
        let tokens = item.context.tokens;
        let ExprKind::Call { callee, arguments } = &item.context.kind else {
            return self.unsupported(cursor.at(tokens), "`with` of this");
        };
        let bound = item.target.as_ref().filter(|target| matches!(target.kind, ExprKind::Name));
        let bound = bound.map(|target| cursor.name(target.tokens.start));
        let member = self.tir_member(cursor, callee);
        let first = arguments.first().map(|argument| &argument.value);
        match (member.unwrap_or_default(), first) {
            ("sblock", first) => {
                let label = first.and_then(|first| cursor.string_value(first)).unwrap_or_default();
                let label = format!("{label}{}", self.macros.suffix());
                self.deeper(cursor.at(tokens), |reader| reader.noted(|reader| reader.block(node, rest, &label)))
            }
            ("init", _) => {
                let init = self.noted(|reader| {
                    reader.note(|_| Event::Init);
                    reader.scoped(|reader| reader.with(node, rest))
                })?;
                match self.frames.last_mut() {
                    Some(frame) if frame.init.is_none() => frame.init = Some(init),
                    _ => {
                        let message = "a block can have only one `T.init`";
                        return self.mistake(cursor.at(tokens), Code::MisplacedStatement, message);
                    }
                }
                Ok(Stmt::nothing())
            }
            ("launch_thread", _) => {
                let read = |reader: &mut Self| {
                    let (binder, value) = reader.launch_thread(cursor.at(tokens), bound, arguments)?;
                    reader.opened(node, rest, bound.map(|bound| (bound, value)), Some(binder))
                };
                // The scope ends here, so the axis may be launched again after it.
                self.noted(|reader| reader.scoped(read))
            }
            ("attr" | "hint", _) => {
                let reducer = self.reducer.clone();
                self.attribute_statement(cursor, &item.context, "attr", arguments)?;
                let body = self.with(node, rest);
                self.reducer = reducer;
                body
            }
            ("Let" | "let" | "LetStmt", Some(value)) => {
                let value = self.scalar_of(cursor, value)?;
                let read = |reader: &mut Self| {
                    let binder = reader.let_binder(bound.unwrap_or(name("value")), value);
                    Ok(binder.around(reader.with(node, rest)?))
                };
                self.noted(|reader| reader.scoped(read))
            }
            ("allocate" | "decl_buffer" | "alloc_buffer" | "sblock_alloc_buffer", _) => {
                let label = bound.unwrap_or(name("buffer"));
                let made = match member.unwrap_or_default() {
                    "allocate" => self.allocate(cursor.at(tokens), label, arguments)?,
                    "decl_buffer" => self.decl_buffer(cursor.at(tokens), label, arguments)?,
                    _ => self.alloc_buffer(cursor.at(tokens), label, None, arguments)?,
                };
                self.opened(node, rest, Some((label, made)), None)
            }
            ("Assert", Some(test)) => {
                let condition = self.truth_of(cursor, test)?;
                let message = arguments.get(1).and_then(|argument| cursor.string_value(&argument.value));
                let message = name(message.as_deref().unwrap_or_default());
                self.note(|_| Event::Assume { condition: condition.clone(), holds: true });
                let assert = Stmt::Assert { condition, message, site: self.site() };
                Ok(Stmt::seq([assert, self.with(node, rest)?]))
            }
            ("While", Some(test)) => self.while_loop(cursor, test, |reader| reader.with(node, rest)),
            (member, _) => {
                let subject =
                    if member.is_empty() { "`with` of this".to_owned() } else { format!("`with T.{member}`") };
                self.unsupported(cursor.at(tokens), &subject)
            }
        }
    }

    /// Reads the rest of a `with` statement inside an opened item; `bound` is the name and value that the item binds.
    fn opened(
        &mut self,
        node: &Node<'_>,
        rest: &[WithItem],
        bound: Option<(rx_base::Name, Value)>,
        binder: Option<Binder>,
    ) -> Outcome<Stmt> {
        self.scoped(|reader| {
            if let Some((bound, value)) = bound {
                reader.bind(bound, value);
            }
            let body = reader.with(node, rest)?;
            Ok(match binder {
                Some(binder) => binder.around(body),
                None => body,
            })
        })
    }

    /// Reads `with T.sblock(label):`.
    fn block(&mut self, node: &Node<'_>, rest: &[WithItem], label: &str) -> Outcome<Stmt> {
        if !rest.is_empty() {
            return self.unsupported(node.cursor.at(rest[0].context.tokens), "a block beside others in one `with`");
        }
        self.note(|_| Event::Block);
        self.frames.push(Frame::default());
        self.operators.push(name(if label == "root" { "" } else { label }));
        let outcome = self.scoped(|reader| reader.owning_body(&node.children));
        self.operators.pop();
        let frame = self.frames.pop().unwrap_or_default();
        let (body, allocations) = outcome?;
        Ok(Stmt::Block(Box::new(Block {
            name: name(label),
            iters: frame.iters,
            predicate: frame.predicate,
            allocations,
            init: frame.init,
            body,
        })))
    }
}
