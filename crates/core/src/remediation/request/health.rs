//! Finds out whether the Node is healthy again. Source: specification §4.2: a healed network must
//! not fence forty healthy nodes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::super::RemediationReason;
use super::super::action::RemediationObserve;
use super::super::heartbeat::HeartbeatHistory;
use super::super::record::RemediationStep;
use super::super::snapshot::FreshReads;
use super::super::types::RemediationDecision;
use super::flow::RequestFlow;
use crate::decision::{EventSeverity, decision_with_cause};
use crate::name::NodeName;
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

/// How long a Node must stay healthy before the request ends. Until then it is fenced for this
/// request if it fails again: a restarted kubelet reports Ready for a moment.
const HEALTHY_FOR_GOOD_AFTER: Duration = Duration::from_mins(5);

enum NodeHealth {
    /// The Node is Ready and sent a heartbeat after the request. Holds until the given time, or as
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
        let text = "the Node is Ready and sends heartbeats: Dogwatch does nothing; if a health \
                    check finds the Node failed later, it makes a new request";
        decision_with_cause(RemediationReason::NodeHealthy, text).with_event(EventSeverity::Normal)
    }

    /// Waits while the Node is Ready again before the first power-off. If it fails again soon, the
    /// request is served.
    pub(super) fn hold_while_healthy(&mut self) -> Option<RemediationDecision> {
        let was_off = self
            .status
            .timeline
            .iter()
            .any(|it| it.step == RemediationStep::OffProved);
        if was_off || self.case.is_keyed() {
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
                let text = "the Node is Ready, with a heartbeat later than the request: Dogwatch \
                            does nothing, unless the Node fails again within 5 minutes";
                let decision = decision_with_cause(RemediationReason::NodeHealthy, text);
                let decision = decision.wake_at(for_good, "a Node that stays well");
                Some(match until {
                    Some(until) => decision.wake_at(until, "the Node's next heartbeat"),
                    None => decision,
                })
            }
        }
    }

    fn node_health(&self) -> NodeHealth {
        let watched = self.case.node.as_ref().filter(|node| node.ready);
        if watched.is_some_and(|node| self.is_after_request(last_ready_heartbeat(node))) {
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
            self.is_after_request(newest.into_iter().flatten().max())
        })
    }

    /// Whether the time is later than the request, allowing for [`MAX_CLOCK_SKEW`].
    fn is_after_request(&self, sign: Option<Timestamp>) -> bool {
        let since = |sign: Timestamp| sign.duration_since(self.request.created);
        sign.is_some_and(|sign| since(sign) > -MAX_CLOCK_SKEW)
    }
}

/// `lastHeartbeatTime` of the Ready condition.
fn last_ready_heartbeat(node: &ObservedNode) -> Option<Timestamp> {
    node.ready_condition()?.last_heartbeat
}
