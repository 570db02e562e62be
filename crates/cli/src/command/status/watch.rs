//! Implements `dogwatch status --watch`: a redrawn table on a terminal, else a line for each
//! change.

use std::io::{IsTerminal as _, Write};
use std::time::Duration;

use dogwatch_core::printable::printable_text;
use dogwatch_k8s::ApiErrorKind;
use jiff::Timestamp;
use tokio::time::Instant;

use super::overview::StatusDocument;
use super::rows::{RowIdentities, StatusTables, redraw_footer};
use super::status_source::StatusSource;
use super::{StatusPart, StatusScope};
use crate::cluster::{ConnectedCluster, current_time};
use crate::exit::CommandFailure;
use crate::fleet_feed::{FeedEstimates, rollout_estimator};
use crate::follow::sleep_until_deadline;
use crate::output::{self, OutputFormat};
use crate::paint::{TerminalColour, TerminalPaint};
use crate::resource::{ObjectKind, kind_missing};

/// Changes within this interval are shown together.
const COALESCE_INTERVAL: Duration = Duration::from_millis(100);
/// How often a terminal's table updates its ages.
const AGE_REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked for what time alone changes: a deadline passes, a leader falls silent.
const TIME_REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Shows every change until the process is stopped.
pub async fn run(
    connected: &ConnectedCluster,
    format: OutputFormat,
    scope: StatusScope,
) -> Result<(), CommandFailure> {
    let only = scope.part.filter(|_| !scope.includes_fleet());
    let mut screen = StatusScreen::new(format, scope.part);
    let mut estimates = FeedEstimates::new(scope.part.is_none().then(rollout_estimator));
    let mut source = StatusSource::new(connected, scope);
    let mut due: Option<Instant> = None;
    loop {
        let estimate_due = estimates.next_due();
        tokio::select! {
            changed = source.wait_for_change() => match changed {
                Err((_, error)) if error.kind() == ApiErrorKind::NotFound && only.is_some() => {
                    return Err(missing_kind_failure(only));
                }
                // A missing right will still be missing in a minute, so it ends the command. An
                // unreachable API server may come back, so the watch goes on.
                Err((what, error)) if screen.is_empty() || error.kind() == ApiErrorKind::Forbidden => {
                    return Err(connected.api_failure(what, &error));
                }
                // The document says what cannot be watched.
                Ok(()) | Err(_) => due = Some(screen.due_after_change(due)),
            },
            () = estimates.wait_for_estimate() => due = Some(screen.due_after_change(due)),
            () = sleep_until_deadline(estimate_due) => {
                estimates.start_estimate(source.current_fleet().unwrap_or_default());
            }
            () = sleep_until_deadline(due) => {
                due = Some(Instant::now() + screen.refresh_interval(source.has_errors()));
                let estimate = estimates.newest_estimate();
                if let Some(document) = source.current_document(connected, estimate).await {
                    estimates.plan_for_counts(document.unfinished_nodes());
                    screen.show_status(&document)?;
                }
            }
        }
    }
}

/// A kind that is not installed is answered 404 for ever, so the command fails.
fn missing_kind_failure(only: Option<StatusPart>) -> CommandFailure {
    match only {
        Some(StatusPart::Schedules) => kind_missing(ObjectKind::Schedule),
        Some(
            StatusPart::Nodes
            | StatusPart::Locks
            | StatusPart::Policies
            | StatusPart::Hosts
            | StatusPart::Remediations,
        )
        | None => kind_missing(ObjectKind::Host),
    }
}

struct StatusScreen {
    format: OutputFormat,
    /// The only part to show; `None` shows all parts.
    what: Option<StatusPart>,
    /// Standard output is a terminal that shows a table, which is redrawn in place.
    redraws: bool,
    paint: TerminalPaint,
    last_status: Option<StatusDocument>,
    rows: Option<RowIdentities>,
    /// Since when something could not be read, without interruption.
    unread_since: Option<Timestamp>,
}

