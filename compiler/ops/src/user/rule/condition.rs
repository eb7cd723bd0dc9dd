//! Evaluates attributes, dim expressions and conditions of a declaration for one call.

use super::{Matching, names_of, shown_attr};
use crate::call::{Arg, ParamPlace, Problem};
use crate::user::pattern::{Condition, DimOp, DimPattern, Relation};
use crate::user::{DeclaredParam, Takes};
use rx_base::{Answer, Code, DType, Dim, Name};
use rx_ir::{Attr, StructInfo};

impl Matching<'_, '_, '_> {
    /// Checks the attributes that have a declared range.
    pub(super) fn attributes(&self, params: &[DeclaredParam]) -> Result<(), Problem> {
        for param in params {
            let Takes::Attr { least, most, .. } = &param.takes else { continue };
            let Some(value) = self.call.float(&param.name) else { continue };
            let outside = match (least, most) {
                (Some(least), _) if value < *least => format!("at least {least}"),
                (_, Some(most)) if value > *most => format!("at most {most}"),
                _ => continue,
            };
            let message = format_args!("`{}` is {value}, it must be {outside}", param.name);
            return Err(self.call.error(Code::AttrOutOfRange, ParamPlace::Param(param.name.as_str()), message).into());
        }
        Ok(())
    }

    pub(super) fn constraint(&self, constraint: &Condition, text: &str) -> Result<(), Problem> {
        if self.truth(constraint) != Answer::Refuted {
            return Ok(());
        }
        let mut values = Vec::new();
        let mut place = ParamPlace::Call;
        constraint.each_name(&mut |name| {
            let value = match (self.dims.get(&name), self.attr(name)) {
                (Some(known), _) => {
                    if place == ParamPlace::Call {
                        place = ParamPlace::Param(known.param);
                    }
                    Some(known.value.to_string())
                }
                (None, Some(attr)) => {
                    if let Some(param) = self.call.param(&name) {
                        place = ParamPlace::Param(param.name);
                    }
                    Some(shown_attr(attr))
                }
                (None, None) => None,
            };
            if let Some(text) = value.map(|value| format!("`{name}` = {value}")).filter(|text| !values.contains(text)) {
                values.push(text);
            }
        });
        let given = if values.is_empty() { String::new() } else { format!(" with {}", values.join(", ")) };
        let message = format_args!("`{text}` does not hold{given}");
        let report = self.call.error(Code::OperatorConstraint, place, message);
        Err(self.explained(report, names_of(|visit| constraint.each_name(visit)), place).into())
    }

    /// Returns the attribute with this name.
    pub(super) fn attr(&self, name: Name) -> Option<&Attr> {
        self.call.param(&name).and_then(|_| self.call.attr(&name))
    }

    /// Returns the dtype that an attribute names.
    pub(super) fn dtype_attribute(&self, name: Name) -> Option<DType> {
        self.attr(name).and_then(Attr::as_str).and_then(DType::parse)
    }

    /// Returns the value of an integer attribute or of a scalar operand.
    pub(super) fn integer(&self, name: Name) -> Option<Dim> {
        match self.call.param(&name).map(|_| self.call.arg(&name))? {
            Arg::Attr(Attr::Int(value)) => Some(value.clone()),
            Arg::Attr(Attr::Bool(value)) => Some(Dim::constant(i64::from(*value))),
            Arg::Operand(operand) => match &operand.ty {
                StructInfo::Prim(prim) => prim.value.clone(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the value of an expression, if all of it is known.
    pub(super) fn value(&self, pattern: &DimPattern) -> Option<Dim> {
        match pattern {
            DimPattern::Constant(value) => Some(Dim::constant(*value)),
            DimPattern::Name(name) => {
                self.dims.get(name).map(|known| known.value.clone()).or_else(|| self.integer(*name))
            }
            DimPattern::Element(name, index) => match self.attr(*name)? {
                Attr::List(items) => match items.get(*index)? {
                    Attr::Int(value) => Some(value.clone()),
                    _ => None,
                },
                // A single integer is used for all elements.
                Attr::Int(value) => Some(value.clone()),
                _ => None,
            },
            DimPattern::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                Some(match op {
                    DimOp::Add => &a + &b,
                    DimOp::Sub => &a - &b,
                    DimOp::Mul => &a * &b,
                    DimOp::FloorDiv => a.floor_div(&b),
                    DimOp::FloorMod => a.floor_mod(&b),
                    DimOp::Min => a.minimum(&b),
                    DimOp::Max => a.maximum(&b),
                    DimOp::CeilDiv => (&(&a + &b) - &Dim::constant(1)).floor_div(&b),
                })
            }
            DimPattern::Choice(condition, then, otherwise) => match self.truth(condition) {
                Answer::Proved => self.value(then),
                Answer::Refuted => self.value(otherwise),
                Answer::Open => {
                    let (then, otherwise) = (self.value(then)?, self.value(otherwise)?);
                    (then == otherwise).then_some(then)
                }
            },
        }
    }

    pub(super) fn truth(&self, condition: &Condition) -> Answer {
        let known = |value: bool| if value { Answer::Proved } else { Answer::Refuted };
        let not = |answer: Answer| match answer {
            Answer::Proved => Answer::Refuted,
            Answer::Refuted => Answer::Proved,
            Answer::Open => Answer::Open,
        };
        match condition {
            Condition::Name(name) => match self.attr(*name) {
                Some(Attr::Bool(value)) => known(*value),
                Some(Attr::Int(value)) => value.as_constant().map_or(Answer::Open, |value| known(value != 0)),
                _ => Answer::Open,
            },
            Condition::Not(inner) => not(self.truth(inner)),
            Condition::All(parts) => self.all(parts, Answer::Proved, Answer::Refuted),
            Condition::Either(parts) => self.all(parts, Answer::Refuted, Answer::Proved),
            Condition::IsNone(name) => known(match self.call.param(name).map(|_| self.call.arg(name)) {
                Some(Arg::Attr(attr)) => matches!(attr, Attr::None),
                Some(Arg::Absent) | None => true,
                Some(_) => false,
            }),
            Condition::IsText(name, text) => match self.attr(*name) {
                Some(Attr::Str(actual)) => known(**actual == **text),
                None => Answer::Refuted,
                Some(_) => Answer::Open,
            },
            Condition::Compare(relation, a, b) => {
                let (Some(a), Some(b)) = (self.value(a), self.value(b)) else { return Answer::Open };
                match relation {
                    Relation::Equal => self.call.equal(&a, &b),
                    Relation::NotEqual => not(self.call.equal(&a, &b)),
                    Relation::AtLeast => self.call.at_least(&a, &b),
                    Relation::MoreThan => self.call.at_least(&a, &(&b + &Dim::constant(1))),
                }
            }
        }
    }

    /// Evaluates `and` or `or`: returns `deciding` if one part has that answer, and `neutral` if all parts do.
    pub(super) fn all(&self, parts: &[Condition], neutral: Answer, deciding: Answer) -> Answer {
        let mut answer = neutral;
        for part in parts {
            match self.truth(part) {
                found if found == deciding => return deciding,
                found if found == neutral => {}
                _ => answer = Answer::Open,
            }
        }
        answer
    }
}
