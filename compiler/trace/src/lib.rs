//! Logging for the command-line tools: spans with their durations, and events, on standard error. Logging is off unless
//! `RX_LOG` or `--verbose` enables it.
//!
//! `RX_LOG` is a list of targets with their levels, in the syntax of `tracing_subscriber::filter::Targets`: for example
//! `debug`, or `rx_db=debug,rx_lower=trace,salsa=off`. The target of a span is the name of its crate.

#![forbid(unsafe_code)]

use std::str::FromStr;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The environment variable that configures logging.
pub const VARIABLE: &str = "RX_LOG";

/// The filter for `--verbose`: spans of rx's crates, without those of its dependencies.
const VERBOSE: &str =
    "rx_server=debug,rx_db=debug,rx_build=debug,rx_lower=debug,rx_runtime=debug,rxrun=debug,rxopt=debug,rxcheck=debug";

/// Initializes logging for this process with the filter in `RX_LOG`, or with a filter for rx's own spans if `verbose`
/// is set.
///
/// # Errors
/// If `RX_LOG` is not a list of targets and levels. Logging is then off.
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
    // A second call in the same process, for example by another test, has no effect.
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
