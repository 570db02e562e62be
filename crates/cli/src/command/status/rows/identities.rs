//! Rows as texts, to detect changes.

use dogwatch_core::explain::{FleetStatus, HostRow};
use serde::Serialize;

/// The rows that `status --watch` prints when they change, as texts without ages and without the
/// time of a host's newest reading.
pub struct RowIdentities {
    pub nodes: Vec<String>,
    pub policies: Vec<String>,
    pub hosts: Vec<String>,
    pub schedules: Vec<String>,
    pub remediations: Vec<String>,
}

impl RowIdentities {
    pub fn of_status(status: &FleetStatus) -> Self {
        let hosts: Vec<HostRow> = status.hosts.clone();
        let unread = |host| HostRow {
            observed_at: None,
            ..host
        };
        Self {
            nodes: to_texts(&status.nodes),
            policies: to_texts(&status.policies),
            hosts: to_texts(&hosts.into_iter().map(unread).collect::<Vec<_>>()),
            schedules: to_texts(&status.schedules),
            remediations: to_texts(&status.remediations),
        }
    }
}

fn to_texts<R: Serialize>(rows: &[R]) -> Vec<String> {
    let text = |row| serde_json::to_string(row).expect("texts, numbers and times serialise");
    rows.iter().map(text).collect()
}
