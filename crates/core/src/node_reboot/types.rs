//! A `NodeReboot` as decisions see it.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_api::node_reboot::{
    NodeRebootPhase, RebootAttemptStatus, RebootMethod, RequiredCondition, condition,
};
use jiff::Timestamp;

use super::reason::NodeRebootReason;
use super::request::lists_reboot;
use crate::condition::CurrentCondition;
use crate::name::NodeName;
use crate::reboot::{NodeRebootRef, ObservedNode, RebootPhase};

#[derive(Debug, Clone, PartialEq)]
pub struct ObservedNodeReboot {
    pub name: String,
    pub uid: String,
    /// The precondition of a write.
    pub resource_version: String,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// When it was created, by the API server's clock.
    pub created: Timestamp,
    pub deleting: bool,
    /// Our finalizer is on it.
    pub has_finalizer: bool,
    pub other_finalizers: Vec<String>,
    /// Why the status cannot be parsed: another version wrote it.
    pub status_problem: Option<String>,
    /// The parsed spec, or everything that is wrong with it.
    pub plan: Result<NodeRebootPlan, Vec<String>>,
    pub status: NodeRebootState,
}

/// The parsed `spec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRebootPlan {
    pub node: NodeName,
    /// The only UID that the Node may have.
    pub node_uid: Option<String>,
    pub method: RebootMethod,
    pub reason: String,
    pub requester: Option<String>,
    pub not_before: Option<Timestamp>,
    pub deadline: Option<Timestamp>,
    pub success: Option<SuccessPlan>,
    /// The methods of the attempts after the first.
    pub escalation: Vec<RebootMethod>,
    pub cancel: bool,
    /// How long it is kept after its end.
    pub ttl: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuccessPlan {
    pub conditions: Vec<RequiredCondition>,
    /// How long after the return they may take.
    pub within: Duration,
}

/// The `status` of a NodeReboot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeRebootState {
    /// The generation that this status describes.
    pub observed_generation: Option<i64>,
    pub phase: NodeRebootPhase,
    /// One sentence for people.
    pub message: String,
    /// The Node's UID when the request was accepted.
    pub node_uid: Option<String>,
    /// The oldest first. Without `finished_at` one is under way; without `outcome` its success is
    /// awaited.
    pub attempts: Vec<RebootAttemptStatus>,
    /// About when its drain begins.
    pub estimated_start: Option<Timestamp>,
    /// About when the node is back in service.
    pub estimated_finish: Option<Timestamp>,
    pub conditions: Vec<CurrentCondition>,
}

impl ObservedNodeReboot {
    /// Whether `Succeeded` is True or False; since when, if that is known.
    pub fn final_condition(&self) -> Option<&CurrentCondition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|one| {
            one.kind == condition::SUCCEEDED && (one.status == "True" || one.status == "False")
        })
    }

    pub fn is_final(&self) -> bool {
        self.final_condition().is_some()
    }

    /// Whether the Node of this UID may serve it.
    pub fn is_for_node(&self, uid: &str) -> bool {
        let plan = self.plan.as_ref().ok();
        let named = plan.and_then(|plan| plan.node_uid.as_deref());
        let accepted = self.status.node_uid.as_deref();
        [named, accepted].into_iter().flatten().all(|it| it == uid)
    }

    /// Whether it is open, and its Node shows nothing of it: no controller has asked the Node yet.
    pub fn has_not_reached(&self, node: &ObservedNode) -> bool {
        let is_of_node = self.plan.as_ref().is_ok_and(|plan| plan.node == node.name);
        let finished = self.open_attempt().and_then(|attempt| attempt.finished_at);
        let record = node.record.get().map(|record| &record.trigger);
        let last = node.last_reboot.get().map(|last| &last.trigger);
        let served = record.into_iter().chain(last).map(|it| &it.node_reboots);
        let asked = node.request.get().map(|request| &request.node_reboots);
        let is_named = served.chain(asked).any(|refs| lists_reboot(refs, self));
        let is_open = !self.is_final() && !self.deleting && finished.is_none();
        is_of_node && is_open && !is_named
    }

    /// How the Node's annotations name it.
    pub fn own_ref(&self) -> NodeRebootRef {
        NodeRebootRef {
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }

    /// The attempt that is under way, or whose success is awaited.
    pub fn open_attempt(&self) -> Option<&RebootAttemptStatus> {
        let last = self.status.attempts.last();
        last.filter(|attempt| attempt.outcome.is_none())
    }

    /// The attempts that have ended.
    pub(super) fn earlier_attempts(&self) -> &[RebootAttemptStatus] {
        let attempts = &self.status.attempts;
        let open = usize::from(self.open_attempt().is_some());
        &attempts[..attempts.len() - open]
    }
}

impl NodeRebootPlan {
    /// The method of the attempt after `attempts` others; `None`: no further one.
    pub fn method_of_attempt(&self, attempts: usize) -> Option<RebootMethod> {
        match attempts.checked_sub(1) {
            None => Some(self.method),
            Some(index) => self.escalation.get(index).copied(),
        }
    }

    /// A hold is never joined with a reboot.
    pub fn is_hold(&self) -> bool {
        self.method == RebootMethod::Hold
    }
}

pub(super) fn begin_attempt(
    method: RebootMethod,
    at: Timestamp,
    boot_id: Option<String>,
) -> RebootAttemptStatus {
    RebootAttemptStatus {
        method,
        started_at: at,
        drained_at: None,
        rebooted_at: None,
        finished_at: None,
        boot_id_before: boot_id,
        boot_id_after: None,
        power: None,
        outcome: None,
    }
}

/// Copies the times of the phases, by the node's clock.
pub(super) fn copy_phase_times(
    attempt: &mut RebootAttemptStatus,
    began: &BTreeMap<RebootPhase, Timestamp>,
) {
    let time = |phase| began.get(&phase).copied();
    let drained = time(RebootPhase::Rebooting).or(time(RebootPhase::Holding));
    attempt.drained_at = drained.or(attempt.drained_at);
    attempt.rebooted_at = time(RebootPhase::Returning).or(attempt.rebooted_at);
}

pub(super) fn close_attempt(
    attempt: &mut RebootAttemptStatus,
    reason: NodeRebootReason,
    at: Timestamp,
) {
    attempt.finished_at.get_or_insert(at);
    attempt.outcome = Some(reason.as_str().to_owned());
}
