//! Prints the kernels of a program, and finds the source statements that each comes from.

use crate::queries::{self, LoopsKey};
use rx_base::Span;
use rx_cuda::Named;
use rx_cuda::rules::Target;
use rx_db::{ModuleId, Statements, Workspace};
use rx_lower::{Kernel, Program};
use std::ops::Range;

/// A text, and the lines of each kernel in it.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The text.
    pub text: String,
    /// The number of lines.
    pub lines: usize,
    /// The kernels, in order, equal ones once; in a listing of passes, bindings and prim_funcs.
    pub parts: Vec<Part>,
}

/// The lines of one kernel; in a listing of passes, of one binding or prim_func.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of the kernel, variable or prim_func.
    pub name: String,
    /// The lines in the text, from 0.
    pub lines: Range<usize>,
    /// The statements of the source that it comes from.
    pub places: Vec<Span>,
}

/// Kernels with equal functions.
pub struct Group<'p> {
    /// The first kernel of the group.
    pub first: &'p Kernel,
    /// All kernels of the group.
    pub kernels: Vec<&'p Kernel>,
}

impl Listing {
    /// Wraps a text without kernels.
    pub fn of(text: String) -> Listing {
        Listing { lines: text.lines().count(), text, parts: Vec::new() }
    }

    /// Concatenates `head` and a text for each group of kernels.
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

    /// Appends a kernel's text and an empty line.
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

/// Groups the kernels of a program by function.
pub fn groups(program: &Program) -> Vec<Group<'_>> {
    let (index, kernels) = program.distinct();
    let mut groups: Vec<Group<'_>> = kernels.into_iter().map(|first| Group { first, kernels: Vec::new() }).collect();
    for (kernel, at) in program.kernels.iter().zip(index) {
        groups.get_mut(at).into_iter().for_each(|group| group.kernels.push(kernel));
    }
    groups
}

/// Prints the kernels of a program as loops.
pub fn loops(workspace: &Workspace, module: ModuleId, program: &Program) -> Listing {
    let groups = groups(program);
    let texts = groups.iter().map(|group| loops_text(workspace, group.first));
    Listing::of_groups(String::new(), (workspace, module), &groups, texts)
}

/// Prints the kernels of a program as CUDA C. A kernel that cannot be printed is a comment with the reason.
pub fn cuda(workspace: &Workspace, module: ModuleId, program: &Program, target: &Target) -> Listing {
    let groups = groups(program);
    let rx_cuda::Listing { head, functions, .. } = cuda_text(workspace, &groups, target);
    let texts = functions.into_iter().map(|text| text.unwrap_or_else(|why| comment("//", &why.to_string())));
    Listing::of_groups(head, (workspace, module), &groups, texts)
}

/// Prints a kernel's loops as TVMScript.
pub fn loops_text(workspace: &Workspace, kernel: &Kernel) -> String {
    let db = workspace.database();
    queries::loops_text(db, LoopsKey::new(db, &kernel.loops)).named(kernel.name.as_str())
}

/// Prints the function of each group as CUDA C, with its launches and the scheduling remarks.
pub fn cuda_text(workspace: &Workspace, groups: &[Group<'_>], target: &Target) -> rx_cuda::Listing {
    let db = workspace.database();
    let scheduled = |group: &Group<'_>| queries::scheduled(db, LoopsKey::new(db, &group.first.loops), target.clone());
    let scheduled: Vec<_> = groups.iter().map(scheduled).collect();
    let named = groups.iter().map(|group| Named { name: group.first.name, origins: &group.first.origins });
    rx_cuda::joined(&scheduled.iter().map(|scheduled| &**scheduled).zip(named).collect::<Vec<_>>())
}

/// Formats a comment line. Control characters and backslashes become spaces, since names and reasons may contain any
/// character.
pub fn comment(mark: &str, text: &str) -> String {
    let clean = |letter: char| if letter.is_control() || letter == '\\' { ' ' } else { letter };
    format!("{mark} {}\n", text.chars().map(clean).collect::<String>())
}

/// Returns the source statements of a group of kernels, in source order and without duplicates: the statements that
/// call the kernels, and the statements of prim_funcs that their loops come from.
fn places(statements: &Statements<'_>, group: &Group<'_>) -> Vec<Span> {
    let mut origins: Vec<_> = group.kernels.iter().flat_map(|kernel| &kernel.origins).copied().collect();
    // All kernels of a group have equal loops, so the first is enough.
    origins.extend(group.first.loops.store_origins());
    origins.sort_unstable();
    origins.dedup();
    let spans = origins.into_iter().filter_map(|origin| statements.span(origin));
    let mut places: Vec<Span> = spans.collect();
    places.sort_unstable();
    places.dedup();
    places
}
