//! Freed memory, given back to the operating system.
//!
//! glibc's allocator keeps freed memory for later allocations, except at the end of a heap. A server that has closed
//! large documents would therefore stay as large as it was with them.

/// Gives freed memory back to the operating system, where the allocator keeps it (glibc on Linux). The time is
/// proportional to that memory, some milliseconds for 100 MB; other threads that allocate wait meanwhile.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::malloc_trim(0);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    // SAFETY: the declaration is that of malloc_trim(3). The function takes no pointers, locks each heap that it trims,
    // and gives back only memory that is free, so any thread may call it at any time.
    unsafe extern "C" {
        /// Gives the free pages of all heaps back, except `pad` bytes at the end of the main heap. Returns 1 if there
        /// were any.
        pub(super) safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
}
