//! Turns the committed output of a scenario into frames: what `dogwatch demo` tells, but under
//! virtual time, so that the same picture is made each time. The scenario's own test keeps the
//! output true.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use crate::printable::fit_width;

pub const SCENARIO: &str = include_str!("../../../../scenarios/happy-path.out");

const COLUMNS: u16 = 104;
const ROWS: u16 = 22;
const FRAME_MILLIS: u32 = 1_400;
const LAST_FRAME_MILLIS: u32 = 6_000;
const MOST_FRAMES: usize = 14;

/// Each frame ends with the last line of a moment, and shows the lines before it too.
pub fn transcript_frames(output: &str) -> Vec<(Buffer, u32)> {
    let lines: Vec<&str> = output.lines().collect();
    let time = |line: &str| line.split("  ").next().unwrap_or_default().to_owned();
    let ends: Vec<usize> = (0..lines.len())
        .filter(|at| {
            lines
                .get(at + 1)
                .is_none_or(|next| time(next) != time(lines[*at]))
        })
        .collect();
    let step = ends.len().div_ceil(MOST_FRAMES).max(1);
    let mut shown: Vec<usize> = ends.iter().copied().skip(step - 1).step_by(step).collect();
    let last = lines.len() - 1;
    shown.retain(|end| *end != last);
    let mut frames: Vec<(Buffer, u32)> = shown
        .iter()
        .map(|end| (draw_lines(&lines[..=*end]), FRAME_MILLIS))
        .collect();
    frames.push((draw_lines(&lines), LAST_FRAME_MILLIS));
    frames
}

fn draw_lines(lines: &[&str]) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, COLUMNS, ROWS));
    let first = lines.len().saturating_sub(usize::from(ROWS));
    for (y, line) in (0..ROWS).zip(&lines[first..]) {
        let line = fit_width(line, usize::from(COLUMNS));
        buffer.set_string(0, y, &line, line_style(&line));
    }
    buffer
}

/// As the demo paints its lines.
fn line_style(line: &str) -> Style {
    let has = |text: &str| line.contains(text);
    if line.starts_with('=') {
        Style::new().fg(Color::Green).add_modifier(Modifier::BOLD)
    } else if has("!!") {
        Style::new().fg(Color::Red)
    } else if has("  > ") {
        Style::new().add_modifier(Modifier::BOLD)
    } else if has(" · ") {
        Style::new().fg(Color::Yellow)
    } else if has(" done: ") {
        Style::new().fg(Color::Green)
    } else if has(" leaves: ") || has(" is gone: ") || has(" runs: ") {
        Style::new().add_modifier(Modifier::DIM)
    } else {
        Style::new()
    }
}
