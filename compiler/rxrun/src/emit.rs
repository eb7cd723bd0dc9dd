//! `--emit`: a stage of the program as text, kernel by kernel, with the statements each comes from.

mod extents;
mod machine;
mod passes;
mod resources;
mod schedule;

use crate::args::{Args, Emit};
use crate::device::Device;
use crate::dims;
use crate::failure::Failure;
use crate::report::{Part, Report, Stage};
use crate::session::Session;
use rx_base::Span;
use rx_base::name::name;
use rx_cuda::rules::Target;
use rx_db::{Document, FileKind};
use rx_lower::{Kernel, Program};
use rx_syntax::dialect::Dialect;
use rx_tir::{PrimFunc, Stmt};
use std::sync::Arc;

/// Prints a stage.
pub fn stage(stage: Emit, session: &Session, args: &Args, report: &mut Report) -> Result<(), Failure> {
    if matches!(stage, Emit::Relax | Emit::Passes) {
        known_entry(session, args)?;
        dims::check(args, &dims::of_module(session), "the module")?;
    }
    let listing = match stage {
        Emit::Relax => Listing::whole(relax(session)),
        Emit::Passes => passes::listing(session, args)?,
        Emit::Ptx | Emit::Sass => {
            let program = program(stage, session, args)?;
            machine::listing(stage, &program, session, args)?
        }
        Emit::Tir | Emit::Cuda | Emit::Schedule | Emit::Cpu => {
            let program = program(stage, session, args)?;
            kernels(stage, &program, groups(&program), (session, args), report)
        }
    };
    report.kernels(listing.kernels);
    report.emitted(stage, listing.text.trim_end(), &listing.parts, &listing.stages);
    match listing.stages.iter().find_map(|stage| stage.problem.as_deref()) {
        None => Ok(()),
        Some(problem) => {
            report.line(&format!("{}: {problem}", session.name));
            Err(Failure::Reported(1))
        }
    }
}

/// The kernels of the function asked for, or the one that a prim_func of this name is.
fn program(stage: Emit, session: &Session, args: &Args) -> Result<Arc<Program>, Failure> {
    let device =
        Device::to_print_for(session, args, matches!(stage, Emit::Cuda | Emit::Schedule | Emit::Ptx | Emit::Sass));
    let entry = match args.entry.as_deref().filter(|wanted| session.is_prim_func(wanted)) {
        Some(wanted) => name(wanted),
        None => session.entry(args.entry.as_deref())?,
    };
    let program = session.lower(entry, &device.target())?;
    dims::check(args, &dims::of_program(session, &program), &format!("`{entry}`"))?;
    Ok(program)
}

/// Checks that the module has the function that --entry names, though the whole module is shown.
fn known_entry(session: &Session, args: &Args) -> Result<(), Failure> {
    let is_it = |wanted: &str| session.functions().iter().any(|function| function.name.as_str() == wanted);
    match args.entry.as_deref() {
        Some(wanted) if !is_it(wanted) => session.entry(Some(wanted)).map(drop),
        _ => Ok(()),
    }
}

/// The module as rx prints it; of a file of several without the others.
fn relax(session: &Session) -> String {
    let document = session.workspace.document(session.file);
    if session.workspace.modules(session.file).len() <= 1 {
        return rx_syntax::format::format(document, Dialect::Tvm027);
    }
    let alone = Document::new(&session.workspace.alone(session.module), FileKind::Rx);
    rx_syntax::printer::print_as(&alone, Dialect::detect(document), Dialect::Tvm027)
}

/// A text, and which lines of it are which kernel.
struct Listing {
    text: String,
    lines: usize,
    parts: Vec<Part>,
    /// Of passes what each made.
    stages: Vec<Stage>,
    /// Of schedules an object for each kernel.
    kernels: Vec<serde_json::Value>,
}

impl Listing {
    fn whole(text: String) -> Listing {
        Listing { lines: 0, text, parts: Vec::new(), stages: Vec::new(), kernels: Vec::new() }
    }

    /// Adds a kernel's text, and an empty line.
    fn push(&mut self, name: String, text: &str, places: Vec<Span>) {
        let text = text.trim_end();
        let start = self.lines;
        let end = start + text.lines().count();
        self.text.push_str(text);
        self.text.push_str("\n\n");
        self.lines = end + 1;
        self.parts.push(Part { name, lines: start..end, places });
    }
}

/// Kernels that do the same.
struct Group<'p> {
    func: PrimFunc,
    /// All of them.
    kernels: Vec<&'p Kernel>,
}

