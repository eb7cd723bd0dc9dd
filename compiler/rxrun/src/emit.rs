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
pub fn stage(stage: Emit, program: &Program, args: &Args, report: &mut Report) -> Result<(), Failure> {
    match stage {
        Emit::Relax => {}
        Emit::Tir => report.out(tir(program).trim_end()),
        Emit::Cuda => report.out(cuda(program)?.trim_end()),
        Emit::Ptx => {
            let number = args.arch.strip_prefix("sm_").and_then(|number| number.parse::<u32>().ok());
            let arch = number.ok_or_else(|| Failure::usage(format!("--arch {}: write sm_80", args.arch)))?;
            let ptx = rx_cuda::nvrtc::compile(&cuda(program)?, arch, rx_cuda::nvrtc::Output::Ptx);
            let ptx = ptx.map_err(|error| Failure::usage(error.to_string()))?;
            report.out(String::from_utf8_lossy(&ptx).trim_end_matches(['\0', '\n']));
        }
        Emit::Cpu => report.out(cpu(program).trim_end()),
    }
    Ok(())
}

/// The kernels, one function each.
fn tir(program: &Program) -> String {
    program.kernels.iter().map(|kernel| rx_tir::print::script(&kernel.func) + "\n").collect()
}

fn cuda(program: &Program) -> Result<String, Failure> {
    let (source, _) = rx_runtime::cuda::source(program).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(source.text)
}

/// The kernels' machine code.
fn cpu(program: &Program) -> String {
    let mut text = String::new();
    for kernel in &program.kernels {
        match rx_cpu::CpuModule::listing(&kernel.func) {
            Ok(listing) => text.push_str(&listing),
            Err(error) => text.push_str(&format!("; {} is interpreted: {error}\n", kernel.func.name)),
        }
        text.push('\n');
    }
    text
}
