//! `dogwatch status --watch`: a screen that stays, or a line for each change.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write};
use std::time::Duration;

use dogwatch_core::explain::{self, Status};
use tokio::time::Instant;

use super::rows::{Tables, drawn, identity, policy_identity};
use super::{What, only};
use crate::cluster::{Connected, now};
use crate::exit::Failure;
use crate::output::{self, Format};
use crate::paint::{Colour, Paint};

/// Changes that come together are shown together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How often the ages on a screen are brought up to date.
const TICK: Duration = Duration::from_secs(1);

/// Shows every change, until it is ended from outside.
pub async fn run(connected: &Connected, format: Format, what: Option<What>) -> Result<(), Failure> {
    let mut fleet = connected.fleet.watch();
    let mut screen = Screen::new(format);
    let mut due: Option<Instant> = None;
    loop {
        tokio::select! {
            changed = fleet.changed() => match changed {
                Ok(()) => due = Some(due.unwrap_or_else(|| Instant::now() + TOGETHER)),
                // Refused now is refused in a minute. Away is not gone: the watch goes on.
                Err(error) if screen.is_empty() || error.kind() == dogwatch_k8s::Kind::Forbidden => {
                    return Err(connected.failed("watch Nodes and Leases", &error));
                }
                Err(error) => eprintln!("dogwatch: {}; trying again", error.in_words()),
            },
            () = at(due) => {
                due = screen.ticks().then(|| Instant::now() + TICK);
                if let Some(fleet) = fleet.fleet() {
                    screen.show(&only(explain::status(&fleet, now()), what))?;
                }
            }
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What was shown last.
struct Screen {
    format: Format,
    /// Whether standard output is a terminal that shows a table: it is drawn over.
    redraws: bool,
    paint: Paint,
    shown: Option<Status>,
    rows: BTreeMap<String, String>,
    policies: BTreeMap<String, String>,
}

impl Screen {
    fn new(format: Format) -> Self {
        let table = matches!(format, Format::Table | Format::Wide);
        Self {
            format,
            redraws: table && std::io::stdout().is_terminal(),
            paint: Paint::of_stdout(),
            shown: None,
            rows: BTreeMap::new(),
            policies: BTreeMap::new(),
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
        Tables::of(status, self.format, now).write(out, self.paint)?;
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
            tables.write(out, self.paint)?;
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
        self.rows = rows;
        self.policies = policies;
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
            policies: Vec::new(),
        }
    }

    #[test]
    fn after_the_first_table_only_rows_that_changed_are_printed() {
        let mut screen = Screen {
            redraws: false,
            paint: Paint::off(),
            ..Screen::new(Format::Table)
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
