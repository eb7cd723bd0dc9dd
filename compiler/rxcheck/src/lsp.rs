//! `rxcheck lsp`: starts the language server, for editors that are configured with one program only. The server is the
//! separate binary `rx-lsp`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The first argument that starts the server. A file or folder of that name must be given as `./lsp`.
const WORD: &str = "lsp";

/// Returns the language server's arguments, if the process's first argument is `lsp`.
pub fn asked(mut arguments: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    arguments.nth(1).filter(|first| first == WORD)?;
    Some(arguments.collect())
}

/// Replaces this process by the language server; where the system cannot do that, runs it as a child and waits.
pub fn serve(arguments: Vec<OsString>) -> ExitCode {
    let server = server();
    let mut command = Command::new(&server);
    command.args(arguments);
    match run(&mut command) {
        Ok(status) => status,
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::NotFound => {
                    "`rx-lsp`, the language server, was found neither in the folder of rxcheck nor in PATH: install it"
                        .to_owned()
                }
                _ => format!("{} cannot be started: {error}", server.display()),
            };
            // Nothing more can be done if stderr is closed.
            let _ = writeln!(io::stderr(), "rxcheck: {why}");
            ExitCode::from(2)
        }
    }
}

/// Returns the path of the `rx-lsp` in this program's folder, otherwise the bare name, which the system looks up in
/// PATH.
fn server() -> PathBuf {
    let name = format!("rx-lsp{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(&name)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

/// Replaces the process. Returns only if that fails.
#[cfg(unix)]
fn run(command: &mut Command) -> io::Result<ExitCode> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn run(command: &mut Command) -> io::Result<ExitCode> {
    let status = command.status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(if status.success() { 0 } else { 1 })))
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn lsp_as_first_argument_starts_the_server() {
        let of = |words: &[&str]| asked(words.iter().map(Into::into));
        assert_eq!(of(&["rxcheck", "lsp", "--stdio"]), Some(vec!["--stdio".into()]));
        assert_eq!(of(&["rxcheck", "lsp"]), Some(Vec::new()));
        for files in
            [&["rxcheck", "./lsp"][..], &["rxcheck", "a.rx", "lsp"], &["rxcheck", "--quiet", "lsp"], &["lsp"], &[]]
        {
            assert_eq!(of(files), None, "{files:?}");
        }
    }
}