/// The kernels of a program, equal ones together.
fn groups(program: &Program) -> Vec<Group<'_>> {
    let (index, funcs) = rx_runtime::distinct(program);
    let mut groups: Vec<Group<'_>> = funcs.into_iter().map(|func| Group { func, kernels: Vec::new() }).collect();
    for (kernel, at) in program.kernels.iter().zip(index) {
        groups.get_mut(at).into_iter().for_each(|group| group.kernels.push(kernel));
    }
    groups
}

/// The text of kernels at a stage. One that cannot be made is a comment that says why.
fn kernels(
    stage: Emit,
    program: &Program,
    groups: Vec<Group<'_>>,
    (session, args): (&Session, &Args),
    report: &mut Report,
) -> Listing {
    let funcs: Vec<&PrimFunc> = groups.iter().map(|group| &group.func).collect();
    let (head, texts, kernels) = match stage {
        Emit::Cuda | Emit::Schedule => {
            let calls: Vec<_> = groups
                .iter()
                .map(|group| {
                    extents::values(program, (&group.func, group.kernels.first().copied()), &session.choices.dims)
                })
                .collect();
            cuda(stage, &funcs, &calls, &args.target(), report)
        }
        Emit::Cpu => (String::new(), funcs.into_iter().map(cpu).collect(), Vec::new()),
        _ => (String::new(), funcs.into_iter().map(rx_tir::print::script).collect(), Vec::new()),
    };
    let mut listing = Listing { lines: head.lines().count(), kernels, ..Listing::whole(head) };
    for (group, text) in groups.iter().zip(texts) {
        listing.push(group.func.name.to_string(), &text, places(group, session));
    }
    listing
}

/// The text before CUDA kernels, the text of each function or its schedule, and an object for each kernel of a schedule; with what
/// kernels need of a device where NVRTC is there to say it. `calls` are the values of each function's variables.
fn cuda(
    stage: Emit,
    funcs: &[&PrimFunc],
    calls: &[Vec<Option<i64>>],
    target: &Target,
    report: &mut Report,
) -> (String, Vec<String>, Vec<serde_json::Value>) {
    let listing = rx_runtime::cuda::listing(funcs, target);
    let is_text = stage == Emit::Cuda;
    let archs = if is_text || target.arch == NEWEST { vec![target.arch] } else { vec![target.arch, NEWEST] };
    let needs = resources::Needs::of(&listing, &archs).unwrap_or_else(|error| {
        if !is_text {
            report.remark(&format!("the registers and the shared memory of kernels are unknown: {error}"));
        }
        resources::Needs::unknown()
    });
    let text = |(function, values): (usize, &Vec<Option<i64>>)| match listing.functions.get(function) {
        Some(Ok(text)) if is_text => {
            let kernels = listing.kernels.get(function).map_or(&[][..], Vec::as_slice);
            resources::commented(text, function, kernels, &needs)
        }
        Some(Ok(_)) => schedule::Scheduled { listing: &listing, function, values }.text(&needs),
        Some(Err(why)) => comment("//", &why.to_string()),
        None => String::new(),
    };
    let texts = calls.iter().enumerate().map(text).collect();
    if is_text {
        return (listing.head, texts, Vec::new());
    }
    let mut objects = Vec::new();
    for (function, values) in calls.iter().enumerate() {
        objects.extend(schedule::Scheduled { listing: &listing, function, values }.objects());
    }
    (String::new(), texts, objects)
}

/// The newest architecture that is promised; schedules are told for it, too.
const NEWEST: u32 = 90;

/// The machine code, under the kernel's name.
fn cpu(func: &PrimFunc) -> String {
    match rx_cpu::CpuModule::listing(func) {
        Ok(listing) => format!("{}{listing}", comment(";", &func.name)),
        Err(error) => comment(";", &format!("{} is interpreted: {error}", func.name)),
    }
}

/// A line of a comment; names and reasons may hold anything.
fn comment(mark: &str, text: &str) -> String {
    let clean = |letter: char| if letter.is_control() || letter == '\\' { ' ' } else { letter };
    format!("{mark} {}\n", text.chars().map(clean).collect::<String>())
}

/// The statements that kernels come from, in the order of the text: those that call them, and those of prim_funcs that
/// stand in their loops.
fn places(group: &Group<'_>, session: &Session) -> Vec<Span> {
    let mut origins = Vec::new();
    for kernel in &group.kernels {
        origins.extend_from_slice(&kernel.origins);
        kernel.loops.body.walk(&mut |stmt| {
            if let Stmt::Store { site, .. } = stmt {
                origins.extend(site.origin);
            }
        });
    }
    origins.sort_unstable();
    origins.dedup();
    let mut places: Vec<Span> = origins.into_iter().filter_map(|origin| session.span(origin)).collect();
    places.sort_unstable();
    places.dedup();
    places
}
