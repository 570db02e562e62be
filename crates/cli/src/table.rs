//! Formats tables with kubectl's column alignment.

use std::io::{self, Write};

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

/// Each row has as many cells as there are headings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTable {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<TableCell>>,
}

impl TextTable {
    /// Does not pad the last column.
    pub fn write_table(&self, out: &mut impl Write, paint: TerminalPaint) -> io::Result<()> {
        let widths = self.column_widths();
        let heads: Vec<TableCell> = self
            .columns
            .iter()
            .map(|head| TableCell::coloured(*head, Some(TerminalColour::Bold)))
            .collect();
        write_row(out, &heads, &widths, paint)?;
        self.rows
            .iter()
            .try_for_each(|row| write_row(out, row, &widths, paint))
    }

    /// Writes these rows only, with the column widths of the whole table.
    pub fn write_rows<'a>(
        &self,
        out: &mut impl Write,
        rows: impl Iterator<Item = &'a Vec<TableCell>>,
        paint: TerminalPaint,
    ) -> io::Result<()> {
        let widths = self.column_widths();
        rows.into_iter()
            .try_for_each(|row| write_row(out, row, &widths, paint))
    }

    fn column_widths(&self) -> Vec<usize> {
        let widest = |(index, head): (usize, &&str)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let widest = cells.map(|cell| char_count(&cell.text)).max();
            widest.unwrap_or(0).max(head.len())
        };
        self.columns.iter().enumerate().map(widest).collect()
    }
}

fn write_row(
    out: &mut impl Write,
    row: &[TableCell],
    widths: &[usize],
    paint: TerminalPaint,
) -> io::Result<()> {
    let last = row.len().saturating_sub(1);
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = to_printable(&cell.text);
        let painted = match cell.colour {
            Some(colour) => paint.paint_text(colour, &text),
            None => text.clone(),
        };
        // Padding stays outside the colour: a terminal does not count escape sequences, a formatter
        // does.
        let padding = if index == last {
            0
        } else {
            width + COLUMN_GAP - char_count(&text)
        };
        write!(out, "{painted}{:padding$}", "")?;
    }
    writeln!(out)
}

fn char_count(text: &str) -> usize {
    text.chars().count()
}

/// One line without control characters: text from an object must not move the cursor.
pub fn to_printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
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
