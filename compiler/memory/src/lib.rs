//! Settings of the system's allocator for a server.
//!
//! glibc's allocator keeps freed memory for later allocations, except at the end of a heap. A server that has closed
//! large documents would therefore stay as large as it was with them ([`give_back`]). Each thread usually has a heap of
//! its own, which grows by pages, with a system call for each growth ([`share_heap`]).

/// Gives freed memory back to the operating system, where the allocator keeps it (glibc on Linux). The time is
/// proportional to that memory, some milliseconds for 100 MB; other threads that allocate wait meanwhile.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::malloc_trim(0);
}

/// Makes all threads allocate from the main heap, where the allocator has several (glibc on Linux). The main heap grows
/// by larger steps than the others. To be called before the first thread starts.
pub fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::mallopt(glibc::M_ARENA_MAX, 1);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    /// The parameter of [`mallopt`] for the most heaps (malloc.h).
    pub(super) const M_ARENA_MAX: std::ffi::c_int = -8;

    // SAFETY: the declarations are those of malloc_trim(3) and mallopt(3). The functions take no pointers. malloc_trim
    // locks each heap that it trims, and gives back only memory that is free; mallopt sets a number under the lock of
    // the main heap. So any thread may call them at any time.
    unsafe extern "C" {
        /// Gives the free pages of all heaps back, except `pad` bytes at the end of the main heap. Returns 1 if there
        /// were any.
        pub(super) safe fn malloc_trim(pad: usize) -> std::ffi::c_int;

        /// Sets a parameter of the allocator. Returns 0 if it refuses.
        pub(super) safe fn mallopt(parameter: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
    }
}