impl StatusScreen {
    fn new(format: OutputFormat, what: Option<StatusPart>) -> Self {
        let table = matches!(format, OutputFormat::Table | OutputFormat::Wide);
        Self {
            format,
            what,
            redraws: table && std::io::stdout().is_terminal(),
            paint: TerminalPaint::of_stdout(),
            last_status: None,
            rows: None,
            unread_since: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.last_status.is_none()
    }

    /// When to look next after a change. A screen that is redrawn each second shows it with the next
    /// redraw.
    fn due_after_change(&self, due: Option<Instant>) -> Instant {
        let soon = Instant::now() + COALESCE_INTERVAL;
        match due {
            Some(due) if self.redraws => due,
            Some(due) => due.min(soon),
            None => soon,
        }
    }

    fn refresh_interval(&self, has_errors: bool) -> Duration {
        if self.redraws || has_errors || self.is_empty() {
            AGE_REFRESH_INTERVAL
        } else {
            TIME_REFRESH_INTERVAL
        }
    }

    fn show_status(&mut self, document: &StatusDocument) -> Result<(), CommandFailure> {
        let mut out = output::buffered_stdout();
        self.note_unreadable(document);
        if self.redraws {
            self.redraw_tables(&mut out, document)?;
        } else if self.is_news(document) {
            self.append_changes(&mut out, document)?;
        }
        self.last_status = Some(document.clone());
        Ok(out.flush()?)
    }

    /// A table that is redrawn shows what could not be read; otherwise each is told once.
    fn note_unreadable(&mut self, document: &StatusDocument) {
        let unreadable = document.list_unreadable();
        let since = self.unread_since.unwrap_or_else(|| current_time().wall);
        self.unread_since = (!unreadable.is_empty()).then_some(since);
        if self.redraws {
            return;
        }
        let told = self
            .last_status
            .as_ref()
            .map(StatusDocument::list_unreadable);
        let told = told.unwrap_or_default();
        for missing in unreadable.iter().filter(|missing| !told.contains(missing)) {
            eprintln!("dogwatch: {missing}");
        }
    }

    fn is_news(&self, document: &StatusDocument) -> bool {
        let last = self.last_status.as_ref();
        last.is_none_or(|last| document.differs_from(last))
    }

    fn redraw_tables(
        &self,
        out: &mut impl Write,
        document: &StatusDocument,
    ) -> Result<(), CommandFailure> {
        let now = current_time();
        write!(out, "\x1b[H\x1b[2J")?;
        if let Some(overview) = &document.overview {
            overview.write_sentence(out, self.paint)?;
        }
        StatusTables::of_status(&document.status, self.format, now)
            .write_tables(out, self.what, self.paint)?;
        writeln!(out)?;
        for missing in document.list_unreadable() {
            let missing = printable_text(missing);
            writeln!(
                out,
                "{}",
                self.paint.paint_text(TerminalColour::Yellow, &missing)
            )?;
        }
        let footer = redraw_footer(now, self.unread_since);
        writeln!(
            out,
            "{}",
            self.paint.paint_text(TerminalColour::Dim, &footer)
        )?;
        Ok(())
    }

    /// Prints everything at first, then only changes.
    fn append_changes(
        &mut self,
        out: &mut impl Write,
        document: &StatusDocument,
    ) -> Result<(), CommandFailure> {
        match self.format {
            OutputFormat::Json => output::write_json_line(out, document),
            OutputFormat::Yaml => {
                writeln!(out, "---")?;
                output::write_yaml(out, document)
            }
            OutputFormat::Table | OutputFormat::Wide => self.add_rows(out, document),
        }
    }

    fn add_rows(
        &mut self,
        out: &mut impl Write,
        document: &StatusDocument,
    ) -> Result<(), CommandFailure> {
        let before = self.last_status.as_ref().and_then(StatusDocument::sentence);
        if let Some(overview) = &document.overview
            && before != document.sentence()
        {
            overview.write_sentence(out, self.paint)?;
        }
        let status = &document.status;
        let tables = StatusTables::of_status(status, self.format, current_time());
        let rows = RowIdentities::of_status(status);
        match &self.rows {
            Some(before) => tables.write_changes(out, &rows, before, self.paint)?,
            None => tables.write_tables(out, self.what, self.paint)?,
        }
        self.rows = Some(rows);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::explain::{FleetStatus, NodeStatusRow};

    fn status(phases: &[(&str, Option<&'static str>)]) -> FleetStatus {
        let row = |(name, phase): &(&str, Option<&'static str>)| NodeStatusRow {
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
        FleetStatus {
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
        let mut screen = StatusScreen {
            redraws: false,
            paint: TerminalPaint::without_colours(),
            ..StatusScreen::new(OutputFormat::Table, None)
        };
        let mut shown = |status: FleetStatus| {
            let (mut out, document) = (Vec::new(), StatusDocument::of_part(status));
            screen.append_changes(&mut out, &document).unwrap();
            screen.last_status = Some(document);
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

    #[test]
    fn a_redrawn_table_says_what_cannot_be_read_and_since_when() {
        let mut screen = StatusScreen {
            redraws: true,
            paint: TerminalPaint::without_colours(),
            ..StatusScreen::new(OutputFormat::Table, None)
        };
        let mut drawn = |unreadable: Vec<String>| {
            let document = StatusDocument::of_part(status(&[("n1", None)]));
            let document = document.with_unreadable(unreadable);
            screen.note_unreadable(&document);
            let mut out = Vec::new();
            screen.redraw_tables(&mut out, &document).unwrap();
            String::from_utf8(out).unwrap()
        };
        let live = drawn(Vec::new());
        assert!(live.contains("every change is shown"), "{live}");
        let lost = drawn(vec!["cannot watch Nodes and Leases: refused".into()]);
        assert!(
            lost.contains("cannot watch Nodes and Leases: refused\n")
                && lost.contains("what is shown may be outdated")
                && !lost.contains("every change is shown"),
            "{lost}"
        );
        let back = drawn(Vec::new());
        assert!(back.contains("every change is shown"), "{back}");
    }
}
