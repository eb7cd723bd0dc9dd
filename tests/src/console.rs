//! Tests of the commands in pages: runs the commands of `console` blocks and compares their output with that shown.
//!
//! ```console
//! $ rxcheck --quiet examples/conv_relu_mismatch.rx    # status 1
//! …
//! ```
//!
//! - A line that starts with `$ ` is a command for `sh`. It runs in a folder that contains a copy of `examples`, and as
//!   files the page's blocks with a language and a file name (` ```python net.rx `).
//! - The lines below it are its standard output and standard error, in order of appearance. If there are no such lines,
//!   any output is accepted.
//! - `…` on a separate line matches any number of lines; within a line it matches any text.
//! - The exit status must be 0, or N if a comment `# status N` ends the command.
//! - `cargo run --release --bin NAME -- ARGUMENTS` is run as `NAME ARGUMENTS`; `cargo test` is not run.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

/// The programs whose commands are tested. Each program's crate tests its own.
const PROGRAMS: [&str; 4] = ["rxcheck", "rxfmt", "rxopt", "rxrun"];

/// A parsed page.
#[derive(Default)]
struct Page {
    /// The path relative to the repository.
    name: String,
    /// Files that the page shows completely: name and text.
    files: Vec<(String, String)>,
    steps: Vec<Step>,
}

/// A command of a page with its expected result.
struct Step {
    line: usize,
    /// The command as passed to `sh`.
    command: String,
    status: i32,
    shown: Vec<String>,
}

impl Step {
    fn program(&self) -> &str {
        self.command.split_whitespace().next().unwrap_or_default()
    }
}

/// Runs the commands of `README.md` and `docs/*.md` that start with `program`, whose executable is `binary`, in a new
/// folder below `scratch`. Returns one text for each command whose output or exit status differs from the page.
///
/// # Errors
/// An I/O error: a page cannot be read, the folder cannot be written, or `sh` cannot be started.
pub fn failures(program: &str, binary: &Path, scratch: &Path) -> io::Result<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut failures = Vec::new();
    let mut count = 0;
    for (index, path) in pages(&root)?.iter().enumerate() {
        let page = read(&root, path)?;
        let folder = scratch.join(format!("console-{program}-{index}"));
        copy(&root.join("examples"), &folder.join("examples"))?;
        for (name, text) in &page.files {
            fs::write(folder.join(name), text)?;
        }
        for step in &page.steps {
            if !PROGRAMS.contains(&step.program()) {
                failures.push(format!("{}:{}: no test runs `{}`", page.name, step.line, step.command));
            }
            if step.program() == program {
                count += 1;
                let failure = failure(step, binary, &folder)?;
                failures.extend(failure.map(|failure| format!("{}:{}: {failure}", page.name, step.line)));
            }
        }
    }
    println!("{program}: {count} commands of pages");
    if count == 0 {
        failures.push(format!("no page has a command of {program}"));
    }
    Ok(failures)
}

/// Returns `README.md` and the pages of `docs`, as paths relative to `root`.
fn pages(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut pages = vec![PathBuf::from("README.md")];
    for entry in fs::read_dir(root.join("docs"))? {
        let name = PathBuf::from("docs").join(entry?.file_name());
        if name.extension().is_some_and(|it| it == "md") {
            pages.push(name);
        }
    }
    pages.sort();
    Ok(pages)
}

fn read(root: &Path, path: &Path) -> io::Result<Page> {
    let text = fs::read_to_string(root.join(path))?;
    let mut page = Page { name: path.to_string_lossy().into_owned(), ..Page::default() };
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let inside = lines.by_ref().take_while(|(_, line)| !line.starts_with("```"));
        match info.trim_end().split_once(' ') {
            Some((_, file)) => {
                page.files.push((file.to_owned(), inside.map(|(_, line)| format!("{line}\n")).collect()));
            }
            None if info.trim_end() == "console" => page.steps.extend(steps(inside)),
            None => inside.for_each(drop),
        }
    }
    Ok(page)
}

/// Parses the commands of a block; each line has its index.
fn steps<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (index, line) in lines {
        if let Some(typed) = line.strip_prefix("$ ") {
            let (typed, status) = typed.split_once("# status ").unwrap_or((typed, "0"));
            let status = status.trim().parse().unwrap_or(-1);
            steps.push(Step { line: index + 1, command: command(typed.trim()), status, shown: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            step.shown.push(line.trim_end().to_owned());
        }
    }
    steps.retain(|step| !step.command.starts_with("cargo test"));
    steps
}

/// Replaces `cargo run` by the program, which is already built.
fn command(typed: &str) -> String {
    let built = typed.strip_prefix("cargo run --release --bin ").and_then(|rest| rest.split_once(" -- "));
    built.map_or_else(|| typed.to_owned(), |(program, arguments)| format!("{program} {arguments}"))
}

/// Runs a command; returns a text if the result differs from the page.
fn failure(step: &Step, binary: &Path, folder: &Path) -> io::Result<Option<String>> {
    let programs = binary.parent().unwrap_or(Path::new(""));
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs.to_owned()).chain(std::env::split_paths(&others)))
        .map_err(io::Error::other)?;
    let (mut reader, writer) = io::pipe()?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&step.command).current_dir(folder).env("PATH", path).env("NO_COLOR", "1");
    shell.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = shell.spawn()?;
    // The command holds the writing ends of the pipe, which must all be closed before reading can end.
    drop(shell);
    let mut printed = Vec::new();
    reader.read_to_end(&mut printed)?;
    let status = child.wait()?.code().unwrap_or(-1);
    let printed = String::from_utf8_lossy(&printed);
    let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let shown: Vec<&str> = step.shown.iter().map(String::as_str).collect();
    if status == step.status && (shown.is_empty() || same(&shown, &lines)) {
        return Ok(None);
    }
    let mut text = format!("`{}` exits with {status}", step.command);
    // INVARIANT: writing to a string does not fail.
    let _ = write!(text, " (the page says {}) and prints\n{printed}", step.status);
    Ok(Some(text))
}

/// Whether `lines` match the lines `shown`, in which `…` matches any number of lines.
fn same(shown: &[&str], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((&"…", rest)) => (0..=lines.len()).any(|at| lines.get(at..).is_some_and(|lines| same(rest, lines))),
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, lines)| is_like(first, line) && same(rest, lines))
        }
    }
}

/// Whether a line matches the line `shown`, in which `…` matches any text.
fn is_like(shown: &str, line: &str) -> bool {
    match shown.split_once('…') {
        None => shown == line,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| is_like(after, &rest[at..]))
        }),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{command, is_like, same};

    #[test]
    fn ellipsis_matches_any_text_and_any_lines() {
        assert!(is_like("took … ms", "took 1.5 ms") && !is_like("took … ms", "took 1.5 s"));
        assert!(same(&["a", "…", "d"], &["a", "b", "c", "d"]) && same(&["a", "…"], &["a"]));
        assert!(!same(&["a", "…", "d"], &["a", "b"]) && !same(&["a"], &["a", "b"]));
    }

    #[test]
    fn cargo_run_is_the_program_it_runs() {
        assert_eq!(command("cargo run --release --bin rxrun -- a.rx --repeat 2"), "rxrun a.rx --repeat 2");
    }
}
