//! `dogwatch status --watch`: a screen that stays, or a line for each change.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write};
use std::time::Duration;

use dogwatch_core::explain::Status;
use dogwatch_k8s::Kind;
use tokio::time::Instant;

use super::rows::{
    Tables, drawn, host_identity, identity, policy_identity, remedy_identity, schedule_identity,
};
use super::sight::Sight;
use super::{Scope, What};
use crate::cluster::{Connected, now};
use crate::command::{hosts, schedules};
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::paint::{Colour, Paint};
use crate::table::Table;
use crate::wait::until;

/// Changes that come together are shown together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How often the ages on a screen are brought up to date.
const TICK: Duration = Duration::from_secs(1);

/// Shows every change, until it is ended from outside.
pub async fn run(connected: &Connected, format: Format, scope: Scope) -> Result<(), Failure> {
    let only = scope.what.filter(|_| !scope.wants_fleet());
    let mut screen = Screen::new(format, scope.what);
    let mut sight = Sight::new(connected, scope);
    let mut due: Option<Instant> = None;
    loop {
        tokio::select! {
            changed = sight.changed() => match changed {
                Ok(()) => due = Some(due.unwrap_or_else(|| Instant::now() + TOGETHER)),
                Err((_, error)) if error.kind() == Kind::NotFound && only.is_some() => {
                    return Err(no_kind(only));
                }
                // Refused now is refused in a minute. Away is not gone: the watch goes on.
                Err((what, error)) if screen.is_empty() || error.kind() == Kind::Forbidden => {
                    return Err(connected.failed(what, &error));
                }
                Err((_, error)) => eprintln!("dogwatch: {}; trying again", error.in_words()),
            },
            () = until(due) => {
                due = screen.ticks().then(|| Instant::now() + TICK);
                if let Some(status) = sight.status(connected).await {
                    screen.show(&status)?;
                }
            }
        }
    }
}

/// A kind that is not installed is answered 404 for ever.
fn no_kind(only: Option<What>) -> Failure {
    match only {
        Some(What::Schedules) => schedules::no_kind(),
        Some(What::Nodes | What::Locks | What::Policies | What::Hosts | What::Remediations)
        | None => hosts::no_kind(),
    }
}

/// What was shown last.
struct Screen {
    format: Format,
    /// The part that is shown; all of them where it is none.
    what: Option<What>,
    /// Whether standard output is a terminal that shows a table: it is drawn over.
    redraws: bool,
    paint: Paint,
    shown: Option<Status>,
    rows: BTreeMap<String, String>,
    policies: BTreeMap<String, String>,
    hosts: BTreeMap<String, String>,
    schedules: BTreeSet<String>,
    remediations: BTreeSet<String>,
}

