//! Prints the timeline and, on a terminal, a table below it that is redrawn.

use std::io::Write;

use dogwatch_sim::demo::{Demo, DemoRow};
use dogwatch_sim::scenario::TimelineLine;
use dogwatch_top::wrap_text;

use crate::exit::CommandFailure;
use crate::output;
use crate::paint::{TerminalColour, TerminalPaint};
use crate::table::{TableCell, TextTable};
use dogwatch_core::printable::printable_text;

/// At most this many nodes are shown; nodes with work under way come first.
const MAX_TABLE_ROWS: usize = 16;
/// The longest line: a terminal of 80 columns cuts none.
pub const MAX_LINE_WIDTH: usize = 79;
const PROGRESS_BAR_WIDTH: usize = 30;
const DISABLE_LINE_WRAP: &str = "\x1b[?7l";
const ENABLE_LINE_WRAP: &str = "\x1b[?7h";

pub struct DemoScreen {
    terminal: bool,
    paint: TerminalPaint,
    /// Height of the printed table in lines.
    height: usize,
}

impl DemoScreen {
    pub fn new(terminal: bool, paint: TerminalPaint) -> Self {
        Self {
            terminal,
            paint,
            height: 0,
        }
    }

    pub fn print_lines(&mut self, lines: &[String]) -> Result<(), CommandFailure> {
        let mut out = output::buffered_stdout();
        self.erase_table(&mut out)?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
        Ok(out.flush()?)
    }

    pub fn print_events(
        &mut self,
        demo: &Demo,
        told: &[TimelineLine],
    ) -> Result<(), CommandFailure> {
        if told.is_empty() && !self.terminal {
            return Ok(());
        }
        let mut out = output::buffered_stdout();
        self.erase_table(&mut out)?;
        for line in told {
            writeln!(out, "{}", self.format_event(line))?;
        }
        if self.terminal {
            write!(out, "{DISABLE_LINE_WRAP}")?;
            self.draw_table(&mut out, demo)?;
            write!(out, "{ENABLE_LINE_WRAP}")?;
        }
        Ok(out.flush()?)
    }

    /// Leaves the table on the screen; later output goes below it.
    pub fn freeze_table(&mut self, demo: &Demo) -> Result<(), CommandFailure> {
        self.print_events(demo, &[])?;
        self.height = 0;
        Ok(())
    }

    fn format_event(&self, told: &TimelineLine) -> String {
        let text = printable_text(&told.text);
        let colour = if told.about == "!!" || text.starts_with("!!") {
            Some(TerminalColour::Red)
        } else if text.starts_with('>') || told.at.is_none() {
            Some(TerminalColour::Bold)
        } else if text.starts_with('·') || text.starts_with("warning") {
            Some(TerminalColour::Yellow)
        } else if text.starts_with("done") {
            Some(TerminalColour::Green)
        } else if text.starts_with("leaves")
            || text.starts_with("is gone")
            || text.starts_with("runs")
        {
            Some(TerminalColour::Dim)
        } else {
            None
        };
        let (head, indent) = line_head(told);
        let width = MAX_LINE_WIDTH - indent.chars().count();
        let lines = wrap_text(&text, width).into_iter();
        let lines = lines.map(|line| match colour {
            Some(colour) => self.paint.paint_text(colour, &line),
            None => line,
        });
        let lines: Vec<String> = lines.collect();
        format!("{head}{}", lines.join(&format!("\n{indent}")))
    }

    fn erase_table(&mut self, out: &mut impl Write) -> Result<(), CommandFailure> {
        if self.height > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.height)?;
            self.height = 0;
        }
        Ok(())
    }

    fn draw_table(&mut self, out: &mut impl Write, demo: &Demo) -> Result<(), CommandFailure> {
        let mut rows = demo.node_rows();
        rows.sort_by_key(|row| row.phase.is_empty());
        let more = rows.len().saturating_sub(MAX_TABLE_ROWS);
        rows.truncate(MAX_TABLE_ROWS);
        rows.sort_by(|a, b| a.node.cmp(&b.node));
        let table = TextTable {
            columns: vec!["NODE", "STATUS", "PHASE", "PODS", "LOCK", "BOOTS", "WHY"],
            rows: rows.iter().map(node_cells).collect(),
        };
        writeln!(out)?;
        table.write_table(out, self.paint)?;
        let more = if more > 0 {
            format!("  and {more} more nodes")
        } else {
            String::new()
        };
        writeln!(out, "{}{more}", progress_bar(demo.progress_fraction()))?;
        self.height = rows.len() + 3;
        Ok(())
    }
}

