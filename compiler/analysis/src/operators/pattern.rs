//! Parses the types and conditions of an operator's declaration with TVMScript's grammar.

use rx_base::name::name;
use rx_base::{DType, Name, Span};
use rx_ops::user::pattern::{
    AxisPattern, Condition, DimOp, DimPattern, DtypePattern, Relation, ShapePattern, TypePattern,
};
use rx_syntax::ast::{Argument, BinaryOp, BoolOp, CompareOp, Expr, ExprKind, StatementKind, UnaryOp};
use rx_syntax::{Cursor, Segment};

/// The maximal number of dtypes in `"a or b or c"`.
const MAX_ALTERNATIVES: usize = 8;

/// A mistake in a text, and its place.
pub(super) struct Mistake {
    pub(super) span: Span,
    pub(super) message: String,
}

type Read<T> = Result<T, Mistake>;

/// A string in the settings file.
pub(super) struct Text<'t> {
    /// The text.
    pub(super) text: &'t str,
    /// The place of the string, including its quotes.
    pub(super) place: Span,
}

impl Text<'_> {
    /// Returns the offset of the text in the file, if it is written there without escapes: between quotes of one or
    /// three characters.
    fn start(&self) -> Option<u32> {
        let length = u32::try_from(self.text.len()).ok()?;
        match (self.place.end - self.place.start).checked_sub(length)? {
            2 => Some(self.place.start + 1),
            6 => Some(self.place.start + 3),
            _ => None,
        }
    }
}

/// Parses a type.
pub(super) fn type_pattern(text: &Text<'_>) -> Read<TypePattern> {
    with_expression(text, |reader, expr| reader.ty(expr))
}

/// Parses a condition.
pub(super) fn condition(text: &Text<'_>) -> Read<Condition> {
    with_expression(text, |reader, expr| reader.condition(expr))
}

fn with_expression<T>(text: &Text<'_>, read: impl FnOnce(&Reader<'_>, &Expr) -> Read<T>) -> Read<T> {
    let segment = Segment::new(text.text.into());
    let statements = &segment.tree().statements;
    match &statements[..] {
        [statement] if statement.tree.error.is_none() => match &statement.tree.kind {
            StatementKind::Expr(expr) => {
                let reader = Reader { cursor: segment.cursor(statement), start: text.start(), place: text.place };
                read(&reader, expr)
            }
            _ => Err(unreadable(text)),
        },
        _ => Err(unreadable(text)),
    }
}

fn unreadable(text: &Text<'_>) -> Mistake {
    Mistake { span: text.place, message: format!("`{}` cannot be read", text.text) }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    start: Option<u32>,
    place: Span,
}

