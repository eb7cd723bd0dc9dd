//! Reads the operators that a project declares in the `[[ops]]` tables of `rx.toml`.
//!
//! ```text
//! [[ops]]
//! name = "my.matmul"
//! args = [
//!     { name = "a", type = 'R.Tensor(("m", "k"), dtype="d")' },
//!     { name = "b", type = 'R.Tensor(("k", "n"), dtype="d")' },
//! ]
//! result = 'R.Tensor(("m", "n"), dtype="d")'
//! ```
//!
//! A table declares the parameters and the result of a call. Types are written as in TVMScript, with variables for
//! dims and dtypes. [`rx_ops::user`] defines the meaning of the patterns; this module reads the tables and reports
//! each mistake at its place.

mod pattern;

use pattern::{Names, Text, is_identifier};
use rx_base::edit_distance::nearest;
use rx_base::name::name;
use rx_base::{Code, DType, Diagnostic, Name, Span};
use rx_ops::user::pattern::{AxisPattern, Condition, DtypePattern, TypePattern};
use rx_ops::user::{Declaration, DeclaredAttr, DeclaredDefault, DeclaredParam, Operators, Takes};
use rx_settings::{RawEntry, RawTable, RawValue};

/// Returns the operators that the tables declare, and the mistakes in them. A table with a mistake declares no
/// operator.
pub fn declared_operators(tables: &[RawTable]) -> (Operators, Vec<Diagnostic<Span>>) {
    let mut mistakes = Vec::new();
    let mut declarations: Vec<Declaration> = Vec::new();
    for table in tables {
        let before = mistakes.len();
        let mut reader = Reader { mistakes: &mut mistakes };
        let Some(declaration) = reader.operator(table).filter(|_| reader.mistakes.len() == before) else { continue };
        if declarations.iter().any(|other| other.name == declaration.name) {
            let message = format!("`{}` is declared twice", declaration.name);
            reader.say(table.get("name").map_or(table.place, |entry| entry.place), message);
            continue;
        }
        declarations.push(declaration);
    }
    (Operators::new(declarations), mistakes)
}

const OPERATOR_KEYS: [&str; 8] = ["name", "doc", "pure", "args", "attrs", "dtypes", "where", "result"];
const ARGUMENT_KEYS: [&str; 5] = ["name", "type", "optional", "variadic", "doc"];
const ATTRIBUTE_KEYS: [&str; 8] = ["name", "type", "default", "optional", "choices", "min", "max", "doc"];
const ATTRIBUTE_TYPES: [&str; 10] = ["int", "float", "bool", "str", "dtype", "ints", "floats", "strs", "layout", "any"];

struct Reader<'a> {
    mistakes: &'a mut Vec<Diagnostic<Span>>,
}