impl Screen {
    fn new(format: Format, what: Option<What>) -> Self {
        let table = matches!(format, Format::Table | Format::Wide);
        Self {
            format,
            what,
            redraws: table && std::io::stdout().is_terminal(),
            paint: Paint::of_stdout(),
            shown: None,
            rows: BTreeMap::new(),
            policies: BTreeMap::new(),
            hosts: BTreeMap::new(),
            schedules: BTreeSet::new(),
            remediations: BTreeSet::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.shown.is_none()
    }

    fn ticks(&self) -> bool {
        self.redraws
    }

    fn show(&mut self, status: &Status) -> Result<(), Failure> {
        let mut out = output::stdout();
        if self.redraws {
            self.redraw(&mut out, status)?;
        } else if self.shown.as_ref() != Some(status) {
            self.add(&mut out, status)?;
        }
        self.shown = Some(status.clone());
        Ok(out.flush()?)
    }

    fn redraw(&self, out: &mut impl Write, status: &Status) -> Result<(), Failure> {
        let now = now();
        write!(out, "\x1b[H\x1b[2J")?;
        Tables::of(status, self.format, now).write(out, self.what, self.paint)?;
        writeln!(out, "\n{}", self.paint.paint(Colour::Dim, &drawn(now)))?;
        Ok(())
    }

    /// The whole at first, then what has changed.
    fn add(&mut self, out: &mut impl Write, status: &Status) -> Result<(), Failure> {
        match self.format {
            Format::Json => output::json_line(out, status),
            Format::Yaml => {
                writeln!(out, "---")?;
                output::yaml(out, status)
            }
            Format::Table | Format::Wide => self.add_rows(out, status),
        }
    }

    fn add_rows(&mut self, out: &mut impl Write, status: &Status) -> Result<(), Failure> {
        let tables = Tables::of(status, self.format, now());
        let table = &tables.nodes;
        let rows: BTreeMap<String, String> = status
            .nodes
            .iter()
            .map(|row| (row.name.clone(), identity(row)))
            .collect();
        let policies: BTreeMap<String, String> = status
            .policies
            .iter()
            .map(|row| (row.name.clone(), policy_identity(row)))
            .collect();
        if self.shown.is_none() {
            tables.write(out, self.what, self.paint)?;
        } else {
            let changed = |name: &String| self.rows.get(name) != rows.get(name);
            let pairs = status.nodes.iter().zip(&table.rows);
            let changed = pairs
                .filter(|(row, _)| changed(&row.name))
                .map(|(_, cells)| cells);
            table.write_rows(out, changed, self.paint)?;
            let changed = |name: &String| self.policies.get(name) != policies.get(name);
            let pairs = status.policies.iter().zip(&tables.policies.rows);
            let changed = pairs
                .filter(|(row, _)| changed(&row.name))
                .map(|(_, cells)| cells);
            tables.policies.write_rows(out, changed, self.paint)?;
        }
        let hosts = status.hosts.iter();
        let hosts: BTreeMap<String, String> = hosts
            .map(|row| {
                (
                    format!("{}/{}", row.namespace, row.name),
                    host_identity(row),
                )
            })
            .collect();
        if self.shown.is_some() {
            let changed = |identity: &String| !self.hosts.values().any(|other| other == identity);
            let pairs = status.hosts.iter().zip(&tables.hosts.rows);
            let changed = pairs
                .filter(|(row, _)| changed(&host_identity(row)))
                .map(|(_, cells)| cells);
            tables.hosts.write_rows(out, changed, self.paint)?;
        }
        self.rows = rows;
        self.policies = policies;
        self.hosts = hosts;
        self.add_schedules(out, status, &tables.schedules)?;
        self.add_remedies(out, status, &tables.remediations)
    }
}

impl Screen {
    fn add_schedules(
        &mut self,
        out: &mut impl Write,
        status: &Status,
        table: &Table,
    ) -> Result<(), Failure> {
        let known = &self.schedules;
        if self.shown.is_some() {
            let pairs = status.schedules.iter().zip(&table.rows);
            let changed = pairs.filter(|(row, _)| !known.contains(&schedule_identity(row)));
            table.write_rows(out, changed.map(|(_, cells)| cells), self.paint)?;
        }
        self.schedules = status.schedules.iter().map(schedule_identity).collect();
        Ok(())
    }

    fn add_remedies(
        &mut self,
        out: &mut impl Write,
        status: &Status,
        table: &Table,
    ) -> Result<(), Failure> {
        let known = &self.remediations;
        if self.shown.is_some() {
            let pairs = status.remediations.iter().zip(&table.rows);
            let changed = pairs.filter(|(row, _)| !known.contains(&remedy_identity(row)));
            table.write_rows(out, changed.map(|(_, cells)| cells), self.paint)?;
        }
        let rows = status.remediations.iter();
        self.remediations = rows.map(remedy_identity).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::NodeRow;

    fn status(phases: &[(&str, Option<&'static str>)]) -> Status {
        let row = |(name, phase): &(&str, Option<&'static str>)| NodeRow {
            name: (*name).into(),
            group: "default".into(),
            policy: None,
            status: "Ready".into(),
            ignored: false,
            phase: *phase,
            since: None,
            lock: None,
            place: None,
            reason: None,
            message: None,
            trigger: None,
            boot_id: None,
            last: None,
        };
        Status {
            nodes: phases.iter().map(row).collect(),
            locks: Vec::new(),
            waiting: Vec::new(),
            policies: Vec::new(),
            hosts: Vec::new(),
            schedules: Vec::new(),
            remediations: Vec::new(),
        }
    }

    #[test]
    fn after_the_first_table_only_rows_that_changed_are_printed() {
        let mut screen = Screen {
            redraws: false,
            paint: Paint::off(),
            ..Screen::new(Format::Table, None)
        };
        let mut shown = |status: Status| {
            let mut out = Vec::new();
            screen.add(&mut out, &status).unwrap();
            screen.shown = Some(status);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            shown(status(&[("n1", None), ("n2", None)])).lines().count(),
            3
        );
        let second = shown(status(&[("n1", None), ("n2", Some("waiting"))]));
        assert_eq!(second.lines().count(), 1, "{second}");
        assert!(second.starts_with("n2 "), "{second}");
    }
}