impl Reader<'_> {
    fn span(&self, expr: &Expr) -> Span {
        self.start.map_or(self.place, |start| self.cursor.span(expr.tokens).shift(start))
    }

    fn wrong<T>(&self, expr: &Expr, message: impl Into<String>) -> Read<T> {
        Err(Mistake { span: self.span(expr), message: message.into() })
    }

    fn ty(&self, expr: &Expr) -> Read<TypePattern> {
        match &expr.kind {
            ExprKind::Parenthesized(inner) => self.ty(inner),
            ExprKind::Conditional { then, test, otherwise } => {
                Ok(TypePattern::Choice(self.condition(test)?, Box::new(self.ty(then)?), Box::new(self.ty(otherwise)?)))
            }
            ExprKind::Name => Ok(TypePattern::Like(self.cursor.name(expr.tokens.start))),
            ExprKind::Attribute { .. } => self.type_call(expr, expr, &[]),
            ExprKind::Call { callee, arguments } => self.type_call(expr, callee, arguments),
            _ => self.wrong(expr, "a type is wanted here, like `R.Tensor((\"m\", \"n\"), dtype=\"d\")`"),
        }
    }

    fn type_call(&self, expr: &Expr, callee: &Expr, arguments: &[Argument]) -> Read<TypePattern> {
        let source = self.cursor.path(callee.tokens);
        match source.strip_prefix("R.") {
            Some("Any" | "Object") => Ok(TypePattern::Any),
            Some("String") => Ok(TypePattern::String),
            Some("Tensor") => {
                let shape = self.shape(arguments, "shape")?;
                let dtype =
                    self.argument(arguments, "dtype", 1).map_or(Ok(DtypePattern::Any), |dtype| self.dtype(dtype))?;
                self.no_other(arguments, &["shape", "dtype", "ndim"])?;
                Ok(TypePattern::Tensor { shape, dtype })
            }
            Some("Shape") => {
                self.no_other(arguments, &["values", "ndim"])?;
                Ok(TypePattern::Shape(self.shape(arguments, "values")?))
            }
            Some("Prim") => {
                let dtype =
                    self.argument(arguments, "dtype", 0).map_or(Ok(DtypePattern::Any), |dtype| self.dtype(dtype))?;
                let value = self.argument(arguments, "value", 1).map(|value| self.dim(value)).transpose()?;
                self.no_other(arguments, &["dtype", "value"])?;
                Ok(TypePattern::Prim { dtype, value })
            }
            Some("Tuple") => match arguments {
                [field, Argument { value: Expr { kind: ExprKind::Ellipsis, .. }, .. }] => {
                    Ok(TypePattern::Repeated(Box::new(self.ty(&field.value)?)))
                }
                fields => {
                    let fields: Read<Vec<TypePattern>> = fields.iter().map(|field| self.ty(&field.value)).collect();
                    Ok(TypePattern::Tuple(fields?))
                }
            },
            _ => match source.strip_prefix("T.").and_then(DType::parse) {
                Some(dtype) => Ok(TypePattern::Prim { dtype: DtypePattern::Is(dtype), value: None }),
                None => self.wrong(
                    expr,
                    format!("`{source}` is no type: write `R.Tensor`, `R.Shape`, `R.Prim`, `R.Tuple` or `R.Any`"),
                ),
            },
        }
    }

    /// Returns an argument by keyword or position.
    fn argument<'e>(&self, arguments: &'e [Argument], keyword: &str, position: usize) -> Option<&'e Expr> {
        let named =
            arguments.iter().find(|argument| argument.keyword.is_some_and(|at| self.cursor.text(at) == keyword));
        let at = || arguments.get(position).filter(|argument| argument.keyword.is_none());
        named.or_else(at).map(|argument| &argument.value)
    }

    fn no_other(&self, arguments: &[Argument], known: &[&str]) -> Read<()> {
        let other = arguments
            .iter()
            .find(|argument| argument.keyword.is_some_and(|keyword| !known.contains(&self.cursor.text(keyword))));
        match other {
            Some(other) => self.wrong(&other.value, format!("a type takes {} here", known.join(", "))),
            None => Ok(()),
        }
    }

    fn shape(&self, arguments: &[Argument], keyword: &str) -> Read<ShapePattern> {
        if let Some(shape) = self.argument(arguments, keyword, 0).filter(|shape| !matches!(shape.kind, ExprKind::None))
        {
            return match &shape.kind {
                ExprKind::Tuple(dims) | ExprKind::List(dims) => {
                    let axes: Vec<AxisPattern> = dims.iter().map(|dim| self.axis(dim)).collect::<Read<_>>()?;
                    if axes.iter().filter(|axis| matches!(axis, AxisPattern::Rest(_))).count() > 1 {
                        return self.wrong(shape, "only one part of a shape can match any number of dims");
                    }
                    Ok(ShapePattern::Dims(axes))
                }
                ExprKind::Parenthesized(inner) => Ok(ShapePattern::Dims(vec![self.axis(inner)?])),
                _ => self.wrong(shape, "a shape is a tuple of dims: `(\"m\", \"n\")`"),
            };
        }
        match self.argument(arguments, "ndim", usize::MAX) {
            None => Ok(ShapePattern::Any),
            Some(ndim) => match self.cursor.integer_value(ndim).and_then(|ndim| usize::try_from(ndim).ok()) {
                Some(ndim) => Ok(ShapePattern::Rank(ndim)),
                None => self.wrong(ndim, "`ndim` is a number of dimensions"),
            },
        }
    }

    fn axis(&self, expr: &Expr) -> Read<AxisPattern> {
        match &expr.kind {
            ExprKind::Starred { double: false, value } if matches!(value.kind, ExprKind::Name) => {
                Ok(AxisPattern::Rest(self.cursor.name(value.tokens.start)))
            }
            ExprKind::String => {
                let text = self.cursor.string_value(expr).unwrap_or_default();
                match text.trim().strip_prefix('*') {
                    Some(rest) if is_identifier(rest) => Ok(AxisPattern::Rest(name(rest))),
                    _ => Ok(AxisPattern::One(self.dim(expr)?)),
                }
            }
            _ => Ok(AxisPattern::One(self.dim(expr)?)),
        }
    }

    fn dim(&self, expr: &Expr) -> Read<DimPattern> {
        match &expr.kind {
            ExprKind::Parenthesized(inner) => self.dim(inner),
            ExprKind::Integer => match self.cursor.integer_value(expr).and_then(|value| i64::try_from(value).ok()) {
                Some(value) => Ok(DimPattern::Constant(value)),
                None => self.wrong(expr, "the integer does not fit 64 bits"),
            },
            ExprKind::Name => Ok(DimPattern::Name(self.cursor.name(expr.tokens.start))),
            ExprKind::String => {
                let text = self.cursor.string_value(expr).unwrap_or_default();
                let inner = Text { text: &text, place: self.span(expr) };
                with_expression(&inner, |reader, expr| reader.dim(expr))
            }
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                let zero = Box::new(DimPattern::Constant(0));
                Ok(DimPattern::Binary(DimOp::Sub, zero, Box::new(self.dim(inner)?)))
            }
            ExprKind::Binary(op, a, b) => {
                let op = match op {
                    BinaryOp::Add => DimOp::Add,
                    BinaryOp::Sub => DimOp::Sub,
                    BinaryOp::Mul => DimOp::Mul,
                    BinaryOp::FloorDiv => DimOp::FloorDiv,
                    BinaryOp::Mod => DimOp::FloorMod,
                    _ => {
                        return self
                            .wrong(expr, "a dim is made with `+`, `-`, `*`, `//`, `%`, `min`, `max` and `ceildiv`");
                    }
                };
                Ok(DimPattern::Binary(op, Box::new(self.dim(a)?), Box::new(self.dim(b)?)))
            }
            ExprKind::Call { callee, arguments } => {
                let source = self.cursor.path(callee.tokens);
                let op = match (source.strip_prefix("T.").unwrap_or(source), &arguments[..]) {
                    ("min", [_, _]) => DimOp::Min,
                    ("max", [_, _]) => DimOp::Max,
                    ("ceildiv", [_, _]) => DimOp::CeilDiv,
                    _ => return self.wrong(expr, "of functions a dim may have `min`, `max` and `ceildiv` of two"),
                };
                let [a, b] = &arguments[..] else { return self.wrong(expr, "two arguments are wanted") };
                Ok(DimPattern::Binary(op, Box::new(self.dim(&a.value)?), Box::new(self.dim(&b.value)?)))
            }
            ExprKind::Subscript { value, index } => match (&value.kind, self.cursor.integer_value(index)) {
                (ExprKind::Name, Some(index)) => {
                    let element = usize::try_from(index).unwrap_or(usize::MAX);
                    Ok(DimPattern::Element(self.cursor.name(value.tokens.start), element))
                }
                _ => self.wrong(expr, "an attribute's element is written `sizes[0]`"),
            },
            ExprKind::Conditional { then, test, otherwise } => Ok(DimPattern::Choice(
                Box::new(self.condition(test)?),
                Box::new(self.dim(then)?),
                Box::new(self.dim(otherwise)?),
            )),
            _ => self.wrong(expr, "a dim is a number, a variable, or an expression over them"),
        }
    }

    fn dtype(&self, expr: &Expr) -> Read<DtypePattern> {
        let text = match &expr.kind {
            ExprKind::String => self.cursor.string_value(expr).unwrap_or_default().into_owned(),
            ExprKind::Name => self.cursor.source(expr.tokens).to_owned(),
            _ => return self.wrong(expr, "a dtype is a string: a dtype's name, or a variable"),
        };
        let mut parts = text.rsplitn(MAX_ALTERNATIVES, " or ").map(str::trim);
        let read = |part: &str| match DType::parse(part) {
            Some(dtype) => Ok(DtypePattern::Is(dtype)),
            None if is_identifier(part) => Ok(DtypePattern::Name(name(part))),
            None => self.wrong(expr, format!("`{part}` is no dtype, and no variable")),
        };
        let mut pattern = read(parts.next().unwrap_or_default())?;
        for part in parts {
            match read(part)? {
                DtypePattern::Name(attribute) => pattern = DtypePattern::Or(attribute, Box::new(pattern)),
                _ => return self.wrong(expr, "the part before `or` must be an attribute that may be None"),
            }
        }
        Ok(pattern)
    }

    fn condition(&self, expr: &Expr) -> Read<Condition> {
        match &expr.kind {
            ExprKind::Parenthesized(inner) => self.condition(inner),
            ExprKind::Name => Ok(Condition::Name(self.cursor.name(expr.tokens.start))),
            ExprKind::Unary(UnaryOp::Not, inner) => Ok(Condition::Not(Box::new(self.condition(inner)?))),
            ExprKind::Bool2(op, operands) => {
                let parts: Vec<Condition> = operands.iter().map(|part| self.condition(part)).collect::<Read<_>>()?;
                Ok(match op {
                    BoolOp::And => Condition::All(parts),
                    BoolOp::Or => Condition::Either(parts),
                })
            }
            ExprKind::Compare(first, rest) => {
                let mut left: &Expr = first;
                let mut parts = Vec::new();
                for (op, right) in rest {
                    parts.push(self.comparison(*op, left, right)?);
                    left = right;
                }
                Ok(match parts.len() {
                    1 => parts.remove(0),
                    _ => Condition::All(parts),
                })
            }
            _ => self.wrong(expr, "a condition is wanted here, like `m % 16 == 0` or `mode == \"same\"`"),
        }
    }

    fn comparison(&self, op: CompareOp, left: &Expr, right: &Expr) -> Read<Condition> {
        let not = |condition: Condition, negated: bool| match negated {
            true => Condition::Not(Box::new(condition)),
            false => condition,
        };
        let negated = matches!(op, CompareOp::Ne | CompareOp::IsNot | CompareOp::NotIn);
        match (&left.kind, &right.kind, op) {
            (ExprKind::Name, ExprKind::None, CompareOp::Is | CompareOp::IsNot | CompareOp::Eq | CompareOp::Ne) => {
                Ok(not(Condition::IsNone(self.cursor.name(left.tokens.start)), negated))
            }
            (ExprKind::Name, ExprKind::String, CompareOp::Eq | CompareOp::Ne) => {
                let text = self.cursor.string_value(right).unwrap_or_default().into_owned();
                Ok(not(Condition::IsText(self.cursor.name(left.tokens.start), text), negated))
            }
            (
                _,
                ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::Set(items),
                CompareOp::In | CompareOp::NotIn,
            ) => {
                let any: Vec<Condition> =
                    items.iter().map(|item| self.comparison(CompareOp::Eq, left, item)).collect::<Read<_>>()?;
                Ok(not(Condition::Either(any), negated))
            }
            _ => {
                let (a, b) = (self.dim(left)?, self.dim(right)?);
                Ok(match op {
                    CompareOp::Eq => Condition::Compare(Relation::Equal, a, b),
                    CompareOp::Ne => Condition::Compare(Relation::NotEqual, a, b),
                    CompareOp::Ge => Condition::Compare(Relation::AtLeast, a, b),
                    CompareOp::Gt => Condition::Compare(Relation::MoreThan, a, b),
                    CompareOp::Le => Condition::Compare(Relation::AtLeast, b, a),
                    CompareOp::Lt => Condition::Compare(Relation::MoreThan, b, a),
                    _ => return self.wrong(right, "integers are compared with `==`, `!=`, `<`, `<=`, `>`, `>=`"),
                })
            }
        }
    }
}

