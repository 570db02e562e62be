//! `dogwatch reboot --wait`: from the request to the node that is back.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::explain::{self, Fleet, NodeRow};
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::{LastReboot, NodeSeen, Outcome, Parsed};
use dogwatch_k8s::fleet::FleetWatch;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::say;
use crate::cluster::{Connected, now};
use crate::exit::{Exit, Failure};
use crate::table::printable;
use crate::wait::until;

/// The fleet in sight, and how each node's last reboot ended before anything was asked.
pub struct Following {
    watch: FleetWatch,
    before: BTreeMap<NodeName, Option<LastReboot>>,
    /// Listened to from before the first request, or a Ctrl-C right after it would end us without a word.
    interrupts: Signal,
}

/// How a node has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// Rebooted and back.
    Back,
    /// Not rebooted, for this reason.
    Not(String),
}

impl Following {
    /// Begins to watch, and waits for the first sight.
    pub async fn begin(connected: &Connected) -> Result<Self, Failure> {
        let mut watch = connected.fleet.watch();
        let interrupts = signal(SignalKind::interrupt()).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("failed to listen for Ctrl-C: {error}"),
            )
        })?;
        loop {
            watch
                .changed()
                .await
                .map_err(|error| connected.failed("watch Nodes and Leases", &error))?;
            if let Some(fleet) = watch.fleet() {
                let last = |node: &NodeSeen| (node.name.clone(), node.last.get().cloned());
                let before = fleet.nodes.iter().map(last).collect();
                return Ok(Self {
                    watch,
                    before,
                    interrupts,
                });
            }
        }
    }

    /// Tells each step of these nodes, until all have ended.
    pub async fn follow_until_the_end(
        &mut self,
        connected: &Connected,
        nodes: &[NodeName],
        timeout: Option<Duration>,
    ) -> Result<(), Failure> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut tale = Tale::new(nodes);
        self.look(&mut tale)?;
        loop {
            tokio::select! {
                changed = self.watch.changed() => match changed {
                    Ok(()) => {
                        self.look(&mut tale)?;
                        if tale.open.is_empty() {
                            return tale.end();
                        }
                    }
                    Err(error) if error.kind() == dogwatch_k8s::Kind::Forbidden => {
                        return Err(connected.failed("watch Nodes and Leases", &error));
                    }
                    Err(error) => eprintln!("dogwatch: {}; trying again", error.in_words()),
                },
                () = until(deadline) => return Err(tale.too_late(timeout.unwrap_or_default())),
                _ = self.interrupts.recv() => {
                    let text = format!("not following any more; the requests stay: {}", tale.still());
                    return Err(Failure::new(Exit::Interrupted, text)
                        .next("to take one back: dogwatch abort NODE"));
                }
            }
        }
    }
}

impl Following {
    fn look(&self, tale: &mut Tale) -> Result<(), Failure> {
        match self.watch.fleet() {
            Some(fleet) => tale.take(&fleet, &self.before),
            None => Ok(()),
        }
    }
}

/// What has been told of each node, and how it ended.
struct Tale {
    /// Those that have not ended, with what was told of each last.
    open: BTreeMap<NodeName, Told>,
    failed: Vec<String>,
}

/// What was told of a node last; whether anything of the reboot was seen.
#[derive(Debug, Default)]
struct Told {
    text: String,
    why: Option<String>,
    begun: bool,
}

impl Tale {
    fn new(nodes: &[NodeName]) -> Self {
        Self {
            open: nodes
                .iter()
                .map(|node| (node.clone(), Told::default()))
                .collect(),
            failed: Vec::new(),
        }
    }

    fn take(
        &mut self,
        fleet: &Fleet,
        before: &BTreeMap<NodeName, Option<LastReboot>>,
    ) -> Result<(), Failure> {
        let status = explain::status(fleet, now());
        let mut ended = Vec::new();
        for (name, told) in &mut self.open {
            let last = before.get(name).and_then(Option::as_ref);
            match end(fleet.node(name), last, told.begun) {
                Some(End::Back) => {
                    say(&format!("node/{name} is back"))?;
                    ended.push(name.clone());
                }
                Some(End::Not(why)) => {
                    say(&format!("node/{name} {why}"))?;
                    self.failed.push(name.to_string());
                    ended.push(name.clone());
                }
                None => {
                    let row = status.nodes.iter().find(|row| row.name == name.as_str());
                    tell(name, row, told)?;
                }
            }
        }
        self.open.retain(|name, _| !ended.contains(name));
        Ok(())
    }

    fn end(self) -> Result<(), Failure> {
        if self.failed.is_empty() {
            return Ok(());
        }
        let text = format!("not rebooted: {}", self.failed.join(", "));
        Err(Failure::new(Exit::Failed, text))
    }

    fn still(&self) -> String {
        let names: Vec<String> = self.open.keys().map(ToString::to_string).collect();
        explain::some(&names, 5)
    }

    fn too_late(&self, timeout: Duration) -> Failure {
        let length = dogwatch_core::duration::format(timeout);
        let why: Vec<String> = self
            .open
            .iter()
            .take(5)
            .map(|(name, told)| {
                let why = told
                    .why
                    .as_deref()
                    .unwrap_or("nobody has taken the request up");
                format!("{name}: {}", printable(why))
            })
            .collect();
        let text = format!(
            "not all are back within {length}; the requests stay. {}",
            why.join("; ")
        );
        let first = self.open.keys().next().map(NodeName::as_str);
        Failure::new(Exit::Failed, text)
            .next(format!("dogwatch explain {}", first.unwrap_or("NODE")))
    }
}

/// How it ended, if it did. `begun`: the request or a record was seen there after it was asked.
fn end(node: Option<&NodeSeen>, before: Option<&LastReboot>, begun: bool) -> Option<End> {
    let Some(node) = node else {
        return Some(End::Not("was deleted".into()));
    };
    if node.record != Parsed::Absent || node.request_fingerprint.is_some() {
        return None;
    }
    match node.last.get() {
        Some(last) if Some(last) != before => Some(match last.outcome {
            Outcome::Rebooted => End::Back,
            Outcome::TriggerGone => End::Not("was not rebooted: the request was taken back".into()),
            Outcome::Aborted => {
                End::Not("was not rebooted: somebody stopped it (dogwatch abort)".into())
            }
        }),
        // The list may be older than our request; once that was seen, its absence means something.
        Some(_) | None => {
            begun.then(|| End::Not("was not rebooted: the request was taken back".into()))
        }
    }
}

fn tell(name: &NodeName, row: Option<&NodeRow>, told: &mut Told) -> Result<(), Failure> {
    let Some(row) = row else {
        return Ok(());
    };
    let reason = row.reason.as_deref();
    told.begun |= row.phase.is_some() || reason == Some("RebootRequested");
    let Some(reason) = reason.filter(|_| told.begun) else {
        return Ok(());
    };
    let message = row.message.as_deref().unwrap_or_default();
    told.why = Some(format!("{reason}: {message}"));
    let place = row
        .place
        .map(|place| format!(", {} in the queue", explain::ordinal(place)));
    let text = format!(
        "{}: {reason}{}",
        row.phase.unwrap_or("requested"),
        place.unwrap_or_default()
    );
    if told.text != text {
        // The message counts pods; it is told with each new reason and not with each pod.
        say(&format!("node/{name} {text}: {}", printable(message)))?;
        told.text = text;
    }
    Ok(())
}
