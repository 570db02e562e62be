//! What is around the panes: the sentence, the tabs, the detail of the selected row, the keys.

use dogwatch_core::printable::printable_text;
use dogwatch_core::report::{FleetView, PersonTask};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::PaneDrawing;
use super::styles::{
    DELAYED_STYLE, PERSON_STYLE, PLAIN_STYLE, QUIET_STYLE, SELECTED_STYLE, TITLE_STYLE,
};
use crate::pane::{TopPane, pane_count};
use crate::printable::{fit_width, text_width, wrap_text};
use crate::state::TopState;

/// Draws one line and returns what is below it.
fn draw_line(buffer: &mut Buffer, area: Rect, text: &str, style: Style) -> Rect {
    if area.is_empty() {
        return area;
    }
    let text = fit_width(&printable_text(text), usize::from(area.width));
    buffer.set_stringn(area.x, area.y, text, usize::from(area.width), style);
    Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    }
}

/// The sentence, what needs a person, and what the view leaves out.
pub fn draw_header(buffer: &mut Buffer, area: Rect, view: &FleetView) -> Rect {
    let most = usize::from((area.height / 3).max(1));
    let mut lines: Vec<(String, Style)> = Vec::new();
    let first_unreadable = view.unreadable.first();
    lines.extend(first_unreadable.map(|text| (format!("? {text}"), DELAYED_STYLE)));
    let is_urgent = !view.needs_person.is_empty();
    let style = if is_urgent { PERSON_STYLE } else { TITLE_STYLE };
    let mark = if is_urgent { "! " } else { "" };
    let sentence = format!("{mark}{}", printable_text(&view.sentence));
    let mut sentence = wrap_text(&sentence, usize::from(area.width));
    if is_urgent {
        // The command to type must not be lost to a long sentence.
        sentence.truncate(most.saturating_sub(lines.len() + 2).max(1));
    }
    lines.extend(sentence.into_iter().map(|line| (line, style)));
    let room = most.saturating_sub(lines.len()).max(1);
    lines.extend(person_lines(&view.needs_person, room));
    let others = view.unreadable.iter().skip(1);
    lines.extend(others.map(|text| (format!("? {text}"), DELAYED_STYLE)));
    lines.truncate(most);
    let mut rest = area;
    for (text, style) in &lines {
        rest = draw_line(buffer, rest, text, *style);
    }
    rest
}

/// Each task with its command, as far as there is room, and how many more there are.
fn person_lines(tasks: &[PersonTask], room: usize) -> Vec<(String, Style)> {
    let mut lines = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let next = task.command.as_ref().or(task.next_step.as_ref());
        let needed = 1 + usize::from(next.is_some());
        let is_last = index + 1 == tasks.len();
        if index > 0 && lines.len() + needed + usize::from(!is_last) > room {
            lines.push((format!("! and {} more", tasks.len() - index), PERSON_STYLE));
            break;
        }
        let said = format!("! {} {}: {}", task.subject, task.reason, task.message);
        lines.push((said, PERSON_STYLE));
        lines.extend(next.map(|next| (format!("  → {next}"), TITLE_STYLE)));
    }
    if room == 1 && lines.len() > 1 {
        lines.remove(0);
    }
    lines
}

/// The last line: the filter, a notice, or the keys.
pub fn draw_footer(buffer: &mut Buffer, area: Rect, state: &TopState) -> Rect {
    if area.is_empty() {
        return area;
    }
    let line = Rect {
        y: area.bottom() - 1,
        height: 1,
        ..area
    };
    let (text, style) = if state.is_editing_filter {
        (
            format!("/{}_   enter: keep, esc: clear", state.filter),
            TITLE_STYLE,
        )
    } else if let Some(notice) = &state.notice {
        (notice.clone(), DELAYED_STYLE)
    } else if !state.filter.is_empty() {
        (
            format!("filter: {}   esc: clear", state.filter),
            TITLE_STYLE,
        )
    } else {
        let keys = if area.width < 60 { SHORT_KEYS } else { KEYS };
        (keys.to_owned(), QUIET_STYLE)
    };
    draw_line(buffer, line, &text, style);
    Rect {
        height: area.height - 1,
        ..area
    }
}

