//! Finds out whether the Node is healthy again, before each attempt's power-off. Source:
//! specification §4.2: "Cancelled before off: withdrawn; so is a request whose Node is Ready again
//! with a heartbeat later than the request" (a healed network must not fence forty healthy nodes).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::super::action::RemediationObserve;
use super::super::context::RemediationContext;
use super::super::heartbeat::HeartbeatHistory;
use super::super::record::RemediationStep;
use super::super::snapshot::FreshReads;
use super::super::types::RemediationDecision;
use super::super::{RemediationReason, by_annotation};
use super::flow::RequestFlow;
use crate::decision::{EventSeverity, decision_with_cause};
use crate::name::NodeName;
use crate::power::CurrentPower;
use crate::reboot::ObservedNode;

/// By how much the kubelet's clock may be behind the API server's.
///
/// The request's time is the API server's, the heartbeat's is the kubelet's. To take the Node for
/// healthy is the safe error: it only delays, because the node controller sets a dead kubelet's
/// Ready to Unknown within about 50 s (by the time when it saw the last renewal), and then the
/// request is served. The opposite error cuts the power of a machine that works. Hence a minute: as
/// long as a false Ready can last.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// For how long fresh reads that found a healthy Node are valid, while the watch says Ready too.
const HEALTHY_READS_MAX_AGE: Duration = Duration::from_mins(1);

/// How often the heartbeat is read until it changes: a kubelet sends one every 10 s.
const HEARTBEAT_READ_INTERVAL: Duration = Duration::from_secs(5);

/// How long a key must have stood on a host that is still on before a healthy Node has it removed.
/// A power-off takes seconds: until then the Node's last signs may be those from before it.
const POWER_OFF_MAY_TAKE: Duration = Duration::from_mins(1);

/// How long a Node must stay healthy before the request ends. Until then it is fenced for this
/// request if it fails again: a restarted kubelet reports Ready for a moment.
const HEALTHY_FOR_GOOD_AFTER: Duration = Duration::from_mins(5);

enum NodeHealth {
    /// The Node is Ready and sent a heartbeat after the request and after whatever was done for it.
    /// Holds until the given time, or as
    /// long as the watch says so if there is none.
    Well(Option<Duration>),
    Unwell,
    /// The watch says Ready, and the time of the last heartbeat has to be read.
    Unread,
}

