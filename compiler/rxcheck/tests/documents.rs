//! `docs/why.md`, `docs/stats.md` and `docs/sequence.md`: their commands print what they show.

use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The fenced blocks of a page: what stands behind the fence, and the lines inside.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push((info, inside.join("\n") + "\n"));
    }
    blocks
}

/// Writes the page's files and runs its commands; gives what each shows and prints.
fn sessions(name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let page = fs::read_to_string(&path).expect("INVARIANT: the page is part of the project");
    let folder = TempDir::new().expect("a temporary folder");
    let mut sessions = Vec::new();
    for (info, text) in blocks(&page) {
        if let Some(file) = info.strip_prefix("python ") {
            fs::write(folder.path().join(file), text).expect("a file");
        } else if info == "console" {
            let (command, shown) = text.split_once('\n').expect("a line");
            let arguments = command.strip_prefix("$ rxcheck ").expect("a command").split(' ');
            let output = Command::new(env!("CARGO_BIN_EXE_rxcheck"))
                .args(arguments)
                .current_dir(folder.path())
                .output()
                .expect("INVARIANT: cargo builds the binary before its tests");
            let said = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
            let printed = String::from_utf8_lossy(said).into_owned();
            sessions.push((format!("{command}\n{shown}"), format!("{command}\n{printed}")));
        }
    }
    assert!(!sessions.is_empty(), "{name} has no commands");
    sessions
}

#[test]
fn why_prints_what_its_page_shows() {
    for (shown, printed) in sessions("why.md") {
        assert_eq!(shown, printed);
    }
}

#[test]
fn stats_prints_what_its_page_shows() {
    for (shown, printed) in sessions("stats.md") {
        assert_eq!(shown, printed);
    }
}

#[test]
fn sequence_prints_what_its_page_shows() {
    for (shown, printed) in sessions("sequence.md") {
        assert_eq!(shown, printed);
    }
}
