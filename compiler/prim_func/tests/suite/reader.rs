//! Reads small prim_funcs and compares the result, and reads the programs that RX_MODELS and RX_CASES name.

mod constructs;
mod corpus;
mod keywords;
mod leave;
mod macros;
mod mistakes;
mod run;

use corpus::read_all;
use rx_syntax::document::FileKind;
use rx_syntax::{Segment, Segments};
use rx_tir::print::script;
use rx_tir::renumber::renumber;
use rx_tir::rewrite::map_stmt_shallow;
use rx_tir::{Expr, PrimFunc, Stmt};
use std::sync::Arc;

/// Checks that printing a function and reading it again gives the same function, up to ids, names and positions, and
/// that the printed text has no unbound names.
fn round_trip(place: &str, func: &PrimFunc) {
    let text = script(func);
    let segments = Segments::from_iter([Arc::new(Segment::new(text.as_str().into()))]);
    let unbound = rx_prim_func::names::unbound_names(&segments, &rx_context::FileContext::default());
    assert!(unbound.is_empty(), "{place}: {unbound:?}\n{text}");
    reads_back(place, func);
}

/// Does the same as [`round_trip`], but allows unbound names in the text.
fn reads_back(place: &str, func: &PrimFunc) {
    let text = script(func);
    let segments = [Arc::new(Segment::new(text.as_str().into()))];
    let signature = rx_prim_func::signature::prim_func_signature(
        segments.iter().map(|s| &**s),
        &rx_context::FileContext::default(),
    );
    let params = signature.map_or(Vec::new(), |signature| signature.params.to_vec());
    let opaque: Vec<bool> = params.iter().map(|param| matches!(param.kind, rx_ir::PrimParamKind::Opaque)).collect();
    let handles: Vec<bool> = func.params.iter().map(|param| matches!(param, rx_tir::func::Param::Handle(_))).collect();
    assert_eq!(opaque, handles, "{place}: {params:?}\n{text}");
    let mut again = read_all(&text, FileKind::Rx);
    assert_eq!(again.len(), 1, "{place}: {text}");
    match again.remove(0) {
        Ok(again) => {
            assert_eq!(script(&again), text, "{place}");
            // A NaN is not equal to itself, so only the texts are compared if there is one.
            if !text.contains("(\"nan\")") {
                assert!(comparable(&again) == comparable(func), "{place}: {text}");
            }
        }
        Err(mistakes) => panic!("{place}: {mistakes:?}\n{text}"),
    }
}

/// Returns the function without statement numbers and names of variables and buffers, for a comparison.
fn comparable(func: &PrimFunc) -> PrimFunc {
    let mut func = renumber(func);
    func.body = without_places(&func.body);
    // The printer makes names unique; the original names have no meaning.
    func.vars.iter_mut().for_each(|var| var.name = rx_base::name::name("v"));
    func.buffers.iter_mut().for_each(|buffer| buffer.name = rx_base::name::name("b"));
    func
}

fn without_places(stmt: &Stmt) -> Stmt {
    match map_stmt_shallow(stmt, &mut Expr::clone, &mut without_places) {
        Stmt::Store { buffer, indices, value, mut site } => {
            site.origin = None;
            Stmt::Store { buffer, indices, value, site }
        }
        Stmt::Assert { condition, message, mut site } => {
            site.origin = None;
            Stmt::Assert { condition, message, site }
        }
        other => other,
    }
}
