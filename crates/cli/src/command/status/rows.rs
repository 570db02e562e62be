//! Turns a status into tables.

mod hosts;
mod policies;
mod remediations;
mod schedules;

use std::io::{self, Write};

use dogwatch_core::Now;
use dogwatch_core::explain::{
    FleetStatus, LockRow, NodeStatusRow, WaitingRow, format_age, format_ordinal, format_time,
};
use dogwatch_core::policy::PolicyReason;
use dogwatch_core::reason::Severity;
use dogwatch_core::reboot::RebootReason;

pub use hosts::{host_identity, hosts_table};
use policies::policies_table;
pub use policies::policy_identity;
pub use remediations::{remediation_identity, remediations_table};
pub use schedules::{schedule_identity, schedules_table};

use super::StatusPart;
use crate::output::OutputFormat;
use crate::paint::{TerminalColour, TerminalPaint};
use crate::table::{TableCell, TextTable};

pub struct StatusTables {
    pub nodes: TextTable,
    locks: TextTable,
    waiting: TextTable,
    pub policies: TextTable,
    pub hosts: TextTable,
    pub schedules: TextTable,
    pub remediations: TextTable,
}

impl StatusTables {
    /// Builds the tables with ages as of `now`.
    pub fn of_status(status: &FleetStatus, format: OutputFormat, now: Now) -> Self {
        let wide = format == OutputFormat::Wide;
        Self {
            nodes: nodes_table(&status.nodes, wide, now),
            locks: locks_table(&status.locks, now),
            waiting: waiting_table(&status.waiting, now),
            policies: policies_table(&status.policies, wide, now),
            hosts: hosts_table(&status.hosts, wide, now),
            schedules: schedules_table(&status.schedules, wide, now),
            remediations: remediations_table(&status.remediations, wide, now),
        }
    }

    /// Writes the nodes, then those of remediations, locks, policies, hosts and schedules that have
    /// rows. If all are empty, writes the heading of the table of `what`, else that of the nodes.
    pub fn write_tables(
        &self,
        out: &mut impl Write,
        what: Option<StatusPart>,
        paint: TerminalPaint,
    ) -> io::Result<()> {
        let head = match what {
            None | Some(StatusPart::Nodes) => &self.nodes,
            Some(StatusPart::Locks) => &self.locks,
            Some(StatusPart::Policies) => &self.policies,
            Some(StatusPart::Hosts) => &self.hosts,
            Some(StatusPart::Schedules) => &self.schedules,
            Some(StatusPart::Remediations) => &self.remediations,
        };
        let others = [
            &self.remediations,
            &self.locks,
            &self.waiting,
            &self.policies,
            &self.hosts,
            &self.schedules,
        ];
        let mut tables: Vec<&TextTable> = others
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .collect();
        if !self.nodes.rows.is_empty() {
            tables.insert(0, &self.nodes);
        }
        if tables.is_empty() {
            tables.push(head);
        }
        for (index, table) in tables.into_iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            table.write_table(out, paint)?;
        }
        Ok(())
    }
}

fn nodes_table(rows: &[NodeStatusRow], wide: bool, now: Now) -> TextTable {
    let mut columns = vec!["NODE", "GROUP", "STATUS", "PHASE", "SINCE", "LOCK", "LAST"];
    if wide {
        columns.extend(["POLICY", "BOOT-ID", "TRIGGER"]);
    }
    columns.push("WAITS-FOR");
    TextTable {
        columns,
        rows: rows.iter().map(|row| node_cells(row, wide, now)).collect(),
    }
}

fn node_cells(row: &NodeStatusRow, wide: bool, now: Now) -> Vec<TableCell> {
    let not_ready = row.status.starts_with("NotReady");
    let mut cells = vec![
        row.name.as_str().into(),
        row.group.as_str().into(),
        TableCell::coloured(status_text(row), not_ready.then_some(TerminalColour::Red)),
        row.phase
            .map(|phase| TableCell::coloured(phase, Some(phase_colour(phase))))
            .into(),
        row.since.map(|at| format_age(now.elapsed_since(at))).into(),
        lock_cell(row).into(),
        last_reboot_text(row, now).into(),
    ];
    if wide {
        cells.push(row.policy.as_deref().into());
        cells.push(row.boot_id.as_deref().into());
        cells.push(row.trigger.as_deref().map(first_line).into());
    }
    cells.push(node_reason_cell(row).into());
    cells
}

