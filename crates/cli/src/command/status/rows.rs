//! From the status to tables.

mod hosts;
mod policies;
mod remedies;
mod schedules;

use std::io::{self, Write};

use dogwatch_core::Now;
use dogwatch_core::explain::{LockRow, NodeRow, Status, WaitingRow, age, moment, ordinal};

pub use hosts::{host_identity, hosts};
use policies::policies;
pub use policies::policy_identity;
pub use remedies::{remedies, remedy_identity};
pub use schedules::{schedule_identity, schedules};

use super::What;
use crate::output::Format;
use crate::paint::{Colour, Paint};
use crate::table::{Cell, Table};

/// Reasons that stay until somebody does something.
const NEEDS_A_PERSON: [&str; 9] = [
    "BootIdUnreadable",
    "Invalid",
    "PoliciesUnreadable",
    "PolicyInvalid",
    "RebootFailed",
    "RecordUnreadable",
    "RequestUnreadable",
    "ReturnGatesTimedOut",
    "SentinelSurvivedReboot",
];

/// The tables.
pub struct Tables {
    /// The nodes.
    pub nodes: Table,
    locks: Table,
    waiting: Table,
    /// The policies.
    pub policies: Table,
    /// The hosts.
    pub hosts: Table,
    /// The schedules.
    pub schedules: Table,
    /// The remediations.
    pub remediations: Table,
}

impl Tables {
    /// As they stand at `now`.
    pub fn of(status: &Status, format: Format, now: Now) -> Self {
        let wide = format == Format::Wide;
        Self {
            nodes: nodes(&status.nodes, wide, now),
            locks: locks(&status.locks, now),
            waiting: waiting(&status.waiting, now),
            policies: policies(&status.policies, wide, now),
            hosts: hosts(&status.hosts, wide, now),
            schedules: schedules(&status.schedules, wide, now),
            remediations: remedies(&status.remediations, wide, now),
        }
    }

    /// The nodes; below them remediations, locks, policies, hosts and schedules, if there are any. With none
    /// of all, the head of the table of `what`, else of the nodes.
    pub fn write(&self, out: &mut impl Write, what: Option<What>, paint: Paint) -> io::Result<()> {
        let head = match what {
            None | Some(What::Nodes) => &self.nodes,
            Some(What::Locks) => &self.locks,
            Some(What::Policies) => &self.policies,
            Some(What::Hosts) => &self.hosts,
            Some(What::Schedules) => &self.schedules,
            Some(What::Remediations) => &self.remediations,
        };
        let others = [
            &self.remediations,
            &self.locks,
            &self.waiting,
            &self.policies,
            &self.hosts,
            &self.schedules,
        ];
        let mut tables: Vec<&Table> = others
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
            table.write(out, paint)?;
        }
        Ok(())
    }
}

fn nodes(rows: &[NodeRow], wide: bool, now: Now) -> Table {
    let mut columns = vec!["NODE", "GROUP", "STATUS", "PHASE", "SINCE", "LOCK", "LAST"];
    if wide {
        columns.extend(["POLICY", "BOOT-ID", "TRIGGER"]);
    }
    columns.push("WAITS-FOR");
    Table {
        columns,
        rows: rows.iter().map(|row| node(row, wide, now)).collect(),
    }
}

fn node(row: &NodeRow, wide: bool, now: Now) -> Vec<Cell> {
    let not_ready = row.status.starts_with("NotReady");
    let mut cells = vec![
        row.name.as_str().into(),
        row.group.as_str().into(),
        Cell::coloured(shown_status(row), not_ready.then_some(Colour::Red)),
        row.phase
            .map(|phase| Cell::coloured(phase, Some(colour(phase))))
            .into(),
        row.since.map(|at| age(now.since(at))).into(),
        lock_cell(row).into(),
        last(row, now).into(),
    ];
    if wide {
        cells.push(row.policy.as_deref().into());
        cells.push(row.boot_id.as_deref().into());
        cells.push(row.trigger.as_deref().map(first_line).into());
    }
    cells.push(why(row).into());
    cells
}

/// The node's status; and whether no count of its group takes it in.
fn shown_status(row: &NodeRow) -> String {
    if row.ignored {
        return format!("{},ignored", row.status);
    }
    row.status.clone()
}

fn colour(phase: &str) -> Colour {
    match phase {
        "waiting" => Colour::Dim,
        "returning" => Colour::Green,
        _ => Colour::Cyan,
    }
}

