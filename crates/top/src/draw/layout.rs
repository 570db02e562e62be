//! Which panes are on the screen, and where.

use dogwatch_core::report::FleetView;
use ratatui_core::layout::Rect;

use crate::pane::{TopPane, pane_count};
use crate::timeline::timeline_rows;

/// From this size on, several panes are beside each other.
const WIDE_COLUMNS: u16 = 120;
const WIDE_ROWS: u16 = 18;
/// From this height on, who is out stays in sight above another pane.
const TALL_ROWS: u16 = 12;
/// The title, the heading and one row.
const MIN_PANE_ROWS: u16 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedPane {
    pub pane: TopPane,
    pub area: Rect,
}

/// The focused pane is always among them.
pub fn arrange_panes(area: Rect, view: &FleetView, focused: TopPane) -> Vec<PlacedPane> {
    if area.is_empty() {
        return Vec::new();
    }
    if area.width >= WIDE_COLUMNS && area.height >= WIDE_ROWS {
        return arrange_columns(area, view, focused);
    }
    if area.height >= TALL_ROWS {
        let below = if focused == TopPane::Out {
            TopPane::Timeline
        } else {
            focused
        };
        return stack_panes(area, view, &[TopPane::Out, below]);
    }
    vec![PlacedPane {
        pane: focused,
        area,
    }]
}

fn arrange_columns(area: Rect, view: &FleetView, focused: TopPane) -> Vec<PlacedPane> {
    let shown = TopPane::shown_panes(view);
    let mut left = vec![TopPane::Out, TopPane::Waiting, TopPane::Recent];
    let mut right = vec![TopPane::Timeline, TopPane::Groups];
    right.extend(
        [TopPane::Hosts, TopPane::Remediations]
            .into_iter()
            .filter(|pane| shown.contains(pane)),
    );
    if focused == TopPane::Nodes {
        left[2] = TopPane::Nodes;
    }
    right.truncate(usize::from(area.height / 6).max(1));
    if !left.contains(&focused) && !right.contains(&focused) {
        let last = right.len() - 1;
        right[last] = focused;
    }
    let gap = 1;
    let left_width = area.width * 9 / 20;
    let left_area = Rect {
        width: left_width,
        ..area
    };
    let right_area = Rect {
        x: area.x + left_width + gap,
        width: area.width - left_width - gap,
        ..area
    };
    let mut placed = stack_panes(left_area, view, &left);
    placed.extend(stack_panes(right_area, view, &right));
    placed
}

/// Panes one below the other: each gets what it needs as far as that goes, the last one the rest.
fn stack_panes(area: Rect, view: &FleetView, panes: &[TopPane]) -> Vec<PlacedPane> {
    let wanted: Vec<u16> = panes.iter().map(|pane| wanted_rows(view, *pane)).collect();
    let heights = share_rows(area.height, &wanted);
    let mut y = area.y;
    let mut placed = Vec::new();
    for (pane, height) in panes.iter().zip(heights) {
        placed.push(PlacedPane {
            pane: *pane,
            area: Rect { y, height, ..area },
        });
        y += height;
    }
    placed
}

fn wanted_rows(view: &FleetView, pane: TopPane) -> u16 {
    let rows = pane_count(view, pane).unwrap_or_else(|| timeline_rows(view).len() + 1);
    let rows = u16::try_from(rows.max(1)).unwrap_or(u16::MAX);
    rows.saturating_add(MIN_PANE_ROWS)
}

/// Gives small wishes in full, and shares the rest equally among the large ones.
fn share_rows(height: u16, wanted: &[u16]) -> Vec<u16> {
    let mut given = vec![0; wanted.len()];
    let mut left = height;
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|index| wanted[*index]);
    for (served, index) in order.into_iter().enumerate() {
        let others = u16::try_from(wanted.len() - served).unwrap_or(1);
        given[index] = wanted[index].min(left / others);
        left -= given[index];
    }
    if let Some(last) = given.last_mut() {
        *last += left;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_panes_get_what_they_need_and_large_ones_share_the_rest() {
        assert_eq!(share_rows(30, &[4, 100, 100]), [4, 13, 13]);
        assert_eq!(share_rows(30, &[4, 5, 6]), [4, 5, 21]);
        assert_eq!(share_rows(9, &[100, 100]), [4, 5]);
        assert_eq!(share_rows(0, &[3, 3]), [0, 0]);
    }
}
