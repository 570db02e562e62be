//! The fleet's view as a picture for a terminal, and what its keys mean.
//!
//! **For:** `dogwatch top`, `dogwatch demo --top` and the pictures of the documentation.
//! **May touch:** nothing: the view, the time and the size of the terminal are passed in.
//! **Promises:** [`draw_top`] and [`press_key`] are pure functions; every text of an object is
//! printable before it is drawn; a symbol or a word says whatever a colour says; red is for what
//! only a person can end.
//!
//! Serves S7. Source: specification §12.1.

mod command;
mod draw;
mod keys;
mod pane;
mod printable;
mod state;
mod svg;
#[cfg(test)]
mod tests;
mod timeline;

pub use command::{ProposedCommand, TopAction};
pub use draw::draw_top;
pub use keys::{TopKey, press_key};
pub use pane::TopPane;
pub use printable::wrap_text;
pub use state::{TopOverlay, TopState};
pub use svg::{SvgPicture, render_svg};
