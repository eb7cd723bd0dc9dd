//! `--explain`: prints the page of a diagnostic code.

use crate::output::{Status, print};
use rx_base::Code;
use rx_base::edit_distance::nearest;
use std::io::Write;

/// Prints the page of a code or name; an unknown one is a usage error.
pub fn explain(text: &str, color: bool) -> Status {
    match named(text) {
        Some(code) => print(&rx_report::explain(code, color)).err().unwrap_or(Status::Clean),
        None => {
            let mut message = format!("rxcheck: no diagnostic is called `{text}`");
            match near(&text.to_lowercase()).as_slice() {
                [] => {}
                [one] => message += &format!("; did you mean `{one}`?"),
                several => message += &format!("; some are `{}`", several.join("`, `")),
            }
            // Nothing more can be done if stderr is closed.
            let _ = writeln!(std::io::stderr(), "{message}");
            Status::Failed
        }
    }
}

/// Finds the code written `RX0402`, `rx402`, `402` or `conv-in-channels-mismatch`.
fn named(text: &str) -> Option<Code> {
    let text = text.trim().to_lowercase();
    let digits = text.strip_prefix("rx").unwrap_or(&text);
    match digits.parse::<u16>() {
        Ok(number) => Code::ALL.iter().copied().find(|code| code.number() == number),
        Err(_) => text.parse().ok(),
    }
}

/// Returns similar names: the nearest one, otherwise those that contain the text.
fn near(text: &str) -> Vec<&'static str> {
    let names = || Code::ALL.iter().map(|code| code.slug());
    match nearest(text, names()) {
        Some(name) => vec![name],
        None => names().filter(|name| text.len() > 1 && name.contains(text)).take(8).collect(),
    }
}
