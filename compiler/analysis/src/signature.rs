//! Headers and signatures of a module's items.

use crate::elaborate::{SegmentResult, elaborate_signature};
use crate::entry::{Entry, Outer};
use crate::file_context::FileContext;
use crate::prim_func::prim_func_signature;
use rx_base::Name;
use rx_ir::Signature;
use rx_syntax::Segment;
use std::sync::Arc;

/// A Relax function's header, elaborated once: for its callers and for its own body.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// What callers see.
    pub signature: Arc<Signature>,
    /// Definitions, rows and diagnostics of the header segment.
    pub result: Arc<SegmentResult>,
}

/// Elaborates the header segment of a Relax function.
pub fn relax_header(segment: &Segment, file: &FileContext) -> Header {
    let (signature, result) = elaborate_signature(segment, file, &Nothing);
    Header { signature: Arc::new(signature), result: Arc::new(result) }
}

/// The signature of a prim_func.
pub fn prim_signature(segments: &[Arc<Segment>], file: &FileContext) -> Signature {
    prim_func_signature(segments.iter().map(|segment| &**segment), file).map_or(Signature::Opaque, Signature::Prim)
}

/// A header sees nothing but the file.
struct Nothing;

impl Outer for Nothing {
    fn lookup(&self, _name: Name) -> Option<Entry> {
        None
    }

    fn signature(&self, _name: Name) -> Option<Arc<Signature>> {
        None
    }
}

/// The external functions a module-level segment declares: `f = R.ExternFunc("f", R.Callable(…))`.
pub fn externs(segment: &Segment, file: &FileContext) -> Vec<(Name, rx_ir::StructInfo)> {
    crate::elaborate::extern_declarations(segment, file, &Nothing)
}
