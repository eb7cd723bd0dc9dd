//! A run that works for another process ends with it.

use rx_base::process::OWNER;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts a run that waits for the end of its input.
fn waiting(owner: Option<u32>) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxrun"));
    command.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.envs(owner.map(|owner| (OWNER, owner.to_string())));
    command.spawn().expect("it starts")
}

/// Whether a process has a thread of this name.
fn has_thread(process: u32, name: &str) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let mut names = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|own| own.trim_end() == name)
}

#[test]
fn run_ends_when_its_owner_is_killed() {
    if !Path::new("/proc/self/task").exists() {
        println!("skipped: no /proc on this system");
        return;
    }
    let mut owner = waiting(None);
    let mut run = waiting(Some(owner.id()));
    // The input stays open, so only the end of the owner ends the run.
    let input = run.stdin.take();
    while !has_thread(run.id(), "owner") {
        std::thread::yield_now();
    }
    owner.kill().and_then(|()| owner.wait()).expect("the owner ends");
    run.stdout.take().expect("a pipe").read_to_string(&mut String::new()).expect("the end of its output");
    assert!(!run.wait().expect("it ended").success());
    drop(input);
}
