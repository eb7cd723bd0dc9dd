//! Values that lose what they are when they are stored.

use super::Walk;
use crate::function::ItemPlace;
use rx_base::{Code, DType, Diagnostic};

impl Walk<'_> {
    /// Whether a float is stored to integers.
    pub(super) fn check_converted(&mut self, from: DType, into: DType, place: &ItemPlace) {
        if !from.is_float() || !into.is_int() {
            return;
        }
        let message = format!("a value of {from} is stored to a buffer of {into}");
        let found = Diagnostic::new(Code::DtypeMismatch, place.clone(), message)
            .with_note("the fraction is lost, and what does not fit is undefined")
            .with_help(format!("write the conversion, `T.Cast(\"{into}\", …)`, or declare the buffer as {from}"));
        self.found.push(found);
    }
}
