//! Draws the rows of a pane that fit, with the columns that fit.

use dogwatch_core::printable::printable_text;
use dogwatch_core::report::FleetView;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::PaneDrawing;
use super::columns::{CellInput, PaneColumn, StyledText, pane_columns};
use super::frame::mark_selected;
use super::styles::QUIET_STYLE;
use crate::pane::PaneRow;
use crate::printable::{fit_width, text_width};

/// Before each row: the mark of the selected one.
const MARK_WIDTH: usize = 2;
const COLUMN_GAP: usize = 2;
/// Below this width, the last column says too little.
const MIN_LAST_WIDTH: usize = 12;
/// A name may not push everything else off the screen.
const MAX_COLUMN_WIDTH: usize = 40;

pub fn draw_table(
    buffer: &mut Buffer,
    area: Rect,
    drawn: &PaneDrawing,
    rows: &[PaneRow<'_>],
    view: &FleetView,
) {
    let has_heading = area.height >= 2;
    let height = usize::from(area.height) - usize::from(has_heading);
    let first = drawn.first_row(rows.len(), height);
    let columns = pane_columns(drawn.pane);
    let cells: Vec<Vec<StyledText>> = rows[first..]
        .iter()
        .take(height)
        .map(|row| row_cells(*row, columns, drawn, view))
        .collect();
    let width = usize::from(area.width).saturating_sub(MARK_WIDTH);
    let shown = fit_columns(columns, &cells, width);
    let mut y = area.y;
    if has_heading {
        let headings = columns
            .iter()
            .map(|it| (it.heading.to_owned(), QUIET_STYLE));
        draw_cells(buffer, area, y, &headings.collect::<Vec<_>>(), &shown);
        y += 1;
    }
    for (offset, row) in cells.iter().enumerate() {
        draw_cells(buffer, area, y, row, &shown);
        if drawn.is_selected(first + offset) {
            buffer.set_string(area.x, y, ">", QUIET_STYLE);
            mark_selected(
                buffer,
                Rect {
                    y,
                    height: 1,
                    ..area
                },
            );
        }
        y += 1;
    }
}

fn row_cells(
    row: PaneRow<'_>,
    columns: &[PaneColumn],
    drawn: &PaneDrawing,
    view: &FleetView,
) -> Vec<StyledText> {
    let input = CellInput {
        row,
        view,
        now: drawn.now,
    };
    let cell = |column: &PaneColumn| {
        let (text, style) = (column.cell)(&input);
        (printable_text(&text), style)
    };
    columns.iter().map(cell).collect()
}

/// Index and width of the columns that fit.
fn fit_columns(
    columns: &[PaneColumn],
    cells: &[Vec<StyledText>],
    width: usize,
) -> Vec<(usize, usize)> {
    let content_width = |index: usize| {
        let widths = cells.iter().map(|row| text_width(&row[index].0));
        let widest = widths.max().unwrap_or(0).min(MAX_COLUMN_WIDTH);
        widest.max(columns[index].heading.len())
    };
    let last = columns.len().saturating_sub(1);
    let wanted: Vec<usize> = (0..columns.len())
        .map(|index| match content_width(index) {
            wanted if index == last => wanted.min(MIN_LAST_WIDTH),
            wanted => wanted,
        })
        .collect();
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let needed = |shown: &[usize]| -> usize {
        let widths: usize = shown.iter().map(|index| wanted[*index]).sum();
        widths + COLUMN_GAP * shown.len().saturating_sub(1)
    };
    while shown.len() > 1 && needed(&shown) > width {
        let least = shown.iter().min_by_key(|index| columns[**index].keep);
        let least = *least.expect("there are at least two columns");
        shown.retain(|index| *index != least);
    }
    let mut left = width;
    let count = shown.len();
    let mut fitted = Vec::new();
    for (nth, index) in shown.into_iter().enumerate() {
        let given = if nth + 1 == count {
            left
        } else {
            wanted[index].min(left)
        };
        fitted.push((index, given));
        left = left.saturating_sub(given + COLUMN_GAP);
    }
    fitted
}

fn draw_cells(
    buffer: &mut Buffer,
    area: Rect,
    y: u16,
    cells: &[StyledText],
    shown: &[(usize, usize)],
) {
    let mut x = usize::from(area.x) + MARK_WIDTH.min(usize::from(area.width));
    for (index, width) in shown {
        let (text, style) = &cells[*index];
        let at = u16::try_from(x).unwrap_or(u16::MAX);
        if at >= area.right() {
            break;
        }
        buffer.set_stringn(at, y, fit_width(text, *width), *width, *style);
        x += width + COLUMN_GAP;
    }
}