impl RequestFlow<'_> {
    /// Ends a request whose Node is healthy when the request is first seen: a request made in
    /// advance would cut the power when the Node fails for a moment, long afterwards. Only a
    /// heartbeat that changes shows that the Node is healthy: clocks differ, and the Ready of a
    /// dead kubelet lasts for a while.
    pub(super) fn end_if_healthy_at_start(&mut self) -> Option<RemediationDecision> {
        let node = self.case.node.as_ref().filter(|node| node.ready)?;
        if self.status.started_at.is_some() || self.case.is_keyed() {
            return None;
        }
        match self.node_health() {
            NodeHealth::Unwell => None,
            NodeHealth::Unread => Some(self.read_heartbeats()),
            NodeHealth::Well(_) if self.has_heartbeat_moved(&node.uid) => {
                self.take_up_request();
                Some(self.end_as_healthy())
            }
            NodeHealth::Well(_) => Some(self.observe_next_heartbeat(node.name.clone())),
        }
    }

    /// Waits with a new request until its Node's cluster can be read: only then can a healthy Node be
    /// told from a failed one. No attempt begins, so that none is used up.
    pub(super) fn wait_for_cluster_at_start(&self) -> Option<RemediationDecision> {
        let problem = self.case.cluster.problem.clone()?;
        let is_begun = self.status.started_at.is_some() || self.case.is_keyed();
        (!is_begun).then(|| RemediationContext::wait_for_cluster(problem))
    }

    /// Whether the heartbeat has changed since the request was first seen.
    fn has_heartbeat_moved(&self, uid: &String) -> bool {
        let beats = self.ctx.memory.heartbeats.as_ref();
        let beats = beats.filter(|beats| beats.newest_heartbeat().node_uid.as_ref() == Some(uid));
        beats.is_some_and(|beats| beats.last_moved_at().is_some())
    }

    fn observe_next_heartbeat(&self, node: NodeName) -> RemediationDecision {
        let text = "the Node is Ready: waits for its next heartbeat";
        let decision = decision_with_cause(RemediationReason::TakenUp, text);
        let asked = self
            .ctx
            .memory
            .heartbeats
            .as_ref()
            .map(HeartbeatHistory::last_asked_at);
        let due = asked.map_or(Duration::ZERO, |asked| asked + HEARTBEAT_READ_INTERVAL);
        if self.ctx.now.mono < due {
            return decision.wake_at(due, "the Node's next heartbeat");
        }
        let newer_than = asked.map_or(Duration::ZERO, |asked| asked + Duration::from_nanos(1));
        decision.with_observe(RemediationObserve::Heartbeat { node, newer_than })
    }

    fn read_heartbeats(&self) -> RemediationDecision {
        let is_held = self
            .ctx
            .memory
            .reason_since
            .is_some_and(|(reason, _)| reason == RemediationReason::NodeHealthy);
        let reason = if is_held {
            RemediationReason::NodeHealthy
        } else {
            RemediationReason::TakenUp
        };
        let text = "the Node is Ready: reading its heartbeats";
        decision_with_cause(reason, text).with_observe(self.ctx.observe_fresh())
    }

    /// Ends the request for good, also if the Node fails later.
    fn end_as_healthy(&mut self) -> RemediationDecision {
        self.end_with(RemediationStep::Withdrawn);
        let text = format!(
            "the Node is Ready and sends heartbeats: Dogwatch does nothing; if a health check finds \
             the Node failed later, it makes a new request{}",
            self.describe_owed_reboot()
        );
        decision_with_cause(RemediationReason::NodeHealthy, text).with_event(EventSeverity::Normal)
    }

    /// Waits while the Node is Ready again before a power-off of any attempt. If it fails again
    /// soon, the request is served.
    pub(super) fn hold_while_healthy(&mut self) -> Option<RemediationDecision> {
        if self.case.is_keyed() {
            return None;
        }
        match self.node_health() {
            NodeHealth::Unwell => None,
            NodeHealth::Unread => Some(self.read_heartbeats()),
            NodeHealth::Well(until) => {
                let for_good =
                    self.ctx.reason_since(RemediationReason::NodeHealthy) + HEALTHY_FOR_GOOD_AFTER;
                if self.ctx.now.mono >= for_good {
                    return Some(self.end_as_healthy());
                }
                self.end_step = Some(RemediationStep::Withdrawn);
                let text = format!(
                    "the Node is Ready, with a heartbeat later than the request: Dogwatch does \
                     nothing, unless the Node fails again within 5 minutes{}",
                    self.describe_owed_reboot()
                );
                let decision = decision_with_cause(RemediationReason::NodeHealthy, text);
                let decision = decision.wake_at(for_good, "a Node that stays well");
                Some(match until {
                    Some(until) => decision.wake_at(until, "the Node's next heartbeat"),
                    None => decision,
                })
            }
        }
    }

    /// Removes the key of a host that was not switched off, because its Node is Ready again with a
    /// heartbeat later than the key. A power controller that has not begun does not begin then, and
    /// no Node is released.
    pub(super) fn withdraw_key_if_healthy(&self) -> Option<RemediationDecision> {
        let attempt = self.status.attempt.filter(|it| it.off_at.is_none())?;
        let key_at = attempt.key_at?;
        let node = self.target_node().filter(|node| node.ready)?;
        if self.ctx.effective_power() != CurrentPower::On {
            return None;
        }
        let wait = by_annotation::wait_for_off(&self.ctx, CurrentPower::On);
        let stood = self.ctx.now.elapsed_since(key_at);
        if let Some(left) = POWER_OFF_MAY_TAKE
            .checked_sub(stood)
            .filter(|it| !it.is_zero())
        {
            let until = self.ctx.now.mono + left;
            return Some(wait.wake_at(until, "a Node that is well although its host has the key"));
        }
        match self.node_health() {
            NodeHealth::Unwell => None,
            NodeHealth::Unread => Some(wait.with_observe(self.ctx.observe_fresh())),
            NodeHealth::Well(_) => {
                let why = format!(
                    "the host was not switched off, and node {} is Ready again, with a heartbeat \
                     later than the key",
                    node.name
                );
                let removed = self.remove_key(RemediationReason::NodeHealthy, &why)?;
                Some(removed.with_event(EventSeverity::Warning))
            }
        }
    }

    /// What the power controller still does to a host whose key is gone. Source: specification
    /// §3.2: a pending reboot is carried out.
    fn describe_owed_reboot(&self) -> String {
        let host = self.case.host.as_ref().ok();
        let host = host.filter(|host| host.status.is_reboot_pending());
        host.map_or_else(String::new, |host| {
            format!(
                "; host {} still has a pending reboot, which its power controller carries out as \
                 soon as the BMC obeys",
                host.name
            )
        })
    }

    fn node_health(&self) -> NodeHealth {
        let watched = self.case.node.as_ref().filter(|node| node.ready);
        if watched.is_some_and(|node| self.is_sign_of_health(last_ready_heartbeat(node))) {
            return NodeHealth::Well(None);
        }
        let holds = |read: &&FreshReads| self.ctx.now.mono < read.asked_at + HEALTHY_READS_MAX_AGE;
        let read = match watched {
            Some(_) => self.ctx.memory.fresh.as_ref().filter(holds),
            None => self.ctx.recent_reads(),
        };
        match (read, watched) {
            (Some(read), _) if self.is_healthy(read) => {
                NodeHealth::Well(Some(read.asked_at + HEALTHY_READS_MAX_AGE))
            }
            (Some(_), _) | (None, None) => NodeHealth::Unwell,
            (None, Some(_)) => NodeHealth::Unread,
        }
    }

    fn is_healthy(&self, read: &FreshReads) -> bool {
        let node = read.node.as_ref().filter(|node| node.ready);
        node.is_some_and(|node| {
            let beat = &read.heartbeat;
            let newest = [beat.renewed, beat.posted, last_ready_heartbeat(node)];
            self.is_sign_of_health(newest.into_iter().flatten().max())
        })
    }

    /// Whether the time is later than the request and than whatever was done for it, allowing for
    /// [`MAX_CLOCK_SKEW`].
    fn is_sign_of_health(&self, sign: Option<Timestamp>) -> bool {
        let newest = self.newest_power_change().max(Some(self.request.created));
        let since = |sign: Timestamp| newest.map(|newest| sign.duration_since(newest));
        sign.and_then(since)
            .is_some_and(|since| since > -MAX_CLOCK_SKEW)
    }

    /// A heartbeat from before the host was last off, or from before [`POWER_OFF_MAY_TAKE`] has
    /// passed since its key, says nothing about the machine of now.
    fn newest_power_change(&self) -> Option<Timestamp> {
        let timeline = self.status.timeline.iter().rev();
        let mut off = timeline.filter(|it| it.step == RemediationStep::OffProved);
        let off = off.next().map(|it| it.at);
        let key = self.status.attempt.and_then(|it| it.key_at);
        let key = key.filter(|_| self.case.is_keyed());
        let key = key.and_then(|at| at.checked_add(POWER_OFF_MAY_TAKE).ok());
        off.max(key)
    }
}

/// `lastHeartbeatTime` of the Ready condition.
fn last_ready_heartbeat(node: &ObservedNode) -> Option<Timestamp> {
    node.ready_condition()?.last_heartbeat
}
