//! The command line of `rx-lsp`.

/// The text of `--help`.
pub const USAGE: &str = "usage: rx-lsp [--stdio] [--clientProcessId N] [--verbose]

Speaks the Language Server Protocol on stdin and stdout.

  --stdio               the only transport, and the default
  --clientProcessId N   exit when process N ends
  --verbose             log the server's steps with their times to standard error; RX_LOG filters them
  --version             print the version
  --help                print this help";

/// The action that the command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Serve one client.
    Serve {
        /// The process to watch: when it ends, the server ends.
        client_process: Option<u32>,
        /// Whether tracing spans are logged to standard error.
        verbose: bool,
    },
    /// Print this text and exit.
    Print(String),
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// A sentence for the user.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut client_process = None;
    let mut verbose = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stdio" => {}
            "--verbose" => verbose = true,
            "--version" | "-V" => return Ok(Command::Print(format!("rx-lsp {}", env!("CARGO_PKG_VERSION")))),
            "--help" | "-h" => return Ok(Command::Print(USAGE.to_owned())),
            "--clientProcessId" => {
                let value = arguments.next().ok_or("`--clientProcessId` requires a process id")?;
                client_process = Some(process_id(&value)?);
            }
            other => match other.strip_prefix("--clientProcessId=") {
                Some(value) => client_process = Some(process_id(value)?),
                None => return Err(format!("unknown argument `{other}`")),
            },
        }
    }
    Ok(Command::Serve { client_process, verbose })
}

fn process_id(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not a process id"))
}

#[cfg(test)]
mod tests {
    use super::{Command, parse};

    fn of(arguments: &[&str]) -> Result<Command, String> {
        parse(arguments.iter().map(|argument| argument.to_string()))
    }

    #[test]
    fn arguments_of_editors_are_accepted() {
        assert_eq!(of(&[]), Ok(Command::Serve { client_process: None, verbose: false }));
        assert_eq!(
            of(&["--stdio", "--clientProcessId=7"]),
            Ok(Command::Serve { client_process: Some(7), verbose: false })
        );
        assert_eq!(of(&["--clientProcessId", "7"]), Ok(Command::Serve { client_process: Some(7), verbose: false }));
        assert_eq!(of(&["--verbose"]), Ok(Command::Serve { client_process: None, verbose: true }));
        assert!(matches!(of(&["--version"]), Ok(Command::Print(text)) if text.starts_with("rx-lsp ")));
    }

    #[test]
    fn other_arguments_are_named_in_the_error() {
        assert_eq!(of(&["--socket=3"]), Err("unknown argument `--socket=3`".into()));
        assert_eq!(of(&["--clientProcessId", "x"]), Err("`x` is not a process id".into()));
        assert!(of(&["--clientProcessId"]).is_err());
    }
}
