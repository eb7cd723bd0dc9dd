//! The process that runs compiled kernels. The simulator keeps it for later calls, since starting a process takes
//! longer than most kernels.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// The maximum size in bytes of commands that always fit the buffer of a pipe. Larger commands must be written while
/// the output is read, or both processes could block.
const FITS_A_PIPE: usize = 4096;

/// A running process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// The thread that reads the process's error output; a full pipe would block the process.
    report: Option<JoinHandle<Vec<u8>>>,
}

impl Process {
    /// Starts the executable with the kernels.
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

    /// Sends commands and reads their output into `answer`, which must be as long as the output. Returns `None` if the
    /// process exits before.
    pub(super) fn ask(&mut self, commands: &[u8], answer: &mut [u8]) -> Option<()> {
        let (input, output) = (self.input.as_mut()?, &mut self.output);
        // If the process has exited, writing fails; then the output is also incomplete, which reading reports.
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

    /// Waits for the process to exit. Returns its exit status and its error output.
    pub(super) fn end(mut self) -> io::Result<String> {
        drop(self.input.take());
        let status = self.child.wait()?;
        let report = self.report.take().and_then(|report| report.join().ok()).unwrap_or_default();
        Ok(format!("{status}\n{}", String::from_utf8_lossy(&report)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killing fails if the process has already exited; it must be waited for in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
