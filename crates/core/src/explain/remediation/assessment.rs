//! Pairs each remediation with the decision that the remediator would make.

use std::time::Duration;

use super::RemediationReportInput;
use crate::Now;
use crate::condition::CurrentCondition;
use crate::explain::{POWER_AS_WANTED, POWER_CONTROL_READY, host_condition};
use crate::power::{CurrentPower, HostName, HostSnapshot, PowerState};
use crate::reboot::WatchedReboots;
use crate::remediation::{
    ConcurrentRemediations, ObservedPower, PlannedReboots, REMEDIATION_CONDITION, Remediation,
    RemediationConfig, RemediationDecision, RemediationMemory, RemediationSnapshot,
    RemediationSubject, decide, discover_remediations,
};

/// A host under a live controller has a younger reading: the controller writes one at each fifth
/// poll at the latest.
const MAX_READING_AGE: Duration = Duration::from_mins(15);

/// A remediation, and the decision made here.
pub(super) struct AssessedRemediation {
    pub(super) remediation: Remediation,
    pub(super) decision: RemediationDecision,
}

pub(super) fn assess_all(view: &RemediationReportInput, now: Now) -> Vec<AssessedRemediation> {
    let cases = discover_remediations(&view.snapshot);
    let around = concurrent_remediations(view, &cases, now);
    let judge = |case: Remediation| assess_remediation(case, &around, now);
    cases.into_iter().map(judge).collect()
}

pub(super) fn assess_remediation(
    case: Remediation,
    around: &ConcurrentRemediations,
    now: Now,
) -> AssessedRemediation {
    let host = case.host.as_ref().ok();
    let power = host.map(|host| power_from_status(host, now));
    assess_with_power(case, power, around, now)
}

/// Decides as if the host were on, to find what would delay its key.
pub(super) fn assess_as_running(
    case: Remediation,
    around: &ConcurrentRemediations,
    now: Now,
) -> AssessedRemediation {
    let host = case.host.as_ref().ok();
    let power = host.map(|host| ObservedPower {
        now: CurrentPower::On,
        ..power_from_status(host, now)
    });
    assess_with_power(case, power, around, now)
}

fn assess_with_power(
    case: Remediation,
    power: Option<ObservedPower>,
    around: &ConcurrentRemediations,
    now: Now,
) -> AssessedRemediation {
    let known = RemediationMemory {
        power,
        ..RemediationMemory::default()
    };
    let decision = decide(&case, &known, around, &RemediationConfig::default(), now);
    AssessedRemediation {
        remediation: case,
        decision,
    }
}

/// The hosts being fenced, and the other inputs of the guards.
pub(super) fn concurrent_remediations(
    view: &RemediationReportInput,
    cases: &[Remediation],
    now: Now,
) -> ConcurrentRemediations {
    let answers = |name: &HostName| is_power_control_ready(&view.snapshot, name);
    let mut reboots = WatchedReboots::default();
    reboots.observe_nodes(view.snapshot.nodes.values().map(AsRef::as_ref), now);
    ConcurrentRemediations {
        planned: PlannedReboots {
            control_plane_locks: view.control_plane_lock.clone().into_iter().collect(),
            policies: view.policies.clone(),
            reboots,
        },
        ..ConcurrentRemediations::from_remediations(cases, answers)
    }
}

fn is_power_control_ready(world: &RemediationSnapshot, name: &HostName) -> bool {
    let ready = world
        .hosts
        .get(name)
        .and_then(|host| host_condition(host, POWER_CONTROL_READY));
    ready.is_some_and(|ready| ready.status == "True")
}

/// The power in the host's status. The controller knows more: the status holds no proof.
fn power_from_status(host: &HostSnapshot, now: Now) -> ObservedPower {
    let status = &host.status.power;
    let observed = status.observed_at.or(status.off_confirmed_at);
    let is_fresh = observed.is_some_and(|at| now.elapsed_since(at) < MAX_READING_AGE);
    let said = host_condition(host, POWER_AS_WANTED);
    ObservedPower {
        now: match status.state {
            Some(PowerState::On) if is_fresh => CurrentPower::On,
            Some(PowerState::Off) if is_fresh => CurrentPower::Off,
            Some(
                PowerState::On
                | PowerState::Off
                | PowerState::PoweringOn
                | PowerState::PoweringOff
                | PowerState::Unknown,
            )
            | None => CurrentPower::Unknown,
        },
        proof: None,
        bmc_answers: false,
        system_uuid: None,
        off_since: None,
        because: said.map(|said| format!("{POWER_AS_WANTED}: {}: {}", said.reason, said.message)),
    }
}

impl AssessedRemediation {
    /// The controller's condition, while it says that something is under way or blocked.
    pub(super) fn controller_condition(&self) -> Option<&CurrentCondition> {
        let case = &self.remediation;
        let conditions = match &case.subject {
            RemediationSubject::Machine(_) => case.machine.as_ref().map(|it| &it.conditions),
            RemediationSubject::Node(_) => case.node.as_ref().map(|it| &it.conditions),
            RemediationSubject::Request(_) => case.request.as_ref().map(|it| &it.status.conditions),
            RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_) => None,
        };
        let mut conditions = conditions.into_iter().flatten();
        let said = conditions.find(|condition| condition.kind == REMEDIATION_CONDITION)?;
        // A condition that says "nothing is requested" is outdated once something is.
        (said.status == "True" || !self.is_under_way()).then_some(said)
    }

    /// Whether something is requested or blocked, or something of Dogwatch's is left over.
    pub(super) fn is_under_way(&self) -> bool {
        let case = &self.remediation;
        let is_open = case
            .record
            .as_ref()
            .is_some_and(|record| record.ended_at().is_none());
        let is_left =
            case.host_backup.is_some() || case.legacy_backup.is_some() || case.problem.is_some();
        case.needs_remediation || case.is_keyed() || is_open || is_left || is_refused_mark(case)
    }

    /// Reason and message: those of the controller's condition, else of the decision made here.
    pub(super) fn reason_and_message(&self) -> (&str, &str) {
        match self.controller_condition() {
            Some(said) => (&said.reason, &said.message),
            None => (
                self.decision.cause.reason.as_str(),
                &self.decision.cause.message,
            ),
        }
    }
}

/// A refused mark does not count as a need.
fn is_refused_mark(case: &Remediation) -> bool {
    let node = case.node.as_ref();
    matches!(case.subject, RemediationSubject::Node(_))
        && node.is_some_and(|node| node.needs_remediation)
}
