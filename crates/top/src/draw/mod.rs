//! Draws the whole screen into a buffer.

mod cells;
mod columns;
mod frame;
mod layout;
mod overlay;
mod pane_table;
mod styles;
mod timeline_bars;
mod times;

use dogwatch_core::report::FleetView;
use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use crate::pane::{TopPane, pane_rows};
use crate::state::TopState;

pub use overlay::{last_scroll, page_rows};

/// Below this size only the sentence is drawn.
const MIN_COLUMNS: u16 = 16;
const MIN_ROWS: u16 = 5;

/// Draws a terminal of `state.size`.
pub fn draw_top(view: &FleetView, state: &TopState, now: Timestamp) -> Buffer {
    let (width, height) = state.size;
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    if area.is_empty() {
        return buffer;
    }
    let rest = frame::draw_header(&mut buffer, area, view);
    if width < MIN_COLUMNS || height < MIN_ROWS {
        return buffer;
    }
    let rest = frame::draw_footer(&mut buffer, rest, state);
    let rest = frame::draw_tabs(&mut buffer, rest, view, state);
    let rest = frame::draw_detail(&mut buffer, rest, view, state);
    draw_panes(&mut buffer, rest, view, state, now);
    overlay::draw_overlay(&mut buffer, area, state);
    buffer
}

fn draw_panes(buffer: &mut Buffer, area: Rect, view: &FleetView, state: &TopState, now: Timestamp) {
    let focused = state.focused_pane(view);
    let placed = layout::arrange_panes(area, view, focused);
    for pane in &placed {
        let rows = pane_rows(view, pane.pane, &state.filter);
        let drawn = PaneDrawing {
            pane: pane.pane,
            cursor: state.cursor_index(pane.pane, &rows),
            is_focused: pane.pane == focused,
            is_filtered: !state.filter.is_empty(),
            now,
        };
        let inside = if placed.len() > 1 {
            frame::draw_pane_title(buffer, pane.area, &drawn, rows.len())
        } else {
            pane.area
        };
        if rows.is_empty() {
            frame::draw_empty_pane(buffer, inside, &drawn);
        } else if pane.pane == TopPane::Timeline {
            timeline_bars::draw_timeline(buffer, inside, &drawn, &rows, view, state.zoom);
        } else {
            pane_table::draw_table(buffer, inside, &drawn, &rows, view);
        }
    }
}

/// What the drawing of one pane depends on beside its rows.
struct PaneDrawing {
    pane: TopPane,
    /// Index of the selected row.
    cursor: usize,
    is_focused: bool,
    is_filtered: bool,
    now: Timestamp,
}

impl PaneDrawing {
    /// The first row to draw, so that the selected one is in sight.
    fn first_row(&self, count: usize, height: usize) -> usize {
        let last_start = count.saturating_sub(height);
        self.cursor.saturating_sub(height / 2).min(last_start)
    }

    fn is_selected(&self, index: usize) -> bool {
        self.is_focused && index == self.cursor
    }
}
