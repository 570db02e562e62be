//! Whether the Node's host can be switched off and on. Source: specification §10.1, §4.1.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::node_reboot::RebootMethod;

use super::attempt::RebootCase;
use super::decide::{NextStep, NodeRebootStep};
use super::host_key::{find_own_key, key_name, with_own_key};
use super::reason::NodeRebootReason;
use super::snapshot::{HostLookup, MAX_READ_AGE, NodeHostPower};
use crate::power::{
    CurrentPower, HostName, HostSnapshot, PowerReason, is_annotation_obeyed, reboot_annotations,
};
use crate::remediation::{HostLinkProblem, find_identity_problem, record_on_host};
use crate::resource_version::is_newer_version;

/// While the node waits for the lock, the links are read again this often: a read lists all hosts
/// and Machines. What the power controller knows of the host counts at once.
const LINK_RECHECK_INTERVAL: Duration = Duration::from_mins(5);

/// When the host is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostCheckStage {
    /// Before the Node is asked.
    Asking,
    /// The Node is asked, and nothing has begun.
    Asked,
    /// The node is drained: the host may be off already. The reads may be this old.
    Drained(Duration),
}

/// Why the host is not switched, or not yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum HostObstacle {
    Unread,
    /// Does not change by itself.
    Lasting(NodeRebootReason, String),
    /// Ends by itself, or when somebody ends it.
    Passing {
        reason: NodeRebootReason,
        text: String,
        /// When the host is read again.
        again: Option<Duration>,
        /// Something was seen that stands in the way; otherwise it is just not known.
        is_seen: bool,
    },
}

type HostFinding<T> = Result<T, HostObstacle>;

/// The step that waits for the host, or refuses; `None`: the host can be switched.
pub(super) fn check_before_asking(
    case: RebootCase<'_>,
    method: RebootMethod,
) -> Option<NodeRebootStep> {
    if method != RebootMethod::PowerCycle {
        return None;
    }
    let obstacle = find_usable_host(case, HostCheckStage::Asking).err()?;
    Some(obstacle.into_step(case))
}

/// Refuses a request whose later attempts have no host, before the first one begins.
pub(super) fn check_later_attempts(case: RebootCase<'_>) -> Option<NodeRebootStep> {
    let is_first = case.own.status.attempts.is_empty();
    let is_needed = case.plan.escalation.contains(&RebootMethod::PowerCycle);
    if !is_first || !is_needed || case.plan.method == RebootMethod::PowerCycle {
        return None;
    }
    match find_linked_host(case, HostCheckStage::Asking).err()? {
        lasting @ HostObstacle::Lasting(..) => Some(lasting.into_step(case)),
        unread @ HostObstacle::Unread => Some(unread.into_step(case)),
        // The host matters when its attempt comes.
        HostObstacle::Passing { .. } => None,
    }
}

/// Why the request has to be taken back while nothing has begun.
pub(super) fn find_reason_to_withdraw(case: RebootCase<'_>) -> Option<HostObstacle> {
    let obstacle = find_usable_host(case, HostCheckStage::Asked).err()?;
    let counts = match &obstacle {
        HostObstacle::Unread | HostObstacle::Lasting(..) => true,
        HostObstacle::Passing { is_seen, .. } => *is_seen,
    };
    counts.then_some(obstacle)
}

impl HostObstacle {
    fn passing(reason: NodeRebootReason, text: String) -> Self {
        let (again, is_seen) = (None, true);
        HostObstacle::Passing {
            reason,
            text,
            again,
            is_seen,
        }
    }

    fn unknown(text: String) -> Self {
        HostObstacle::Passing {
            reason: NodeRebootReason::HostUnreachable,
            text,
            again: None,
            is_seen: false,
        }
    }

    /// Nothing has begun: what lasts is the end.
    pub(super) fn into_step(self, case: RebootCase<'_>) -> NodeRebootStep {
        match self {
            HostObstacle::Lasting(reason, text) => {
                super::ending::end_with(case.own, reason, text, case.now)
            }
            other @ (HostObstacle::Unread | HostObstacle::Passing { .. }) => other.into_wait(case),
        }
    }

