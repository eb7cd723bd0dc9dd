//! The target `parse`: a libFuzzer target when built by `run.sh`, otherwise a replay of the given files.
#![cfg_attr(feature = "libfuzzer", no_main)]

#[cfg(feature = "libfuzzer")]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rx_fuzz::parse::run(data));

#[cfg(not(feature = "libfuzzer"))]
fn main() -> std::process::ExitCode {
    rx_fuzz::replay(rx_fuzz::parse::run)
}