/// The Lease it holds, or its place among those that wait for one.
fn lock_cell(row: &NodeRow) -> Option<String> {
    row.lock.clone().or_else(|| {
        row.place
            .map(|place| format!("{} in the queue", ordinal(place)))
    })
}

fn last(row: &NodeRow, now: Now) -> Option<String> {
    let last = row.last.as_ref()?;
    Some(format!(
        "{} {} ago",
        last.outcome,
        age(now.since(last.finished))
    ))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn why(row: &NodeRow) -> Option<Cell> {
    reason(row.reason.as_deref(), row.message.as_deref())
}

fn reason(reason: Option<&str>, message: Option<&str>) -> Option<Cell> {
    let reason = reason?;
    let text = match message {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        Some(_) | None => reason.to_owned(),
    };
    let colour = if NEEDS_A_PERSON.contains(&reason) {
        Some(Colour::Red)
    } else {
        (reason == "DrainBlocked").then_some(Colour::Yellow)
    };
    Some(Cell::coloured(text, colour))
}

fn locks(rows: &[LockRow], now: Now) -> Table {
    let cells = |row: &LockRow| -> Vec<Cell> {
        vec![
            row.name.as_str().into(),
            row.group.as_str().into(),
            row.holder.as_deref().into(),
            row.since.map(|at| age(now.since(at))).into(),
            row.max_unavailable.map(|max| max.to_string()).into(),
            (!row.next.is_empty()).then(|| row.next.join(",")).into(),
        ]
    };
    Table {
        columns: vec!["LEASE", "GROUP", "HOLDER", "SINCE", "MAX", "CALLED-NEXT"],
        rows: rows.iter().map(cells).collect(),
    }
}

fn waiting(rows: &[WaitingRow], now: Now) -> Table {
    let cells = |row: &WaitingRow| -> Vec<Cell> {
        vec![
            row.caller.as_str().into(),
            row.group.as_deref().into(),
            Some(age(now.since(row.since))).into(),
            reason(Some(&row.reason), Some(&row.message)).into(),
        ]
    };
    Table {
        columns: vec!["ASKS-OVER-HTTP", "GROUP", "SINCE", "WAITS-FOR"],
        rows: rows.iter().map(cells).collect(),
    }
}

/// A row as a text without ages, to see whether anything but time has changed.
pub fn identity(row: &NodeRow) -> String {
    serde_json::to_string(row).expect("texts, numbers and times serialise")
}

/// When the table was drawn, for a screen that stays.
pub fn drawn(now: Now) -> String {
    format!("{}; every change is shown; ctrl-c ends", moment(now.wall))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::LastRow;
    use jiff::Timestamp;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn row(name: &str) -> NodeRow {
        NodeRow {
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

    fn status() -> Status {
        Status {
            nodes: vec![
                NodeRow {
                    status: "Ready,SchedulingDisabled".into(),
                    phase: Some("draining"),
                    since: Some(at(40)),
                    lock: Some("dogwatch-default-0".into()),
                    reason: Some("DrainBlocked".into()),
                    message: Some("1 pods gone, 1 to go".into()),
                    trigger: Some("kernel 6.18\nmore".into()),
                    ..row("n1")
                },
                NodeRow {
                    phase: Some("waiting"),
                    since: Some(at(60)),
                    place: Some(1),
                    reason: Some("LockHeldByOther".into()),
                    message: Some("waits for the lock".into()),
                    ..row("n2")
                },
                NodeRow {
                    last: Some(LastRow {
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

    fn written(format: Format) -> String {
        let now = Now {
            wall: at(70),
            mono: std::time::Duration::ZERO,
        };
        let mut out = Vec::new();
        Tables::of(&status(), format, now)
            .write(&mut out, None, Paint::off())
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_table_says_who_holds_who_waits_and_for_what() {
        assert_eq!(
            written(Format::Table),
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
        let ignored = NodeRow {
            ignored: true,
            ..row("s1")
        };
        assert_eq!(shown_status(&ignored), "Ready,ignored");
        assert_eq!(shown_status(&row("n1")), "Ready");
    }

    #[test]
    fn wide_adds_boot_id_and_trigger() {
        let text = written(Format::Wide);
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
            ("RebootFailed", Some(Colour::Red)),
            ("DrainBlocked", Some(Colour::Yellow)),
            ("Draining", None),
        ] {
            let row = NodeRow {
                reason: Some(reason.into()),
                ..row("n1")
            };
            assert_eq!(why(&row).unwrap().colour, colour, "{reason}");
        }
    }
}
