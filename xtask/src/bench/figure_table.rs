//! The table of figures.

use serde::Deserialize;

/// One figure, as a bench prints it.
#[derive(Deserialize)]
pub struct BenchFigure {
    /// What was measured.
    pub what: String,
    /// The outcome, with its unit.
    pub measured: String,
    /// What is promised, with its unit; with what it was compared, where it was.
    pub reach: String,
    /// Whether the promise is kept.
    pub kept: bool,
}

/// What a figure says about its promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureVerdict {
    Kept,
    Missed,
    /// Others used the machine.
    NotTaken,
}

/// A figure and whether the machine was quiet.
pub struct TakenFigure {
    pub figure: BenchFigure,
    pub quiet: bool,
}

impl TakenFigure {
    pub fn verdict(&self) -> FigureVerdict {
        match (self.quiet, self.figure.kept) {
            (false, _) => FigureVerdict::NotTaken,
            (true, true) => FigureVerdict::Kept,
            (true, false) => FigureVerdict::Missed,
        }
    }

    fn cells(&self) -> [String; 4] {
        let verdict = match self.verdict() {
            FigureVerdict::Kept => "kept",
            FigureVerdict::Missed => "MISSED",
            FigureVerdict::NotTaken => "not taken",
        };
        let figure = &self.figure;
        let texts = [&figure.what, &figure.measured, &figure.reach];
        let [what, measured, reach] = texts.map(Clone::clone);
        [what, measured, reach, verdict.to_owned()]
    }
}

const TITLES: [&str; 4] = ["what", "measured", "target", "verdict"];

/// Columns of equal width.
pub fn render_columns(figures: &[TakenFigure]) -> String {
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(figures.iter().map(TakenFigure::cells));
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let line = |row: &[String; 4]| {
        let cells = row.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// A table for a page.
pub fn render_markdown(figures: &[TakenFigure]) -> String {
    let line = |row: [String; 4]| {
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(TITLES.map(str::to_owned)) + "|---|---|---|---|\n";
    text.extend(figures.iter().map(|figure| line(figure.cells())));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(kept: bool, quiet: bool) -> TakenFigure {
        let figure = BenchFigure {
            what: "a|b".into(),
            measured: "7 ms".into(),
            reach: "≤ 10 ms".into(),
            kept,
        };
        TakenFigure { figure, quiet }
    }

    #[test]
    fn a_figure_of_a_busy_machine_is_neither_kept_nor_missed() {
        assert_eq!(taken(true, false).verdict(), FigureVerdict::NotTaken);
        assert_eq!(taken(false, false).verdict(), FigureVerdict::NotTaken);
        assert_eq!(taken(false, true).verdict(), FigureVerdict::Missed);
        assert_eq!(taken(true, true).verdict(), FigureVerdict::Kept);
    }

    #[test]
    fn a_table_for_a_page_has_a_row_for_each_figure() {
        let text = render_markdown(&[taken(true, true)]);
        assert!(
            text.ends_with("| a\\|b | 7 ms | ≤ 10 ms | kept |\n"),
            "{text}"
        );
        let text = render_columns(&[taken(false, true)]);
        assert!(
            text.ends_with("a|b   7 ms      ≤ 10 ms  MISSED\n"),
            "{text}"
        );
    }
}
