//! Helpers for run-time checks: of indices that are not proved to be in bounds, of divisors that are not proved to be
//! nonzero, of assertions, and of the iterations of a `while`.

use super::Helper;

pub(super) const HELPERS: &[Helper<'static>] = &[
    Helper {
        name: "rx_note",
        needs: &[],
        text: "\
// Writes the first failed check to the error cell.
static __device__ void rx_note(unsigned long long* rx_error, int site, long long value, long long extent) {
    if (atomicCAS(&rx_error[0], 0ULL, (unsigned long long)site + 1ULL) == 0ULL) {
        rx_error[1] = (unsigned long long)value;
        rx_error[2] = (unsigned long long)extent;
    }
}
",
    },
    Helper {
        name: "rx_check_on",
        needs: &["rx_note"],
        text: "\
// Checks an index in a kernel with barriers: records the first failure and returns index 0.
static __device__ __forceinline__ long long rx_check_on(long long index, long long extent, int site, unsigned long long* rx_error) {
    if (index >= 0 && index < extent) return index;
    rx_note(rx_error, site, index, extent);
    return 0;
}
",
    },
    Helper {
        name: "rx_divisor_on",
        needs: &["rx_note"],
        text: "\
// Checks a divisor in a kernel with barriers: records a zero and returns 1.
template <typename T>
static __device__ __forceinline__ T rx_divisor_on(T divisor, int site, unsigned long long* rx_error) {
    if (divisor != 0) return divisor;
    rx_note(rx_error, site, 0, 0);
    return (T)1;
}
",
    },
    Helper {
        name: "rx_fail",
        needs: &["rx_note"],
        text: "\
// Writes the first failed check to the error cell, and exits the thread.
static __device__ void rx_fail(unsigned long long* rx_error, int site, long long value, long long extent) {
    rx_note(rx_error, site, value, extent);
#ifdef __CUDA_ARCH__
    asm volatile(\"exit;\" ::: \"memory\");
#else
    rx_cpu_exit_thread();
#endif
}
",
    },
    Helper {
        name: "rx_check",
        needs: &["rx_fail"],
        text: "\
// Checks an index.
static __device__ __forceinline__ long long rx_check(long long index, long long extent, int site, unsigned long long* rx_error) {
    if (index < 0 || index >= extent) rx_fail(rx_error, site, index, extent);
    return index;
}
",
    },
    Helper {
        name: "rx_divisor",
        needs: &["rx_fail"],
        text: "\
// Checks a divisor.
template <typename T>
static __device__ __forceinline__ T rx_divisor(T divisor, int site, unsigned long long* rx_error) {
    if (divisor == 0) rx_fail(rx_error, site, 0, 0);
    return divisor;
}
",
    },
];
