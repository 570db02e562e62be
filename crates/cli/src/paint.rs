//! Colours text, on terminals only.

use std::io::IsTerminal as _;

/// A colour of the terminal's own palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalColour {
    /// Needs a person.
    Red,
    /// Is delayed.
    Yellow,
    /// Is well.
    Green,
    /// Is under way.
    Cyan,
    /// Is less important.
    Dim,
    Bold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalPaint {
    enabled: bool,
}

impl TerminalPaint {
    /// Colours if standard output is a terminal that supports them (`TERM` is not `dumb`) and
    /// `NO_COLOR` is not set (<https://no-color.org>).
    pub fn of_stdout() -> Self {
        let no = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            enabled: std::io::stdout().is_terminal()
                && !no
                && !dumb
                && !crate::output::is_captured(),
        }
    }

    #[cfg(test)]
    pub fn without_colours() -> Self {
        Self { enabled: false }
    }

    #[cfg(test)]
    pub fn with_colours() -> Self {
        Self { enabled: true }
    }

    pub fn paint_text(self, colour: TerminalColour, text: &str) -> String {
        if !self.enabled || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            TerminalColour::Red => "31",
            TerminalColour::Yellow => "33",
            TerminalColour::Green => "32",
            TerminalColour::Cyan => "36",
            TerminalColour::Dim => "2",
            TerminalColour::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
