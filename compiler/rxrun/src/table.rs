//! Tables of text.

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows of `N` cells, with a heading.
#[derive(Debug)]
pub struct Table<const N: usize> {
    columns: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub fn new(columns: [(&'static str, Align); N]) -> Table<N> {
        Table { columns, rows: Vec::new() }
    }

    pub fn row(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    /// Formats the table; returns no lines if there are no rows.
    pub fn lines(&self) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let heading = self.columns.map(|(title, _)| title.to_owned());
        let all = || std::iter::once(&heading).chain(&self.rows);
        let mut widths = [0; N];
        for row in all() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let line = |row: &[String; N]| {
            let cells = row.iter().zip(widths).zip(self.columns).map(|((cell, width), (_, align))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        all().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Align, Table};

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new([("name", Align::Left), ("time", Align::Right), ("note", Align::Left)]);
        assert!(table.lines().is_empty());
        table.row(["漢字x".into(), "12 µs".into(), String::new()]);
        table.row(["y".into(), "1.25 s".into(), "slow".into()]);
        assert_eq!(table.lines(), ["name    time  note", "漢字x    12 µs", "y     1.25 s  slow"]);
    }
}
