//! Programs of a wanted number of bindings.

use super::function::Function;
use super::layers::{image_type, residual_block, sequence_type, transformer_layer};

/// Which layers a program is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Residual blocks.
    Resnet,
    /// Transformer layers.
    Transformer,
    /// Both by turns.
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

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// How many bindings; rounded up to whole layers.
    pub bindings: usize,
    /// Of which layers.
    pub kind: Kind,
    /// In how many functions; with one, it is `main`.
    pub functions: usize,
    /// Whether several functions get a `main` that calls them, whose signature repeats every weight.
    pub with_main: bool,
    /// Whether transformer layers have a symbolic batch and sequence length.
    pub symbolic: bool,
}

impl Scale {
    /// `bindings` bindings of both kinds of layers in one `main`.
    pub fn new(bindings: usize) -> Scale {
        Scale { bindings, kind: Kind::Mixed, functions: 1, with_main: true, symbolic: false }
    }

    /// The same in `functions` functions that nobody calls.
    pub fn split(self, functions: usize) -> Scale {
        Scale { functions, with_main: false, ..self }
    }

    fn batch_and_length(self) -> (&'static str, &'static str) {
        if self.symbolic { ("b", "s") } else { ("1", "16") }
    }

    /// The layers of the function at `index`: one function has all kinds, several take turns.
    fn kind_of(self, index: usize) -> Kind {
        match self.kind {
            Kind::Mixed if self.functions > 1 && index.is_multiple_of(2) => Kind::Resnet,
            Kind::Mixed if self.functions > 1 => Kind::Transformer,
            kind => kind,
        }
    }
}

/// A chain of layers: the values at its end.
struct Ends {
    image: Option<String>,
    sequence: Option<String>,
}

impl Ends {
    /// The returned expression and its type.
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

/// The text of a well-typed module.
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

/// Adds the parameters the chains of `kind` begin with.
fn inputs(function: &mut Function, kind: Kind, options: &Scale) -> Ends {
    let (batch, length) = options.batch_and_length();
    let image = kind.has_residual_blocks().then(|| function.param("x", image_type()));
    let sequence = kind.has_transformer_layers().then(|| function.param("y", sequence_type(batch, length)));
    Ends { image, sequence }
}

/// A `main` that passes its own parameters on to every part.
fn main_calling(options: &Scale, parts: &[Part]) -> String {
    let (batch, length) = options.batch_and_length();
    let mut main = Function::new("main".to_owned(), false);
    let mut ends = inputs(&mut main, options.kind, options);
    for part in parts {
        let end = if part.kind == Kind::Resnet { &mut ends.image } else { &mut ends.sequence };
        let mut arguments = vec![end.clone().unwrap_or_default()];
        // The first parameter is the chain's input, the others are weights.
        for (name, annotation) in part.function.params.iter().skip(1) {
            arguments.push(main.param(format!("{}_{name}", part.function.name), annotation.clone()));
        }
        let call = format!("cls.{}({})", part.function.name, arguments.join(", "));
        *end = Some(main.bind(&part.returned_type, &call));
    }
    let (returned, returned_type) = ends.returned(&sequence_type(batch, length));
    main.text("        cls = Module\n", &returned, &returned_type)
}