    /// Nothing ends.
    pub(super) fn into_wait(self, case: RebootCase<'_>) -> NodeRebootStep {
        let own = case.own;
        let recheck = case.now.mono + LINK_RECHECK_INTERVAL;
        let (reason, text, again) = match self {
            HostObstacle::Unread => {
                let next = NextStep::ReadHost(HostLookup::ByLinks);
                let reason = NodeRebootReason::HostUnreadable;
                return NodeRebootStep::new(own, next, reason, "reads the node's host");
            }
            HostObstacle::Lasting(reason, text) => (reason, text, None),
            HostObstacle::Passing {
                reason,
                text,
                again,
                ..
            } => (reason, text, again),
        };
        NodeRebootStep::new(own, NextStep::Wait, reason, text)
            .with_wake(again.unwrap_or(recheck), "another look at the host")
    }
}

/// The host, if nothing stands in the way.
pub(super) fn find_usable_host(
    case: RebootCase<'_>,
    stage: HostCheckStage,
) -> HostFinding<Arc<HostSnapshot>> {
    let (host, taken) = find_linked_host(case, stage)?;
    let power = case.seen.host.power_of(&host.name, &host.uid);
    let Some(power) = power else {
        let text = format!("the power controller has not read host {} yet", host.name);
        return Err(HostObstacle::unknown(text));
    };
    check_machine(case, power)?;
    let is_newer = is_newer_version(&host.resource_version, &power.host.resource_version);
    let newest = if is_newer { &host } else { &power.host };
    check_not_in_use(case, newest)?;
    check_switchable(case, newest, power)?;
    check_power(power, stage)?;
    // The decision to ask or to switch rests on a young read; a wait need not.
    let max_age = match stage {
        HostCheckStage::Asking => MAX_READ_AGE,
        HostCheckStage::Asked => LINK_RECHECK_INTERVAL,
        HostCheckStage::Drained(max_age) => max_age,
    };
    if case.now.mono.saturating_sub(taken) >= max_age {
        return Err(HostObstacle::Unread);
    }
    Ok(host)
}

/// The host by all links, and when it was read.
fn find_linked_host(
    case: RebootCase<'_>,
    stage: HostCheckStage,
) -> HostFinding<(Arc<HostSnapshot>, Duration)> {
    if !case.seen.host.is_power_controlled {
        let text = "this controller runs without component power: nobody would switch the host";
        let reason = NodeRebootReason::PowerNotControlled;
        return Err(HostObstacle::Lasting(reason, text.into()));
    }
    let (view, now) = (&case.seen.host, case.now);
    let read = view.read_within(&HostLookup::ByLinks, LINK_RECHECK_INTERVAL, now);
    let Some(read) = read else {
        return Err(HostObstacle::Unread);
    };
    let is_fresh = now.mono.saturating_sub(read.taken) < MAX_READ_AGE;
    match &read.found {
        Ok(Ok(host)) => Ok((Arc::clone(host), read.taken)),
        Ok(Err(_)) | Err(_) if !is_fresh => Err(HostObstacle::Unread),
        Ok(Err(HostLinkProblem::NoHost(why))) => Err(HostObstacle::Lasting(
            NodeRebootReason::NoHostKnown,
            why.clone(),
        )),
        Ok(Err(HostLinkProblem::Contradiction(why))) => Err(HostObstacle::Lasting(
            NodeRebootReason::HostContradicted,
            why.clone(),
        )),
        Err(why) => Err(HostObstacle::Passing {
            reason: NodeRebootReason::HostUnreadable,
            text: format!("the node's host cannot be read: {why}"),
            again: Some(read.taken + MAX_READ_AGE),
            is_seen: stage == HostCheckStage::Asking,
        }),
    }
}

