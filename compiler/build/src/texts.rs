//! Texts of kernels.

use crate::queries::{LoopsKey, loops_text as kept_text, scheduled};
use rx_cuda::rules::Target as CudaTarget;
use rx_cuda::{Listing, Named};
use rx_db::Workspace;
use rx_lower::Kernel;

/// A kernel's loops as TVMScript.
pub fn loops_text(workspace: &Workspace, kernel: &Kernel) -> String {
    let db = workspace.database();
    kept_text(db, LoopsKey::new(db, &kernel.loops)).named(kernel.name.as_str())
}

/// Kernels as CUDA C, and how each is scheduled.
pub fn cuda_listing(workspace: &Workspace, kernels: &[&Kernel], target: &CudaTarget) -> Listing {
    let db = workspace.database();
    let scheduled: Vec<_> =
        kernels.iter().map(|kernel| scheduled(db, LoopsKey::new(db, &kernel.loops), target.clone())).collect();
    let named = kernels.iter().map(|kernel| Named { name: kernel.name, origins: &kernel.origins });
    rx_cuda::joined(&scheduled.iter().map(|scheduled| &**scheduled).zip(named).collect::<Vec<_>>())
}