const KEYS: &str = "enter explain  r reboot  a abort  p pause  / filter  tab pane  ? help  q quit";
const SHORT_KEYS: &str = "enter explain  tab pane  ? help  q quit";

/// The names of the panes; the focused one is in brackets.
pub fn draw_tabs(buffer: &mut Buffer, area: Rect, view: &FleetView, state: &TopState) -> Rect {
    let focused = state.focused_pane(view);
    let shown = TopPane::shown_panes(view);
    let labels: Vec<String> = shown
        .iter()
        .map(|pane| tab_label(view, *pane, *pane == focused))
        .collect();
    let at = shown.iter().position(|pane| *pane == focused).unwrap_or(0);
    let width_until = |first: usize| -> usize {
        let widths = labels[first..=at].iter().map(|label| text_width(label));
        widths.sum()
    };
    let mut first = 0;
    while first < at && width_until(first) > usize::from(area.width) {
        first += 1;
    }
    let mut x = area.x;
    for (label, pane) in labels.iter().zip(&shown).skip(first) {
        let style = if *pane == focused {
            TITLE_STYLE
        } else {
            QUIET_STYLE
        };
        let room = usize::from(area.right().saturating_sub(x));
        x = buffer.set_stringn(x, area.y, label, room, style).0;
    }
    Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    }
}

fn tab_label(view: &FleetView, pane: TopPane, is_focused: bool) -> String {
    let count = pane_count(view, pane).map_or_else(String::new, |count| format!(" {count}"));
    let name = format!("{}{count}", pane.pane_title());
    if is_focused {
        format!("[{name}]")
    } else {
        format!(" {name} ")
    }
}

/// From this height on, the selected row is shown in full at the bottom.
const DETAIL_FROM_ROWS: u16 = 7;

/// All of the selected row's text, above the keys.
pub fn draw_detail(buffer: &mut Buffer, area: Rect, view: &FleetView, state: &TopState) -> Rect {
    if area.height < DETAIL_FROM_ROWS {
        return area;
    }
    let most = if area.height >= 30 { 3 } else { 2 };
    let Some(row) = state.selected_row(view) else {
        return area;
    };
    let name = row
        .explain_subject()
        .or_else(|| row.group_name().map(str::to_owned))
        .unwrap_or_default();
    let text = format!("> {name}: {}", row.detail_text());
    let mut lines = wrap_text(&printable_text(&text), usize::from(area.width));
    if lines.len() > most {
        let last = lines[most - 1].clone() + " …";
        lines[most - 1] = fit_width(&last, usize::from(area.width));
        lines.truncate(most);
    }
    let height = u16::try_from(most).unwrap_or(0);
    let mut strip = Rect {
        y: area.bottom() - height,
        height,
        ..area
    };
    for line in &lines {
        strip = draw_line(buffer, strip, line, PLAIN_STYLE);
    }
    Rect {
        height: area.height - height,
        ..area
    }
}

/// The title over a pane, and the area below it.
pub fn draw_pane_title(buffer: &mut Buffer, area: Rect, drawn: &PaneDrawing, rows: usize) -> Rect {
    let count = match drawn.pane {
        TopPane::Timeline => String::new(),
        TopPane::Out
        | TopPane::Waiting
        | TopPane::Groups
        | TopPane::Hosts
        | TopPane::Remediations
        | TopPane::Recent
        | TopPane::Nodes => format!(" {rows}"),
    };
    let title = format!("{}{count}", drawn.pane.pane_title());
    let (title, style) = if drawn.is_focused {
        (format!("━ [{title}] "), TITLE_STYLE)
    } else {
        (format!("─ {title} "), QUIET_STYLE)
    };
    let line = if drawn.is_focused { "━" } else { "─" };
    let fill = usize::from(area.width).saturating_sub(text_width(&title));
    draw_line(buffer, area, &(title + &line.repeat(fill)), style)
}

pub fn draw_empty_pane(buffer: &mut Buffer, area: Rect, drawn: &PaneDrawing) {
    let text = drawn.pane.empty_text(drawn.is_filtered);
    draw_line(buffer, area, &format!("  {text}"), QUIET_STYLE);
}

/// Marks a selected row over its whole width.
pub fn mark_selected(buffer: &mut Buffer, area: Rect) {
    buffer.set_style(area, SELECTED_STYLE);
}