/// The node's status, and whether it is ignored by its group's budget.
fn status_text(row: &NodeStatusRow) -> String {
    if row.ignored {
        return format!("{},ignored", row.status);
    }
    row.status.clone()
}

fn phase_colour(phase: &str) -> TerminalColour {
    match phase {
        "waiting" => TerminalColour::Dim,
        "returning" => TerminalColour::Green,
        _ => TerminalColour::Cyan,
    }
}

/// The Lease that the node holds, or its place in the queue.
fn lock_cell(row: &NodeStatusRow) -> Option<String> {
    row.lock.clone().or_else(|| {
        row.place
            .map(|place| format!("{} in the queue", format_ordinal(place)))
    })
}

fn last_reboot_text(row: &NodeStatusRow, now: Now) -> Option<String> {
    let last = row.last.as_ref()?;
    Some(format!(
        "{} {} ago",
        last.outcome,
        format_age(now.elapsed_since(last.finished))
    ))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn node_reason_cell(row: &NodeStatusRow) -> Option<TableCell> {
    reason_cell(row.reason.as_deref(), row.message.as_deref())
}

fn reason_cell(reason: Option<&str>, message: Option<&str>) -> Option<TableCell> {
    let reason = reason?;
    let text = match message {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        Some(_) | None => reason.to_owned(),
    };
    Some(TableCell::coloured(text, reason_colour(reason)))
}

/// Reasons of another version have no colour.
fn reason_colour(reason: &str) -> Option<TerminalColour> {
    let of_node = RebootReason::parse(reason).map(RebootReason::severity);
    let of_policy = || PolicyReason::parse(reason).map(PolicyReason::severity);
    match of_node.or_else(of_policy)? {
        Severity::Alarm => Some(TerminalColour::Red),
        Severity::Warning => Some(TerminalColour::Yellow),
        Severity::Progress | Severity::Waiting => None,
    }
}

fn locks_table(rows: &[LockRow], now: Now) -> TextTable {
    let cells = |row: &LockRow| -> Vec<TableCell> {
        vec![
            row.name.as_str().into(),
            row.group.as_str().into(),
            row.holder.as_deref().into(),
            row.since.map(|at| format_age(now.elapsed_since(at))).into(),
            row.max_unavailable.map(|max| max.to_string()).into(),
            (!row.next.is_empty()).then(|| row.next.join(",")).into(),
        ]
    };
    TextTable {
        columns: vec!["LEASE", "GROUP", "HOLDER", "SINCE", "MAX", "CALLED-NEXT"],
        rows: rows.iter().map(cells).collect(),
    }
}

fn waiting_table(rows: &[WaitingRow], now: Now) -> TextTable {
    let cells = |row: &WaitingRow| -> Vec<TableCell> {
        vec![
            row.caller.as_str().into(),
            row.group.as_deref().into(),
            Some(format_age(now.elapsed_since(row.since))).into(),
            reason_cell(Some(&row.reason), Some(&row.message)).into(),
        ]
    };
    TextTable {
        columns: vec!["ASKS-OVER-HTTP", "GROUP", "SINCE", "WAITS-FOR"],
        rows: rows.iter().map(cells).collect(),
    }
}

/// A row as text without ages, to detect changes other than time.
pub fn node_identity(row: &NodeStatusRow) -> String {
    serde_json::to_string(row).expect("texts, numbers and times serialise")
}

/// The time of drawing, shown below a redrawn table.
pub fn redraw_footer(now: Now) -> String {
    format!(
        "{}; every change is shown; ctrl-c ends",
        format_time(now.wall)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::LastRebootRow;
    use jiff::Timestamp;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn row(name: &str) -> NodeStatusRow {
        NodeStatusRow {
            name: name.into(),
            group: "default".into(),
            policy: None,
            status: "Ready".into(),
            ignored: false,
            phase: None,
            since: None,
            lock: None,
            place: None,
            reason: None,
            message: None,
            trigger: None,
            boot_id: Some("b-1".into()),
            last: None,
        }
    }

    fn status() -> FleetStatus {
        FleetStatus {
            nodes: vec![
                NodeStatusRow {
                    status: "Ready,SchedulingDisabled".into(),
                    phase: Some("draining"),
                    since: Some(at(40)),
                    lock: Some("dogwatch-default-0".into()),
                    reason: Some("DrainBlocked".into()),
                    message: Some("1 pods gone, 1 to go".into()),
                    trigger: Some("kernel 6.18\nmore".into()),
                    ..row("n1")
                },
                NodeStatusRow {
                    phase: Some("waiting"),
                    since: Some(at(60)),
                    place: Some(1),
                    reason: Some("LockHeldByOther".into()),
                    message: Some("waits for the lock".into()),
                    ..row("n2")
                },
                NodeStatusRow {
                    last: Some(LastRebootRow {
                        outcome: "Rebooted",
                        finished: at(10),
                    }),
                    ..row("n3")
                },
            ],
            waiting: Vec::new(),
            locks: vec![LockRow {
                name: "dogwatch-default-0".into(),
                group: "default".into(),
                holder: Some("node/n1".into()),
                since: Some(at(40)),
                max_unavailable: Some(1),
                next: Vec::new(),
                given_back: 0,
            }],
            policies: Vec::new(),
            hosts: Vec::new(),
            schedules: Vec::new(),
            remediations: Vec::new(),
        }
    }

    fn written(format: OutputFormat) -> String {
        let now = Now {
            wall: at(70),
            mono: std::time::Duration::ZERO,
        };
        let mut out = Vec::new();
        StatusTables::of_status(&status(), format, now)
            .write_tables(&mut out, None, TerminalPaint::without_colours())
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_says_who_holds_who_waits_and_for_what() {
        assert_eq!(
            written(OutputFormat::Table),
            "\
NODE   GROUP     STATUS                     PHASE      SINCE   LOCK                 LAST               WAITS-FOR
n1     default   Ready,SchedulingDisabled   draining   30s     dogwatch-default-0   -                  DrainBlocked: 1 pods gone, 1 to go
n2     default   Ready                      waiting    10s     1st in the queue     -                  LockHeldByOther: waits for the lock
n3     default   Ready                      -          -       -                    Rebooted 60s ago   -

LEASE                GROUP     HOLDER    SINCE   MAX   CALLED-NEXT
dogwatch-default-0   default   node/n1   30s     1     -
"
        );
    }

    #[test]
    fn a_node_that_no_count_takes_in_is_shown_as_ignored() {
        let ignored = NodeStatusRow {
            ignored: true,
            ..row("s1")
        };
        assert_eq!(status_text(&ignored), "Ready,ignored");
        assert_eq!(status_text(&row("n1")), "Ready");
    }

    #[test]
    fn wide_adds_boot_id_and_trigger() {
        let text = written(OutputFormat::Wide);
        let head = text.lines().next().unwrap();
        assert!(
            head.contains("POLICY   BOOT-ID   TRIGGER       WAITS-FOR"),
            "{head}"
        );
        assert!(
            text.lines()
                .nth(1)
                .unwrap()
                .contains("b-1       kernel 6.18   DrainBlocked"),
            "{text}"
        );
    }

    #[test]
    fn what_needs_a_person_is_red() {
        for (reason, colour) in [
            ("RebootFailed", Some(TerminalColour::Red)),
            ("DrainBlocked", Some(TerminalColour::Yellow)),
            ("Draining", None),
        ] {
            let row = NodeStatusRow {
                reason: Some(reason.into()),
                ..row("n1")
            };
            assert_eq!(node_reason_cell(&row).unwrap().colour, colour, "{reason}");
        }
    }
}
