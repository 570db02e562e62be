//! Columns, as kubectl lines them up.

use std::io::{self, Write};

use crate::paint::{Colour, Paint};

/// Between two columns.
const GAP: usize = 3;

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// What stands in it.
    pub text: String,
    /// In which colour.
    pub colour: Option<Colour>,
}

impl Cell {
    /// In a colour.
    pub fn coloured(text: impl Into<String>, colour: Option<Colour>) -> Self {
        Self {
            text: text.into(),
            colour,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::coloured(text, None)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::coloured(text, None)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or_else(|| Self::coloured("-", Some(Colour::Dim)), Into::into)
    }
}

/// A table: headings, and rows of as many cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The headings.
    pub columns: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Writes it. Only the last column may be longer than what stands above it.
    pub fn write(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let widths = self.widths();
        let heads: Vec<Cell> = self
            .columns
            .iter()
            .map(|head| Cell::coloured(*head, Some(Colour::Bold)))
            .collect();
        write_row(out, &heads, &widths, paint)?;
        self.rows
            .iter()
            .try_for_each(|row| write_row(out, row, &widths, paint))
    }

    /// Writes these rows only, lined up with the whole.
    pub fn write_rows<'a>(
        &self,
        out: &mut impl Write,
        rows: impl Iterator<Item = &'a Vec<Cell>>,
        paint: Paint,
    ) -> io::Result<()> {
        let widths = self.widths();
        rows.into_iter()
            .try_for_each(|row| write_row(out, row, &widths, paint))
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |(index, head): (usize, &&str)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let widest = cells.map(|cell| length(&cell.text)).max();
            widest.unwrap_or(0).max(head.len())
        };
        self.columns.iter().enumerate().map(widest).collect()
    }
}

fn write_row(out: &mut impl Write, row: &[Cell], widths: &[usize], paint: Paint) -> io::Result<()> {
    let last = row.len().saturating_sub(1);
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = printable(&cell.text);
        let painted = match cell.colour {
            Some(colour) => paint.paint(colour, &text),
            None => text.clone(),
        };
        // Padded outside of the colour: a terminal counts no escape sequence, a formatter does.
        let padding = if index == last {
            0
        } else {
            width + GAP - length(&text)
        };
        write!(out, "{painted}{:padding$}", "")?;
    }
    writeln!(out)
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// One line, without control characters: what stands on an object must not move the cursor.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, paint: Paint) -> String {
        let mut out = Vec::new();
        table.write(&mut out, paint).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn table() -> Table {
        Table {
            columns: vec!["NODE", "PHASE", "WHY"],
            rows: vec![
                vec![
                    "n1".into(),
                    Cell::coloured("draining", Some(Colour::Yellow)),
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
            written(&table(), Paint::off()),
            "NODE            PHASE      WHY\n\
             n1              draining   3 to go\n\
             a-longer-name   -          é [2J x\n"
        );
    }

    #[test]
    fn colours_do_not_move_columns() {
        let plain = written(&table(), Paint::off());
        let mut painted = written(&table(), Paint::on());
        assert!(painted.contains("\x1b[33mdraining\x1b[0m"), "{painted:?}");
        for code in ["\x1b[33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"] {
            painted = painted.replace(code, "");
        }
        assert_eq!(painted, plain);
    }
}
