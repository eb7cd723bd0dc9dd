//! Tests of `rxcheck lsp`, with the real server if it is built.

use crate::harness::{command, folder, rxcheck, stderr, stdout};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_folder_of_that_name_is_checked_when_it_is_written_as_a_path() {
    let folder = folder(&[("lsp/a.rx", "x = 1\n")]);
    for arguments in [&["./lsp"][..], &["--hints", "lsp"]] {
        assert!(stderr(&rxcheck(&folder, arguments)).contains("1 file"), "{arguments:?}");
    }
}

#[test]
fn without_a_server_there_is_one_clear_error() {
    let folder = folder(&[]);
    let alone = folder.path().join(format!("rxcheck{}", std::env::consts::EXE_SUFFIX));
    std::fs::copy(env!("CARGO_BIN_EXE_rxcheck"), &alone).expect("a copy beside which there is no server");
    let mut command = std::process::Command::new(&alone);
    let output = command.args(["lsp", "--stdio"]).env("PATH", folder.path()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said =
        "rxcheck: `rx-lsp`, the language server, was found neither in the folder of rxcheck nor in PATH: install it\n";
    assert_eq!((stdout(&output), stderr(&output)), ("", said));
}

#[test]
fn the_server_beside_it_serves() {
    let name = format!("rx-lsp{}", std::env::consts::EXE_SUFFIX);
    if !Path::new(env!("CARGO_BIN_EXE_rxcheck")).with_file_name(name).is_file() {
        println!("skipped: rx-lsp is not built beside rxcheck");
        return;
    }
    let folder = folder(&[]);
    let version = rxcheck(&folder, &["lsp", "--version"]);
    assert!(stdout(&version).starts_with("rx-lsp "), "{}", stdout(&version));
    let me = format!("--clientProcessId={}", std::process::id());
    let mut server = command(folder.path(), &["lsp", "--stdio", &me])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = server.stdin.take().expect("a pipe");
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#;
    let shutdown = r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#;
    let exit = r#"{"jsonrpc":"2.0","method":"exit"}"#;
    for message in [initialize, shutdown, exit] {
        write!(input, "Content-Length: {}\r\n\r\n{message}", message.len()).expect("it listens");
    }
    let mut said = String::new();
    server.stdout.take().expect("a pipe").read_to_string(&mut said).expect("it speaks");
    assert!(said.contains("\"name\":\"rx-lsp\""), "{said}");
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
    assert_eq!(rxcheck(&folder, &["lsp", "--socket=3"]).status.code(), Some(2));
}
