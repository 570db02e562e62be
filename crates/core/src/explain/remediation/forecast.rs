//! Forecasts what would block a remediation before anybody requests one.

use std::sync::Arc;

use super::RemediationReportInput;
use super::assessment::{assess_as_running, concurrent_remediations};
use super::node_machines::machines_of_node;
use crate::Now;
use crate::explain::{POWER_CONTROL_READY, host_condition};
use crate::name::NodeName;
use crate::power::{HostSnapshot, SystemId};
use crate::reboot::ObservedNode;
use crate::remediation::{
    MachineName, Remediation, RemediationReason, RemediationSnapshot, RemediationSubject,
    discover_remediations,
};

/// What would happen if a Node or Machine were marked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediationForecast {
    /// The subject of the remediation: the Node, or its Machine.
    pub subject: String,
    /// `NAMESPACE/NAME` of the host, if one is found.
    pub host: Option<String>,
    /// It is requested, or its key is still on the host.
    pub under_way: bool,
    /// It is under way, and no longer requested: its key is removed from the host next.
    pub is_ending: bool,
    /// Why it would not begin: reason, message, and whether that passes by itself.
    pub refusal: Option<(RemediationReason, String, bool)>,
    /// Why power control of the host may not work.
    pub not_ready: Option<String>,
    /// The Node's system UUID is unknown, so it cannot be compared with that of the BMC.
    pub no_identity: bool,
}

/// `None` if there is no such Node.
///
/// The controller's flags are not on the cluster, so their defaults are used.
pub fn forecast_node(
    view: &RemediationReportInput,
    node: &NodeName,
    now: Now,
) -> Option<RemediationForecast> {
    let seen = view.snapshot.nodes.get(node)?;
    let is_its = |case: &Remediation| case.node_name.as_ref() == Some(node) && is_begun(case);
    let begun = discover_remediations(&view.snapshot)
        .into_iter()
        .filter(is_its)
        .min_by_key(|case| !case.needs_remediation);
    let stage = ForecastStage::of_begun(begun.as_ref());
    let case = match begun {
        Some(case) => case,
        None => remediation_if_marked(view, seen)?,
    };
    Some(forecast_remediation(view, case, stage, now))
}

/// The same for a Machine, which may have no Node. `None` if there is no such Machine.
pub fn forecast_machine(
    view: &RemediationReportInput,
    machine: &MachineName,
    now: Now,
) -> Option<RemediationForecast> {
    let subject = RemediationSubject::Machine(machine.clone());
    let begun = find_remediation(&view.snapshot, &subject).filter(is_begun);
    let stage = ForecastStage::of_begun(begun.as_ref());
    let case = match begun {
        Some(case) => case,
        None => remediation_if_machine_marked(view, machine)?,
    };
    Some(forecast_remediation(view, case, stage, now))
}

/// How far the forecast remediation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForecastStage {
    NotBegun,
    Requested,
    /// Its key is on the host, and nothing requests it any more.
    Ending,
}

impl ForecastStage {
    fn of_begun(begun: Option<&Remediation>) -> Self {
        match begun {
            None => Self::NotBegun,
            Some(case) if case.needs_remediation => Self::Requested,
            Some(_) => Self::Ending,
        }
    }
}

fn forecast_remediation(
    view: &RemediationReportInput,
    case: Remediation,
    stage: ForecastStage,
    now: Now,
) -> RemediationForecast {
    let around = concurrent_remediations(view, &discover_remediations(&view.snapshot), now);
    let judged = assess_as_running(case, &around, now);
    let host = judged.remediation.host.as_ref().ok();
    let why = &judged.decision.cause;
    let under_way = stage != ForecastStage::NotBegun;
    let goes_on = under_way || why.reason == RemediationReason::Preparing;
    let node = judged.remediation.node.as_ref();
    let no_identity = node.and_then(|node| node.system_uuid.as_deref());
    RemediationForecast {
        subject: judged.remediation.subject.to_string(),
        host: host.map(|host| host.name.to_string()),
        under_way,
        is_ending: stage == ForecastStage::Ending,
        refusal: (!goes_on).then(|| {
            let passes = !why.reason.needs_person();
            (why.reason, why.message.clone(), passes)
        }),
        not_ready: host.and_then(|host| power_not_ready_reason(host)),
        no_identity: no_identity.and_then(SystemId::parse).is_none(),
    }
}

/// Whether it is requested, or its key is on a host.
fn is_begun(case: &Remediation) -> bool {
    match case.subject {
        RemediationSubject::Machine(_)
        | RemediationSubject::Node(_)
        | RemediationSubject::Request(_) => case.needs_remediation || case.is_keyed(),
        RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_) => false,
    }
}

/// The remediation that a mark would begin.
fn remediation_if_marked(
    view: &RemediationReportInput,
    node: &ObservedNode,
) -> Option<Remediation> {
    let machines = machines_of_node(view, node);
    let mut machines = machines.possible.iter().chain(&machines.of_others);
    if let Some(machine) = machines.next() {
        return remediation_if_machine_marked(view, &machine.name);
    }
    let mut world = view.snapshot.clone();
    Arc::make_mut(world.nodes.get_mut(&node.name)?).needs_remediation = true;
    find_remediation(&world, &RemediationSubject::Node(node.name.clone()))
}

pub(super) fn remediation_if_machine_marked(
    view: &RemediationReportInput,
    name: &MachineName,
) -> Option<Remediation> {
    let mut world = view.snapshot.clone();
    Arc::make_mut(world.machines.get_mut(name)?).need = Some(String::new());
    find_remediation(&world, &RemediationSubject::Machine(name.clone()))
}

fn find_remediation(
    world: &RemediationSnapshot,
    subject: &RemediationSubject,
) -> Option<Remediation> {
    let mut cases = discover_remediations(world).into_iter();
    cases.find(|case| case.subject == *subject)
}

fn power_not_ready_reason(host: &HostSnapshot) -> Option<String> {
    match host_condition(host, POWER_CONTROL_READY) {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(format!("{}: {}", ready.reason, ready.message)),
        None => Some("power control has never been checked".to_owned()),
    }
}
