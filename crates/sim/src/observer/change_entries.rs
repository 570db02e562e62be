//! Describes a change of an object in lines for people.

use dogwatch_api::label::NVSENTINEL_MANAGED;
use dogwatch_api::lease::process_of_presence;
use dogwatch_core::reboot::{RebootPhase, RebootRecord};
use serde_json::Value;

use super::cluster_observer::{ObservedChange, ObservedKind};
use super::host_entries;
use super::node_reboot_entries;
use super::object_views::{NodeView, PodView, lease_holder, text_at_pointer};
use super::short_names::ShortNames;

/// Conditions that get their own line; phase and decision already show the others.
const REPORTED_NODE_CONDITIONS: [&str; 2] = ["SentinelSurvivedReboot", "RebootTriggerUnknown"];

/// The Lease of the leading controller; all other Leases are locks.
pub const LEADER_LEASE: &str = "controller.dogwatch.dev";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserverEntry {
    /// The subject: a node, a lock.
    pub about: String,
    pub text: EntryText,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryText {
    Line(String),
    /// An event of a pod, which is grouped with others of the same moment.
    Pod {
        what: &'static str,
        pod: String,
    },
}

impl ObserverEntry {
    pub fn from_line(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            text: EntryText::Line(text.into()),
        }
    }
}

/// Describes a change.
pub fn change_entries(change: &ObservedChange, names: &mut ShortNames) -> Vec<ObserverEntry> {
    match change.kind {
        ObservedKind::Node => node_entries(change, names),
        ObservedKind::Lease => lease_entries(change),
        ObservedKind::Pod => pod_entries(change),
        ObservedKind::Event => event_entries(change, names),
        ObservedKind::Host => host_entries::host_entries(change),
        ObservedKind::NodeReboot => node_reboot_entries::node_reboot_entries(change, names),
        ObservedKind::Budget | ObservedKind::Policy | ObservedKind::Definition => Vec::new(),
    }
}

fn node_entries(change: &ObservedChange, names: &mut ShortNames) -> Vec<ObserverEntry> {
    let tell = |texts: Vec<String>| {
        texts
            .into_iter()
            .map(|text| ObserverEntry::from_line(&change.name, text))
            .collect()
    };
    let Some(after) = change.after.as_ref().map(NodeView::from_object) else {
        return tell(vec!["its Node is deleted".into()]);
    };
    names.name_boot(&change.name, &after.boot);
    if let Some(record) = &after.record {
        names.name_record(&change.name, record);
    }
    let Some(before) = change.before.as_ref().map(NodeView::from_object) else {
        return tell(vec!["its Node is there".into()]);
    };
    let mut texts: Vec<String> = Vec::new();
    texts.extend(describe_record(&before, &after));
    texts.extend(describe_cordon(&before, &after));
    texts.extend(describe_node_state(&before, &after));
    texts.extend(describe_node_conditions(&before, &after));
    tell(texts.iter().map(|text| names.shorten_ids(text)).collect())
}

fn describe_record(before: &NodeView, after: &NodeView) -> Option<String> {
    match (&before.record, &after.record) {
        (None, Some(after)) => Some(describe_phase(after)),
        (Some(old), Some(new)) if is_back_to_waiting(old, new) => {
            Some(format!("{} again: {}", new.phase.as_str(), new.message))
        }
        (Some(old), Some(new)) if old.phase != new.phase => Some(describe_phase(new)),
        (Some(old), Some(new)) if old.run != new.run => Some(format!("{} takes over", new.run)),
        (Some(old), Some(new)) if old.attempts != new.attempts => Some(describe_phase(new)),
        (Some(old), Some(new)) if old.retry_after != new.retry_after => Some(describe_phase(new)),
        (Some(old), Some(new)) if old.trigger != new.trigger => Some(describe_phase(new)),
        (Some(old), Some(new)) if old.deleting != new.deleting => Some(new.message.clone()),
        (Some(old), Some(new)) if old.since != new.since => {
            Some(format!("{} again: {}", new.phase.as_str(), new.message))
        }
        (Some(_), Some(_)) | (None, None) => None,
        (Some(_), None) => Some(after.last.as_ref().map_or_else(
            || "its record is gone".to_owned(),
            |last| {
                format!(
                    "done: {}, {} → {}{}",
                    last.outcome.as_str(),
                    last.old_boot_id,
                    last.new_boot_id,
                    if last.soft { " (soft)" } else { "" }
                )
            },
        )),
    }
}

/// Whether a reboot went back to waiting without a failure. The message gives the reason, and an
/// earlier line has named the trigger.
fn is_back_to_waiting(old: &RebootRecord, new: &RebootRecord) -> bool {
    old.phase > new.phase && new.retry_after.is_none()
}

fn describe_phase(record: &RebootRecord) -> String {
    let name = record.phase.as_str();
    match record.phase {
        RebootPhase::Waiting if record.retry_after.is_some() => {
            format!("{name}, not before a pause is over: {}", record.message)
        }
        RebootPhase::Waiting => format!(
            "{name}: {} ({})",
            record.trigger.source,
            first_line(&record.trigger.reason)
        ),
        RebootPhase::Draining | RebootPhase::Holding | RebootPhase::Returning => {
            format!("{name}: {}", record.message)
        }
        RebootPhase::Rebooting => {
            format!("{name}, attempt {}: {}", record.attempts, record.message)
        }
    }
}