/// That the BMC and the Node are of one machine, and that the machine may be switched off at all.
fn check_machine(case: RebootCase<'_>, power: &NodeHostPower) -> HostFinding<()> {
    let host = &power.host;
    if host.disable_power_off {
        let text = format!(
            "host {} has spec.disablePowerOff: it can neither be kept off nor proved off",
            host.name
        );
        return Err(HostObstacle::Lasting(NodeRebootReason::HostAlwaysOn, text));
    }
    let bmc = power.observed.system_uuid.as_deref();
    let is_required = case.seen.host.is_identity_required;
    match find_identity_problem(&host.name, bmc, case.node, is_required) {
        // Its BMC may not have been asked yet.
        Some((_, text)) if bmc.is_none() => Err(HostObstacle::unknown(text)),
        Some((_, text)) => Err(HostObstacle::Lasting(NodeRebootReason::OtherMachine, text)),
        None => Ok(()),
    }
}

/// That nobody else keeps the host off, reboots it, or remediates it.
fn check_not_in_use(case: RebootCase<'_>, host: &HostSnapshot) -> HostFinding<()> {
    let own = key_name(&case.own.uid);
    let requests = reboot_annotations(host);
    let is_ours = find_own_key(host, case.own).is_some();
    let other = requests.iter().find(|one| one.name != own || !is_ours);
    let record = record_on_host(host).filter(|record| record.ended_at().is_none());
    let name = &host.name;
    let text = if let Some(other) = other {
        format!("host {name} has annotation {}", other.name)
    } else if let Some(record) = record {
        format!("host {name} is being remediated for {}", record.subject)
    } else if case.node.being_fenced || case.node.needs_remediation {
        format!("node {} is to be remediated", case.node.name)
    } else if host.deleting {
        format!("host {name} is being deleted")
    } else if host.status.is_reboot_pending() && !is_ours {
        format!("host {name} has a reboot that is not done yet")
    } else {
        return Ok(());
    };
    Err(HostObstacle::passing(NodeRebootReason::HostInUse, text))
}

/// That the power controller obeys a key on the host, and switches it on afterwards.
fn check_switchable(
    case: RebootCase<'_>,
    host: &HostSnapshot,
    power: &NodeHostPower,
) -> HostFinding<()> {
    let name: &HostName = &host.name;
    let keyed = with_own_key(host, case.own);
    let ours = find_own_key(&keyed, case.own);
    let is_obeyed = ours.is_some_and(|key| is_annotation_obeyed(&keyed, &key));
    let text = if !host.online {
        format!("host {name} has spec.online: false, so it would not be switched on again")
    } else if !is_obeyed {
        let state = host.status.provisioning.as_deref().unwrap_or("unknown");
        format!("host {name} is not provisioned (it is {state:?}), so a key is not obeyed")
    } else {
        return match &power.obstacle {
            None => Ok(()),
            // The power controller has just begun.
            Some((PowerReason::OwnerNotYetKnown | PowerReason::PowerUnknown, text)) => {
                Err(HostObstacle::unknown(format!("host {name}: {text}")))
            }
            Some((reason, text)) => {
                let text = format!("host {name} cannot be switched: {reason}: {text}");
                Err(HostObstacle::passing(NodeRebootReason::HostNotReady, text))
            }
        };
    };
    Err(HostObstacle::passing(NodeRebootReason::HostNotReady, text))
}

fn check_power(power: &NodeHostPower, stage: HostCheckStage) -> HostFinding<()> {
    let name = &power.host.name;
    let is_drained = matches!(stage, HostCheckStage::Drained(_));
    match power.observed.now {
        CurrentPower::On => Ok(()),
        CurrentPower::Off if is_drained => Ok(()),
        CurrentPower::Off | CurrentPower::Unknown if !power.observed.bmc_answers => {
            let text = format!(
                "the BMC of host {name} does not answer: {}",
                describe_power(power)
            );
            let reason = NodeRebootReason::HostUnreachable;
            Err(HostObstacle::passing(reason, text))
        }
        CurrentPower::Off => {
            let text = format!("host {name} is off already: {}", describe_power(power));
            Err(HostObstacle::passing(NodeRebootReason::HostNotReady, text))
        }
        CurrentPower::Unknown => {
            let text = format!(
                "the power of host {name} is not known: {}",
                describe_power(power)
            );
            Err(HostObstacle::unknown(text))
        }
    }
}

/// The power controller's reason and message.
pub(super) fn describe_power(power: &NodeHostPower) -> &str {
    let because = power.observed.because.as_deref();
    because.unwrap_or("its power has not been read yet")
}
