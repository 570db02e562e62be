//! The timeline, and on a terminal a table below it that is drawn anew.

use std::io::Write;

use dogwatch_sim::demo::{Demo, Row};
use dogwatch_sim::scenario::Told;

use crate::exit::Failure;
use crate::output;
use crate::paint::{Colour, Paint};
use crate::table::{Cell, Table, printable};

/// So many nodes fit; those with something to do come first.
const ROWS: usize = 16;
/// How wide the bar of the progress is.
const BAR: usize = 30;
/// Long lines of the table are cut instead of wrapped, so that its height is known.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// Where it is shown.
pub struct Screen {
    terminal: bool,
    paint: Paint,
    /// How many lines the table has that is shown.
    height: usize,
}

impl Screen {
    /// A terminal, or a file.
    pub fn new(terminal: bool, paint: Paint) -> Self {
        Self {
            terminal,
            paint,
            height: 0,
        }
    }

    /// Lines above the table.
    pub fn note(&mut self, lines: &[String]) -> Result<(), Failure> {
        let mut out = output::stdout();
        self.erase(&mut out)?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
        Ok(out.flush()?)
    }

    /// What has happened, and how it stands.
    pub fn show(&mut self, demo: &Demo, told: &[Told]) -> Result<(), Failure> {
        if told.is_empty() && !self.terminal {
            return Ok(());
        }
        let mut out = output::stdout();
        self.erase(&mut out)?;
        for line in told {
            writeln!(out, "{}", self.line(line))?;
        }
        if self.terminal {
            write!(out, "{NO_WRAP}")?;
            self.draw(&mut out, demo)?;
            write!(out, "{WRAP}")?;
        }
        Ok(out.flush()?)
    }

    /// The table stays as it is; what follows comes below.
    pub fn end(&mut self, demo: &Demo) -> Result<(), Failure> {
        self.show(demo, &[])?;
        self.height = 0;
        Ok(())
    }

    fn line(&self, told: &Told) -> String {
        let text = printable(&told.text);
        let colour = if told.about == "!!" || text.starts_with("!!") {
            Some(Colour::Red)
        } else if text.starts_with('>') {
            Some(Colour::Bold)
        } else if text.starts_with('·') || text.starts_with("warning") {
            Some(Colour::Yellow)
        } else if text.starts_with("done") {
            Some(Colour::Green)
        } else if text.starts_with("leaves")
            || text.starts_with("is gone")
            || text.starts_with("runs")
        {
            Some(Colour::Dim)
        } else {
            None
        };
        let text = colour.map_or_else(|| text.clone(), |colour| self.paint.paint(colour, &text));
        let time = told
            .at
            .map_or_else(String::new, |at| format!("{:7.2}s", at.as_secs_f64()));
        let about = printable(&told.about);
        if about.is_empty() {
            format!("{time}  {text}")
        } else {
            format!("{time}  {about:<15} {text}")
        }
    }

    fn erase(&mut self, out: &mut impl Write) -> Result<(), Failure> {
        if self.height > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.height)?;
            self.height = 0;
        }
        Ok(())
    }

    fn draw(&mut self, out: &mut impl Write, demo: &Demo) -> Result<(), Failure> {
        let mut rows = demo.rows();
        rows.sort_by_key(|row| row.phase.is_empty());
        let more = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
        rows.sort_by(|a, b| a.node.cmp(&b.node));
        let table = Table {
            columns: vec!["NODE", "STATUS", "PHASE", "PODS", "LOCK", "BOOTS", "WHY"],
            rows: rows.iter().map(cells).collect(),
        };
        writeln!(out)?;
        table.write(out, self.paint)?;
        let more = if more > 0 {
            format!("  and {more} more nodes")
        } else {
            String::new()
        };
        writeln!(out, "{}{more}", bar(demo.progress()))?;
        self.height = rows.len() + 3;
        Ok(())
    }
}

fn bar(progress: f64) -> String {
    let filled = (0..BAR).filter(|cell| at(*cell) < progress).count();
    format!(
        "[{}{}] {:3.0} % rebooted",
        "#".repeat(filled),
        ".".repeat(BAR - filled),
        progress * 100.0
    )
}

/// Where a cell of the bar begins, from 0 to 1.
fn at(cell: usize) -> f64 {
    let number = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
    number(cell) / number(BAR)
}

fn cells(row: &Row) -> Vec<Cell> {
    let status = if row.status.starts_with("Ready") {
        Colour::Green
    } else {
        Colour::Red
    };
    let phase = match row.phase.as_str() {
        "" => None,
        "waiting" => Some(Colour::Dim),
        "draining" => Some(Colour::Yellow),
        _ => Some(Colour::Cyan),
    };
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    vec![
        row.node.as_str().into(),
        Cell::coloured(row.status.as_str(), Some(status)),
        filled(&row.phase)
            .map(|text| Cell::coloured(text, phase))
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

    fn told(about: &str, text: &str) -> Told {
        Told {
            at: Some(Duration::from_millis(1250)),
            about: about.into(),
            text: text.into(),
        }
    }

    #[test]
    fn a_line_is_plain_where_no_colours_are_wanted() {
        let screen = Screen::new(false, Paint::off());
        assert_eq!(
            screen.line(&told("n1", "done: x")),
            "   1.25s  n1              done: x"
        );
        assert_eq!(
            screen.line(&told("", "> touches\u{1b}")),
            "   1.25s  > touches "
        );
    }

    #[test]
    fn what_is_broken_is_red() {
        let screen = Screen::new(true, Paint::on());
        assert!(
            screen
                .line(&told("!!", "two nodes are out"))
                .contains("\x1b[31m")
        );
    }

    #[test]
    fn the_bar_is_full_when_everything_is_done() {
        assert_eq!(bar(1.0).matches('#').count(), BAR);
        assert_eq!(bar(0.0).matches('#').count(), 0);
    }
}
