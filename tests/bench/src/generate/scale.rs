//! Generates programs with a given number of bindings.

use super::function::Function;
use super::layers::{image_type, residual_block, sequence_type, transformer_layer};

/// The kinds of layers in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Residual blocks.
    Resnet,
    /// Transformer layers.
    Transformer,
    /// Both alternately.
    Mixed,
}

impl Kind {
    fn has_residual_blocks(self) -> bool {
        self != Kind::Transformer
    }

    fn has_transformer_layers(self) -> bool {
        self != Kind::Resnet
    }
}

/// The options of a generated program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The number of bindings, rounded up to whole layers.
    pub bindings: usize,
    /// The kinds of layers.
    pub kind: Kind,
    /// The number of functions; a single one is `main`.
    pub functions: usize,
    /// Whether several functions get a `main` that calls them. Its signature repeats every weight.
    pub with_main: bool,
    /// Whether transformer layers have a symbolic batch and sequence length.
    pub symbolic: bool,
}

impl Scale {
    /// Creates options for `bindings` bindings with both kinds of layers in one `main`.
    pub fn new(bindings: usize) -> Scale {
        Scale { bindings, kind: Kind::Mixed, functions: 1, with_main: true, symbolic: false }
    }

    /// Distributes the layers over `functions` functions that nothing calls.
    pub fn split(self, functions: usize) -> Scale {
        Scale { functions, with_main: false, ..self }
    }

    fn batch_and_length(self) -> (&'static str, &'static str) {
        if self.symbolic { ("b", "s") } else { ("1", "16") }
    }

    /// The kind of layers of the function at `index`: a single function has both kinds, several functions alternate.
    fn kind_of(self, index: usize) -> Kind {
        match self.kind {
            Kind::Mixed if self.functions > 1 && index.is_multiple_of(2) => Kind::Resnet,
            Kind::Mixed if self.functions > 1 => Kind::Transformer,
            kind => kind,
        }
    }
}

/// The values at the end of a chain of layers.
struct Ends {
    image: Option<String>,
    sequence: Option<String>,
}

impl Ends {
    /// Returns the returned expression and its type.
    fn returned(&self, sequence_type: &str) -> (String, String) {
        let image_type = image_type();
        match (&self.image, &self.sequence) {
            (Some(image), Some(sequence)) => {
                (format!("{image}, {sequence}"), format!("R.Tuple({image_type}, {sequence_type})"))
            }
            (Some(image), None) => (image.clone(), image_type),
            (None, Some(sequence)) => (sequence.clone(), sequence_type.to_owned()),
            (None, None) => ("R.tuple()".to_owned(), "R.Tuple".to_owned()),
        }
    }
}

struct Part {
    function: Function,
    kind: Kind,
    returned: String,
    returned_type: String,
}

/// Returns the text of a well-typed module.
pub fn scale(options: &Scale) -> String {
    let several = options.functions > 1;
    let parts: Vec<Part> = (0..options.functions.max(1)).map(|index| part(options, index)).collect();
    let mut text = String::new();
    if options.symbolic {
        text.push_str("# from typing import TypeVar\n");
    }
    text.push_str("# from tvm.script import ir as I\n# from tvm.script import relax as R\n\n");
    if options.symbolic {
        text.push_str("b = TypeVar(\"b\")\ns = TypeVar(\"s\")\n");
    }
    text.push_str("@I.ir_module\nclass Module:\n");
    let functions: Vec<String> =
        parts.iter().map(|part| part.function.text("", &part.returned, &part.returned_type)).collect();
    text.push_str(&functions.join("\n"));
    if several && options.with_main {
        text.push('\n');
        text.push_str(&main_calling(options, &parts));
    }
    text
}

fn part(options: &Scale, index: usize) -> Part {
    let several = options.functions > 1;
    let name = if several { format!("part{index:05}") } else { "main".to_owned() };
    let kind = options.kind_of(index);
    let (batch, length) = options.batch_and_length();
    let wanted = (options.bindings / options.functions.max(1)).max(1);
    let mut function = Function::new(name, several);
    let mut ends = inputs(&mut function, kind, options);
    let mut layer = 0;
    while function.len() < wanted {
        match (&ends.image, &ends.sequence) {
            (Some(image), sequence) if sequence.is_none() || layer % 2 == 0 => {
                ends.image = Some(residual_block(&mut function, image, layer));
            }
            (_, Some(sequence)) => {
                ends.sequence = Some(transformer_layer(&mut function, sequence, layer, batch, length));
            }
            // `inputs` gives every kind at least one chain.
            _ => break,
        }
        layer += 1;
    }
    let (returned, returned_type) = ends.returned(&sequence_type(batch, length));
    Part { function, kind, returned, returned_type }
}

/// Adds the parameters with which the chains of `kind` begin.
fn inputs(function: &mut Function, kind: Kind, options: &Scale) -> Ends {
    let (batch, length) = options.batch_and_length();
    let image = kind.has_residual_blocks().then(|| function.param("x", image_type()));
    let sequence = kind.has_transformer_layers().then(|| function.param("y", sequence_type(batch, length)));
    Ends { image, sequence }
}

/// Returns a `main` that passes its own parameters to every part.
fn main_calling(options: &Scale, parts: &[Part]) -> String {
    let (batch, length) = options.batch_and_length();
    let mut main = Function::new("main".to_owned(), false);
    let mut ends = inputs(&mut main, options.kind, options);
    for part in parts {
        let end = if part.kind == Kind::Resnet { &mut ends.image } else { &mut ends.sequence };
        let mut arguments = vec![end.clone().unwrap_or_default()];
        // The first parameter is the input of the chain, the others are weights.
        for (name, annotation) in part.function.params.iter().skip(1) {
            arguments.push(main.param(format!("{}_{name}", part.function.name), annotation.clone()));
        }
        let call = format!("cls.{}({})", part.function.name, arguments.join(", "));
        *end = Some(main.bind(&part.returned_type, &call));
    }
    let (returned, returned_type) = ends.returned(&sequence_type(batch, length));
    main.text("        cls = Module\n", &returned, &returned_type)
}
