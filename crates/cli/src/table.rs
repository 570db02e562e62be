//! Formats tables with kubectl's column alignment.

use std::io::{self, Write};

use dogwatch_core::Now;
use dogwatch_core::explain::format_age;
use dogwatch_core::printable::printable_text;
use jiff::Timestamp;
use tabwriter::TabWriter;

use crate::paint::{TerminalColour, TerminalPaint};

const COLUMN_GAP: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCell {
    pub text: String,
    pub colour: Option<TerminalColour>,
}

impl TableCell {
    pub fn coloured(text: impl Into<String>, colour: Option<TerminalColour>) -> Self {
        Self {
            text: text.into(),
            colour,
        }
    }
}

impl TableCell {
    fn format_cell(&self, paint: TerminalPaint) -> String {
        let text = printable_text(&self.text);
        match self.colour {
            Some(colour) => paint.paint_text(colour, &text),
            None => text,
        }
    }

    pub fn age_since(since: Option<Timestamp>, now: Now) -> Self {
        since.map(|at| format_age(now.elapsed_since(at))).into()
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::coloured(text, None)
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        Self::coloured(text, None)
    }
}

impl<T: Into<TableCell>> From<Option<T>> for TableCell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or_else(
            || Self::coloured("-", Some(TerminalColour::Dim)),
            Into::into,
        )
    }
}

/// A column: its heading, and the cell of each row. Times are shown as of `Now`.
pub struct OutputColumn<R> {
    heading: &'static str,
    is_wide: bool,
    cell: fn(&R, Now) -> TableCell,
}

impl<R> OutputColumn<R> {
    pub const fn new(heading: &'static str, cell: fn(&R, Now) -> TableCell) -> Self {
        Self {
            heading,
            is_wide: false,
            cell,
        }
    }

    /// A column of `-o wide` only.
    pub const fn only_wide(heading: &'static str, cell: fn(&R, Now) -> TableCell) -> Self {
        Self {
            is_wide: true,
            ..Self::new(heading, cell)
        }
    }
}

/// Each row has as many cells as there are headings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTable {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<TableCell>>,
}

impl TextTable {
    pub fn of_rows<R>(rows: &[R], columns: &[OutputColumn<R>], wide: bool, now: Now) -> Self {
        let shown = || columns.iter().filter(|column| wide || !column.is_wide);
        let cells = |row| shown().map(|column| (column.cell)(row, now)).collect();
        Self {
            columns: shown().map(|column| column.heading).collect(),
            rows: rows.iter().map(cells).collect(),
        }
    }

    pub fn write_table(&self, out: &mut impl Write, paint: TerminalPaint) -> io::Result<()> {
        let lines = self.format_lines(paint);
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Writes the rows of these indices only, with the column widths of the whole table.
    pub fn write_rows(
        &self,
        out: &mut impl Write,
        indices: impl Iterator<Item = usize>,
        paint: TerminalPaint,
    ) -> io::Result<()> {
        let lines = self.format_lines(paint);
        let (_head, rows) = lines.split_first().expect("a table has a heading");
        let mut chosen = indices.map(|index| &rows[index]);
        chosen.try_for_each(|line| writeln!(out, "{line}"))
    }

    /// The heading and the rows, one line each.
    fn format_lines(&self, paint: TerminalPaint) -> Vec<String> {
        let bold = |heading: &&str| paint.paint_text(TerminalColour::Bold, heading);
        let head: Vec<String> = self.columns.iter().map(bold).collect();
        let cells = |row: &Vec<TableCell>| row.iter().map(|cell| cell.format_cell(paint)).collect();
        let rows = self.rows.iter().map(cells);
        let mut aligned = TabWriter::new(Vec::new())
            .minwidth(0)
            .padding(COLUMN_GAP)
            .ansi(true);
        for cells in std::iter::once(head).chain(rows) {
            let cells: Vec<String> = cells;
            writeln!(aligned, "{}", cells.join("\t")).expect("memory can be written");
        }
        let text = aligned.into_inner().expect("memory can be written");
        let text = String::from_utf8(text).expect("cells are text");
        text.lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &TextTable, paint: TerminalPaint) -> String {
        let mut out = Vec::new();
        table.write_table(&mut out, paint).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn table() -> TextTable {
        TextTable {
            columns: vec!["NODE", "PHASE", "WHY"],
            rows: vec![
                vec![
                    "n1".into(),
                    TableCell::coloured("draining", Some(TerminalColour::Yellow)),
                    "3 to go".into(),
                ],
                vec![
                    "a-longer-name".into(),
                    None::<&str>.into(),
                    "é\u{1b}[2J\nx".into(),
                ],
            ],
        }
    }

    #[test]
    fn columns_line_up_and_nothing_trails() {
        assert_eq!(
            written(&table(), TerminalPaint::without_colours()),
            "NODE            PHASE      WHY\n\
             n1              draining   3 to go\n\
             a-longer-name   -          é [2J x\n"
        );
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = written(&table(), TerminalPaint::without_colours());
        let mut painted = written(&table(), TerminalPaint::with_colours());
        assert!(painted.contains("\x1b[33mdraining\x1b[0m"), "{painted:?}");
        for code in ["\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"] {
            painted = painted.replace(code, "");
        }
        assert_eq!(painted, plain);
    }
}
