//! What can be waited for and expected: read from what stands on the cluster.

use dogwatch_api::annotation;
use dogwatch_api::lease::process_of;
use dogwatch_core::power::REBOOT;
use dogwatch_core::reboot::Phase;

use super::caller::WORDS;
use super::stage::Stage;
use crate::chronicle::{Kind, LEAD, NodeView, PodView, holder_of, host_of};

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
    /// The lock is held by this node, or `api/HOST`, `fleetlock/GROUP/ID`; `None`: by nobody.
    Lock(String, Option<String>),
    /// This controller leads; `None`: nobody does.
    Leads(Option<String>),
    /// A host that called the lock was told this word; `None`: nothing yet.
    Answered(String, Option<&'static str>),
    /// So many Nodes of this name were made until now, the first included.
    Made(String, usize),
    /// The host's machine has power, or not, whatever its BMC says.
    Powered(String, bool),
    /// The host is proved off, or not.
    ProvedOff(String, bool),
    /// The host's machine lost its power so many times.
    PowerOffs(String, usize),
    /// So many pods of this application are ready.
    Pods(String, usize),
    /// So many pods that a drain would evict are on this node.
    PodsOn(String, usize),
    /// At most so many were out at the same time until now.
    MostOut(usize),
    /// Nothing of Dogwatch's is left anywhere.
    Clean,
}

/// Every form that a condition can have.
pub(super) const FORMS: &str = "NODE phase=waiting|draining|rebooting|returning|none, NODE boots=N, NODE commands=N, NODE pods=N, \
     NODE cordoned, NODE uncordoned, NODE ready, NODE not-ready, NODE gone, NODE there, NODE says REASON, \
     NODE shows CONDITION, NODE hides CONDITION, NODE made=N, lock NAME free, lock NAME held by NODE|HOLDER, NAME leads, nobody leads, \
     HOST answered WORD|nothing, host/NAME on|off|proved-off|not-proved-off|offs=N, pods APP=N, most-out=N, clean";

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
        ["nobody", "leads"] => Some(Condition::Leads(None)),
        [name, "leads"] => Some(Condition::Leads(Some((*name).into()))),
        [client, "answered", "nothing"] => Some(Condition::Answered((*client).into(), None)),
        [client, "answered", word] => {
            let known = WORDS.into_iter().find(|known| known == word);
            known.map(|word| Condition::Answered((*client).into(), Some(word)))
        }
        [host, state] if host.starts_with("host/") => of_host(&host["host/".len()..], state),
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
            "made" => Some(Condition::Made(node, number(value)?)),
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

fn of_host(host: &str, state: &str) -> Option<Condition> {
    let host = host.to_owned();
    Some(match state {
        "on" => Condition::Powered(host, true),
        "off" => Condition::Powered(host, false),
        "proved-off" => Condition::ProvedOff(host, true),
        "not-proved-off" => Condition::ProvedOff(host, false),
        other => Condition::PowerOffs(host, number(other.strip_prefix("offs=")?)?),
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
            Condition::Lock(name, holder) => {
                let holder = holder.as_ref().map(|holder| full_holder(holder));
                stage.lock(name) == Some(holder)
            }
            Condition::Leads(name) => leader(stage) == *name,
            Condition::Answered(client, word) => stage.answers.of(client) == *word,
            Condition::Made(name, count) => stage.nodes_made(name) == *count,
            Condition::Powered(host, powered) => is_powered(stage, host) == Some(*powered),
            Condition::ProvedOff(host, proved) => is_proved_off(stage, host) == Some(*proved),
            Condition::PowerOffs(host, count) => power_offs(stage, host) == Some(*count),
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
            Condition::Leads(_) => format!("{:?} leads", leader(stage)),
            Condition::Answered(client, _) => {
                format!("it was told {:?}", stage.answers.of(client))
            }
            Condition::Made(name, _) => format!("{} were made", stage.nodes_made(name)),
            Condition::Powered(host, _)
            | Condition::ProvedOff(host, _)
            | Condition::PowerOffs(host, _) => format!(
                "it has power: {:?}, is proved off: {:?}, lost its power {:?} times",
                is_powered(stage, host),
                is_proved_off(stage, host),
                power_offs(stage, host)
            ),
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

/// A node is meant where no kind is named.
fn full_holder(holder: &str) -> String {
    if holder.contains('/') {
        holder.to_owned()
    } else {
        format!("node/{holder}")
    }
}

/// The controller that leads, as the script names it.
fn leader(stage: &Stage) -> Option<String> {
    let holder = holder_of(stage.observer.get(Kind::Lease, LEAD)?)?;
    let (name, _run) = holder.rsplit_once('-')?;
    Some(name.to_owned())
}

fn is_powered(stage: &Stage, host: &str) -> Option<bool> {
    let machine = stage.metal.as_ref()?.yard.machine(host)?;
    Some(machine.state().is_powered())
}

fn is_proved_off(stage: &Stage, host: &str) -> Option<bool> {
    let host = stage.bare_metal_host(host)?;
    Some(host.status.power.off_confirmed_at.is_some())
}

fn power_offs(stage: &Stage, host: &str) -> Option<usize> {
    let machine = stage.metal.as_ref()?.yard.machine(host)?;
    Some(machine.log().power_offs())
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
        left.extend(
            view.api_lock
                .then(|| format!("{name} is locked by the API")),
        );
        let fenced = !node["metadata"]["annotations"][annotation::FENCING].is_null();
        left.extend(fenced.then(|| format!("{name} is marked as being fenced")));
    }
    for host in stage
        .observer
        .all(Kind::Host)
        .filter_map(|(_, host)| host_of(host))
    {
        let ours = |key: &&String| key.starts_with(REBOOT) || *key == annotation::NODE_BACKUP;
        let keys = host.annotations.keys().filter(ours);
        left.extend(keys.map(|key| format!("{key} on host {}", host.name.name)));
    }
    // Who leads goes on leading, and a replica of the lock API shows that it lives.
    let stays = |name: &str| name == LEAD || process_of(name).is_some();
    let leases = stage.observer.all(Kind::Lease);
    for (name, lease) in leases.filter(|(name, _)| !stays(name)) {
        left.extend(holder_of(lease).map(|holder| format!("{name} is held by {holder}")));
    }
    left
}
