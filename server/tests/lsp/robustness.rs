//! The server survives undecodable input, and ends when its client is gone.

use crate::client::{Client, change};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const URI: &str = "file:///a.rx";

#[test]
fn malformed_messages_are_answered_with_an_error() {
    let mut client = Client::initialized("utf-16");
    let frame = |body: &[u8]| [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat();
    client.send_raw(b"hello?\r\n");
    assert_eq!(client.complaint()["code"], -32700);
    client.send_raw(&frame(b"{\"jsonrpc\":"));
    assert_eq!(client.complaint()["code"], -32700);
    client.send_raw(&frame(b"\"\xff\xfe\""));
    assert_eq!(client.complaint()["code"], -32700);
    client.send_raw(&frame(b"[1, 2]"));
    assert_eq!(client.complaint()["code"], -32600);
    // A response whose id matches no request of the server is ignored.
    client.send_raw(&frame(br#"{"jsonrpc":"2.0","id":77,"result":{}}"#));
    let refused = client.request("textDocument/hover", json!({"textDocument": 1})).expect_err("not a hover");
    assert_eq!(refused["code"], -32602);
    assert_eq!(client.request("rx/nothing", Value::Null).expect_err("no such method")["code"], -32601);
    client.open(URI, 1, "");
    assert_eq!(client.diagnostics(URI, Some(1)), Vec::<Value>::new());
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn unknown_optional_request_is_answered_and_unknown_optional_notification_is_not() {
    let mut client = Client::initialized("utf-16");
    client.notify("$/nothing", json!({"value": 1}));
    assert_eq!(client.request("$/nothing", json!({"value": 1})).expect_err("no such method")["code"], -32601);
    // A notification that is sent as a request is no valid request.
    assert_eq!(client.request("$/cancelRequest", json!({"id": 99})).expect_err("no request")["code"], -32600);
    assert_eq!(client.quit(), Some(0));
    assert!(client.unread().all(|message| message["error"].is_null()), "the notification has no response");
}

#[test]
fn requests_for_unopened_documents_are_answered() {
    let mut client = Client::initialized("utf-16");
    client.change(URI, 2, json!([change((0, 0), (0, 1), "x")]));
    client.close(URI);
    let hover = json!({"textDocument": {"uri": URI}, "position": {"line": 9, "character": 9}});
    assert_eq!(client.request("textDocument/hover", hover), Ok(Value::Null));
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn positions_outside_the_text_are_moved_into_it() {
    let mut client = Client::initialized("utf-16");
    client.open(URI, 1, "# 🦀");
    client.diagnostics(URI, Some(1));
    let most = u32::MAX;
    client.change(
        URI,
        2,
        json!([change((0, 3), (0, 3), " "), change((most, most), (most, most), "\n"), change((3, 0), (0, 0), "")]),
    );
    client.diagnostics(URI, Some(2));
    let hover = json!({"textDocument": {"uri": URI}, "position": {"line": most, "character": most}});
    client.request("textDocument/hover", hover).expect("an answer, if only null");
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn a_cancelled_request_is_answered_once() {
    let mut client = Client::initialized("utf-16");
    client.open(URI, 1, "x = 1\n");
    let hover = json!({"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}});
    let id = client.ask("textDocument/hover", hover);
    client.notify("$/cancelRequest", json!({"id": id}));
    // The request is cancelled, or it is answered before the cancellation is handled.
    if let Err(error) = client.answer(id) {
        assert_eq!(error["code"], -32800);
    }
    client.diagnostics(URI, Some(1));
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn requests_before_initialize_are_refused() {
    let mut client = Client::start(&[]);
    let hover = json!({"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}});
    assert_eq!(client.request("textDocument/hover", hover).expect_err("too early")["code"], -32002);
    client.initialize(json!({}));
    assert_eq!(client.quit(), Some(0));
}

#[test]
fn exit_without_shutdown_is_a_failure() {
    let mut client = Client::initialized("utf-16");
    client.notify("exit", Value::Null);
    assert_eq!(client.status(), Some(1));

    let mut client = Client::start(&[]);
    client.notify("exit", Value::Null);
    assert_eq!(client.status(), Some(1));
}

#[test]
fn a_closed_input_ends_the_server() {
    let mut client = Client::initialized("utf-16");
    client.open(URI, 1, "");
    client.hang_up();
    // Responses to earlier messages are still sent.
    assert_eq!(client.diagnostics(URI, Some(1)), Vec::<Value>::new());
    assert_eq!(client.status(), Some(1));

    let mut client = Client::initialized("utf-16");
    assert_eq!(client.request("shutdown", Value::Null), Ok(Value::Null));
    client.hang_up();
    assert_eq!(client.status(), Some(0));
}

#[test]
fn the_server_ends_with_the_process_it_was_named() {
    if !std::path::Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc on this system");
        return;
    }
    // Any process that runs until it is stopped serves as the editor.
    let mut editor = Command::new(env!("CARGO_BIN_EXE_rx-lsp"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a stand-in for the editor");
    let mut client = Client::start(&["--clientProcessId", &editor.id().to_string()]);
    client.initialize(json!({}));
    editor.kill().and_then(|()| editor.wait()).expect("the stand-in ends");
    assert_eq!(client.status(), Some(1));
}

#[test]
fn server_whose_editor_is_dead_at_initialize_ends() {
    if !std::path::Path::new("/proc/self/stat").exists() {
        println!("skipped: no /proc on this system");
        return;
    }
    let mut editor = Command::new(env!("CARGO_BIN_EXE_rx-lsp"))
        .arg("--version")
        .stdout(Stdio::null())
        .spawn()
        .expect("a stand-in for the editor");
    editor.wait().expect("the stand-in ends");
    let mut client = Client::start(&[]);
    let params = json!({"processId": editor.id(), "rootUri": null, "capabilities": {}});
    client.request("initialize", params).expect("initialize succeeds");
    assert_eq!(client.status(), Some(1));
}

#[test]
fn the_version_is_printed() {
    let output = Command::new(env!("CARGO_BIN_EXE_rx-lsp")).arg("--version").output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("rx-lsp {}\n", env!("CARGO_PKG_VERSION")));
    let status = Command::new(env!("CARGO_BIN_EXE_rx-lsp")).arg("--pipe=x").output().expect("it runs").status;
    assert_eq!(status.code(), Some(2));
}
