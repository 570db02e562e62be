//! The guards: they delay new keys and nothing else. Source: specification §4.4.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::concurrency::{FencedHost, RemediationStage};
use super::config::RemediationConfig;
use super::context::RemediationContext;
use super::record::{RemediationRecord, RemediationStep};
use super::{RemediationReason, recovery};
use crate::decision::{EventSeverity, decision_with_cause};
use crate::name::NodeName;
use crate::policy::resolve_policy;
use crate::power::{HostName, HostSnapshot};
use crate::reboot::rebooting_deadline_since;

pub(super) struct GuardRefusal {
    pub(super) reason: RemediationReason,
    pub(super) message: String,
    /// When the refusal ends by itself.
    pub(super) until: Option<Duration>,
}

pub(super) fn find_refusal(
    ctx: &RemediationContext<'_>,
    host: &HostSnapshot,
) -> Option<GuardRefusal> {
    refuse_unprovisioned(ctx, host)
        .or_else(|| refuse_paused(ctx))
        .or_else(|| refuse_planned_reboot(ctx))
        .or_else(|| refuse_cooldown(ctx, host))
        .or_else(|| refuse_second_control_plane(ctx, host))
        .or_else(|| refuse_over_max_fenced(ctx, host))
}

impl GuardRefusal {
    fn new(reason: RemediationReason, message: String) -> Self {
        Self {
            reason,
            message,
            until: None,
        }
    }

    fn with_until(self, until: Duration) -> Self {
        let until = Some(until);
        Self { until, ..self }
    }

    pub(super) fn into_decision(self) -> super::RemediationDecision {
        let decision =
            decision_with_cause(self.reason, self.message).with_event(EventSeverity::Normal);
        match self.until {
            Some(until) => decision.wake_at(until, "the guard to let it go ahead"),
            None => decision,
        }
    }
}

/// The power controller ignores a key on a host that is not provisioned, so the key would hold
/// nothing off.
fn refuse_unprovisioned(ctx: &RemediationContext<'_>, host: &HostSnapshot) -> Option<GuardRefusal> {
    if ctx.is_key_obeyed(&ctx.case.key.with_key_on(host)) {
        return None;
    }
    let state = host.status.provisioning.as_deref().unwrap_or("unknown");
    let text = format!(
        "host {} is not provisioned (it is {state:?}): Dogwatch does not obey reboot annotations in this state",
        host.name
    );
    Some(GuardRefusal::new(
        RemediationReason::HostNotProvisioned,
        text,
    ))
}

/// A pause delays only new keys: a host must not stay off because of it.
fn refuse_paused(ctx: &RemediationContext<'_>) -> Option<GuardRefusal> {
    let text = ctx.case.describe_pause()?;
    Some(GuardRefusal::new(RemediationReason::Paused, text))
}

/// A node in a planned reboot has not failed before its `rebootTimeout` has passed. The time counts
/// from the beginning of the reboot, whatever else this remediation waited for.
fn refuse_planned_reboot(ctx: &RemediationContext<'_>) -> Option<GuardRefusal> {
    let node = ctx.case.node.as_ref()?;
    let planned = ctx.concurrent.planned_reboots(ctx.case)?;
    let (reboots, policies) = (&planned.reboots, &planned.policies);
    let flags = &ctx.config.reboot;
    let until = reboots
        .rebooting_deadline(node, policies, flags)
        .or_else(|| {
            // A read shows the node in phase `rebooting`, and the watch does not yet.
            rebooting_deadline_since(
                node,
                policies,
                flags,
                ctx.reason_since(RemediationReason::PlannedReboot),
            )
        })?;
    let text = format!(
        "node {} is in a planned reboot, and has time until its rebootTimeout",
        node.name
    );
    (ctx.now.mono < until)
        .then(|| GuardRefusal::new(RemediationReason::PlannedReboot, text).with_until(until))
}

/// A host is left alone for `cooldown` after a remediation, and while it is on its way back,
/// whoever asked for that remediation: health checks report a machine as failed right after its
/// Node was deleted. A Node that is back is not switched off before the end of that remediation is
/// recorded. The request of that remediation may retry after its own timeout.
fn refuse_cooldown(ctx: &RemediationContext<'_>, host: &HostSnapshot) -> Option<GuardRefusal> {
    let record = super::host_link::record_on_host(host)?;
    let request = ctx.case.request.as_ref();
    if request.is_some_and(|request| request.uid == record.uid) {
        return None;
    }
    let (at, long, what) = match (record.ended_at(), last_power_on(&record)) {
        (Some(ended), _) => (ended, ctx.config.cooldown, "was remediated at"),
        (None, Some(_)) if has_node_returned(ctx, &record) => {
            return Some(refuse_until_end_recorded(host));
        }
        (None, Some(on)) => (on, return_timeout(ctx), "has been returning since"),
        // The host was never held off, or somebody else removed the key: the table decides.
        (None, None) => return None,
    };
    let until = cooldown_end(ctx, at, long)?;
    let text = format!(
        "host {} {what} {at}; no new remediation of it begins for {}",
        host.name,
        crate::duration::format_duration(long)
    );
    Some(GuardRefusal::new(RemediationReason::CoolingDown, text).with_until(until))
}

fn has_node_returned(ctx: &RemediationContext<'_>, record: &RemediationRecord) -> bool {
    let named = ctx.case.node_name.as_ref().map(NodeName::as_str);
    record.node.as_deref() == named && recovery::is_back(ctx.case.node.as_deref(), record)
}

