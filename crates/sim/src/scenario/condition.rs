//! Conditions that a script waits for or expects, read from the objects of the cluster.

use dogwatch_api::annotation;
use dogwatch_api::lease::process_of_presence;
use dogwatch_core::power::REBOOT_ANNOTATION;
use dogwatch_core::reboot::{RebootPhase, RebootReason};
use dogwatch_core::schedule::ScheduleReason;

use super::fleet_view::count_rebooted;
use super::scenario_cluster::ScenarioCluster;
use crate::observer::{LEADER_LEASE, NodeView, ObservedKind, PodView, lease_holder, parse_host};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScenarioCondition {
    /// The phase in the node's record; `None`: there is no record.
    Phase(String, Option<RebootPhase>),
    /// Whether the node is cordoned.
    Cordoned(String, bool),
    /// Whether the node is Ready.
    Ready(String, bool),
    /// Whether the Node exists.
    There(String, bool),
    /// The number of the node's boots since the start.
    Boots(String, usize),
    /// How often the reboot command was started.
    Commands(String, usize),
    /// The reason of the coordinator's decision.
    Says(String, String),
    /// Whether this condition of the node is `True`.
    Shows(String, String, bool),
    /// The holder of the lock: a node, `api/HOST` or `fleetlock/GROUP/ID`; `None`: no holder.
    Lock(String, Option<String>),
    /// The leading controller; `None`: none.
    Leads(Option<String>),
    /// The answer to a host's lock call; `None`: none yet.
    Answered(String, Option<&'static str>),
    /// How many Nodes of this name were created so far, including the first.
    Made(String, usize),
    /// Whether the host's machine has power, whatever its BMC reports.
    Powered(String, bool),
    /// Whether the host is proved off.
    ProvedOff(String, bool),
    /// How often the host's machine lost its power.
    PowerOffs(String, usize),
    /// Whether this object has this annotation.
    Annotated(String, String, bool),
    /// The status of the condition `Succeeded` of `remediation/NAME` or `node-reboot/NAME`.
    Succeeded(String, &'static str),
    /// Whether a condition of this schedule has this reason.
    Schedule(String, ScheduleReason),
    /// The phase of a policy's rollout, `Halted`, or `None`: it has no state.
    Rollout(String, Option<&'static str>),
    /// The number of ready pods of this application.
    Pods(String, usize),
    /// The fewest ready pods of this application at any time since its first one.
    FewestPods(String, usize),
    /// How many pod templates this application's pods have had.
    PodTemplates(String, usize),
    /// The number of pods on this node that a drain would evict.
    PodsOn(String, usize),
    /// The highest allowed number of nodes unavailable at the same time so far.
    MostOut(usize),
    /// How many nodes Dogwatch has rebooted: their last reboot says so.
    Rebooted(usize),
    /// No object contains leftovers of Dogwatch.
    Clean,
}

impl ScenarioCondition {
    pub fn is_met(&self, stage: &ScenarioCluster) -> bool {
        let node = |name: &str| {
            stage
                .observer
                .get_object(ObservedKind::Node, name)
                .map(NodeView::from_object)
        };
        match self {
            ScenarioCondition::Phase(name, phase) => {
                node(name).is_some_and(|node| node.record.map(|record| record.phase) == *phase)
            }
            ScenarioCondition::Cordoned(name, cordoned) => {
                node(name).is_some_and(|node| node.cordoned == *cordoned)
            }
            ScenarioCondition::Ready(name, ready) => {
                node(name).is_some_and(|node| node.ready == *ready)
            }
            ScenarioCondition::There(name, there) => node(name).is_some() == *there,
            ScenarioCondition::Boots(name, boots) => stage.checks.count_boots(name) == *boots,
            ScenarioCondition::Commands(name, count) => stage.count_reboot_commands(name) == *count,
            ScenarioCondition::Says(name, reason) => {
                let newest = stage.decision_log.newest_reason(name);
                newest.map(RebootReason::as_str) == Some(reason.as_str())
            }
            ScenarioCondition::Shows(name, kind, shown) => {
                node(name).is_some_and(|node| node.true_condition(kind).is_some() == *shown)
            }
            ScenarioCondition::Lock(name, holder) => {
                let holder = holder.as_ref().map(|holder| full_holder(holder));
                stage.lock_holder(name) == Some(holder)
            }
            ScenarioCondition::Leads(name) => leading_controller(stage) == *name,
            ScenarioCondition::Answered(client, word) => {
                stage.lock_answers.answer_of_client(client) == *word
            }
            ScenarioCondition::Made(name, count) => stage.count_nodes_made(name) == *count,
            ScenarioCondition::Powered(host, powered) => is_powered(stage, host) == Some(*powered),
            ScenarioCondition::ProvedOff(host, proved) => {
                is_proved_off(stage, host) == Some(*proved)
            }
            ScenarioCondition::PowerOffs(host, count) => {
                count_power_offs(stage, host) == Some(*count)
            }
            ScenarioCondition::Annotated(object, name, is_there) => {
                stage.has_annotation(object, name) == Some(*is_there)
            }
            ScenarioCondition::Succeeded(object, status) => {
                stage.request_outcome(object).as_deref() == Some(*status)
            }
            ScenarioCondition::Schedule(name, reason) => {
                let mut reasons = stage.schedule_reasons(name).into_iter();
                reasons.any(|there| there == reason.as_str())
            }
            ScenarioCondition::Rollout(policy, phase) => {
                stage.rollout_phase(policy).as_deref() == *phase
            }
            ScenarioCondition::Pods(_, count)
            | ScenarioCondition::FewestPods(_, count)
            | ScenarioCondition::PodTemplates(_, count)
            | ScenarioCondition::PodsOn(_, count) => self.count_pods(stage) == *count,
            ScenarioCondition::MostOut(most) => stage
                .checks
                .groups_with_most_out()
                .all(|(_, out)| out <= *most),
            ScenarioCondition::Rebooted(count) => count_rebooted(stage) == *count,
            ScenarioCondition::Clean => find_leftovers(stage).is_empty(),
        }
    }

    /// What a condition about pods or their templates counts; 0 for any other.
    fn count_pods(&self, stage: &ScenarioCluster) -> usize {
        match self {
            ScenarioCondition::Pods(app, _) => stage.count_ready_pods(app),
            ScenarioCondition::FewestPods(app, _) => stage.checks.fewest_ready_pods(app),
            ScenarioCondition::PodTemplates(app, _) => stage.checks.count_pod_templates(app),
            ScenarioCondition::PodsOn(name, _) => count_pods_on_node(stage, name),
            ScenarioCondition::Phase(..)
            | ScenarioCondition::Cordoned(..)
            | ScenarioCondition::Ready(..)
            | ScenarioCondition::There(..)
            | ScenarioCondition::Boots(..)
            | ScenarioCondition::Commands(..)
            | ScenarioCondition::Says(..)
            | ScenarioCondition::Shows(..)
            | ScenarioCondition::Lock(..)
            | ScenarioCondition::Leads(_)
            | ScenarioCondition::Answered(..)
            | ScenarioCondition::Made(..)
            | ScenarioCondition::Powered(..)
            | ScenarioCondition::ProvedOff(..)
            | ScenarioCondition::PowerOffs(..)
            | ScenarioCondition::Annotated(..)
            | ScenarioCondition::Succeeded(..)
            | ScenarioCondition::Schedule(..)
            | ScenarioCondition::Rollout(..)
            | ScenarioCondition::MostOut(_)
            | ScenarioCondition::Rebooted(_)
            | ScenarioCondition::Clean => 0,
        }
    }

    /// Describes the actual state, for the message of a failed condition.
    pub fn actual_state(&self, stage: &ScenarioCluster) -> String {
        match self {
            ScenarioCondition::Clean => {
                format!(
                    "the cluster is not clean: {}",
                    find_leftovers(stage).join("; ")
                )
            }
            ScenarioCondition::Rebooted(_) => format!("it is {}", count_rebooted(stage)),
            ScenarioCondition::Boots(name, _) => {
                format!("there were {} boots", stage.checks.count_boots(name))
            }
            ScenarioCondition::Commands(name, _) => {
                format!("there were {} commands", stage.count_reboot_commands(name))
            }
            ScenarioCondition::Annotated(object, name, _) => format!(
                "whether it is there: {:?}",
                stage.has_annotation(object, name)
            ),
            ScenarioCondition::Succeeded(object, _) => {
                format!("Succeeded is {:?}", stage.request_outcome(object))
            }
            ScenarioCondition::Schedule(name, _) => {
                format!("its reasons are {:?}", stage.schedule_reasons(name))
            }
            ScenarioCondition::Rollout(policy, _) => {
                format!("it is {:?}", stage.rollout_phase(policy))
            }
            ScenarioCondition::Pods(..)
            | ScenarioCondition::FewestPods(..)
            | ScenarioCondition::PodTemplates(..)
            | ScenarioCondition::PodsOn(..) => format!("it is {}", self.count_pods(stage)),
            ScenarioCondition::Lock(name, _) => {
                format!("it is held by {:?}", stage.lock_holder(name).flatten())
            }
            ScenarioCondition::Leads(_) => format!("{:?} leads", leading_controller(stage)),
            ScenarioCondition::Answered(client, _) => {
                format!(
                    "the answer was {:?}",
                    stage.lock_answers.answer_of_client(client)
                )
            }
            ScenarioCondition::Made(name, _) => {
                format!(
                    "the Node was created {} times",
                    stage.count_nodes_made(name)
                )
            }
            ScenarioCondition::Powered(host, _)
            | ScenarioCondition::ProvedOff(host, _)
            | ScenarioCondition::PowerOffs(host, _) => format!(
                "it has power: {:?}, is proved off: {:?}, lost its power {:?} times",
                is_powered(stage, host),
                is_proved_off(stage, host),
                count_power_offs(stage, host)
            ),
            ScenarioCondition::Phase(name, _)
            | ScenarioCondition::Cordoned(name, _)
            | ScenarioCondition::Ready(name, _)
            | ScenarioCondition::There(name, _)
            | ScenarioCondition::Says(name, _)
            | ScenarioCondition::Shows(name, ..) => describe_node(stage, name),
            ScenarioCondition::MostOut(_) => format!(
                "{:?}",
                stage.checks.groups_with_most_out().collect::<Vec<_>>()
            ),
        }
    }
}

fn describe_node(stage: &ScenarioCluster, name: &str) -> String {
    let said = stage
        .decision_log
        .newest_reason(name)
        .map_or("nothing", RebootReason::as_str)
        .to_owned();
    let Some(node) = stage
        .observer
        .get_object(ObservedKind::Node, name)
        .map(NodeView::from_object)
    else {
        return "there is no such Node".into();
    };
    format!(
        "phase {:?}, cordoned {}, ready {}, reason of its coordinator {said}, conditions {:?}",
        node.record.map(|record| record.phase),
        node.cordoned,
        node.ready,
        node.conditions
    )
}

/// A holder without a prefix is a node.
fn full_holder(holder: &str) -> String {
    if holder.contains('/') {
        holder.to_owned()
    } else {
        format!("node/{holder}")
    }
}

/// The leading controller, by its name in the script.
fn leading_controller(stage: &ScenarioCluster) -> Option<String> {
    let holder = lease_holder(
        stage
            .observer
            .get_object(ObservedKind::Lease, LEADER_LEASE)?,
    )?;
    let (name, _run) = holder.rsplit_once('-')?;
    Some(name.to_owned())
}

fn is_powered(stage: &ScenarioCluster, host: &str) -> Option<bool> {
    let machine = stage.bare_metal_hosts.as_ref()?.lab.machine_of_host(host)?;
    Some(machine.power_state().is_powered())
}

fn is_proved_off(stage: &ScenarioCluster, host: &str) -> Option<bool> {
    let host = stage.bare_metal_host(host)?;
    Some(host.status.power.off_confirmed_at.is_some())
}

fn count_power_offs(stage: &ScenarioCluster, host: &str) -> Option<usize> {
    let machine = stage.bare_metal_hosts.as_ref()?.lab.machine_of_host(host)?;
    Some(machine.transition_log().count_power_offs())
}

fn count_pods_on_node(stage: &ScenarioCluster, node: &str) -> usize {
    let pods = stage
        .observer
        .list_objects(ObservedKind::Pod)
        .map(|(_, pod)| PodView::from_object(pod));
    pods.filter(|pod| pod.node == node && !pod.stays).count()
}

/// Lists Dogwatch's leftovers: records, labels, cordons, locks, conditions.
fn find_leftovers(stage: &ScenarioCluster) -> Vec<String> {
    let mut left = Vec::new();
    for (name, node) in stage.observer.list_objects(ObservedKind::Node) {
        let view = NodeView::from_object(node);
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
                .filter(|kind| view.true_condition(kind).is_some())
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
        .list_objects(ObservedKind::Host)
        .filter_map(|(_, host)| parse_host(host))
    {
        let ours =
            |key: &&String| key.starts_with(REBOOT_ANNOTATION) || *key == annotation::NODE_BACKUP;
        let keys = host.annotations.keys().filter(ours);
        left.extend(keys.map(|key| format!("{key} on host {}", host.name.name)));
    }
    // The leader's Lease and the presence Leases of lock API replicas are expected to stay.
    let stays = |name: &str| name == LEADER_LEASE || process_of_presence(name).is_some();
    let leases = stage.observer.list_objects(ObservedKind::Lease);
    for (name, lease) in leases.filter(|(name, _)| !stays(name)) {
        left.extend(lease_holder(lease).map(|holder| format!("{name} is held by {holder}")));
    }
    left
}
