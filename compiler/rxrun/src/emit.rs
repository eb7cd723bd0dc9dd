//! `--emit`: prints a stage of the program as text, with the source statements of each kernel.

mod extents;
mod machine;
mod passes;
mod resources;
mod schedule;

use crate::args::{Args, Emit};
use crate::device::Device;
use crate::dims;
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use rx_base::name::name;
use rx_build::listing::{self, Group, Listing, comment};
use rx_db::{Document, FileKind, FunctionKind};
use rx_lower::Program;
use rx_settings::files::is_notebook;
use rx_syntax::dialect::Dialect;
use std::path::Path;
use std::sync::Arc;

/// Prints a stage.
pub fn stage(stage: Emit, session: &Session, args: &Args, report: &mut Report) -> Result<(), Failure> {
    if matches!(stage, Emit::Relax | Emit::Passes) {
        known_entry(session, args)?;
        dims::check(args, &dims::of_module(session), "the module")?;
    }
    let mut stages = Vec::new();
    let listing = match stage {
        Emit::Relax => Listing::of(relax(session)),
        Emit::Passes => {
            let passes = passes::passes(session, args)?;
            stages = passes.stages;
            passes.listing
        }
        Emit::Ptx | Emit::Sass => machine::listing(stage, &*program(stage, session, args)?, session, args)?,
        Emit::Tir => listing::loops(&session.workspace, session.module, &*program(stage, session, args)?),
        Emit::Cpu => cpu(session, &*program(stage, session, args)?),
        Emit::Cuda | Emit::Schedule => cuda(stage, &*program(stage, session, args)?, (session, args), report),
    };
    report.emitted(stage, listing.text.trim_end(), &listing.parts, &stages);
    match stages.iter().find_map(|stage| stage.problem.as_deref()) {
        None => Ok(()),
        Some(problem) => {
            report.line(&format!("{}: {problem}", session.name));
            Err(Failure::Reported(1))
        }
    }
}

/// Lowers the function that `--entry` names, or a single prim_func of that name.
fn program(stage: Emit, session: &Session, args: &Args) -> Result<Arc<Program>, Failure> {
    let device =
        Device::to_print_for(session, args, matches!(stage, Emit::Cuda | Emit::Schedule | Emit::Ptx | Emit::Sass));
    let kind = |wanted| rx_build::function_kind(&session.workspace, session.module, wanted);
    let alone = args.entry.as_deref().map(name).filter(|wanted| kind(*wanted) == Some(FunctionKind::Prim));
    let entry = match alone {
        Some(entry) => entry,
        None => session.entry(args.entry.as_deref())?,
    };
    let program = session.lower(entry, &device)?;
    dims::check(args, &dims::of_program(session, &program), &format!("`{entry}`"))?;
    Ok(program)
}

/// Checks that the module has the function that `--entry` names, even for stages that show the whole module.
fn known_entry(session: &Session, args: &Args) -> Result<(), Failure> {
    let is_it = |wanted: &str| session.functions().iter().any(|function| function.name.as_str() == wanted);
    match args.entry.as_deref() {
        Some(wanted) if !is_it(wanted) => session.entry(Some(wanted)).map(drop),
        _ => Ok(()),
    }
}

/// Prints the module as Relax text; in a file of several modules or a notebook, only the chosen one.
fn relax(session: &Session) -> String {
    let document = session.workspace.document(session.file);
    let is_notebook = is_notebook(Path::new(&session.name));
    if !is_notebook && session.workspace.modules(session.file).len() <= 1 {
        return rx_syntax::format::format(document, Dialect::Tvm027);
    }
    let alone = Document::new(&session.workspace.alone(session.module), FileKind::Rx);
    rx_syntax::printer::print_as(&alone, Dialect::detect(document), Dialect::Tvm027)
}

/// Prints the kernels as CUDA C or their schedules; schedules are also reported as JSON objects. If NVRTC is available,
/// the kernels' registers and shared memory are included.
fn cuda(stage: Emit, program: &Program, (session, args): (&Session, &Args), report: &mut Report) -> Listing {
    let target = args.target();
    let groups = listing::groups(program);
    let printed = listing::cuda_text(&session.workspace, &groups, &target);
    let is_text = stage == Emit::Cuda;
    let archs = if is_text || target.arch == NEWEST { vec![target.arch] } else { vec![target.arch, NEWEST] };
    let needs = resources::Needs::of(&printed, &archs).unwrap_or_else(|error| {
        if !is_text {
            report.remark(&format!("the registers and the shared memory of kernels are unknown: {error}"));
        }
        resources::Needs::unknown()
    });
    let mut objects = Vec::new();
    let mut text = |(function, group): (usize, &Group<'_>)| match printed.functions.get(function) {
        Some(Ok(text)) if is_text => {
            let kernels = printed.kernels.get(function).map_or(&[][..], Vec::as_slice);
            resources::commented(text, function, kernels, &needs)
        }
        Some(Ok(_)) => {
            let values = extents::values(program, group.first, &session.choices.dims);
            let scheduled = schedule::Scheduled { listing: &printed, function, values: &values };
            objects.extend(scheduled.objects());
            scheduled.text(&needs)
        }
        Some(Err(why)) => comment("//", &why.to_string()),
        None => String::new(),
    };
    let texts: Vec<String> = groups.iter().enumerate().map(&mut text).collect();
    report.kernels(objects);
    let head = if is_text { printed.head } else { String::new() };
    Listing::of_groups(head, (&session.workspace, session.module), &groups, texts)
}

/// The newest CUDA architecture that is supported. Schedules show the kernels' resources for it too.
const NEWEST: u32 = 90;

/// Prints the machine code of the kernels, each after its name.
fn cpu(session: &Session, program: &Program) -> Listing {
    let groups = listing::groups(program);
    let text = |Group { first, .. }: &Group<'_>| match rx_cpu::CpuModule::listing(&first.func()) {
        Ok(listing) => format!("{}{listing}", comment(";", &first.name)),
        Err(error) => comment(";", &format!("{} is interpreted: {error}", first.name)),
    };
    Listing::of_groups(String::new(), (&session.workspace, session.module), &groups, groups.iter().map(text))
}
