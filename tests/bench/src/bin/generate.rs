//! Writes a generated program to standard output.

use rx_bench::generate::{Kind, Language, Scale, network, scale};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

const USAGE: &str = "usage: generate scale N [--kind resnet|transformer|mixed] [--split K] [--no-main] [--dyn]
       generate network N [--language relax|mlir|python]

  scale     about N bindings of residual blocks and transformer layers
  network   N operators, a chain of convolutions and activations
  --split   K functions instead of one; a `main` calls them unless --no-main
  --dyn     transformer layers have a symbolic batch and sequence length";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(text) = generate(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe, which is no error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("generate: {error}");
            ExitCode::from(2)
        }
    }
}

/// Generates the text for the arguments; `None` if they are invalid.
fn generate(arguments: &[String]) -> Option<String> {
    let (subject, rest) = arguments.split_first()?;
    let (size, flags) = rest.split_first()?;
    let size = size.parse().ok()?;
    match subject.as_str() {
        "scale" => Some(scale(&scale_options(size, flags)?)),
        "network" => Some(network(size, language(flags)?)),
        _ => None,
    }
}

fn language(flags: &[String]) -> Option<Language> {
    match flags {
        [] => Some(Language::Relax),
        [flag, language] if flag == "--language" => match language.as_str() {
            "relax" => Some(Language::Relax),
            "mlir" => Some(Language::Mlir),
            "python" => Some(Language::Python),
            _ => None,
        },
        _ => None,
    }
}

fn scale_options(bindings: usize, flags: &[String]) -> Option<Scale> {
    let mut options = Scale::new(bindings);
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "--kind" => {
                options.kind = match flags.next()?.as_str() {
                    "resnet" => Kind::Resnet,
                    "transformer" => Kind::Transformer,
                    "mixed" => Kind::Mixed,
                    _ => return None,
                }
            }
            "--split" => options.functions = flags.next()?.parse().ok().filter(|count| *count > 0)?,
            "--no-main" => options.with_main = false,
            "--dyn" => options.symbolic = true,
            _ => return None,
        }
    }
    Some(options)
}
