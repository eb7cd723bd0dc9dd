//! The child processes of several documents, and of a server that is killed.

use crate::run::{Bench, TEXT, URI};
use serde_json::{Value, json};
use std::io::ErrorKind;

#[test]
fn third_run_waits_until_one_of_two_has_ended() {
    let mut bench = Bench::progress("hang");
    let mut runs = Vec::new();
    let mut children = Vec::new();
    for uri in [URI, "untitled:b", "untitled:c", "untitled:d"] {
        bench.client.open(uri, 1, TEXT);
        let id = bench.run(json!([uri, "main"]));
        runs.push((id, bench.accept_progress()));
        match children.len() {
            0 | 1 => children.push(bench.running()),
            _ => while bench.state()["message"] != "waiting for other runs" {},
        }
    }
    bench.listener.set_nonblocking(true).expect("a listener");
    assert_eq!(bench.listener.accept().expect_err("two run").kind(), ErrorKind::WouldBlock);
    bench.listener.set_nonblocking(false).expect("a listener");
    // A run that waits can be cancelled.
    let cancel = |bench: &mut Bench, (id, token): &(i64, Value)| {
        bench.client.notify("window/workDoneProgress/cancel", json!({"token": token}));
        let result = bench.client.answer(*id).expect("a result");
        assert_eq!((&result["cancelled"], &result["message"]), (&json!(true), &json!("`main` was cancelled")));
    };
    cancel(&mut bench, &runs[2]);
    cancel(&mut bench, &runs[0]);
    children[0].is_gone();
    assert_eq!(bench.running().report["arguments"][1], "--stdin-name=d");
    bench.goes_on();
}

#[test]
fn killed_server_leaves_no_child() {
    if cfg!(not(unix)) {
        println!("skipped: processes are watched on Unix");
        return;
    }
    let mut bench = Bench::plain("hang");
    bench.client.open(URI, 1, TEXT);
    bench.run(json!([URI, "main"]));
    let mut running = bench.running();
    bench.client.kill();
    running.is_gone();
}