/// Whether a text is an identifier.
pub(super) fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// The variables that the operands of a declaration bind.
#[derive(Default)]
pub(super) struct Names {
    /// Dim variables.
    pub(super) dims: Vec<Name>,
    /// Variables for any number of dims: `*batch`.
    pub(super) rests: Vec<Name>,
    /// Dtype variables.
    pub(super) dtypes: Vec<Name>,
}

impl Names {
    /// Adds the variables that an operand's type binds.
    pub(super) fn bind(&mut self, ty: &TypePattern) {
        ty.each_axis(&mut |axis| match axis {
            AxisPattern::Rest(name) => self.rests.push(*name),
            AxisPattern::One(dim) => bare(dim, &mut |name| self.dims.push(name)),
        });
        ty.each_dtype(&mut |dtype| {
            if let DtypePattern::Name(name) = dtype {
                self.dtypes.push(*name);
            }
        });
    }
}

/// Visits the variables that a dim binds: the dim itself if it is a name, or those of its alternatives.
fn bare(dim: &DimPattern, visit: &mut dyn FnMut(Name)) {
    match dim {
        DimPattern::Name(name) => visit(*name),
        DimPattern::Choice(_, then, otherwise) => {
            bare(then, visit);
            bare(otherwise, visit);
        }
        _ => {}
    }
}
