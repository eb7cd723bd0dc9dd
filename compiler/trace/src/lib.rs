//! Logs of the tools: spans with their times, and events, on standard error. Nothing is logged unless `RX_LOG` or `--verbose`
//! asks for it.
//!
//! `RX_LOG` is a list of targets with their levels, as `tracing_subscriber::filter::Targets` reads it: `debug`, or
//! `rx_db=debug,rx_lower=trace,salsa=off`. A crate's spans have its name as their target.

#![forbid(unsafe_code)]

use std::str::FromStr;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The environment variable that chooses what is logged.
pub const VARIABLE: &str = "RX_LOG";

/// The filter of `--verbose`: the spans of rx, without those of its libraries.
const VERBOSE: &str =
    "rx_server=debug,rx_db=debug,rx_build=debug,rx_lower=debug,rx_runtime=debug,rxrun=debug,rxopt=debug,rxcheck=debug";

/// Starts the log of this process: of what `RX_LOG` says, else of rx's own spans where `verbose` asks for them.
///
/// # Errors
/// `RX_LOG` is no list of targets and levels: a sentence that says so. Nothing is logged then.
pub fn init(verbose: bool) -> Result<(), String> {
    let wanted = std::env::var(VARIABLE).ok().filter(|wanted| !wanted.is_empty());
    let wanted = match (&wanted, verbose) {
        (Some(wanted), _) => wanted,
        (None, true) => VERBOSE,
        (None, false) => return Ok(()),
    };
    let targets = targets(wanted)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE)
        .with_timer(tracing_subscriber::fmt::time::uptime());
    // A second call, as of a test in one process, changes nothing.
    let _ = tracing_subscriber::registry().with(lines).with(targets).try_init();
    Ok(())
}

fn targets(wanted: &str) -> Result<Targets, String> {
    Targets::from_str(wanted).map_err(|error| {
        format!("{VARIABLE} requires targets and levels, such as `rx_db=debug`; found `{wanted}`: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::{VERBOSE, targets};

    #[test]
    fn filter_of_verbose_is_read() {
        assert!(targets(VERBOSE).is_ok());
    }

    #[test]
    fn filter_without_a_level_is_refused_with_the_variable() {
        let message = targets("rx_db=loud").err().unwrap_or_default();
        assert!(message.starts_with("RX_LOG requires targets and levels"), "{message}");
    }
}
