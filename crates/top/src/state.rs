//! What `dogwatch top` remembers between two keys.

use std::collections::BTreeMap;

use dogwatch_core::report::FleetView;

use crate::command::ProposedCommand;
use crate::pane::{PaneRow, TopPane, pane_rows};

#[derive(Debug, Clone, PartialEq)]
pub struct TopState {
    /// The program as it was called: `dogwatch` or `kubectl dogwatch`.
    pub program: String,
    /// Flags that choose the cluster, for the commands that are shown and run.
    pub cluster_flags: Vec<String>,
    pub pane: TopPane,
    pub cursors: BTreeMap<TopPane, PaneCursor>,
    pub filter: String,
    pub is_editing_filter: bool,
    pub overlay: Option<TopOverlay>,
    /// Steps of the timeline's scale away from the one that shows everything.
    pub zoom: i32,
    /// A sentence about the last key, until the next one.
    pub notice: Option<String>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
}

impl TopState {
    pub fn new(program: impl Into<String>, size: (u16, u16)) -> Self {
        Self {
            program: program.into(),
            cluster_flags: Vec::new(),
            pane: TopPane::Out,
            cursors: BTreeMap::new(),
            filter: String::new(),
            is_editing_filter: false,
            overlay: None,
            zoom: 0,
            notice: None,
            size,
        }
    }

    /// Shows what a command printed, if its overlay is still open.
    pub fn show_output(&mut self, title: &str, printed: Vec<String>) {
        if let Some(TopOverlay::Text(text)) = &mut self.overlay
            && text.title == title
        {
            text.lines = Some(printed);
        }
    }

    /// The pane with the focus; a pane that has gone gives it to the first one.
    pub fn focused_pane(&self, view: &FleetView) -> TopPane {
        let shown = TopPane::shown_panes(view);
        if shown.contains(&self.pane) {
            self.pane
        } else {
            TopPane::Out
        }
    }

    /// Index of the row that the cursor of a pane is on; the row may have moved since.
    pub fn cursor_index(&self, pane: TopPane, rows: &[PaneRow<'_>]) -> usize {
        let Some(cursor) = self.cursors.get(&pane) else {
            return 0;
        };
        let is_here = |row: &PaneRow<'_>| row.row_key() == cursor.key;
        if rows.get(cursor.index).is_some_and(is_here) {
            return cursor.index;
        }
        rows.iter()
            .position(is_here)
            .unwrap_or_else(|| cursor.index.min(rows.len().saturating_sub(1)))
    }

    /// Notes where the selected rows are in a new view, so that the cursor of a row that goes away
    /// stays where it was last.
    pub fn follow_view(&mut self, view: &FleetView) {
        for (pane, cursor) in &mut self.cursors {
            let rows = pane_rows(view, *pane, &self.filter);
            let found = rows.iter().position(|row| row.row_key() == cursor.key);
            cursor.index = found.unwrap_or(cursor.index);
        }
    }

    pub fn move_cursor(&mut self, view: &FleetView, movement: CursorMovement) {
        let pane = self.focused_pane(view);
        let rows = pane_rows(view, pane, &self.filter);
        let at = self.cursor_index(pane, &rows);
        let index = movement.moved_index(at, rows.len());
        if let Some(row) = rows.get(index) {
            let key = row.row_key();
            self.cursors.insert(pane, PaneCursor { key, index });
        }
    }

    pub fn selected_row<'a>(&self, view: &'a FleetView) -> Option<PaneRow<'a>> {
        let pane = self.focused_pane(view);
        let rows = pane_rows(view, pane, &self.filter);
        rows.get(self.cursor_index(pane, &rows)).copied()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneCursor {
    pub key: String,
    /// Where the row was when it was chosen.
    pub index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorMovement {
    Up(usize),
    Down(usize),
    First,
    Last,
}

impl CursorMovement {
    pub fn moved_index(self, at: usize, count: usize) -> usize {
        let last = count.saturating_sub(1);
        match self {
            Self::Up(rows) => at.saturating_sub(rows),
            Self::Down(rows) => at.saturating_add(rows).min(last),
            Self::First => 0,
            Self::Last => last,
        }
    }
}

/// What lies over the panes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopOverlay {
    Help {
        scroll: usize,
    },
    Text(OverlayText),
    /// Asks before it runs the command.
    Confirm(ProposedCommand),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayText {
    pub title: String,
    /// Absent while the command runs.
    pub lines: Option<Vec<String>>,
    pub scroll: usize,
}
