//! `--emit`: a stage of the program as text.

use crate::args::{Args, Emit};
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use rx_lower::Program;

/// The module as rx prints it.
pub fn relax(session: &Session, report: &mut Report) -> Result<(), Failure> {
    let document = session.workspace.document(session.file);
    report.out(rx_syntax::format::format(document, rx_syntax::dialect::Dialect::Tvm027).trim_end());
    Ok(())
}

/// The program's kernels at a stage.
pub fn stage(stage: Emit, program: &Program, _args: &Args, report: &mut Report) -> Result<(), Failure> {
    match stage {
        Emit::Relax => Ok(()),
        Emit::Tir => {
            for kernel in &program.kernels {
                report.out(&rx_tir::print::script(&kernel.func));
            }
            Ok(())
        }
        Emit::Cuda | Emit::Ptx | Emit::Cpu => Err(Failure::usage("this stage is not there yet")),
    }
}
