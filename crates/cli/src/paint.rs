//! Colours, on a terminal only.

use std::io::IsTerminal as _;

/// A colour of the terminal's own palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Something needs a person.
    Red,
    /// Something is held up.
    Yellow,
    /// Something is well.
    Green,
    /// Something is under way.
    Cyan,
    /// Less important.
    Dim,
    /// A heading.
    Bold,
}

/// Whether to paint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Colours if standard output is a terminal that has them and nobody said no
    /// (<https://no-color.org>).
    pub fn of_stdout() -> Self {
        let no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            on: std::io::stdout().is_terminal() && !no && !dumb,
        }
    }

    /// No colours.
    #[cfg(test)]
    pub fn off() -> Self {
        Self { on: false }
    }

    /// Colours, whatever standard output is.
    #[cfg(test)]
    pub fn on() -> Self {
        Self { on: true }
    }

    /// The text in this colour.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Red => "31",
            Colour::Yellow => "33",
            Colour::Green => "32",
            Colour::Cyan => "36",
            Colour::Dim => "2",
            Colour::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
