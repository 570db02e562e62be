//! The styles. Red is for what only a person can end; whatever a style says, a word or a symbol
//! beside it says too.

use ratatui_core::style::{Color, Modifier, Style};

pub const PLAIN_STYLE: Style = Style::new();
pub const PERSON_STYLE: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
pub const DELAYED_STYLE: Style = Style::new().fg(Color::Yellow);
pub const WELL_STYLE: Style = Style::new().fg(Color::Green);
pub const UNDER_WAY_STYLE: Style = Style::new().fg(Color::Cyan);
pub const QUIET_STYLE: Style = Style::new().add_modifier(Modifier::DIM);
pub const TITLE_STYLE: Style = Style::new().add_modifier(Modifier::BOLD);
pub const SELECTED_STYLE: Style = Style::new().add_modifier(Modifier::REVERSED);

pub fn phase_style(phase: &str) -> Style {
    match phase {
        "draining" => DELAYED_STYLE,
        "holding" => Style::new().fg(Color::Magenta),
        "rebooting" => UNDER_WAY_STYLE,
        "returning" => WELL_STYLE,
        _ => QUIET_STYLE,
    }
}

/// A bar of the timeline: dark letters on the colour of the phase.
pub fn bar_style(phase: &str) -> Style {
    let background = match phase {
        "draining" => Color::Yellow,
        "holding" => Color::Magenta,
        "rebooting" => Color::Cyan,
        "returning" => Color::Green,
        _ => return QUIET_STYLE,
    };
    Style::new().fg(Color::Black).bg(background)
}
