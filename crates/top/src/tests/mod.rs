//! What the screen shows and what the keys do.

mod fixture;
mod keys;
mod pictures;
mod screen;
mod transcript;

use dogwatch_core::report::FleetView;
use ratatui_core::buffer::Buffer;

use crate::draw::draw_top;
use crate::keys::{TopKey, press_key};
use crate::state::TopState;
use crate::{TopAction, TopPane};
use fixture::fixture_now;

pub fn state_of_size(columns: u16, rows: u16) -> TopState {
    TopState::new("dogwatch", (columns, rows))
}

pub fn draw_view(view: &FleetView, state: &TopState) -> Buffer {
    draw_top(view, state, fixture_now())
}

/// The text of a buffer, without the spaces at the ends of its lines.
pub fn buffer_text(buffer: &Buffer) -> String {
    let area = buffer.area();
    let mut text = String::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut covered = 0;
        for x in 0..area.width {
            let symbol = buffer[(x, y)].symbol();
            if x >= covered {
                line.push_str(symbol);
                covered = x + u16::try_from(crate::printable::text_width(symbol).max(1)).unwrap();
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

pub fn screen_text(view: &FleetView, state: &TopState) -> String {
    buffer_text(&draw_view(view, state))
}

/// Presses the keys of a text one after the other; returns the last action.
pub fn press_keys(state: TopState, keys: &[TopKey], view: &FleetView) -> (TopState, TopAction) {
    let first = (state, TopAction::Redraw);
    keys.iter()
        .fold(first, |(state, _), key| press_key(state, *key, view))
}

pub fn on_pane(pane: TopPane, columns: u16, rows: u16) -> TopState {
    TopState {
        pane,
        ..state_of_size(columns, rows)
    }
}
