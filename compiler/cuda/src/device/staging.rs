//! Copies between host and device through pinned memory, in pieces: while the device copies one, the host writes or reads the other.

use super::driver::{Address, Driver, Mark, Pinned, Refused};
use std::time::Duration;

/// The bytes of a piece.
const PIECE: usize = 4 << 20;

/// What is smaller goes the plain way: the driver has pinned memory of its own for it.
const LEAST: usize = 64 << 10;

/// Two pieces of pinned memory, made when they are first needed.
#[derive(Debug, Default)]
pub(super) struct Staging {
    pieces: Option<[Piece; 2]>,
    /// There is none to be had.
    is_refused: bool,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    memory: Pinned,
    /// Behind the last copy from it.
    used: Option<Mark>,
}

impl Staging {
    /// Copies to the device. The host's bytes may change when it returns.
    pub(super) fn up(
        &mut self,
        driver: &dyn Driver,
        limit: Option<Duration>,
        bytes: &[u8],
        to: Address,
    ) -> Result<(), Refused> {
        let Some(pieces) = self.pieces(driver, bytes.len()) else { return driver.copy_up(bytes, to) };
        for (at, chunk) in bytes.chunks(PIECE).enumerate() {
            let piece = &mut pieces[at % 2];
            piece.is_free(driver, limit)?;
            driver.write_pinned(piece.memory, chunk)?;
            driver.copy_up_pinned(piece.memory, chunk.len(), to + (at * PIECE) as u64)?;
            piece.used = Some(driver.mark()?);
        }
        Ok(())
    }

    /// Copies from the device, and waits for it.
    pub(super) fn down(
        &mut self,
        driver: &dyn Driver,
        limit: Option<Duration>,
        from: Address,
        to: &mut [u8],
    ) -> Result<(), Refused> {
        let Some(pieces) = self.pieces(driver, to.len()) else { return driver.copy_down(from, to) };
        let total = to.len();
        let begin = |at: usize, piece: &mut Piece| {
            let Some(bytes) = total.checked_sub(at * PIECE).filter(|bytes| *bytes > 0) else { return Ok(()) };
            piece.is_free(driver, limit)?;
            driver.copy_down_pinned(from + (at * PIECE) as u64, piece.memory, bytes.min(PIECE))?;
            piece.used = Some(driver.mark()?);
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
    /// Waits until no copy uses it.
    fn is_free(&mut self, driver: &dyn Driver, limit: Option<Duration>) -> Result<(), Refused> {
        self.used.take().map_or(Ok(()), |mark| driver.pass(mark, limit))
    }
}
