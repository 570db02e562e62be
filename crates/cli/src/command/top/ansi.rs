//! Turns what changed between two buffers into the terminal's control sequences.

use std::fmt::Write as _;

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalAbilities {
    pub colours: bool,
    /// Bold, dim and reversed.
    pub attributes: bool,
    pub unicode: bool,
}

impl TerminalAbilities {
    /// `NO_COLOR` is that of <https://no-color.org>.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_dumb = filled("TERM").is_none_or(|term| term == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| filled(name));
        let names_utf8 = |locale: String| {
            let locale = locale.to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        };
        Self {
            colours: !is_dumb && filled("NO_COLOR").is_none(),
            attributes: !is_dumb,
            // Without any locale, terminals of today show UTF-8.
            unicode: locale.is_none_or(names_utf8),
        }
    }
}

/// Appends nothing if the buffers are equal. Both have the same area.
pub fn write_changes(
    text: &mut String,
    shown: &Buffer,
    next: &Buffer,
    abilities: TerminalAbilities,
) {
    let changes = shown.diff(next);
    if changes.is_empty() {
        return;
    }
    let mut style = None;
    let mut cursor = None;
    for (x, y, cell) in changes {
        if cursor != Some((x, y)) {
            write!(text, "\x1b[{};{}H", y + 1, x + 1).expect("a String takes all");
        }
        let wanted = style_codes(cell, abilities);
        if style.as_ref() != Some(&wanted) {
            write!(text, "\x1b[0{wanted}m").expect("a String takes all");
            style = Some(wanted);
        }
        text.push_str(&shown_symbol(cell.symbol(), abilities));
        // After a wide character the cursor is where only the terminal knows.
        cursor = cell.symbol().is_ascii().then_some((x + 1, y));
    }
    text.push_str("\x1b[0m");
}

fn style_codes(cell: &Cell, abilities: TerminalAbilities) -> String {
    let mut codes = String::new();
    if abilities.attributes {
        for (modifier, code) in [
            (Modifier::BOLD, ";1"),
            (Modifier::DIM, ";2"),
            (Modifier::REVERSED, ";7"),
        ] {
            if cell.modifier.contains(modifier) {
                codes.push_str(code);
            }
        }
    }
    if abilities.colours {
        for (colour, base) in [(cell.fg, 30), (cell.bg, 40)] {
            if let Some(number) = colour_number(colour) {
                write!(codes, ";{}", base + number).expect("a String takes all");
            }
        }
    }
    codes
}

/// Of the terminal's own palette. The picture uses no others.
fn colour_number(colour: Color) -> Option<u8> {
    match colour {
        Color::Black => Some(0),
        Color::Red | Color::LightRed => Some(1),
        Color::Green | Color::LightGreen => Some(2),
        Color::Yellow | Color::LightYellow => Some(3),
        Color::Blue | Color::LightBlue => Some(4),
        Color::Magenta | Color::LightMagenta => Some(5),
        Color::Cyan | Color::LightCyan => Some(6),
        Color::Reset
        | Color::Gray
        | Color::DarkGray
        | Color::White
        | Color::Rgb(..)
        | Color::Indexed(_) => None,
    }
}

/// The symbol, or its likeness where the locale has no UTF-8.
fn shown_symbol(symbol: &str, abilities: TerminalAbilities) -> String {
    if abilities.unicode || symbol.is_ascii() {
        return symbol.to_owned();
    }
    match symbol {
        "─" | "╌" | "–" => "-",
        "━" => "=",
        "│" => "|",
        "┌" | "┐" | "└" | "┘" => "+",
        "┈" | "·" => ".",
        "░" => ":",
        "✓" => "v",
        "✗" => "x",
        "→" => ">",
        "…" => "~",
        _ => "?",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    const ALL_ABILITIES: TerminalAbilities = TerminalAbilities {
        colours: true,
        attributes: true,
        unicode: true,
    };

    fn line(text: &str, style: Style) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 1));
        buffer.set_string(0, 0, text, style);
        buffer
    }

    fn changes(shown: &Buffer, next: &Buffer, abilities: TerminalAbilities) -> String {
        let mut text = String::new();
        write_changes(&mut text, shown, next, abilities);
        text
    }

    #[test]
    fn only_what_changed_is_written() {
        let before = line("ab cd", Style::new());
        assert_eq!(changes(&before, &before, ALL_ABILITIES), "");
        let after = line("ab xd", Style::new());
        let text = changes(&before, &after, ALL_ABILITIES);
        assert_eq!(text, "\u{1b}[1;4H\u{1b}[0mx\u{1b}[0m");
    }

    #[test]
    fn colours_and_attributes_are_left_out_where_they_are_not_wanted() {
        let empty = line("", Style::new());
        let style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let red = line("a", style);
        assert!(changes(&empty, &red, ALL_ABILITIES).contains("\u{1b}[0;1;31ma"));
        let environment = |term: &'static str, no_color: &'static str| {
            TerminalAbilities::of_environment(move |name| match name {
                "TERM" => Some(term.to_owned()),
                "NO_COLOR" => Some(no_color.to_owned()),
                _ => None,
            })
        };
        let no_colours = changes(&empty, &red, environment("xterm", "1"));
        assert!(no_colours.contains("\u{1b}[0;1ma"), "{no_colours:?}");
        let dumb = changes(&empty, &red, environment("dumb", ""));
        assert!(dumb.contains("\u{1b}[0ma"), "{dumb:?}");
    }

    #[test]
    fn without_utf_8_every_symbol_has_a_likeness() {
        let environment = |name: &str| (name == "LANG").then(|| "C".to_owned());
        let abilities = TerminalAbilities::of_environment(environment);
        assert!(!abilities.unicode);
        let empty = line("", Style::new());
        let text = changes(&empty, &line("─·░✓│", Style::new()), abilities);
        assert!(text.is_ascii(), "{text:?}");
        assert!(!text.contains('?'), "{text:?}");
    }

    #[test]
    fn the_cursor_is_placed_anew_after_a_wide_character() {
        let text = changes(
            &line("", Style::new()),
            &line("日x", Style::new()),
            ALL_ABILITIES,
        );
        assert!(text.contains("日\u{1b}[1;3Hx"), "{text:?}");
    }
}
