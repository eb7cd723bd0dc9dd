//! Measurement of CPU time and memory, and statistics.
//!
//! Benchmarks with a time limit use the CPU time of one thread, which on a shared machine varies far less than wall
//! time.

use std::time::Duration;

/// Runs `work` and returns its value with the CPU time that this thread spent on it.
pub fn thread_cpu_time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = cpu_time::ThreadTime::now();
    let value = work();
    (value, start.elapsed())
}

/// Returns the peak memory of this process in bytes: `VmHWM` of `/proc/self/status`. `None` if there is no such file.
pub fn peak_memory() -> Option<u64> {
    kibibytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Returns a row of `/proc/…/status`, in bytes.
fn kibibytes(status: &str, row: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(row))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the current memory of another process in bytes: `VmRSS` of its `/proc/…/status`. `None` if there is no such
/// file.
pub fn resident_memory(process: u32) -> Option<u64> {
    kibibytes(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS:")
}

/// Returns the CPU time of all threads of another process, from `/proc/…/stat` in steps of 10 ms. `None` if there is no
/// such file.
pub fn process_cpu_time(process: u32) -> Option<Duration> {
    ticks(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
        .map(|ticks| Duration::from_millis(10 * ticks))
}

/// Returns user plus system time in ticks. The second field is the program's name, which may contain blanks and
/// parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

/// Samples of one quantity, sorted.
#[derive(Clone, Debug)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Creates a sorted set from measurements in any order.
    pub fn new(mut samples: Vec<Duration>) -> Samples {
        samples.sort_unstable();
        Samples(samples)
    }

    /// Returns the smallest sample such that at least `percent` per cent of the samples are not larger; zero if there
    /// are none.
    pub fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent.min(100)).div_ceil(100).saturating_sub(1);
        self.0.get(rank).copied().unwrap_or_default()
    }

    /// The 50th percentile.
    pub fn median(&self) -> Duration {
        self.percentile(50)
    }

    /// The largest sample.
    pub fn max(&self) -> Duration {
        self.percentile(100)
    }
}

#[cfg(test)]
mod tests {
    use super::{Samples, kibibytes, thread_cpu_time, ticks};
    use std::time::Duration;

    #[test]
    fn reads_the_kernel_s_table() {
        assert_eq!(kibibytes("VmPeak:\t 9 kB\nVmHWM:\t    1040 kB\nVmRSS:\t 7 kB\n", "VmHWM:"), Some(1_064_960));
        assert_eq!(kibibytes("VmRSS: 7 kB\n", "VmHWM:"), None);
        assert_eq!(kibibytes("VmHWM: much\n", "VmHWM:"), None);
        assert_eq!(ticks("7 (a) b) S 1 7 7 0 -1 4 9 0 0 0 25 17 0 0 20"), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
    }

    #[test]
    fn percentiles_are_samples() {
        let samples = Samples::new([4, 1, 3, 2].map(Duration::from_millis).to_vec());
        assert_eq!(samples.median(), Duration::from_millis(2));
        assert_eq!(samples.percentile(95), Duration::from_millis(4));
        assert_eq!(samples.percentile(0), Duration::from_millis(1));
        assert_eq!(Samples::new(Vec::new()).max(), Duration::ZERO);
    }

    #[test]
    fn clock_returns_the_result_of_the_work() {
        let (sum, _) = thread_cpu_time(|| (0..1000_u64).sum::<u64>());
        assert_eq!(sum, 499_500);
    }
}
