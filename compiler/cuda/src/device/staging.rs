//! Copies between host and device, usually through pinned memory. Large copies are done in pieces with double
//! buffering: while the device copies one piece, the host writes or reads the other. Once an allocation of pinned
//! memory has failed, each large copy is one call of the driver instead.

use super::driver::{Address, Driver, DriverFailure, Event, Pinned};
use std::collections::VecDeque;
use std::time::Duration;

/// The size in bytes of each of the two pieces of a [`Staging`].
const PIECE: usize = 4 << 20;

/// The size of a slot in bytes, and the smallest copy that uses pieces. A smaller copy to the device usually uses a
/// slot. Without a slot the host has to wait for the copy, since the driver may still read pageable memory after the
/// call has returned ("API synchronization behavior" of the CUDA driver API). A smaller copy from the device uses no
/// pinned memory.
const LEAST: usize = 64 << 10;

/// The maximum number of small copies to the device that are in flight.
const SLOTS: usize = 16;

/// Two pieces and up to [`SLOTS`] slots of pinned memory. The first copy that uses a piece allocates both pieces. Each
/// of the first [`SLOTS`] copies that use a slot allocates a new one; later copies, and those after a failed
/// allocation, reuse the slots.
#[derive(Debug, Default)]
pub(super) struct Staging {
    pieces: Option<[Piece; 2]>,
    /// The slots, most recently used first.
    slots: VecDeque<Piece>,
    /// Whether an allocation of pinned memory has failed; then no further allocation is tried.
    is_refused: bool,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    memory: Pinned,
    /// The event after the last copy that uses the memory.
    used: Option<Event>,
}

impl Staging {
    /// Copies to the device. After the return the caller may change `bytes`.
    pub(super) fn up(
        &mut self,
        driver: &dyn Driver,
        limit: Option<Duration>,
        bytes: &[u8],
        to: Address,
    ) -> Result<(), DriverFailure> {
        if bytes.len() < LEAST {
            return match self.slot(driver) {
                Some(slot) => slot.up(driver, limit, bytes, to),
                None => driver.copy_to_device(bytes, to),
            };
        }
        let Some(pieces) = self.pieces(driver, bytes.len()) else { return driver.copy_to_device(bytes, to) };
        for (at, chunk) in bytes.chunks(PIECE).enumerate() {
            pieces[at % 2].up(driver, limit, chunk, to + (at * PIECE) as u64)?;
        }
        Ok(())
    }

    /// Copies from the device, and waits for the copy.
    pub(super) fn down(
        &mut self,
        driver: &dyn Driver,
        limit: Option<Duration>,
        from: Address,
        to: &mut [u8],
    ) -> Result<(), DriverFailure> {
        let Some(pieces) = self.pieces(driver, to.len()) else { return driver.copy_to_host(from, to) };
        let total = to.len();
        let begin = |at: usize, piece: &mut Piece| {
            let Some(bytes) = total.checked_sub(at * PIECE).filter(|bytes| *bytes > 0) else { return Ok(()) };
            piece.is_free(driver, limit)?;
            driver.copy_to_pinned(from + (at * PIECE) as u64, piece.memory, bytes.min(PIECE))?;
            piece.used = Some(driver.record_event()?);
            Ok(())
        };
        begin(0, &mut pieces[0])?;
        for (at, chunk) in to.chunks_mut(PIECE).enumerate() {
            begin(at + 1, &mut pieces[(at + 1) % 2])?;
            let piece = &mut pieces[at % 2];
            piece.is_free(driver, limit)?;
            driver.read_pinned(piece.memory, chunk)?;
        }
        Ok(())
    }

    /// Returns the slot for the next copy. Allocates a new one if there are fewer than [`SLOTS`] and no allocation has
    /// failed so far. Otherwise reuses the least recently used slot. If the allocation fails in this very call, reuses
    /// the most recently used slot. Returns `None` if there is no slot to reuse.
    fn slot(&mut self, driver: &dyn Driver) -> Option<&mut Piece> {
        if self.slots.len() < SLOTS && !self.is_refused {
            match driver.pin(LEAST) {
                Ok(memory) => self.slots.push_front(Piece { memory, used: None }),
                Err(_) => self.is_refused = true,
            }
        } else if !self.slots.is_empty() {
            self.slots.rotate_right(1);
        }
        self.slots.front_mut()
    }

    fn pieces(&mut self, driver: &dyn Driver, bytes: usize) -> Option<&mut [Piece; 2]> {
        if bytes < LEAST || self.is_refused {
            return None;
        }
        if self.pieces.is_none() {
            let piece = || Some(Piece { memory: driver.pin(PIECE).ok()?, used: None });
            self.pieces = piece().zip(piece()).map(|(one, other)| [one, other]);
            self.is_refused = self.pieces.is_none();
        }
        self.pieces.as_mut()
    }
}

impl Piece {
    /// Copies bytes to the device; they must fit the piece.
    fn up(
        &mut self,
        driver: &dyn Driver,
        limit: Option<Duration>,
        bytes: &[u8],
        to: Address,
    ) -> Result<(), DriverFailure> {
        self.is_free(driver, limit)?;
        driver.write_pinned(self.memory, bytes)?;
        driver.copy_pinned_to_device(self.memory, bytes.len(), to)?;
        self.used = Some(driver.record_event()?);
        Ok(())
    }

    /// Waits until no copy uses the piece.
    fn is_free(&mut self, driver: &dyn Driver, limit: Option<Duration>) -> Result<(), DriverFailure> {
        self.used.take().map_or(Ok(()), |event| driver.pass(event, limit))
    }
}
