//! What can be waited for and expected: read from what stands on the cluster.

use dogwatch_core::reboot::Phase;

use super::stage::Stage;
use crate::chronicle::{Kind, NodeView, PodView, holder_of};

/// Something that is so or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The node's record is in this phase; `None`: there is no record.
    Phase(String, Option<Phase>),
    /// The node is cordoned, or not.
    Cordoned(String, bool),
    /// The node is Ready, or not.
    Ready(String, bool),
    /// Whether the Node is there.
    There(String, bool),
    /// So many boots of the node were seen since the start.
    Boots(String, usize),
    /// The reboot command was started so many times.
    Commands(String, usize),
    /// The node's coordinator decides for this reason.
    Says(String, String),
    /// One of the node's conditions is `True`, or not.
    Shows(String, String, bool),
    /// The lock is held by this node; `None`: by nobody.
    Lock(String, Option<String>),
    /// So many pods of this application are ready.
    Pods(String, usize),
    /// So many pods that a drain would evict are on this node.
    PodsOn(String, usize),
    /// At most so many were out at the same time until now.
    MostOut(usize),
    /// Nothing of Dogwatch's is left anywhere.
    Clean,
}

const FORMS: &str = "NODE phase=waiting|draining|rebooting|returning|none, NODE boots=N, NODE commands=N, NODE pods=N, \
     NODE cordoned, NODE uncordoned, NODE ready, NODE not-ready, NODE gone, NODE there, NODE says REASON, \
     NODE shows CONDITION, NODE hides CONDITION, lock NAME free, lock NAME held by NODE, pods APP=N, most-out=N, clean";

/// Reads a condition.
pub fn parse(words: &[String]) -> Result<Condition, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let condition = match words.as_slice() {
        ["clean"] => Some(Condition::Clean),
        [text] => text
            .strip_prefix("most-out=")
            .and_then(number)
            .map(Condition::MostOut),
        ["pods", text] => text
            .split_once('=')
            .and_then(|(app, count)| Some(Condition::Pods(app.into(), number(count)?))),
        ["lock", name, "free"] => Some(Condition::Lock((*name).into(), None)),
        ["lock", name, "held", "by", node] => {
            Some(Condition::Lock((*name).into(), Some((*node).into())))
        }
        [node, "says", reason] => Some(Condition::Says((*node).into(), (*reason).into())),
        [node, "shows", kind] => Some(Condition::Shows((*node).into(), (*kind).into(), true)),
        [node, "hides", kind] => Some(Condition::Shows((*node).into(), (*kind).into(), false)),
        [node, state] => of_node(node, state),
        _ => None,
    };
    condition.ok_or_else(|| format!("no condition: {:?} is none of {FORMS}", words.join(" ")))
}

fn of_node(node: &str, state: &str) -> Option<Condition> {
    let node = node.to_owned();
    if let Some((name, value)) = state.split_once('=') {
        return match name {
            "phase" => {
                let (_, phase) = PHASES.iter().find(|(name, _)| *name == value)?;
                Some(Condition::Phase(node, *phase))
            }
            "boots" => Some(Condition::Boots(node, number(value)?)),
            "commands" => Some(Condition::Commands(node, number(value)?)),
            "pods" => Some(Condition::PodsOn(node, number(value)?)),
            _ => None,
        };
    }
    Some(match state {
        "cordoned" => Condition::Cordoned(node, true),
        "uncordoned" => Condition::Cordoned(node, false),
        "ready" => Condition::Ready(node, true),
        "not-ready" => Condition::Ready(node, false),
        "there" => Condition::There(node, true),
        "gone" => Condition::There(node, false),
        _ => return None,
    })
}

fn number(text: &str) -> Option<usize> {
    text.parse().ok()
}

const PHASES: [(&str, Option<Phase>); 5] = [
    ("none", None),
    ("waiting", Some(Phase::Waiting)),
    ("draining", Some(Phase::Draining)),
    ("rebooting", Some(Phase::Rebooting)),
    ("returning", Some(Phase::Returning)),
];