impl Reader<'_> {
    fn say(&mut self, span: Span, message: impl Into<String>) {
        self.mistakes.push(Diagnostic::new(Code::OperatorDeclaration, span, message.into()));
    }

    /// Reports unknown keys.
    fn keys(&mut self, table: &RawTable, known: &[&str]) {
        for entry in &table.entries {
            if known.contains(&entry.key.as_str()) {
                continue;
            }
            let message = format!("`{}` means nothing here", entry.key);
            let mut report = Diagnostic::new(Code::OperatorDeclaration, entry.key_place, message);
            report = match nearest(&entry.key, known.iter().copied()) {
                Some(near) => report.with_help(format!("did you mean `{near}`?")),
                None => report.with_help(format!("the keys are {}", known.join(", "))),
            };
            self.mistakes.push(report);
        }
    }

    fn string<'t>(&mut self, table: &'t RawTable, key: &str) -> Option<Text<'t>> {
        let entry = table.get(key)?;
        match &entry.value {
            RawValue::String(text) => Some(Text { text, place: entry.place }),
            _ => {
                self.say(entry.place, format!("`{key}` must be a string"));
                None
            }
        }
    }

    fn bool(&mut self, table: &RawTable, key: &str, default: bool) -> bool {
        match table.get(key).map(|entry| (&entry.value, entry.place)) {
            None => default,
            Some((RawValue::Bool(value), _)) => *value,
            Some((_, place)) => {
                self.say(place, format!("`{key}` must be `true` or `false`"));
                default
            }
        }
    }

    /// Returns the tables in an array.
    fn tables<'t>(&mut self, table: &'t RawTable, key: &str) -> Vec<&'t RawTable> {
        let Some(entry) = table.get(key) else { return Vec::new() };
        let RawValue::Array(items) = &entry.value else {
            self.say(entry.place, format!("`{key}` must be an array of tables: `[{{ name = \"…\", type = \"…\" }}]`"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (place, item) in items {
            match item {
                RawValue::Table(table) => tables.push(table),
                _ => self.say(*place, format!("`{key}` is an array of tables")),
            }
        }
        tables
    }

    /// Returns the strings of a value that is one string or an array of strings.
    fn strings<'t>(&mut self, entry: &'t RawEntry) -> Vec<Text<'t>> {
        match &entry.value {
            RawValue::String(text) => vec![Text { text, place: entry.place }],
            RawValue::Array(items) => {
                let mut texts = Vec::new();
                for (place, item) in items {
                    match item {
                        RawValue::String(text) => texts.push(Text { text, place: *place }),
                        _ => self.say(*place, format!("`{}` takes strings", entry.key)),
                    }
                }
                texts
            }
            _ => {
                self.say(entry.place, format!("`{}` takes a string, or an array of strings", entry.key));
                Vec::new()
            }
        }
    }

    fn operator(&mut self, table: &RawTable) -> Option<Declaration> {
        self.keys(table, &OPERATOR_KEYS);
        let operator = self.operator_name(table);
        let doc = self.string(table, "doc").map_or_else(String::new, |text| text.text.to_owned());
        let pure = self.bool(table, "pure", true);
        let mut params = Vec::new();
        for argument in self.tables(table, "args") {
            params.extend(self.operand(argument));
        }
        let operands = params.len();
        for attribute in self.tables(table, "attrs") {
            params.extend(self.attribute(attribute));
        }
        self.check_params(table, &params, operands);
        let result = self.result(table);
        let dtypes = self.dtypes(table);
        let constraints = self.constraints(table);
        let (result, result_text) = result?;
        let declaration = Declaration {
            name: operator?,
            doc: sentence(&doc),
            pure,
            params,
            dtypes,
            constraints,
            result,
            result_text,
        };
        self.check_names(table, &declaration);
        Some(declaration)
    }

    fn operator_name(&mut self, table: &RawTable) -> Option<Name> {
        let Some(text) = self.string(table, "name") else {
            if table.get("name").is_none() {
                self.say(table.place, "an operator needs a `name`: `name = \"my.op\"` is called as `R.my.op(…)`");
            }
            return None;
        };
        let plain = text.text.strip_prefix("R.").unwrap_or(text.text);
        if plain.is_empty() || !plain.split('.').all(is_identifier) {
            self.say(
                text.place,
                format!("`{}` cannot be called: a name is identifiers with dots between, `my.op`", text.text),
            );
            return None;
        }
        if rx_ops::find(name(plain)).is_some() || crate::elaborate::is_special_form(plain) {
            self.say(text.place, format!("`R.{plain}` is an operator of Relax, and keeps its meaning"));
            return None;
        }
        Some(name(plain))
    }

    fn param_name(&mut self, table: &RawTable, subject: &str) -> Option<Name> {
        let Some(text) = self.string(table, "name") else {
            if table.get("name").is_none() {
                self.say(table.place, format!("{subject} needs a `name`"));
            }
            return None;
        };
        if !is_identifier(text.text) {
            self.say(text.place, format!("`{}` is no name of an argument", text.text));
            return None;
        }
        Some(name(text.text))
    }

    fn operand(&mut self, table: &RawTable) -> Option<DeclaredParam> {
        self.keys(table, &ARGUMENT_KEYS);
        let param = self.param_name(table, "an argument")?;
        let doc = self.string(table, "doc").map_or_else(String::new, |text| text.text.to_owned());
        let ty = match self.string(table, "type") {
            Some(text) => (self.type_pattern(&text)?, text.text.to_owned()),
            None if table.get("type").is_some() => return None,
            None => (TypePattern::Any, "R.Any".to_owned()),
        };
        let optional = self.bool(table, "optional", false);
        let variadic = self.bool(table, "variadic", false);
        Some(DeclaredParam { name: param, doc, takes: Takes::Operand { ty: ty.0, text: ty.1, optional, variadic } })
    }

    fn type_pattern(&mut self, text: &Text<'_>) -> Option<TypePattern> {
        match pattern::type_pattern(text) {
            Ok(pattern) => Some(pattern),
            Err(mistake) => {
                self.say(mistake.span, mistake.message);
                None
            }
        }
    }

    fn attribute(&mut self, table: &RawTable) -> Option<DeclaredParam> {
        self.keys(table, &ATTRIBUTE_KEYS);
        let param = self.param_name(table, "an attribute")?;
        let doc = self.string(table, "doc").map_or_else(String::new, |text| text.text.to_owned());
        let kind = self.attribute_kind(table)?;
        let default = match table.get("default") {
            Some(entry) => Some(self.default_value(entry, &kind)?),
            None => self.bool(table, "optional", false).then_some(DeclaredDefault::Absent),
        };
        let (least, most) = (self.limit(table, "min", &kind), self.limit(table, "max", &kind));
        Some(DeclaredParam { name: param, doc, takes: Takes::Attr { kind, default, least, most } })
    }

    fn attribute_kind(&mut self, table: &RawTable) -> Option<DeclaredAttr> {
        let choices = table.get("choices").map(|entry| self.strings(entry));
        let choices = choices.map(|texts| texts.iter().map(|text| text.text.to_owned()).collect::<Vec<_>>());
        let Some(text) = self.string(table, "type") else {
            return match (table.get("type"), choices) {
                (Some(_), _) => None,
                (None, Some(choices)) => Some(DeclaredAttr::Choice(choices)),
                (None, None) => Some(DeclaredAttr::Any),
            };
        };
        Some(match (text.text, choices) {
            ("str", Some(choices)) => DeclaredAttr::Choice(choices),
            ("str", None) => DeclaredAttr::Str,
            (_, Some(_)) => {
                self.say(text.place, "`choices` are strings, so the type is `str`");
                return None;
            }
            ("int", _) => DeclaredAttr::Int,
            ("float", _) => DeclaredAttr::Float,
            ("bool", _) => DeclaredAttr::Bool,
            ("dtype", _) => DeclaredAttr::DType,
            ("ints", _) => DeclaredAttr::Ints,
            ("floats", _) => DeclaredAttr::Floats,
            ("strs", _) => DeclaredAttr::Strs,
            ("layout", _) => DeclaredAttr::Layout,
            ("any", _) => DeclaredAttr::Any,
            (other, _) => {
                let message = format!("there is no attribute type `{other}`");
                let near = nearest(other, ATTRIBUTE_TYPES);
                let help = near.map_or_else(
                    || format!("the types are {}", ATTRIBUTE_TYPES.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                let report = Diagnostic::new(Code::OperatorDeclaration, text.place, message);
                self.mistakes.push(report.with_help(help));
                return None;
            }
        })
    }

    fn limit(&mut self, table: &RawTable, key: &str, kind: &DeclaredAttr) -> Option<f64> {
        let entry = table.get(key)?;
        let number = match &entry.value {
            RawValue::Integer(Some(value)) => Some(*value as f64),
            RawValue::Float(value) if !value.is_nan() => Some(*value),
            _ => None,
        };
        if number.is_none() || !matches!(kind, DeclaredAttr::Int | DeclaredAttr::Float) {
            self.say(entry.place, format!("`{key}` is a number, of an attribute that is one"));
            return None;
        }
        number
    }

    fn default_value(&mut self, entry: &RawEntry, kind: &DeclaredAttr) -> Option<DeclaredDefault> {
        let value = match (&entry.value, kind) {
            (RawValue::Bool(value), DeclaredAttr::Bool | DeclaredAttr::Any) => Some(DeclaredDefault::Bool(*value)),
            (RawValue::Integer(Some(value)), DeclaredAttr::Int | DeclaredAttr::Ints | DeclaredAttr::Any) => {
                Some(DeclaredDefault::Int(*value))
            }
            (RawValue::Integer(Some(value)), DeclaredAttr::Float) => Some(DeclaredDefault::Float(*value as f64)),
            (RawValue::Float(value), DeclaredAttr::Float | DeclaredAttr::Any) => Some(DeclaredDefault::Float(*value)),
            (RawValue::String(text), DeclaredAttr::Choice(choices)) if !choices.contains(text) => {
                self.say(entry.place, format!("\"{text}\" is none of the choices: {}", choices.join(", ")));
                return None;
            }
            (RawValue::String(text), DeclaredAttr::DType) if DType::parse(text).is_none() => {
                self.say(entry.place, format!("\"{text}\" is no dtype"));
                return None;
            }
            (
                RawValue::String(text),
                DeclaredAttr::Str
                | DeclaredAttr::Choice(_)
                | DeclaredAttr::DType
                | DeclaredAttr::Layout
                | DeclaredAttr::Any,
            ) => Some(DeclaredDefault::Str(text.clone())),
            (RawValue::Array(items), DeclaredAttr::Ints) => {
                let ints = items.iter().map(|(_, item)| match item {
                    RawValue::Integer(value) => *value,
                    _ => None,
                });
                ints.collect::<Option<Vec<i64>>>().map(DeclaredDefault::Ints)
            }
            (RawValue::Array(items), DeclaredAttr::Floats) => {
                let floats = items.iter().map(|(_, item)| match item {
                    RawValue::Integer(value) => value.map(|value| value as f64),
                    RawValue::Float(value) => Some(*value),
                    _ => None,
                });
                floats.collect::<Option<Vec<f64>>>().map(DeclaredDefault::Floats)
            }
            _ => None,
        };
        if value.is_none() {
            self.say(entry.place, "the default is not of the attribute's type; for `None` write `optional = true`");
        }
        value
    }

    /// Checks that names are unique, and that a variadic operand is the last one.
    fn check_params(&mut self, table: &RawTable, params: &[DeclaredParam], operands: usize) {
        for (at, param) in params.iter().enumerate() {
            if params[..at].iter().any(|other| other.name == param.name) {
                self.say(table.place, format!("two arguments are called `{}`", param.name));
            }
            if matches!(param.takes, Takes::Operand { variadic: true, .. }) && at + 1 != operands {
                let message = format!("`{}` takes any number of operands and must be the last of `args`", param.name);
                self.say(table.get("args").map_or(table.place, |entry| entry.place), message);
            }
        }
    }

    fn result(&mut self, table: &RawTable) -> Option<(TypePattern, String)> {
        let Some(entry) = table.get("result") else {
            return Some((TypePattern::Tuple(Vec::new()), "R.Tuple()".to_owned()));
        };
        let texts = self.strings(entry);
        let many = matches!(entry.value, RawValue::Array(_));
        let mut fields = Vec::new();
        for text in &texts {
            fields.push(self.type_pattern(text)?);
        }
        let shown: Vec<&str> = texts.iter().map(|text| text.text).collect();
        match (many, fields.len()) {
            (false, 1) => Some((fields.remove(0), shown.concat())),
            (false, _) => None,
            (true, _) => Some((TypePattern::Tuple(fields), format!("R.Tuple({})", shown.join(", ")))),
        }
    }

    fn dtypes(&mut self, table: &RawTable) -> Vec<(Name, Vec<DType>)> {
        let Some(entry) = table.get("dtypes") else { return Vec::new() };
        let RawValue::Table(variables) = &entry.value else {
            self.say(entry.place, "`dtypes` is a table: `dtypes = { d = [\"float16\", \"float32\"] }`");
            return Vec::new();
        };
        let mut read = Vec::new();
        for variable in &variables.entries {
            let mut allowed = Vec::new();
            for text in self.strings(variable) {
                match DType::parse(text.text) {
                    Some(dtype) => allowed.push(dtype),
                    None => self.say(text.place, format!("\"{}\" is no dtype", text.text)),
                }
            }
            read.push((name(&variable.key), allowed));
        }
        read
    }

    fn constraints(&mut self, table: &RawTable) -> Vec<(Condition, String)> {
        let Some(entry) = table.get("where") else { return Vec::new() };
        let mut read = Vec::new();
        for text in self.strings(entry) {
            match pattern::condition(&text) {
                Ok(condition) => read.push((condition, text.text.to_owned())),
                Err(mistake) => self.say(mistake.span, mistake.message),
            }
        }
        read
    }

    /// Checks that every name in a type or condition is bound by an operand or is an attribute.
    fn check_names(&mut self, table: &RawTable, declaration: &Declaration) {
        let mut names = Names::default();
        for param in &declaration.params {
            if let Takes::Operand { ty, .. } = &param.takes {
                names.bind(ty);
            }
        }
        let is_param = |name: Name| declaration.params.iter().any(|param| param.name == name);
        let unknown = |name: Name| !names.dims.contains(&name) && !is_param(name);
        let mut wrong: Vec<(&str, String)> = Vec::new();
        for (part, types) in [
            ("args", declaration.params.iter().filter_map(operand_type).collect::<Vec<_>>()),
            ("result", vec![&declaration.result]),
        ] {
            for ty in types {
                ty.each_axis(&mut |axis| match axis {
                    AxisPattern::Rest(rest) if !names.rests.contains(rest) => {
                        wrong.push((part, format!("`*{rest}` is bound by no argument's shape")));
                    }
                    AxisPattern::Rest(_) => {}
                    AxisPattern::One(dim) => dim.each_name(&mut |name| {
                        if unknown(name) {
                            wrong
                                .push((part, format!("`{name}` is bound by no argument's shape, and is no attribute")));
                        }
                    }),
                });
                ty.each_dtype(&mut |dtype| {
                    each_dtype_name(dtype, &mut |name| {
                        if !names.dtypes.contains(&name) && !is_param(name) {
                            wrong.push((part, format!("dtype `{name}` is bound by no argument, and is no attribute")));
                        }
                    })
                });
                each_operand_name(ty, &mut |name| {
                    if !declaration.params.iter().any(|param| param.name == name && operand_type(param).is_some()) {
                        wrong.push((part, format!("`{name}` is no argument whose type could be taken")));
                    }
                });
            }
        }
        for (condition, text) in &declaration.constraints {
            condition.each_name(&mut |name| {
                if unknown(name) {
                    let message = format!("`{name}` of `{text}` is bound by no argument's shape, and is no attribute");
                    wrong.push(("where", message));
                }
            });
        }
        for (variable, _) in &declaration.dtypes {
            if !names.dtypes.contains(variable) {
                wrong.push(("dtypes", format!("dtype `{variable}` is bound by no argument")));
            }
        }
        wrong.dedup();
        for (key, message) in wrong {
            self.say(table.get(key).map_or(table.place, |entry| entry.place), message);
        }
    }
}

fn operand_type(param: &DeclaredParam) -> Option<&TypePattern> {
    match &param.takes {
        Takes::Operand { ty, .. } => Some(ty),
        Takes::Attr { .. } => None,
    }
}

fn each_dtype_name(dtype: &DtypePattern, visit: &mut dyn FnMut(Name)) {
    match dtype {
        DtypePattern::Name(name) => visit(*name),
        DtypePattern::Or(name, other) => {
            visit(*name);
            each_dtype_name(other, visit);
        }
        DtypePattern::Any | DtypePattern::Is(_) => {}
    }
}

/// Calls `visit` with each operand whose type a pattern copies.
fn each_operand_name(ty: &TypePattern, visit: &mut dyn FnMut(Name)) {
    match ty {
        TypePattern::Like(name) => visit(*name),
        TypePattern::Tuple(fields) => fields.iter().for_each(|field| each_operand_name(field, visit)),
        TypePattern::Repeated(field) => each_operand_name(field, visit),
        TypePattern::Choice(_, then, otherwise) => {
            each_operand_name(then, visit);
            each_operand_name(otherwise, visit);
        }
        _ => {}
    }
}

/// Returns the text with a period at its end, if it has none.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}
