//! Runs the tests of the TextMate grammar with VS Code's engine: `editors/vscode/test/grammar.mjs` on node.

use rx_grammar_tests::workspace;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn every_text_is_coloured() {
    let extension = workspace().join("editors/vscode");
    if Command::new("node").arg("--version").output().is_err() {
        return println!("skipped: no program node in PATH");
    }
    if !extension.join("node_modules/vscode-textmate").is_dir() {
        return println!("skipped: no vscode-textmate; `npm ci` in editors/vscode installs it");
    }
    let mut texts: Vec<PathBuf> = rx_tests::cases::files(&workspace().join("examples"), "rx");
    if let Some(cases) = rx_tests::cases::folder() {
        texts.push(cases.join("cases/modules.jsonl"));
        texts.extend(rx_tests::cases::files(&cases.join("models"), "rx"));
        texts.extend(rx_tests::cases::files(&cases.join("models"), "py"));
    }
    if let Some(models) = std::env::var_os("RX_MODELS").map(PathBuf::from) {
        texts.extend(rx_tests::cases::files(&models, "rx"));
    }
    let output = Command::new("node").arg("test/grammar.mjs").args(&texts).current_dir(&extension).output();
    let output = output.expect("INVARIANT: node was found above");
    let said = [output.stdout, output.stderr].concat();
    println!("{}", String::from_utf8_lossy(&said));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}
