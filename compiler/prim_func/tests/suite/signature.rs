//! Tests of the effects in signatures.

use rx_context::FileContext;
use rx_ir::PrimParamKind;
use rx_prim_func::signature::prim_func_signature;
use rx_syntax::Segment;

/// Returns whether each buffer parameter is read, and whether it is written.
fn uses(text: &str) -> Vec<(bool, bool)> {
    let segment = Segment::new(text.into());
    let signature = prim_func_signature(std::iter::once(&segment), &FileContext::default()).expect("a signature");
    let buffer = |kind: &PrimParamKind| match kind {
        PrimParamKind::Buffer(buffer) => Some((buffer.read, buffer.written)),
        _ => None,
    };
    signature.params.iter().filter_map(|param| buffer(&param.kind)).collect()
}

#[test]
fn declared_write_is_not_a_read() {
    let text = "\
@T.prim_func
def f(A: T.Buffer((4,), \"float32\"), B: T.Buffer((4,), \"float32\"), C: T.Buffer((4,), \"int32\")):
    for i in range(4):
        with T.sblock(\"B\"):
            v = T.axis.spatial(4, i)
            T.reads(A[v], C[v])
            T.writes([B[C[v]]])
            B[C[v]] = A[v]
";
    assert_eq!(uses(text), [(true, false), (false, true), (true, false)]);
}
