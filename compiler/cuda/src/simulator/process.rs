//! The process that runs compiled kernels. It lives as long as the simulator: to start one takes longer than most kernels do.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// Commands of so many bytes fit a pipe whatever else happens; with more, writing and reading must go on at the same time.
const FITS_A_PIPE: usize = 4096;

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// Reads what it complains of, or a full pipe would stop it.
    report: Option<JoinHandle<Vec<u8>>>,
}

impl Process {
    /// Starts the program of kernels.
    pub(super) fn start(executable: &Path) -> io::Result<Process> {
        let mut child = Command::new(executable)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("UBSAN_OPTIONS", "print_stacktrace=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let output = output.ok_or_else(|| io::Error::other("the process has no output"))?;
        let report = errors.map(|mut pipe| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = pipe.read_to_end(&mut text);
                text
            })
        });
        Ok(Process { child, input, output, report })
    }

    /// Has commands done that write as many bytes as `answer` has; `None` where it ends before.
    pub(super) fn ask(&mut self, commands: &[u8], answer: &mut [u8]) -> Option<()> {
        let (input, output) = (self.input.as_mut()?, &mut self.output);
        // A process that ends reads no more, and then its answer is cut short.
        let mut write = || input.write_all(commands).and_then(|()| input.flush());
        if commands.len() <= FITS_A_PIPE {
            let _ = write();
            return output.read_exact(answer).ok();
        }
        std::thread::scope(|scope| {
            scope.spawn(write);
            output.read_exact(answer).ok()
        })
    }

    /// Waits for its end: its exit status, and what it complained of.
    pub(super) fn end(mut self) -> io::Result<String> {
        drop(self.input.take());
        let status = self.child.wait()?;
        let report = self.report.take().and_then(|report| report.join().ok()).unwrap_or_default();
        Ok(format!("{status}\n{}", String::from_utf8_lossy(&report)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already cannot be stopped, and is waited for as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
