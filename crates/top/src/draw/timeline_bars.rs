//! Draws the timeline: a row for each node, a column for each piece of time.

use dogwatch_core::printable::printable_text;
use dogwatch_core::report::{FleetView, GroupView};
use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::PaneDrawing;
use super::cells::window_text;
use super::frame::mark_selected;
use super::styles::{DELAYED_STYLE, PLAIN_STYLE, QUIET_STYLE, TITLE_STYLE, WELL_STYLE, bar_style};
use crate::pane::PaneRow;
use crate::printable::{fit_width, text_width};
use crate::timeline::{TimeAxis, TimelineRow};

const MARK_WIDTH: u16 = 2;
const MIN_NAME_WIDTH: usize = 4;
const LEGEND: &str =
    "· waits  D drains  H held  R reboots  B comes back  ╌ expected  ░ window  │ now";
/// From this height on there is room for the legend.
const LEGEND_FROM_ROWS: u16 = 8;

pub fn draw_timeline(
    buffer: &mut Buffer,
    area: Rect,
    drawn: &PaneDrawing,
    rows: &[PaneRow<'_>],
    view: &FleetView,
    zoom: i32,
) {
    if area.height < 2 {
        return;
    }
    let has_legend = area.height >= LEGEND_FROM_ROWS;
    let height = usize::from(area.height) - 1 - usize::from(has_legend);
    let first = drawn.first_row(rows.len(), height);
    let visible: Vec<TimelineRow<'_>> = rows[first..]
        .iter()
        .take(height)
        .filter_map(|row| match row {
            PaneRow::Timeline(row) => Some(*row),
            PaneRow::Out(_)
            | PaneRow::Waiting(_)
            | PaneRow::WaitingHost(_)
            | PaneRow::Group(_)
            | PaneRow::Host(_)
            | PaneRow::Remediation(_)
            | PaneRow::Recent(_)
            | PaneRow::Node(_) => None,
        })
        .collect();
    let names = name_width(&visible, area.width);
    let sheet = TimelineSheet {
        area,
        axis_x: area.x + MARK_WIDTH + names + 1,
        axis: TimeAxis::fit_view(view, drawn.now, zoom),
        now: drawn.now,
    };
    sheet.draw_axis(buffer);
    for (offset, row) in visible.iter().enumerate() {
        let y = area.y + 1 + u16::try_from(offset).unwrap_or(0);
        sheet.draw_row(buffer, y, *row, view);
        if drawn.is_selected(first + offset) {
            buffer.set_string(area.x, y, ">", QUIET_STYLE);
            // The bars keep their colours.
            let names = Rect::new(area.x, y, sheet.axis_x - area.x - 1, 1);
            mark_selected(buffer, names);
        }
    }
    if has_legend {
        let text = fit_width(LEGEND, usize::from(area.width));
        buffer.set_string(area.x, area.bottom() - 1, text, QUIET_STYLE);
    }
}

fn name_width(rows: &[TimelineRow<'_>], width: u16) -> u16 {
    let names = rows.iter().filter_map(|row| row.node_name());
    let widest = names.map(text_width).max().unwrap_or(0);
    let most = usize::from(width / 3);
    let width = widest.min(most).max(MIN_NAME_WIDTH);
    u16::try_from(width).unwrap_or(0)
}

struct TimelineSheet {
    area: Rect,
    /// The first column of the axis.
    axis_x: u16,
    axis: TimeAxis,
    now: Timestamp,
}

/// Steps between two labels, in seconds, and how a label is written.
const TICKS: [(i64, &str); 13] = [
    (10, "%H:%M:%S"),
    (30, "%H:%M:%S"),
    (60, "%H:%M"),
    (300, "%H:%M"),
    (600, "%H:%M"),
    (1_800, "%H:%M"),
    (3_600, "%H:%M"),
    (2 * 3_600, "%H:%M"),
    (6 * 3_600, "%a %H:%M"),
    (12 * 3_600, "%a %H:%M"),
    (24 * 3_600, "%a %d"),
    (2 * 24 * 3_600, "%a %d"),
    (7 * 24 * 3_600, "%m-%d"),
];

impl TimelineSheet {
    fn axis_width(&self) -> u16 {
        self.area.right().saturating_sub(self.axis_x)
    }

    /// The column on the screen; `None` outside of the axis.
    fn screen_column(&self, time: Timestamp) -> Option<u16> {
        let column = self.axis.column_of(time, self.axis_width());
        let column = u16::try_from(column).ok()?;
        (column < self.axis_width()).then_some(self.axis_x + column)
    }

    /// The columns that a span of time covers; at least one if it is in sight.
    fn screen_columns(&self, from: Timestamp, until: Timestamp) -> std::ops::Range<u16> {
        let width = i64::from(self.axis_width());
        let start = self.axis.column_of(from, self.axis_width());
        let end = self.axis.column_of(until, self.axis_width()).max(start + 1);
        let on_screen =
            |column: i64| self.axis_x + u16::try_from(column.clamp(0, width)).unwrap_or(0);
        on_screen(start)..on_screen(end)
    }

    fn draw_axis(&self, buffer: &mut Buffer) {
        let y = self.area.y;
        buffer.set_stringn(
            self.area.x + MARK_WIDTH,
            y,
            "UTC",
            usize::from(self.axis_x - self.area.x),
            QUIET_STYLE,
        );
        let width = i64::from(self.axis_width()).max(1);
        let seconds_of = |label: &str| {
            let columns = i64::try_from(label_width(label)).unwrap_or(0) + 2;
            columns * self.axis.span_seconds() / width
        };
        let tick = TICKS
            .iter()
            .find(|(step, label)| *step >= seconds_of(label));
        let (step, label) = tick.copied().unwrap_or((7 * 24 * 3_600, "%m-%d"));
        let mut second = (self.axis.from.as_second() / step + 1) * step;
        while let Ok(time) = Timestamp::from_second(second) {
            if time >= self.axis.until {
                break;
            }
            let text = time.strftime(label).to_string();
            let fits = |x: &u16| usize::from(self.area.right() - *x) >= text_width(&text);
            if let Some(x) = self.screen_column(time).filter(fits) {
                buffer.set_string(x, y, &text, QUIET_STYLE);
            }
            second += step;
        }
    }

    fn draw_row(&self, buffer: &mut Buffer, y: u16, row: TimelineRow<'_>, view: &FleetView) {
        let group = view
            .groups
            .iter()
            .find(|group| group.name == row.group_name());
        if let Some(group) = group {
            self.shade_windows(buffer, y, group);
        }
        self.fill_span(buffer, y, self.now, self.now, ("│", QUIET_STYLE));
        if let TimelineRow::Group(group) = row {
            self.draw_group_title(buffer, y, group);
            return;
        }
        let room = usize::from(self.axis_x - self.area.x - MARK_WIDTH - 1);
        let name = printable_text(row.node_name().unwrap_or_default());
        let name = fit_width(&name, room);
        buffer.set_stringn(self.area.x + MARK_WIDTH, y, name, room, PLAIN_STYLE);
        self.draw_expected(buffer, y, row);
        self.draw_phases(buffer, y, row);
    }

    fn draw_group_title(&self, buffer: &mut Buffer, y: u16, group: &GroupView) {
        let (window, style) = window_text(group, self.now);
        let name = printable_text(&group.name);
        let budget = format!("  {} of {} used  ", group.used, group.allowed);
        let mut x = self.area.x + MARK_WIDTH;
        for (text, style) in [
            (name, TITLE_STYLE),
            (budget, PLAIN_STYLE),
            (printable_text(&window), style),
            (" ".to_owned(), PLAIN_STYLE),
        ] {
            let room = usize::from(self.area.right().saturating_sub(x));
            let text = fit_width(&text, room);
            let covered = Rect::new(x, y, u16::try_from(text_width(&text)).unwrap_or(0), 1);
            // The shade of the windows is dim, and would make the title dim.
            buffer.set_style(covered, Style::reset());
            x = buffer.set_stringn(x, y, text, room, style).0;
        }
    }

    fn fill_span(
        &self,
        buffer: &mut Buffer,
        y: u16,
        from: Timestamp,
        until: Timestamp,
        (symbol, style): (&str, Style),
    ) {
        for x in self.screen_columns(from, until) {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
                cell.set_symbol(symbol).set_style(style);
            }
        }
    }

    fn shade_windows(&self, buffer: &mut Buffer, y: u16, group: &GroupView) {
        for window in &group.windows {
            self.fill_span(buffer, y, window.from, window.until, ("░", QUIET_STYLE));
        }
    }

    /// Dashed up to the median, lighter up to the 90th percentile.
    fn draw_expected(&self, buffer: &mut Buffer, y: u16, row: TimelineRow<'_>) {
        let Some(estimate) = row.node_estimate() else {
            return;
        };
        let start = estimate.start.max(self.now);
        let finish = estimate.finish.max(start);
        let latest = estimate.latest_finish;
        if latest > finish {
            self.fill_span(buffer, y, finish, latest, ("┈", QUIET_STYLE));
        }
        self.fill_span(buffer, y, start, finish, ("╌", PLAIN_STYLE));
    }

    fn draw_phases(&self, buffer: &mut Buffer, y: u16, row: TimelineRow<'_>) {
        if let TimelineRow::Waiting(waiting, _) = row {
            let symbol = bar_symbol("waiting");
            self.fill_span(buffer, y, waiting.since, self.now, symbol);
        }
        for bar in row.phase_bars() {
            let until = bar.until.unwrap_or(self.now);
            self.fill_span(buffer, y, bar.from, until, bar_symbol(bar.phase));
        }
        if let TimelineRow::Ended(ended) = row {
            let mark = if ended.outcome == "Rebooted" {
                ("✓", WELL_STYLE)
            } else {
                ("✗", DELAYED_STYLE)
            };
            self.fill_span(buffer, y, ended.finished, ended.finished, mark);
        }
    }
}

fn label_width(format: &str) -> usize {
    Timestamp::UNIX_EPOCH.strftime(format).to_string().len()
}

fn bar_symbol(phase: &str) -> (&'static str, Style) {
    let symbol = match phase {
        "draining" => "D",
        "holding" => "H",
        "rebooting" => "R",
        "returning" => "B",
        _ => "·",
    };
    (symbol, bar_style(phase))
}
