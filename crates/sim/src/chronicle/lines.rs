//! A change, in a line that a person reads.

use dogwatch_api::lease::process_of;
use dogwatch_core::reboot::{Phase, Record};
use serde_json::Value;

use super::host;
use super::names::Names;
use super::object::{NodeView, PodView, holder_of, text};
use super::observer::{Change, Kind};

/// Conditions that are told by themselves; the others say what phase and decision say.
const TROUBLES: [&str; 2] = ["SentinelSurvivedReboot", "RebootTriggerUnknown"];

/// The Lease that says which controller leads; the others are locks.
pub const LEAD: &str = "controller.dogwatch.dev";

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// About what: a node, a lock.
    pub about: String,
    /// What.
    pub text: Text,
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// A sentence.
    Line(String),
    /// Something that happened to a pod, to be told together with others of the same moment.
    Pod {
        /// What happened.
        what: &'static str,
        /// To which pod.
        pod: String,
    },
}

impl Entry {
    /// A sentence about something.
    pub fn line(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            text: Text::Line(text.into()),
        }
    }
}

/// What is to be told of a change.
pub fn lines(change: &Change, names: &mut Names) -> Vec<Entry> {
    match change.kind {
        Kind::Node => node(change, names),
        Kind::Lease => lease(change),
        Kind::Pod => pod(change),
        Kind::Event => event(change, names),
        Kind::Host => host::lines(change),
        Kind::Budget | Kind::Policy | Kind::Definition => Vec::new(),
    }
}

fn node(change: &Change, names: &mut Names) -> Vec<Entry> {
    let tell = |texts: Vec<String>| {
        texts
            .into_iter()
            .map(|text| Entry::line(&change.name, text))
            .collect()
    };
    let Some(after) = change.after.as_ref().map(NodeView::of) else {
        return tell(vec!["its Node is deleted".into()]);
    };
    names.saw_boot(&change.name, &after.boot);
    if let Some(record) = &after.record {
        names.saw_record(&change.name, record);
    }
    let Some(before) = change.before.as_ref().map(NodeView::of) else {
        return tell(vec!["its Node is there".into()]);
    };
    let mut texts: Vec<String> = Vec::new();
    texts.extend(record(&before, &after));
    texts.extend(cordon(&before, &after));
    texts.extend(machine(&before, &after));
    texts.extend(troubles(&before, &after));
    tell(texts.iter().map(|text| names.shorten(text)).collect())
}

fn record(before: &NodeView, after: &NodeView) -> Option<String> {
    match (&before.record, &after.record) {
        (None, Some(after)) => Some(phase(after)),
        (Some(old), Some(new)) if is_undone(old, new) => {
            Some(format!("{} again: {}", new.phase.as_str(), new.message))
        }
        (Some(old), Some(new)) if old.phase != new.phase => Some(phase(new)),
        (Some(old), Some(new)) if old.run != new.run => Some(format!("{} takes over", new.run)),
        (Some(old), Some(new)) if old.attempts != new.attempts => Some(phase(new)),
        (Some(old), Some(new)) if old.retry_after != new.retry_after => Some(phase(new)),
        (Some(old), Some(new)) if old.deleting != new.deleting => Some(new.message.clone()),
        (Some(old), Some(new)) if old.since != new.since => {
            Some(format!("{} again: {}", new.phase.as_str(), new.message))
        }
        (Some(_), Some(_)) | (None, None) => None,
        (Some(_), None) => Some(after.last.as_ref().map_or_else(
            || "its record is gone".to_owned(),
            |last| {
                format!(
                    "done: {}, {} → {}",
                    last.outcome.as_str(),
                    last.old_boot_id,
                    last.new_boot_id
                )
            },
        )),
    }
}

/// Back to waiting without blame: the message says why, and what asked for it was told before.
fn is_undone(old: &Record, new: &Record) -> bool {
    old.phase > new.phase && new.retry_after.is_none()
}

fn phase(record: &Record) -> String {
    let name = record.phase.as_str();
    match record.phase {
        Phase::Waiting if record.retry_after.is_some() => {
            format!("{name}, not before a pause is over: {}", record.message)
        }
        Phase::Waiting => format!(
            "{name}: {} ({})",
            record.trigger.source,
            first_line(&record.trigger.reason)
        ),
        Phase::Draining | Phase::Returning => format!("{name}: {}", record.message),
        Phase::Rebooting => format!("{name}, attempt {}: {}", record.attempts, record.message),
    }
}

fn first_line(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default()
}

