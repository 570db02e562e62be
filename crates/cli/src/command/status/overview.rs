//! What the view of the fleet adds to a status of all parts.

use std::io::Write;

use dogwatch_core::explain::FleetStatus;
use dogwatch_core::report::{
    FleetCounts, FleetEstimate, FleetView, GroupView, OutNodeRow, PersonTask, RecentOutcome,
    WaitingNodeRow,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::exit::CommandFailure;
use crate::paint::{TerminalColour, TerminalPaint};
use dogwatch_core::printable::printable_text;

/// The document of `status -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusDocument {
    #[serde(flatten)]
    pub status: FleetStatus,
    /// Only in a status of all parts.
    #[serde(flatten)]
    pub overview: Option<StatusOverview>,
    /// What cannot be watched now, in a status of one part. That of all parts has its own.
    #[serde(rename = "unreadable", skip_serializing_if = "Vec::is_empty")]
    unreadable_of_part: Vec<String>,
}

/// The fields of [`FleetView`] that a status does not have. Its nodes that wait are
/// `waitingNodes` here, because `waiting` are the callers of the lock API.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusOverview {
    version: u32,
    at: Timestamp,
    sentence: String,
    counts: FleetCounts,
    needs_person: Vec<PersonTask>,
    out: Vec<OutNodeRow>,
    waiting_nodes: Vec<WaitingNodeRow>,
    groups: Vec<GroupView>,
    recent: Vec<RecentOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<FleetEstimate>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

impl StatusDocument {
    /// A status of one part.
    pub fn of_part(status: FleetStatus) -> Self {
        Self {
            status,
            overview: None,
            unreadable_of_part: Vec::new(),
        }
    }

    pub fn with_unreadable(self, unreadable_of_part: Vec<String>) -> Self {
        Self {
            unreadable_of_part,
            ..self
        }
    }

    /// What could not be read, one sentence each.
    pub fn list_unreadable(&self) -> &[String] {
        match &self.overview {
            Some(overview) => &overview.unreadable,
            None => &self.unreadable_of_part,
        }
    }

    /// Whether it says something else than the other one, apart from the time of its making.
    pub fn differs_from(&self, other: &Self) -> bool {
        let said = |document: &Self| {
            let overview = document.overview.clone();
            overview.map(|overview| StatusOverview {
                at: Timestamp::UNIX_EPOCH,
                ..overview
            })
        };
        let is_outdated = self.unreadable_of_part != other.unreadable_of_part;
        is_outdated || self.status != other.status || said(self) != said(other)
    }

    /// How many nodes are out or wait; 0 in a status of one part.
    pub fn unfinished_nodes(&self) -> usize {
        let counts = self.overview.as_ref().map(|overview| &overview.counts);
        counts.map_or(0, |counts| counts.out + counts.waiting)
    }

    pub fn sentence(&self) -> Option<&str> {
        self.overview
            .as_ref()
            .map(|overview| overview.sentence.as_str())
    }

    /// A status of all parts.
    pub fn of_view(view: FleetView) -> Self {
        Self {
            status: FleetStatus {
                nodes: view.nodes,
                locks: view.locks,
                waiting: view.waiting_hosts,
                policies: view.policies,
                hosts: view.hosts,
                schedules: view.schedules,
                remediations: view.remediations,
            },
            overview: Some(StatusOverview {
                version: view.version,
                at: view.at,
                sentence: view.sentence,
                counts: view.counts,
                needs_person: view.needs_person,
                out: view.out,
                waiting_nodes: view.waiting,
                groups: view.groups,
                recent: view.recent,
                estimate: view.estimate,
                unreadable: view.unreadable,
            }),
            unreadable_of_part: Vec::new(),
        }
    }
}

impl StatusOverview {
    /// The sentence, red if it asks for a person, and an empty line.
    pub fn write_sentence(
        &self,
        out: &mut impl Write,
        paint: TerminalPaint,
    ) -> Result<(), CommandFailure> {
        let text = printable_text(&self.sentence);
        let text = if self.needs_person.is_empty() {
            text
        } else {
            paint.paint_text(TerminalColour::Red, &text)
        };
        Ok(writeln!(out, "{text}\n")?)
    }
}
