//! Turns a status into tables.

mod hosts;
mod identities;
mod policies;
mod remediations;
mod schedules;

use std::collections::BTreeSet;
use std::io::{self, Write};

use dogwatch_core::Now;
use dogwatch_core::explain::{
    FleetStatus, LockRow, NodeStatusRow, WaitingRow, format_age, format_ordinal, format_time,
};
use dogwatch_core::policy::PolicyReason;
use dogwatch_core::reason::ReasonSeverity;
use dogwatch_core::reboot::RebootReason;
use jiff::Timestamp;

pub use hosts::hosts_table;
pub use identities::RowIdentities;
use policies::policies_table;
use remediations::remediations_table;
use schedules::schedules_table;

use super::StatusPart;
use crate::output::OutputFormat;
use crate::paint::{TerminalColour, TerminalPaint};
use crate::table::{OutputColumn, TableCell, TextTable};

pub struct StatusTables {
    nodes: TextTable,
    locks: TextTable,
    waiting: TextTable,
    policies: TextTable,
    hosts: TextTable,
    schedules: TextTable,
    remediations: TextTable,
}

impl StatusTables {
    /// Builds the tables with ages as of `now`.
    pub fn of_status(status: &FleetStatus, format: OutputFormat, now: Now) -> Self {
        let wide = format == OutputFormat::Wide;
        Self {
            nodes: TextTable::of_rows(&status.nodes, &NODE_COLUMNS, wide, now),
            locks: TextTable::of_rows(&status.locks, &LOCK_COLUMNS, wide, now),
            waiting: TextTable::of_rows(&status.waiting, &WAITING_COLUMNS, wide, now),
            policies: policies_table(&status.policies, wide, now),
            hosts: hosts_table(&status.hosts, wide, now),
            schedules: schedules_table(&status.schedules, wide, now),
            remediations: remediations_table(&status.remediations, wide, now),
        }
    }

    /// Writes the rows that `before` did not have.
    pub fn write_changes(
        &self,
        out: &mut impl Write,
        rows: &RowIdentities,
        before: &RowIdentities,
        paint: TerminalPaint,
    ) -> io::Result<()> {
        for (table, rows, before) in [
            (&self.nodes, &rows.nodes, &before.nodes),
            (&self.policies, &rows.policies, &before.policies),
            (&self.hosts, &rows.hosts, &before.hosts),
            (&self.schedules, &rows.schedules, &before.schedules),
            (&self.remediations, &rows.remediations, &before.remediations),
        ] {
            let before: BTreeSet<&String> = before.iter().collect();
            let changed = (0..rows.len()).filter(|index| !before.contains(&rows[*index]));
            table.write_rows(out, changed, paint)?;
        }
        Ok(())
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

const NODE_COLUMNS: [OutputColumn<NodeStatusRow>; 11] = [
    OutputColumn::new("NODE", |row, _| row.name.as_str().into()),
    OutputColumn::new("GROUP", |row, _| row.group.as_str().into()),
    OutputColumn::new("STATUS", |row, _| {
        let not_ready = row.status.starts_with("NotReady");
        TableCell::coloured(status_text(row), not_ready.then_some(TerminalColour::Red))
    }),
    OutputColumn::new("PHASE", |row, _| {
        let cell = |phase| TableCell::coloured(phase, Some(phase_colour(phase)));
        row.phase.map(cell).into()
    }),
    OutputColumn::new("SINCE", |row, now| TableCell::age_since(row.since, now)),
    OutputColumn::new("LOCK", |row, _| lock_cell(row).into()),
    OutputColumn::new("LAST", |row, now| last_reboot_text(row, now).into()),
    OutputColumn::only_wide("POLICY", |row, _| row.policy.as_deref().into()),
    OutputColumn::only_wide("BOOT-ID", |row, _| row.boot_id.as_deref().into()),
    OutputColumn::only_wide("TRIGGER", |row, _| {
        row.trigger.as_deref().map(first_line).into()
    }),
    OutputColumn::new("WAITS-FOR", |row, _| node_reason_cell(row).into()),
];

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
        ReasonSeverity::Alarm => Some(TerminalColour::Red),
        ReasonSeverity::Warning => Some(TerminalColour::Yellow),
        ReasonSeverity::Progress | ReasonSeverity::Waiting => None,
    }
}

const LOCK_COLUMNS: [OutputColumn<LockRow>; 6] = [
    OutputColumn::new("LEASE", |row, _| row.name.as_str().into()),
    OutputColumn::new("GROUP", |row, _| row.group.as_str().into()),
    OutputColumn::new("HOLDER", |row, _| row.holder.as_deref().into()),
    OutputColumn::new("SINCE", |row, now| TableCell::age_since(row.since, now)),
    OutputColumn::new("MAX", |row, _| {
        row.max_unavailable.map(|max| max.to_string()).into()
    }),
    OutputColumn::new("CALLED-NEXT", |row, _| {
        (!row.next.is_empty()).then(|| row.next.join(",")).into()
    }),
];

const WAITING_COLUMNS: [OutputColumn<WaitingRow>; 4] = [
    OutputColumn::new("ASKS-OVER-HTTP", |row, _| row.caller.as_str().into()),
    OutputColumn::new("GROUP", |row, _| row.group.as_deref().into()),
    OutputColumn::new("SINCE", |row, now| {
        TableCell::age_since(Some(row.since), now)
    }),
    OutputColumn::new("WAITS-FOR", |row, _| {
        reason_cell(Some(&row.reason), Some(&row.message)).into()
    }),
];

/// The time of drawing, shown below a redrawn table, and since when something cannot be read.
pub fn redraw_footer(now: Now, unread_since: Option<Timestamp>) -> String {
    let shown = match unread_since {
        None => "every change is shown".to_owned(),
        Some(since) => format!(
            "not everything could be read since {}, so that what is shown may be outdated",
            format_time(since)
        ),
    };
    format!("{}; {shown}; ctrl-c ends", format_time(now.wall))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::LastRebootRow;

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
