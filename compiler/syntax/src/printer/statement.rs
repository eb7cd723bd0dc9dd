//! Printing of statements, each on one line.

use super::canonical::{bare, is_verbatim, last_part, path};
use super::expression::{Precedence as P, Writer, binary_text};
use crate::Cursor;
use crate::ast::{Argument, Expr, ExprKind, ImportedName, Parameter, StatementKind, TokenRange};

impl Writer<'_> {
    /// Prints a statement, except a `def`, whose dims only the caller knows.
    pub(crate) fn statement(&mut self, kind: &StatementKind, cursor: Cursor<'_>, source: &str) {
        match kind {
            StatementKind::Decorator(decorator) => self.decorator(decorator, cursor),
            StatementKind::Class { name, bases } => self.class(cursor.text(*name), bases, cursor),
            StatementKind::With(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.out.push_str(if at == 0 { "with " } else { ", " });
                    self.expr(&item.context, cursor, P::Lambda);
                    if let Some(target) = &item.target {
                        self.out.push_str(" as ");
                        self.expr(target, cursor, P::Lambda);
                    }
                }
                self.out.push(':');
            }
            StatementKind::For { target, iter } => {
                self.out.push_str("for ");
                self.target(target, cursor);
                self.out.push_str(" in ");
                self.expr(iter, cursor, P::Lambda);
                self.out.push(':');
            }
            StatementKind::While(test) => self.header("while ", test, cursor),
            StatementKind::If(test) => self.header("if ", test, cursor),
            StatementKind::Elif(test) => self.header("elif ", test, cursor),
            StatementKind::Else => self.out.push_str("else:"),
            StatementKind::Assign { .. } | StatementKind::AnnAssign { .. } | StatementKind::AugAssign { .. } => {
                self.assignment(kind, cursor);
            }
            StatementKind::Expr(expr) => self.expr(expr, cursor, P::Lambda),
            StatementKind::Return(value) => self.keyword("return", value.as_ref(), cursor),
            StatementKind::Assert { test, message } => {
                self.keyword("assert", Some(test), cursor);
                if let Some(message) = message {
                    self.out.push_str(", ");
                    self.expr(message, cursor, P::Lambda);
                }
            }
            StatementKind::Pass => self.out.push_str("pass"),
            StatementKind::Break => self.out.push_str("break"),
            StatementKind::Continue => self.out.push_str("continue"),
            StatementKind::Import(names) => {
                self.out.push_str("import ");
                self.imported(names, false, cursor);
            }
            StatementKind::FromImport { module, names } => self.import_from(*module, names, cursor),
            StatementKind::Def { .. } | StatementKind::Python { .. } | StatementKind::Error => {
                self.out.push_str(source)
            }
        }
    }

    fn assignment(&mut self, kind: &StatementKind, cursor: Cursor<'_>) {
        match kind {
            StatementKind::Assign { targets, value } => {
                for target in targets {
                    self.target(target, cursor);
                    self.out.push_str(" = ");
                }
                self.bound(value, cursor);
            }
            StatementKind::AnnAssign { target, annotation, value } => {
                self.expr(target, cursor, P::Lambda);
                self.out.push_str(": ");
                self.expr(annotation, cursor, P::Lambda);
                if let Some(value) = value {
                    self.out.push_str(" = ");
                    self.bound(value, cursor);
                }
            }
            StatementKind::AugAssign { target, op, value } => {
                self.expr(target, cursor, P::Lambda);
                self.out.push_str(binary_text(*op).trim_end());
                self.out.push_str("= ");
                self.bound(value, cursor);
            }
            _ => {}
        }
    }

    fn header(&mut self, word: &str, test: &Expr, cursor: Cursor<'_>) {
        self.out.push_str(word);
        self.expr(test, cursor, P::Lambda);
        self.out.push(':');
    }

    fn keyword(&mut self, word: &str, value: Option<&Expr>, cursor: Cursor<'_>) {
        self.out.push_str(word);
        if let Some(value) = value {
            self.out.push(' ');
            self.expr(value, cursor, P::Lambda);
        }
    }

    /// Prints the right-hand side of an assignment. A tuple of several elements is printed without parentheses.
    fn bound(&mut self, value: &Expr, cursor: Cursor<'_>) {
        match &bare(value).kind {
            ExprKind::Tuple(elements) if elements.len() > 1 => self.joined(elements, cursor),
            _ => self.expr(value, cursor, P::Lambda),
        }
    }

    fn target(&mut self, target: &Expr, cursor: Cursor<'_>) {
        match &bare(target).kind {
            ExprKind::Tuple(elements) if !elements.is_empty() => {
                self.joined(elements, cursor);
                self.out.push_str(if elements.len() == 1 { "," } else { "" });
            }
            _ => self.expr(target, cursor, P::Lambda),
        }
    }

    /// Prints a decorator. In current text `@T.prim_func` has `s_tir=True` if the function contains blocks; in classic
    /// text all functions do, and the keyword does not exist.
    fn decorator(&mut self, decorator: &Expr, cursor: Cursor<'_>) {
        self.out.push('@');
        let (callee, arguments) = match &bare(decorator).kind {
            ExprKind::Call { callee, arguments } => (&**callee, arguments.as_slice()),
            _ => (decorator, [].as_slice()),
        };
        let prim = path(callee, cursor).is_some_and(|callee| last_part(&callee) == "prim_func");
        let is_s_tir = |argument: &Argument| argument.keyword.is_some_and(|token| cursor.text(token) == "s_tir");
        let drops = prim && self.becomes_classic();
        let adds = prim && self.leaves_classic() && !arguments.iter().any(is_s_tir);
        self.expr(callee, cursor, P::Atom);
        let kept = arguments.iter().filter(|argument| !(drops && is_s_tir(argument)));
        let mut open = false;
        for argument in kept {
            self.out.push_str(if open { ", " } else { "(" });
            open = true;
            if let Some(keyword) = argument.keyword {
                self.out.push_str(cursor.text(keyword));
                self.out.push('=');
            }
            self.expr(&argument.value, cursor, P::Lambda);
        }
        if adds {
            self.out.push_str(if open { ", s_tir=True" } else { "(s_tir=True" });
        }
        self.out.push_str(if open || adds { ")" } else { "" });
    }

    fn class(&mut self, name: &str, bases: &[Argument], cursor: Cursor<'_>) {
        self.out.push_str("class ");
        self.out.push_str(name);
        if !bases.is_empty() {
            self.out.push('(');
            self.arguments("", bases, cursor);
            self.out.push(')');
        }
        self.out.push(':');
    }

    /// Prints a `def` header with `type_params`.
    pub(crate) fn def(
        &mut self,
        name: &str,
        type_params: &[String],
        params: &[Parameter],
        ret: Option<&Expr>,
        cursor: Cursor<'_>,
    ) {
        self.out.push_str("def ");
        self.out.push_str(name);
        if !type_params.is_empty() {
            self.out.push('[');
            self.out.push_str(&type_params.join(", "));
            self.out.push(']');
        }
        self.out.push('(');
        self.parameters(params, cursor);
        self.out.push(')');
        if let Some(ret) = ret {
            self.out.push_str(" -> ");
            self.expr(ret, cursor, P::Lambda);
        }
        self.out.push(':');
    }

    fn import_from(&mut self, module: TokenRange, names: &[ImportedName], cursor: Cursor<'_>) {
        let module = without_blanks(cursor.source(module));
        self.out.push_str("from ");
        self.out.push_str(&module);
        self.out.push_str(" import ");
        if names.is_empty() {
            self.out.push('*');
        }
        self.imported(names, module == "tvm.script", cursor);
    }

    fn imported(&mut self, names: &[ImportedName], of_script: bool, cursor: Cursor<'_>) {
        for (at, imported) in names.iter().enumerate() {
            self.out.push_str(if at > 0 { ", " } else { "" });
            let name = without_blanks(cursor.source(imported.path));
            match imported.alias {
                Some(alias) => {
                    self.out.push_str(if of_script { self.to.spell_import(&name) } else { &name });
                    self.out.push_str(" as ");
                    self.out.push_str(cursor.text(alias));
                }
                None => self.out.push_str(&name),
            }
        }
    }
}

/// Removes blanks and line continuations from a dotted name.
pub(crate) fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '\\').collect()
}

/// Whether a statement has parts that are printed verbatim.
pub(crate) fn has_verbatim_part(kind: &StatementKind) -> bool {
    let mut stack = kind.expressions();
    while let Some(expr) = stack.pop() {
        if is_verbatim(expr) {
            return true;
        }
        stack.extend(expr.children());
    }
    matches!(kind, StatementKind::Python { .. } | StatementKind::Error)
}
