//! The columns of each pane.

use dogwatch_core::report::FleetView;
use jiff::Timestamp;
use ratatui_core::style::Style;

use super::cells::{
    asked_cell, budget_cell, ended_cell, group_cell, group_out_cell, group_waiting_cell,
    host_node_cell, last_reboot_cell, left_cell, name_cell, others_cell, outcome_cell, phase_cell,
    place_cell, power_cell, proof_cell, reading_cell, remediated_host_cell, since_cell, start_cell,
    status_cell, step_cell, took_cell, wanted_cell, why_cell, window_cell,
};
use crate::pane::{PaneRow, TopPane};

/// What a cell is made from.
pub struct CellInput<'a> {
    pub row: PaneRow<'a>,
    pub view: &'a FleetView,
    pub now: Timestamp,
}

pub type StyledText = (String, Style);

pub struct PaneColumn {
    pub heading: &'static str,
    /// Where the terminal is narrow, the column with the least goes first.
    pub keep: u8,
    pub cell: fn(&CellInput<'_>) -> StyledText,
}

const fn pane_column(
    heading: &'static str,
    keep: u8,
    cell: fn(&CellInput<'_>) -> StyledText,
) -> PaneColumn {
    PaneColumn {
        heading,
        keep,
        cell,
    }
}

/// The last column takes what the others leave.
pub fn pane_columns(pane: TopPane) -> &'static [PaneColumn] {
    match pane {
        TopPane::Out => OUT_COLUMNS,
        TopPane::Waiting => WAITING_COLUMNS,
        TopPane::Groups => GROUPS_COLUMNS,
        TopPane::Hosts => HOSTS_COLUMNS,
        TopPane::Remediations => REMEDIATIONS_COLUMNS,
        TopPane::Recent => RECENT_COLUMNS,
        TopPane::Nodes => NODES_COLUMNS,
        TopPane::Timeline => &[],
    }
}

const OUT_COLUMNS: &[PaneColumn] = &[
    pane_column("NODE", 9, name_cell),
    pane_column("PHASE", 8, phase_cell),
    pane_column("FOR", 6, since_cell),
    pane_column("LEFT", 7, left_cell),
    pane_column("GROUP", 2, group_cell),
    pane_column("ASKED", 1, asked_cell),
    pane_column("WAITS FOR", 5, why_cell),
];

const WAITING_COLUMNS: &[PaneColumn] = &[
    pane_column("#", 6, place_cell),
    pane_column("NODE", 9, name_cell),
    pane_column("FOR", 4, since_cell),
    pane_column("STARTS", 8, start_cell),
    pane_column("GROUP", 2, group_cell),
    pane_column("WHY", 5, why_cell),
];

const GROUPS_COLUMNS: &[PaneColumn] = &[
    pane_column("GROUP", 9, name_cell),
    pane_column("USED", 8, budget_cell),
    pane_column("OUT", 4, group_out_cell),
    pane_column("WAIT", 5, group_waiting_cell),
    pane_column("OTHERS", 3, others_cell),
    pane_column("WINDOW", 7, window_cell),
];

const HOSTS_COLUMNS: &[PaneColumn] = &[
    pane_column("HOST", 9, name_cell),
    pane_column("POWER", 8, power_cell),
    pane_column("WANTED", 7, wanted_cell),
    pane_column("READ", 4, reading_cell),
    pane_column("PROVED OFF", 5, proof_cell),
    pane_column("NODE", 3, host_node_cell),
    pane_column("WHY", 6, why_cell),
];

const REMEDIATIONS_COLUMNS: &[PaneColumn] = &[
    pane_column("SUBJECT", 9, name_cell),
    pane_column("STEP", 8, step_cell),
    pane_column("FOR", 6, since_cell),
    pane_column("HOST", 3, remediated_host_cell),
    pane_column("WHY", 7, why_cell),
];

const RECENT_COLUMNS: &[PaneColumn] = &[
    pane_column("ENDED", 7, ended_cell),
    pane_column("NODE", 9, name_cell),
    pane_column("OUTCOME", 8, outcome_cell),
    pane_column("TOOK", 5, took_cell),
    pane_column("GROUP", 2, group_cell),
    pane_column("ASKED", 4, asked_cell),
];

const NODES_COLUMNS: &[PaneColumn] = &[
    pane_column("NODE", 9, name_cell),
    pane_column("STATUS", 7, status_cell),
    pane_column("PHASE", 8, phase_cell),
    pane_column("GROUP", 3, group_cell),
    pane_column("LAST REBOOT", 4, last_reboot_cell),
    pane_column("WHY", 5, why_cell),
];
