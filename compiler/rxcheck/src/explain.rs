//! `--explain`: what a diagnostic means.

use crate::output::Status;
use rx_base::Code;
use rx_base::edit_distance::nearest;
use std::io::Write;

/// Prints what the code or name means; an unknown one is a usage error.
pub fn explain(text: &str) -> Status {
    let code = text.parse::<Code>().or_else(|_| text.to_uppercase().parse()).or_else(|_| text.to_lowercase().parse());
    // A closed stream takes nothing, and nothing else can be done about it.
    match code {
        Ok(code) => {
            let _ = writeln!(std::io::stdout(), "{code} {} ({})\n\n{}", code.slug(), code.severity(), code.summary());
            Status::Clean
        }
        Err(_) => {
            let mut message = format!("rxcheck: no diagnostic is called `{text}`");
            if let Some(near) = nearest(&text.to_lowercase(), Code::ALL.iter().map(|code| code.slug())) {
                message += &format!("; did you mean `{near}`?");
            }
            let _ = writeln!(std::io::stderr(), "{message}");
            Status::Failed
        }
    }
}
