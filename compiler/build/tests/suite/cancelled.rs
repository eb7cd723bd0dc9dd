//! Cancellation of a lowering by an edit.

use rx_base::name::name;
use rx_build::{Device, listing, program};
use rx_db::{Cancelled, FileKind, Workspace};
use std::fmt::Write as _;
use std::sync::mpsc::channel;

/// Returns the text of a function with many matmuls of different shapes, so that no kernel is cached from another.
fn long() -> String {
    let mut text =
        "from tvm.script import ir as I\nfrom tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n    \
                    @R.function\n    def main(x0: R.Tensor((8, 8), \"float32\")):\n"
            .to_owned();
    for at in 0..2000 {
        let width = at + 9;
        let _ = writeln!(text, "        w{at} = R.ones(({}, {width}), \"float32\")", width - 1);
        let _ = writeln!(text, "        x{} = R.nn.relu(R.matmul(x{at}, w{at}))", at + 1);
    }
    text + "        return x2000\n"
}

/// An edit waits until no snapshot is in use. It returns only because it cancels the lowering on the other thread.
#[test]
fn lowering_on_a_snapshot_ends_when_an_edit_comes() {
    let mut workspace = Workspace::new();
    let text = long();
    let file = workspace.add(&text, FileKind::Rx);
    assert_eq!(workspace.diagnostics(file), []);
    let (begun, wait) = channel();
    let snapshot = workspace.snapshot();
    let reader = std::thread::Builder::new().stack_size(64 << 20).spawn(move || {
        snapshot.catch(|snapshot| {
            let view = snapshot.view(file).expect("the file");
            let (workspace, module) = (view.workspace(), view.workspace().first_module(file));
            begun.send(()).expect("a listener");
            // This loop ends only when the edit cancels it.
            loop {
                let program = program(workspace, module, name("main"), &Device::Cpu).expect("a program");
                listing::loops(workspace, module, &program);
            }
        })
    });
    wait.recv().expect("it began");
    let end = text.len();
    workspace.edit(file, end..end, "\n");
    let outcome: Result<(), Cancelled> = reader.expect("a thread").join().expect("no panic");
    assert_eq!(outcome, Err(Cancelled));
}
