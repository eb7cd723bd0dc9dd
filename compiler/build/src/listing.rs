//! The kernels of a program as text, and the statements that each comes from.

use crate::queries::{self, LoopsKey};
use rx_base::Span;
use rx_cuda::Named;
use rx_cuda::rules::Target;
use rx_db::{ModuleId, Statements, Workspace};
use rx_lower::{Kernel, Program};
use rx_tir::Stmt;
use std::ops::Range;

/// A text, and its lines that are each kernel.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The text.
    pub text: String,
    /// How many lines it has.
    pub lines: usize,
    /// The kernels, in order.
    pub parts: Vec<Part>,
}

/// A kernel of a text; of passes a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its lines of the text, from 0.
    pub lines: Range<usize>,
    /// The statements of the program that it comes from.
    pub places: Vec<Span>,
}

/// Kernels that do the same.
pub struct Group<'p> {
    /// The first.
    pub first: &'p Kernel,
    /// All of them.
    pub kernels: Vec<&'p Kernel>,
}

impl Listing {
    /// A text without kernels.
    pub fn of(text: String) -> Listing {
        Listing { lines: text.lines().count(), text, parts: Vec::new() }
    }

    /// A text with a text for each group of kernels, after `head`.
    pub fn of_groups(
        head: String,
        (workspace, module): (&Workspace, ModuleId),
        groups: &[Group<'_>],
        texts: impl IntoIterator<Item = String>,
    ) -> Listing {
        let mut listing = Listing::of(head);
        let statements = workspace.statements(module);
        for (group, text) in groups.iter().zip(texts) {
            listing.push(group.first.name.to_string(), &text, places(&statements, group));
        }
        listing
    }

    /// Adds a kernel's text, and an empty line.
    fn push(&mut self, name: String, text: &str, places: Vec<Span>) {
        let text = text.trim_end();
        let start = self.lines;
        let end = start + text.bytes().filter(|byte| *byte == b'\n').count() + 1;
        self.text.push_str(text);
        self.text.push_str("\n\n");
        self.lines = end + 1;
        self.parts.push(Part { name, lines: start..end, places });
    }
}

/// The kernels of a program, equal ones together.
pub fn groups(program: &Program) -> Vec<Group<'_>> {
    let (index, kernels) = program.distinct();
    let mut groups: Vec<Group<'_>> = kernels.into_iter().map(|first| Group { first, kernels: Vec::new() }).collect();
    for (kernel, at) in program.kernels.iter().zip(index) {
        groups.get_mut(at).into_iter().for_each(|group| group.kernels.push(kernel));
    }
    groups
}

/// The kernels of a program as loops.
pub fn loops(workspace: &Workspace, module: ModuleId, program: &Program) -> Listing {
    let groups = groups(program);
    let texts = groups.iter().map(|group| loops_text(workspace, group.first));
    Listing::of_groups(String::new(), (workspace, module), &groups, texts)
}

/// The kernels of a program as CUDA C. One that has none is a comment with the reason.
pub fn cuda(workspace: &Workspace, module: ModuleId, program: &Program, target: &Target) -> Listing {
    let groups = groups(program);
    let rx_cuda::Listing { head, functions, .. } = cuda_text(workspace, &groups, target);
    let texts = functions.into_iter().map(|text| text.unwrap_or_else(|why| comment("//", &why.to_string())));
    Listing::of_groups(head, (workspace, module), &groups, texts)
}

/// A kernel's loops as TVMScript.
pub fn loops_text(workspace: &Workspace, kernel: &Kernel) -> String {
    let db = workspace.database();
    queries::loops_text(db, LoopsKey::new(db, &kernel.loops)).named(kernel.name.as_str())
}

/// The CUDA C of kernels as it is built, kernel by kernel, and how each is scheduled.
pub fn cuda_text(workspace: &Workspace, groups: &[Group<'_>], target: &Target) -> rx_cuda::Listing {
    let db = workspace.database();
    let scheduled = |group: &Group<'_>| queries::scheduled(db, LoopsKey::new(db, &group.first.loops), target.clone());
    let scheduled: Vec<_> = groups.iter().map(scheduled).collect();
    let named = groups.iter().map(|group| Named { name: group.first.name, origins: &group.first.origins });
    rx_cuda::joined(&scheduled.iter().map(|scheduled| &**scheduled).zip(named).collect::<Vec<_>>())
}

/// A line of a comment; names and reasons may hold anything.
pub fn comment(mark: &str, text: &str) -> String {
    let clean = |letter: char| if letter.is_control() || letter == '\\' { ' ' } else { letter };
    format!("{mark} {}\n", text.chars().map(clean).collect::<String>())
}

/// The statements that kernels come from, in the order of the text: those that call them, and those of prim_funcs in their loops.
fn places(statements: &Statements<'_>, group: &Group<'_>) -> Vec<Span> {
    let mut origins: Vec<_> = group.kernels.iter().flat_map(|kernel| &kernel.origins).copied().collect();
    // Kernels of a group have the same loops.
    group.first.loops.body.walk(&mut |stmt| {
        if let Stmt::Store { site, .. } = stmt {
            origins.extend(site.origin);
        }
    });
    origins.sort_unstable();
    origins.dedup();
    let spans = origins.into_iter().filter_map(|origin| statements.span(origin));
    let mut places: Vec<Span> = spans.collect();
    places.sort_unstable();
    places.dedup();
    places
}
