//! Reports floats stored to buffers of integers, if the conversion loses information or may lose it.

use super::Walk;
use crate::reader::stored::is_in_range;
use rx_base::diagnostic::Severity;
use rx_base::{Code, DType, Diagnostic};
use rx_context::ItemPlace;

impl Walk<'_> {
    /// Reports a float that is stored to a buffer of integers, if the buffer's dtype cannot represent it or may not
    /// be able to.
    pub(super) fn report_converted(&mut self, (from, constant): (DType, Option<f64>), into: DType, place: &ItemPlace) {
        let mut found = match constant {
            Some(number) => {
                let message =
                    format!("the constant {number} is stored to a buffer of {into}, which does not have this value");
                let outcome = match is_in_range(number, into) {
                    true => format!("TVM stores {} and warns", number.trunc()),
                    false => format!("TVM refuses the constant: it is out of the range of {into}"),
                };
                Diagnostic::new(Code::DtypeMismatch, place.clone(), message)
                    .with_note(outcome)
                    .with_help(format!("store a value of {into}, or declare the buffer as {from}"))
            }
            None => {
                let message = format!("a value of {from} is stored to a buffer of {into}");
                Diagnostic::new(Code::DtypeMismatch, place.clone(), message)
                    .with_note(
                        "the fraction is lost, and a value that does not fit is undefined; TVM converts it and warns",
                    )
                    .with_help(format!(
                        "write the conversion, `T.Cast(\"{into}\", …)`, or declare the buffer as {from}"
                    ))
            }
        };
        found.severity = Severity::Warning;
        self.found.push(found);
    }
}