fn first_line(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default()
}

fn describe_cordon(before: &NodeView, after: &NodeView) -> Option<String> {
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

fn describe_node_state(before: &NodeView, after: &NodeView) -> Vec<String> {
    let mut texts = Vec::new();
    if before.boot != after.boot {
        texts.push(format!("its kubelet posts {}", after.boot));
    }
    match (before.ready, after.ready) {
        (false, true) => texts.push("Ready".into()),
        (true, false) => texts.push("not Ready".into()),
        (true, true) | (false, false) => {}
    }
    let muted = |node: &NodeView| node.labels.get(NVSENTINEL_MANAGED).cloned();
    match (muted(before), muted(after)) {
        (old, Some(new)) if old.as_ref() != Some(&new) => {
            texts.push(format!("ManagedByNVSentinel={new}"));
        }
        (Some(_), None) => texts.push("no longer ManagedByNVSentinel=false".into()),
        (Some(_) | None, Some(_)) | (None, None) => {}
    }
    texts
}

fn describe_node_conditions(before: &NodeView, after: &NodeView) -> Vec<String> {
    let one = |kind: &&str| match (before.true_condition(kind), after.true_condition(kind)) {
        (old, Some(new)) if old != Some(new) => Some(format!("{kind}: {}", new.1)),
        (Some(_), None) => Some(format!("no longer {kind}")),
        (Some(_) | None, Some(_)) | (None, None) => None,
    };
    REPORTED_NODE_CONDITIONS.iter().filter_map(one).collect()
}

fn lease_entries(change: &ObservedChange) -> Vec<ObserverEntry> {
    if let Some(process) = process_of_presence(&change.name) {
        return replica_entries(process, change);
    }
    let about = match change.name.as_str() {
        LEADER_LEASE => "lead".to_owned(),
        name => format!("lock {}", name.trim_start_matches("dogwatch-")),
    };
    let Some(after) = &change.after else {
        return vec![ObserverEntry::from_line(about, "deleted")];
    };
    let before = change.before.as_ref().and_then(lease_holder);
    match (before, lease_holder(after)) {
        (old, Some(new)) if old != Some(new) => {
            vec![ObserverEntry::from_line(about, format!("held by {new}"))]
        }
        (Some(old), None) => vec![ObserverEntry::from_line(
            about,
            format!("freed by {old}{}", describe_next_in_line(after)),
        )],
        (Some(_) | None, Some(_)) | (None, None) => Vec::new(),
    }
}

/// A replica of the lock API started or ended.
fn replica_entries(process: &str, change: &ObservedChange) -> Vec<ObserverEntry> {
    let what = match (&change.before, &change.after) {
        (None, Some(_)) => "serves the lock API",
        (_, None) => "no longer serves the lock API",
        (Some(_), Some(_)) => return Vec::new(),
    };
    vec![ObserverEntry::from_line(process, what)]
}

fn describe_next_in_line(lease: &Value) -> String {
    let annotation = |name: &str| {
        lease["metadata"]["annotations"][name]
            .as_str()
            .filter(|text| !text.is_empty())
    };
    let next = annotation(dogwatch_api::annotation::NEXT_WAITERS)
        .map(|next| format!(", calls {}", next.replace(',', ", ")));
    let back =
        annotation(dogwatch_api::annotation::YIELD_COUNT).map(|_| ": over budget".to_owned());
    back.or(next).unwrap_or_default()
}

fn pod_entries(change: &ObservedChange) -> Vec<ObserverEntry> {
    let (before, after) = (
        change.before.as_ref().map(PodView::from_object),
        change.after.as_ref().map(PodView::from_object),
    );
    let tell = |node: &str, what| {
        let text = EntryText::Pod {
            what,
            pod: change.name.clone(),
        };
        vec![ObserverEntry {
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

/// Describes Warning Events, and Events that no phase shows.
fn event_entries(change: &ObservedChange, names: &ShortNames) -> Vec<ObserverEntry> {
    let (Some(event), None) = (&change.after, &change.before) else {
        return Vec::new();
    };
    let reason = text_at_pointer(event, "/reason");
    let said_by_phase = [
        "RebootPlanned",
        "Draining",
        "Rebooting",
        "NewBoot",
        "Rebooted",
    ];
    let ours = text_at_pointer(event, "/source/component").starts_with("dogwatch")
        || text_at_pointer(event, "/reportingComponent").starts_with("dogwatch");
    if !ours || said_by_phase.contains(&reason) {
        return Vec::new();
    }
    let message = names.shorten_ids(text_at_pointer(event, "/message"));
    let about = text_at_pointer(event, "/involvedObject/name");
    vec![ObserverEntry::from_line(
        about,
        format!(
            "{} {reason}: {message}",
            text_at_pointer(event, "/type").to_lowercase()
        ),
    )]
}
