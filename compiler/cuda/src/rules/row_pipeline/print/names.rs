//! Names variables in the kernel's text: axes of rows and columns, and values of neighbouring rows of one thread.

use super::Printer;
use rx_loops::Affine;
use rx_tir::{Expr, VarId};

/// The use of an axis's variable, which determines its text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// In the linear index of a single element, or of the first element of a vector: `k`.
    Place,
    /// In the linear index of element `v` of a vector: `(k + v)` for the axis along which the vector's elements are
    /// neighbours; the other axes have the same text as for [`Use::Place`].
    PlaceInVector,
    /// As a value, in its own dtype; `true`: of element `v` of a vector.
    Value(bool),
}

impl Printer<'_, '_, '_> {
    /// Names the row axes from the row's number, which is the C text `row`.
    pub(in crate::rules) fn row_axes(&mut self, row: &str) -> Result<(), String> {
        let axes: Vec<_> = self.stages.rows.iter().map(|axis| (axis.var, axis.extent.clone())).collect();
        self.rows = self.axes(&axes, row)?;
        self.name(Use::Place)
    }

    /// Delinearizes the number called `number` over some axes, and returns their names. For example, number `r` over
    /// extents 4 and 8 has the axes `r / 8` and `r % 8`.
    pub(in crate::rules) fn axes(
        &mut self,
        axes: &[(VarId, Expr)],
        number: &str,
    ) -> Result<Vec<(VarId, String)>, String> {
        if let [(var, _)] = axes {
            return Ok(vec![(*var, number.to_owned())]);
        }
        let mut names = Vec::with_capacity(axes.len());
        for (at, (var, extent)) in axes.iter().enumerate() {
            let below = axes[at + 1..].iter().fold(Expr::int(1), |all, (_, extent)| all * extent.clone());
            let value = self.kernel.delinearized(number, &below, (at > 0).then_some(extent))?;
            let wanted = self.stages.func.var(*var).name;
            let name = self.kernel.fresh_name(&wanted);
            self.kernel.line(&format!("const {} {name} = {value};", self.index));
            names.push((*var, name));
        }
        Ok(names)
    }

    /// Returns the axis along which the elements of a vector are neighbours.
    pub(super) fn along(&self) -> Option<VarId> {
        match self.lanes.is_of_rows {
            true => self.stages.rows.last().map(|axis| axis.var),
            false => self.columns.last().map(|(var, _)| *var),
        }
    }

    /// Returns the number of neighbouring rows that a thread has.
    pub(in crate::rules) fn side(&self) -> i64 {
        if self.lanes.is_of_rows { self.lanes.width } else { 1 }
    }

    /// Prints lines for each row that a thread has: once, or in an unrolled loop over `v`.
    pub(in crate::rules) fn each_row(
        &mut self,
        mut print: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let side = self.side();
        if side < 2 {
            return print(self);
        }
        self.kernel.unrolled("v", side);
        print(self)?;
        self.kernel.close();
        Ok(())
    }

    /// Prepares a value for each row that a thread has. Returns its C name inside [`Printer::each_row`].
    pub(super) fn of_row(&mut self, ctype: &str, wanted: &str) -> String {
        let name = self.kernel.fresh_name(wanted);
        match self.side() {
            1 => name,
            side => {
                self.kernel.line(&format!("{ctype} {name}[{side}];"));
                format!("{name}[v]")
            }
        }
    }

    /// Returns the left side of the assignment to a value of [`Printer::of_row`]: a declaration, unless the value is an
    /// element of an array, which is declared already.
    pub(super) fn given(&self, ctype: &str, name: &str) -> String {
        if self.side() > 1 { name.to_owned() } else { format!("{ctype} {name}") }
    }

    /// Names the axes for a value inside [`Printer::each_row`].
    pub(super) fn name_row_value(&mut self) -> Result<(), String> {
        self.name(Use::Value(self.side() > 1))
    }

    /// Names the variables of the axes for the text inside [`Printer::each_row`], so that a linear index printed there
    /// is that of the current row.
    pub(super) fn name_row_place(&mut self) -> Result<(), String> {
        self.name(if self.side() > 1 { Use::PlaceInVector } else { Use::Place })
    }

    /// Names the variables of the axes for a use.
    pub(super) fn name(&mut self, usage: Use) -> Result<(), String> {
        let along = self.along();
        let rows = self.rows.iter().map(|one| (one, Some(one.0) == along));
        let columns = self.columns.iter().map(|one| (one, Some(one.0) == along));
        let mut texts = Vec::new();
        for ((var, name), is_last) in rows.chain(columns) {
            let ctype = self.kernel.ctype(self.stages.func.var(*var).dtype)?;
            let wide = if self.index == ctype { name.clone() } else { format!("({ctype}){name}") };
            let text = match (usage, is_last) {
                (Use::PlaceInVector, true) => format!("({name} + v)"),
                (Use::Value(true), true) => format!("({wide} + v)"),
                (Use::Value(_), _) if wide != *name => format!("({wide})"),
                _ => name.clone(),
            };
            texts.push((*var, text));
        }
        for (var, text) in texts {
            self.kernel.name_var(var, &text, true);
        }
        Ok(())
    }

    /// Names the variables of the axes for the linear index of an element. If it has indices that are not affine, such
    /// as loaded ones, the axes are named as values, so that these indices are computed in their own dtypes.
    pub(super) fn name_place(&mut self, element: &Affine, in_vector: bool) -> Result<(), String> {
        self.name(match (element.is_sum(), in_vector) {
            (true, false) => Use::Place,
            (true, true) => Use::PlaceInVector,
            (false, in_vector) => Use::Value(in_vector),
        })
    }
}