impl Condition {
    /// Whether it is so.
    pub fn holds(&self, stage: &Stage) -> bool {
        let node = |name: &str| stage.observer.get(Kind::Node, name).map(NodeView::of);
        match self {
            Condition::Phase(name, phase) => {
                node(name).is_some_and(|node| node.record.map(|record| record.phase) == *phase)
            }
            Condition::Cordoned(name, cordoned) => {
                node(name).is_some_and(|node| node.cordoned == *cordoned)
            }
            Condition::Ready(name, ready) => node(name).is_some_and(|node| node.ready == *ready),
            Condition::There(name, there) => node(name).is_some() == *there,
            Condition::Boots(name, boots) => stage.checks.boots(name) == *boots,
            Condition::Commands(name, count) => stage.commands(name) == *count,
            Condition::Says(name, reason) => stage.minds.reason(name) == Some(reason.as_str()),
            Condition::Shows(name, kind, shown) => {
                node(name).is_some_and(|node| node.condition(kind).is_some() == *shown)
            }
            Condition::Lock(name, holder) => stage.lock(name).is_some_and(|held| {
                held.as_deref()
                    == holder
                        .as_ref()
                        .map(|node| format!("node/{node}"))
                        .as_deref()
            }),
            Condition::Pods(app, count) => stage.ready_pods(app) == *count,
            Condition::PodsOn(name, count) => pods_on(stage, name) == *count,
            Condition::MostOut(most) => stage.checks.groups().all(|(_, out)| out <= *most),
            Condition::Clean => left_over(stage).is_empty(),
        }
    }

    /// What is so instead.
    pub fn instead(&self, stage: &Stage) -> String {
        match self {
            Condition::Clean => format!("there is still: {}", left_over(stage).join("; ")),
            Condition::Boots(name, _) => format!("there were {} boots", stage.checks.boots(name)),
            Condition::Commands(name, _) => format!("there were {} commands", stage.commands(name)),
            Condition::Pods(app, _) => format!("{} are ready", stage.ready_pods(app)),
            Condition::PodsOn(name, _) => format!("{} are there", pods_on(stage, name)),
            Condition::Lock(name, _) => format!("it is held by {:?}", stage.lock(name).flatten()),
            Condition::Phase(name, _)
            | Condition::Cordoned(name, _)
            | Condition::Ready(name, _)
            | Condition::There(name, _)
            | Condition::Says(name, _)
            | Condition::Shows(name, ..) => describe(stage, name),
            Condition::MostOut(_) => format!("{:?}", stage.checks.groups().collect::<Vec<_>>()),
        }
    }
}

fn describe(stage: &Stage, name: &str) -> String {
    let said = stage.minds.reason(name).unwrap_or("nothing").to_owned();
    let Some(node) = stage.observer.get(Kind::Node, name).map(NodeView::of) else {
        return "there is no such Node".into();
    };
    format!(
        "phase {:?}, cordoned {}, ready {}, its coordinator says {said}, conditions {:?}",
        node.record.map(|record| record.phase),
        node.cordoned,
        node.ready,
        node.conditions
    )
}

fn pods_on(stage: &Stage, node: &str) -> usize {
    let pods = stage
        .observer
        .all(Kind::Pod)
        .map(|(_, pod)| PodView::of(pod));
    pods.filter(|pod| pod.node == node && !pod.stays).count()
}

/// What of Dogwatch's is left: records, labels, cordons, locks, conditions.
fn left_over(stage: &Stage) -> Vec<String> {
    let mut left = Vec::new();
    for (name, node) in stage.observer.all(Kind::Node) {
        let view = NodeView::of(node);
        left.extend(
            view.record
                .as_ref()
                .map(|record| format!("a record on {name} in phase {}", record.phase.as_str())),
        );
        left.extend(view.waiting_label.then(|| format!("a label on {name}")));
        let kinds = [
            "MaintenancePlanned",
            "DrainInProgress",
            "Drained",
            "MaintenanceInProgress",
        ];
        left.extend(
            kinds
                .iter()
                .filter(|kind| view.condition(kind).is_some())
                .map(|kind| format!("{kind} on {name}")),
        );
        left.extend((!view.ready).then(|| format!("{name} is not Ready")));
    }
    for (name, lease) in stage.observer.all(Kind::Lease) {
        left.extend(holder_of(lease).map(|holder| format!("{name} is held by {holder}")));
    }
    left
}