fn refuse_until_end_recorded(host: &HostSnapshot) -> GuardRefusal {
    let text = format!(
        "the Node is Ready with a new boot since the last remediation of host {0}, whose end the \
         controller has not recorded yet: `dogwatch explain host/{0}` says what it waits for",
        host.name
    );
    GuardRefusal::new(RemediationReason::CoolingDown, text)
}

/// How long a host may take from its power-on until its Node is back: as long as its policy allows
/// for a planned reboot, so that no health check cuts the power of a machine that boots slowly. The
/// limits of its coordinator went with its Node.
fn return_timeout(ctx: &RemediationContext<'_>) -> Duration {
    let flags = &ctx.config.reboot;
    let planned = ctx.concurrent.planned_reboots(ctx.case);
    let timeout =
        planned
            .zip(ctx.case.node_labels())
            .map_or(flags.reboot_timeout, |(planned, labels)| {
                let rule = resolve_policy(&planned.policies, labels, flags);
                rule.config.reboot_timeout
            });
    let shortest = ctx.config.cooldown.max(RemediationConfig::WARN_AFTER);
    timeout.max(shortest)
}

/// The time in the record from which the cooldown of its host counts.
pub(super) fn cooldown_start(record: &RemediationRecord) -> Option<Timestamp> {
    record.ended_at().or_else(|| last_power_on(record))
}

fn last_power_on(record: &RemediationRecord) -> Option<Timestamp> {
    record
        .time_of_step(RemediationStep::PoweredOn)
        .or(record.time_of_step(RemediationStep::KeyRemoved))
}

/// When `long` has passed since `at`; `None` if it has already. A time in the future comes from
/// another clock: the wait then counts from when this process first saw it.
fn cooldown_end(ctx: &RemediationContext<'_>, at: Timestamp, long: Duration) -> Option<Duration> {
    let seen = ctx.memory.cooldown_seen.filter(|(same, _)| *same == at);
    let seen = seen.map_or(ctx.now.mono, |(_, seen)| seen);
    let left = long.saturating_sub(ctx.now.elapsed_since(at));
    let until = (ctx.now.mono + left).min(seen + long);
    (ctx.now.mono < until).then_some(until)
}

/// One control-plane host at a time, for remediations and planned reboots together.
fn refuse_second_control_plane(
    ctx: &RemediationContext<'_>,
    host: &HostSnapshot,
) -> Option<GuardRefusal> {
    if !ctx.case.control_plane {
        return None;
    }
    let refuse = |text: String| {
        Some(GuardRefusal::new(
            RemediationReason::ControlPlaneOneByOne,
            text,
        ))
    };
    if let (Some(cluster), None) = (ctx.case.cluster.name.workload(), &ctx.case.request) {
        // A request's attempt ends, and gives the host back.
        return refuse(format!(
            "the machine is of the control plane of workload cluster {cluster}: without it that \
             cluster's API server may not answer, and the host would stay off for ever; ask with a \
             PowerRemediation, whose attempts end"
        ));
    }
    let own = ctx.case.node_name.as_ref().map(NodeName::as_str);
    let planned = ctx.concurrent.planned_reboots(ctx.case);
    let mut holders = planned
        .into_iter()
        .flat_map(|planned| &planned.control_plane_locks);
    if let Some(holder) = holders.find(|holder| Some(holder.as_str()) != own) {
        return refuse(format!(
            "{holder} holds the control plane's lock for a planned reboot"
        ));
    }
    let mut others = fenced_before_this(ctx, &host.name);
    let cluster = &ctx.case.cluster.name;
    let other = others.find(|other| other.control_plane && other.cluster == *cluster)?;
    refuse(format!(
        "host {} of the control plane is being remediated ({}); if it cannot come back, end its \
         remediation by removing annotation {} from it",
        other.host,
        other.subject,
        dogwatch_api::annotation::REMEDIATION
    ))
}

/// `--max-fenced`.
fn refuse_over_max_fenced(
    ctx: &RemediationContext<'_>,
    host: &HostSnapshot,
) -> Option<GuardRefusal> {
    let is_off_already = ctx
        .concurrent
        .other_fenced_hosts(ctx.case)
        .any(|other| other.host == host.name && other.stage == RemediationStage::HeldOff);
    if is_off_already {
        return None;
    }
    let others = fenced_before_this(ctx, &host.name);
    let off: BTreeSet<&HostName> = others
        .filter(|other| other.bmc_answers && other.is_cluster_readable)
        .filter(|other| other.stage != RemediationStage::Returning)
        .map(|other| &other.host)
        .collect();
    let most = usize::try_from(ctx.config.max_fenced).unwrap_or(usize::MAX);
    if off.len() < most {
        return None;
    }
    let text = format!(
        "{} hosts are kept off already, and --max-fenced is {most}",
        off.len()
    );
    Some(GuardRefusal::new(RemediationReason::TooManyFenced, text))
}

/// The fenced hosts that go before this one. Of two that are both only preparing, the first by name
/// goes ahead, so that they do not wait for each other.
fn fenced_before_this<'a>(
    ctx: &'a RemediationContext<'_>,
    host: &'a HostName,
) -> impl Iterator<Item = &'a FencedHost> + 'a {
    let is_ready = ctx.case.remediation_stage() == Some(RemediationStage::Preparing);
    let others = ctx.concurrent.other_fenced_hosts(ctx.case);
    others.filter(move |other| {
        let goes_first = match other.stage {
            RemediationStage::HeldOff
            | RemediationStage::Returning
            | RemediationStage::Admitted => true,
            RemediationStage::Preparing => !is_ready || other.subject < ctx.case.subject,
        };
        goes_first && other.host != *host
    })
}
