//! The box over the panes: help, what a command printed, and the question before a command.

use dogwatch_core::printable::printable_text;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::styles::{PLAIN_STYLE, QUIET_STYLE, TITLE_STYLE};
use crate::printable::{fit_width, text_width, wrap_text};
use crate::state::{TopOverlay, TopState};

const HELP: &str = "\
arrows, j, k       choose a row
PgUp, PgDn, space  a page up or down
Home, End, G       first or last row
tab, left, right   another pane
1 to 8             that pane
enter              explain the row's node, host or remediation
r                  request a reboot of the row's node
a                  abort the reboot of the row's node
p                  pause or resume the policy of the row's group
/                  show only rows with this text; esc shows all
+, -, 0            timeline: nearer, farther, all
?                  this help
q, Ctrl-C          end

r, a and p show the command first, and run it after y.

Times are in UTC. ! needs you. The timeline:
  · waits   D drains   H held for work   R reboots
  B comes back   ✓ rebooted   ✗ ended otherwise
  ╌ expected   ┈ at the latest   ░ window   │ now

A line that begins with > is about the selected row.";

const CLOSE_HINT: &str = "esc closes";
const SCROLL_HINT: &str = "arrows scroll, esc closes";
const CONFIRM_HINT: &str = "y: run it   n: do nothing";
const CHECK_HINT: &str = "y: run it   c: check first   n: do nothing";

pub fn draw_overlay(buffer: &mut Buffer, area: Rect, state: &TopState) {
    let Some(overlay) = &state.overlay else {
        return;
    };
    let lines = overlay_lines(overlay, state);
    let size = (area.width, area.height);
    let place = overlay_area(size, lines.len());
    let inside = inner_area(place);
    let last = lines.len().saturating_sub(usize::from(inside.height));
    clear_area(buffer, place);
    draw_border(
        buffer,
        place,
        &overlay_title(overlay),
        overlay_hint(overlay, last),
    );
    let first = overlay_scroll(overlay).min(last);
    for (row, (text, style)) in (inside.y..inside.bottom()).zip(lines.iter().skip(first)) {
        let width = usize::from(inside.width);
        buffer.set_stringn(inside.x, row, text, width, *style);
    }
}

/// The largest useful scroll offset.
pub fn last_scroll(overlay: &TopOverlay, size: (u16, u16)) -> usize {
    let width = inner_area(overlay_area(size, usize::MAX)).width;
    let count = match overlay {
        TopOverlay::Help { .. } => help_lines(usize::from(width)).len(),
        TopOverlay::Text(text) => {
            let lines = text.lines.as_deref().unwrap_or_default();
            wrap_lines(lines, usize::from(width)).len()
        }
        TopOverlay::Confirm(_) => 0,
    };
    let height = inner_area(overlay_area(size, count)).height;
    count.saturating_sub(usize::from(height))
}

/// By how many rows a page moves.
pub fn page_rows(size: (u16, u16)) -> usize {
    usize::from(size.1.saturating_sub(8).max(3))
}

fn overlay_lines(overlay: &TopOverlay, state: &TopState) -> Vec<(String, Style)> {
    let width = usize::from(inner_area(overlay_area(state.size, usize::MAX)).width);
    let plain = |lines: Vec<String>| -> Vec<(String, Style)> {
        lines.into_iter().map(|line| (line, PLAIN_STYLE)).collect()
    };
    match overlay {
        TopOverlay::Help { .. } => plain(help_lines(width)),
        TopOverlay::Text(text) => match &text.lines {
            None => vec![("running …".to_owned(), QUIET_STYLE)],
            Some(lines) => plain(wrap_lines(lines, width)),
        },
        TopOverlay::Confirm(proposed) => {
            let command = printable_text(&proposed.command_line(state));
            let command = wrap_text(&command, width).into_iter();
            let mut lines: Vec<_> = command.map(|line| (line, TITLE_STYLE)).collect();
            lines.push((String::new(), PLAIN_STYLE));
            lines.extend(plain(wrap_text(&printable_text(&proposed.effect), width)));
            lines
        }
    }
}

