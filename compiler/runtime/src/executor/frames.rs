//! Allocation of the storages of a frame, as the memory plan defines them.

use super::{Executor, Frame, Storages};
use crate::backend::Backend;
use crate::error::RunError;
use crate::memory::Memory;
use crate::types::{Symbols, evaluate_shape};
use rx_base::DType;
use rx_lower::program::StorageSize;
use rx_lower::{Procedure, StorageId};

impl<B: Backend> Executor<B> {
    /// Allocates the storages of a new frame at once if there are several, all sizes are known, their sum is within the
    /// limit, and the device supports it and has enough memory. Otherwise returns unallocated storages, which
    /// [`Executor::storage`] allocates one by one.
    pub(super) fn storages(&mut self, procedure: &Procedure, symbols: &Symbols) -> Result<Storages<B>, RunError> {
        let sizes: Option<Vec<usize>> = procedure.storages.iter().map(|sizes| whole(sizes, symbols)).collect();
        let all = sizes.as_deref().and_then(|sizes| sizes.iter().try_fold(0usize, |all, size| all.checked_add(*size)));
        let memory = match (&sizes, all) {
            (Some(sizes), Some(all)) if sizes.len() > 1 && all as u64 <= self.fuel.bytes => {
                B::Memory::allocate_together(&mut self.backend, sizes)?
            }
            _ => None,
        };
        Ok(match (memory, sizes) {
            (Some(memory), Some(sizes)) => memory.into_iter().zip(sizes).map(Some).collect(),
            _ => procedure.storages.iter().map(|_| None).collect(),
        })
    }

    /// Takes the memory of a storage out of the frame, or allocates it if there is none or it is too small. Returns it
    /// with its size in bytes, which is at least `bytes`.
    pub(super) fn storage(
        &mut self,
        storage: StorageId,
        bytes: usize,
        procedure: &Procedure,
        frame: &mut Frame<B>,
    ) -> Result<(B::Memory, usize), RunError> {
        let at = storage.0 as usize;
        if let Some((memory, size)) = frame.storages.get_mut(at).and_then(Option::take)
            && size >= bytes
        {
            return Ok((memory, size));
        }
        let planned = procedure.storages.get(at).map_or(0, |sizes| largest(sizes, &frame.symbols));
        let size = bytes.max(planned);
        frame.bytes = frame.bytes.saturating_add(size as u64);
        Ok((B::Memory::allocate(&mut self.backend, size)?, size))
    }
}

/// Returns the size of a tensor in bytes.
pub(super) fn bytes_of(shape: &[i64], dtype: DType) -> Result<usize, RunError> {
    let count = shape.iter().try_fold(1u64, |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
    let bytes = count.and_then(|count| count.checked_mul(dtype.bytes())).and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| RunError::other(format!("a tensor of shape {shape:?} is too large")))
}

/// Returns the size in bytes of the largest tensor that is planned for a storage. Sizes that are not known yet are
/// ignored.
fn largest(sizes: &[StorageSize], symbols: &Symbols) -> usize {
    sizes.iter().filter_map(|size| bytes_of_size(size, symbols)).max().unwrap_or(0)
}

/// As [`largest`], but returns `None` unless all sizes are known.
fn whole(sizes: &[StorageSize], symbols: &Symbols) -> Option<usize> {
    sizes.iter().map(|size| bytes_of_size(size, symbols)).try_fold(0, |largest, bytes| Some(largest.max(bytes?)))
}

fn bytes_of_size(size: &StorageSize, symbols: &Symbols) -> Option<usize> {
    bytes_of(&evaluate_shape(&size.shape, symbols).ok()?, size.dtype).ok()
}
