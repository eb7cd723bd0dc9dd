//! Stores results that are computed in plain coordinates into a buffer with a layout.

use crate::compute::Lowering;
use crate::layout::Layout;
use rx_base::Dim;
use rx_tir::builder::in_range;
use rx_tir::{Expr, KernelBuilder};

/// A result with a layout.
pub(super) struct LaidOut<'a> {
    /// The letters of the plain coordinates, such as `NCHW`.
    pub letters: &'a str,
    /// The plain extent of each letter.
    pub extents: &'a [Dim],
    /// The layout of the result.
    pub layout: &'a Layout,
}

impl LaidOut<'_> {
    /// Returns the physical index of plain coordinates.
    pub(super) fn index(&self, coordinates: &[Expr]) -> Vec<Expr> {
        self.layout.index(self.letters, coordinates)
    }

    /// Whether the physical shape has no padding. If false, packed axes have elements without plain coordinates.
    pub(super) fn is_filled(&self) -> bool {
        self.layout.is_filled_by(self.letters, self.extents)
    }

    /// Stores `value(coordinates)` into each element of the result, and zeros into the padding of packed axes.
    pub(super) fn store(&self, lowering: &mut Lowering<'_>, value: impl FnOnce(&mut KernelBuilder, &[Expr]) -> Expr) {
        let out = lowering.output(0);
        let builder = &mut lowering.builder;
        let extents: Vec<Expr> = self.extents.iter().map(|dim| builder.dim(dim)).collect();
        if self.is_filled() {
            builder.map(out, &extents, |builder, axes| (self.index(axes), value(builder, axes)));
            return;
        }
        let zero = Expr::number(0.0, builder.dtype(out));
        builder.compute(out, |builder, index| {
            let coordinates = self.layout.coordinates(self.letters, index);
            let padded = std::iter::zip(self.letters.chars(), std::iter::zip(&coordinates, &extents))
                .filter(|(letter, _)| self.layout.factor_of(*letter) > 1)
                .fold(Expr::bool(true), |inside, (_, (coordinate, extent))| {
                    inside.and(in_range(coordinate.clone(), Expr::int(0), extent.clone()))
                });
            Expr::select(padded, value(builder, &coordinates), zero)
        });
    }
}