fn help_lines(width: usize) -> Vec<String> {
    let lines = HELP.lines().map(str::to_owned).collect::<Vec<_>>();
    wrap_lines(&lines, width)
}

fn wrap_lines(lines: &[String], width: usize) -> Vec<String> {
    lines
        .iter()
        .flat_map(|line| wrap_keeping_columns(&printable_text(line), width))
        .collect()
}

/// A line that fits keeps its columns; only a longer one is broken.
fn wrap_keeping_columns(line: &str, width: usize) -> Vec<String> {
    if text_width(line) <= width {
        vec![line.to_owned()]
    } else {
        wrap_text(line, width)
    }
}

fn overlay_title(overlay: &TopOverlay) -> String {
    match overlay {
        TopOverlay::Help { .. } => "Keys and symbols".to_owned(),
        TopOverlay::Text(text) => printable_text(&text.title),
        TopOverlay::Confirm(_) => "Run this command?".to_owned(),
    }
}

fn overlay_hint(overlay: &TopOverlay, last: usize) -> &'static str {
    match overlay {
        TopOverlay::Confirm(proposed) if proposed.checkable_node.is_some() => CHECK_HINT,
        TopOverlay::Confirm(_) => CONFIRM_HINT,
        TopOverlay::Help { .. } | TopOverlay::Text(_) if last == 0 => CLOSE_HINT,
        TopOverlay::Help { .. } | TopOverlay::Text(_) => SCROLL_HINT,
    }
}

fn overlay_scroll(overlay: &TopOverlay) -> usize {
    match overlay {
        TopOverlay::Help { scroll } => *scroll,
        TopOverlay::Text(text) => text.scroll,
        TopOverlay::Confirm(_) => 0,
    }
}

/// A box as high as its lines, in the middle; the whole screen if that is small.
fn overlay_area(size: (u16, u16), lines: usize) -> Rect {
    let (columns, rows) = size;
    let margin = if columns < 60 { 0 } else { columns / 12 };
    let most = if rows < 16 { rows } else { rows - 2 };
    let wanted = u16::try_from(lines.saturating_add(2)).unwrap_or(u16::MAX);
    let height = wanted.clamp(3.min(rows), most.max(1));
    Rect {
        x: margin,
        y: (rows - height) / 2,
        width: columns - 2 * margin,
        height,
    }
}

/// Without the border and one column of padding.
fn inner_area(area: Rect) -> Rect {
    Rect {
        x: area.x + 2.min(area.width),
        y: area.y + 1.min(area.height),
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}

fn clear_area(buffer: &mut Buffer, area: Rect) {
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            buffer[(x, y)].reset();
        }
    }
    // The right half of a wide character that is now covered must not stay.
    for y in area.top()..area.bottom() {
        if let Some(cell) = area.x.checked_sub(1).and_then(|x| buffer.cell_mut((x, y)))
            && text_width(cell.symbol()) > 1
        {
            cell.reset();
        }
    }
}

fn draw_border(buffer: &mut Buffer, area: Rect, title: &str, hint: &str) {
    let inner = usize::from(area.width.saturating_sub(2));
    let title = fit_width(&format!(" {title} "), inner);
    let hint = fit_width(&format!(" {hint} "), inner);
    let fill = |text: &str| "─".repeat(inner.saturating_sub(text_width(text)));
    let top = format!("┌{title}{}┐", fill(&title));
    let bottom = format!("└{}{hint}┘", fill(&hint));
    buffer.set_string(area.x, area.y, top, TITLE_STYLE);
    for y in area.y + 1..area.bottom().saturating_sub(1) {
        buffer.set_string(area.x, y, "│", TITLE_STYLE);
        buffer.set_string(area.right().saturating_sub(1), y, "│", TITLE_STYLE);
    }
    if area.height > 1 {
        buffer.set_string(area.x, area.bottom() - 1, bottom, TITLE_STYLE);
    }
}
