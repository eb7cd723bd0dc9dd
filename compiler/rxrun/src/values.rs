//! `--values`: prints the values that variables were bound to during a run.

use crate::describe::{Described, dims};
use crate::place::Place;
use crate::report::{Report, shown};
use crate::session::Session;
use crate::table::{Align, Table};
use rx_base::{Name, Span};
use rx_ir::Origin;
use rx_runtime::{KernelRun, Observer, Output};
use rx_tensor::Scalar;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// Records the value of each binding of a run. Tensors are reduced to statistics at once; their data is not kept.
#[derive(Debug, Default)]
pub struct Values {
    /// For each statement and variable, the value of the last binding.
    bindings: HashMap<(Origin, Name), Vec<Part>>,
    /// The total time of the kernels of each statement.
    times: HashMap<Origin, Duration>,
}

/// A value that is not a tuple, or such a field of a tuple.
#[derive(Debug)]
struct Part {
    /// The suffix of the variable's name: empty, or for example `.0.1` for field 1 of field 0.
    path: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Tensor(Described),
    /// A value that is not a tensor, as Relax text.
    Text(String),
}

impl Values {
    /// Prints the bindings, in the order of the text.
    pub fn tell(&self, session: &Session, report: &mut Report) {
        let source = session.source();
        let mut bindings: Vec<(Option<Span>, Origin, Name, &Vec<Part>)> = Vec::with_capacity(self.bindings.len());
        for ((origin, variable), parts) in &self.bindings {
            bindings.push((session.binding_span(*origin, *variable), *origin, *variable, parts));
        }
        bindings.sort_by_key(|(span, origin, variable, _)| (*span, origin.statement, variable.as_str()));
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("line", right),
            ("name", left),
            ("dtype", left),
            ("shape or value", left),
            ("min", right),
            ("mean", right),
            ("max", right),
            ("nan", right),
            ("time", right),
        ]);
        let mut events = Vec::new();
        let mut timed = None;
        for (span, origin, variable, parts) in bindings {
            let place = span.map(|span| Place::of(&source, span));
            for part in parts {
                // The time belongs to the statement: print it once, with the first value that the statement binds.
                let time = if timed == Some(origin) { None } else { self.times.get(&origin).copied() };
                timed = Some(origin);
                let name = format!("{variable}{}", part.path);
                table.row(row(place, &name, &part.content, time));
                events.push(event(place, &name, origin.item, &part.content, time));
            }
        }
        report.table("value", &table, events);
    }
}

fn row(place: Option<Place>, name: &str, content: &Content, time: Option<Duration>) -> [String; 9] {
    let line = place.map(Place::line).unwrap_or_default();
    let time = time.map(shown).unwrap_or_default();
    let empty = String::new;
    match content {
        Content::Tensor(tensor) => {
            let number = |value: f64| format!("{value:.6}");
            let stats = &tensor.stats;
            let (min, mean, max) = (number(stats.min), number(stats.mean), number(stats.max));
            let (dtype, nan) = (tensor.dtype.to_string(), stats.nan_count.to_string());
            [line, name.to_owned(), dtype, tensor.shape(), min, mean, max, nan, time]
        }
        Content::Text(text) => [line, name.to_owned(), empty(), text.clone(), empty(), empty(), empty(), empty(), time],
    }
}

fn event(place: Option<Place>, name: &str, function: Name, content: &Content, time: Option<Duration>) -> Value {
    let (mut fields, text) = match content {
        Content::Tensor(tensor) => (tensor.fields(name), None),
        Content::Text(text) => {
            let none =
                json!({ "name": name, "dtype": null, "shape": null, "min": null, "mean": null, "max": null, "nan": 0 });
            (none, Some(text.as_str()))
        }
    };
    if let Some(object) = fields.as_object_mut() {
        object.insert("text".to_owned(), text.into());
        object.insert("seconds".to_owned(), time.map(|time| time.as_secs_f64()).into());
        object.insert("function".to_owned(), function.as_str().into());
        if let Some(Value::Object(place)) = place.map(Place::fields) {
            object.extend(place);
        }
    }
    fields
}

impl Observer for Values {
    fn kernel(&mut self, run: &KernelRun<'_>) {
        if let Some(origin) = run.origin {
            *self.times.entry(origin).or_default() += run.time;
        }
    }

    fn bound(&mut self, origin: Origin, variable: Name, value: Output) {
        let mut parts = Vec::new();
        describe(value, String::new(), &mut parts);
        self.bindings.insert((origin, variable), parts);
    }
}

/// Describes a value, with tuples expanded into their fields. Functions are left out. For example, the value
/// `((a, b), c)` gives parts with the paths `.0.0`, `.0.1` and `.1`.
fn describe(value: Output, path: String, parts: &mut Vec<Part>) {
    let content = match value {
        Output::Tensor(tensor) => Content::Tensor(Described::of(&tensor)),
        Output::Shape(shape) => Content::Text(format!("R.shape([{}])", dims(&shape))),
        Output::Scalar(Scalar::Int(value)) => Content::Text(value.to_string()),
        Output::Scalar(Scalar::Float(value)) => Content::Text(format!("{value:?}")),
        Output::String(text) => Content::Text(format!("{text:?}")),
        Output::Null => Content::Text("R.null_value()".to_owned()),
        Output::Function(_) => return,
        Output::Tuple(fields) => {
            let fields = fields.into_iter().enumerate();
            return fields.for_each(|(at, field)| describe(field, format!("{path}.{at}"), parts));
        }
    };
    parts.push(Part { path, content });
}