/// Time and subject of a line, and the blanks below them.
fn line_head(told: &TimelineLine) -> (String, String) {
    let Some(at) = told.at else {
        return (String::new(), String::new());
    };
    let time = format!("{:7.2}s", at.as_secs_f64());
    let about = printable_text(&told.about);
    let head = if about.is_empty() {
        format!("{time}  ")
    } else {
        format!("{time}  {about:<15} ")
    };
    let blanks = " ".repeat(head.chars().count());
    (head, blanks)
}

fn progress_bar(progress: f64) -> String {
    let filled = (0..PROGRESS_BAR_WIDTH)
        .filter(|cell| cell_start(*cell) < progress)
        .count();
    format!(
        "[{}{}] {:3.0} % rebooted",
        "#".repeat(filled),
        ".".repeat(PROGRESS_BAR_WIDTH - filled),
        progress * 100.0
    )
}

/// Start of a cell of the progress bar, from 0 to 1.
fn cell_start(cell: usize) -> f64 {
    let number = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
    number(cell) / number(PROGRESS_BAR_WIDTH)
}

fn node_cells(row: &DemoRow) -> Vec<TableCell> {
    let status = if row.status.starts_with("Ready") {
        TerminalColour::Green
    } else {
        TerminalColour::Red
    };
    let phase = match row.phase.as_str() {
        "" => None,
        "waiting" => Some(TerminalColour::Dim),
        "draining" => Some(TerminalColour::Yellow),
        _ => Some(TerminalColour::Cyan),
    };
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    vec![
        row.node.as_str().into(),
        TableCell::coloured(row.status.as_str(), Some(status)),
        filled(&row.phase)
            .map(|text| TableCell::coloured(text, phase))
            .into(),
        row.pods.to_string().into(),
        filled(&row.lock).into(),
        row.boots.to_string().into(),
        filled(&row.why).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn told(about: &str, text: &str) -> TimelineLine {
        TimelineLine {
            at: Some(Duration::from_millis(1250)),
            about: about.into(),
            text: text.into(),
        }
    }

    #[test]
    fn a_line_is_plain_where_no_colours_are_wanted() {
        let screen = DemoScreen::new(false, TerminalPaint::without_colours());
        assert_eq!(
            screen.format_event(&told("n1", "done: x")),
            "   1.25s  n1              done: x"
        );
        assert_eq!(
            screen.format_event(&told("", "> tou\u{1b}ches")),
            "   1.25s  > tou ches"
        );
    }

    #[test]
    fn a_long_line_is_wrapped_below_its_text() {
        let screen = DemoScreen::new(false, TerminalPaint::without_colours());
        let text = "the reboot command was started; waiting for a new boot (attempt 1)";
        let line = screen.format_event(&told("n1", text));
        let indent = " ".repeat(26);
        assert_eq!(
            line,
            format!(
                "   1.25s  n1              the reboot command was started; waiting for a new\n{indent}boot (attempt 1)"
            )
        );
    }

    #[test]
    fn an_introduction_has_no_time() {
        let screen = DemoScreen::new(false, TerminalPaint::without_colours());
        let remark = TimelineLine {
            at: None,
            ..told("", "Story 1 of 3: n1 needs a reboot.")
        };
        assert_eq!(
            screen.format_event(&remark),
            "Story 1 of 3: n1 needs a reboot."
        );
    }

    #[test]
    fn what_is_broken_is_red() {
        let screen = DemoScreen::new(true, TerminalPaint::with_colours());
        assert!(
            screen
                .format_event(&told("!!", "two nodes are out"))
                .contains("\x1b[31m")
        );
    }

    #[test]
    fn the_bar_is_full_when_everything_is_done() {
        assert_eq!(progress_bar(1.0).matches('#').count(), PROGRESS_BAR_WIDTH);
        assert_eq!(progress_bar(0.0).matches('#').count(), 0);
    }
}