fn cordon(before: &NodeView, after: &NodeView) -> Option<String> {
    let by = if before.record != after.record {
        ""
    } else if before.api_lock != after.api_lock {
        " for the lock API"
    } else {
        " by somebody else"
    };
    match (before.cordoned, after.cordoned) {
        (false, true) => Some(format!("cordoned{by}")),
        (true, false) => Some(format!("uncordoned{by}")),
        (true, true) | (false, false) => None,
    }
}

fn machine(before: &NodeView, after: &NodeView) -> Vec<String> {
    let mut texts = Vec::new();
    if before.boot != after.boot {
        texts.push(format!("its kubelet posts {}", after.boot));
    }
    match (before.ready, after.ready) {
        (false, true) => texts.push("Ready".into()),
        (true, false) => texts.push("not Ready".into()),
        (true, true) | (false, false) => {}
    }
    texts
}

fn troubles(before: &NodeView, after: &NodeView) -> Vec<String> {
    let one = |kind: &&str| match (before.condition(kind), after.condition(kind)) {
        (old, Some(new)) if old != Some(new) => Some(format!("{kind}: {}", new.1)),
        (Some(_), None) => Some(format!("no longer {kind}")),
        (Some(_) | None, Some(_)) | (None, None) => None,
    };
    TROUBLES.iter().filter_map(one).collect()
}

fn lease(change: &Change) -> Vec<Entry> {
    if let Some(process) = process_of(&change.name) {
        return presence(process, change);
    }
    let about = match change.name.as_str() {
        LEAD => "lead".to_owned(),
        name => format!("lock {}", name.trim_start_matches("dogwatch-")),
    };
    let Some(after) = &change.after else {
        return vec![Entry::line(about, "deleted")];
    };
    let before = change.before.as_ref().and_then(holder_of);
    match (before, holder_of(after)) {
        (old, Some(new)) if old != Some(new) => vec![Entry::line(about, format!("held by {new}"))],
        (Some(old), None) => vec![Entry::line(
            about,
            format!("freed by {old}{}", called(after)),
        )],
        (Some(_) | None, Some(_)) | (None, None) => Vec::new(),
    }
}

/// A replica of the lock API came, or went.
fn presence(process: &str, change: &Change) -> Vec<Entry> {
    let what = match (&change.before, &change.after) {
        (None, Some(_)) => "serves the lock API",
        (_, None) => "serves the lock API no more",
        (Some(_), Some(_)) => return Vec::new(),
    };
    vec![Entry::line(process, what)]
}

fn called(lease: &Value) -> String {
    let annotation = |name: &str| {
        lease["metadata"]["annotations"][name]
            .as_str()
            .filter(|text| !text.is_empty())
    };
    let next = annotation(dogwatch_api::annotation::NEXT)
        .map(|next| format!(", calls {}", next.replace(',', ", ")));
    let back = annotation(dogwatch_api::annotation::GIVEN_BACK).map(|_| ": over budget".to_owned());
    back.or(next).unwrap_or_default()
}

fn pod(change: &Change) -> Vec<Entry> {
    let (before, after) = (
        change.before.as_ref().map(PodView::of),
        change.after.as_ref().map(PodView::of),
    );
    let tell = |node: &str, what| {
        let text = Text::Pod {
            what,
            pod: change.name.clone(),
        };
        vec![Entry {
            about: node.to_owned(),
            text,
        }]
    };
    match (before, after) {
        (Some(before), Some(after)) if after.leaving && !before.leaving => {
            tell(&after.node, "leaves")
        }
        (Some(before), Some(after)) if after.ready && !before.ready && !after.stays => {
            tell(&after.node, "runs")
        }
        (Some(before), None) if !before.node.is_empty() => tell(&before.node, "is gone"),
        (Some(_) | None, Some(_) | None) => Vec::new(),
    }
}

/// Warnings, and what no phase says.
fn event(change: &Change, names: &Names) -> Vec<Entry> {
    let (Some(event), None) = (&change.after, &change.before) else {
        return Vec::new();
    };
    let reason = text(event, "/reason");
    let said_by_phase = [
        "RebootPlanned",
        "Draining",
        "Rebooting",
        "NewBoot",
        "Rebooted",
    ];
    let ours = text(event, "/source/component").starts_with("dogwatch")
        || text(event, "/reportingComponent").starts_with("dogwatch");
    if !ours || said_by_phase.contains(&reason) {
        return Vec::new();
    }
    let message = names.shorten(text(event, "/message"));
    let about = text(event, "/involvedObject/name");
    vec![Entry::line(
        about,
        format!(
            "{} {reason}: {message}",
            text(event, "/type").to_lowercase()
        ),
    )]
}
