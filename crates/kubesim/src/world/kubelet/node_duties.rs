//! A kubelet's calls about its Node between a start and a stop: pure, the time is an argument.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::config::KubeletHeartbeat;

/// Pause before a failed call is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The Node's conditions are posted at every 30th renewal of the Lease (a real kubelet: every 5
/// minutes beside every 10 seconds).
const RENEWALS_PER_STATUS: u32 = 30;

/// A call about the Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeCall {
    /// Create the Node or post the whole status of this boot, not ready yet.
    Register,
    /// Create the missing mirror pods.
    Mirror,
    /// Post that the Node is ready.
    Ready,
    /// Renew the Lease.
    Renew,
    /// Check that the Node still shows our readiness, and post it again if not: a cluster that did
    /// not hear from us marks the node as Unknown.
    Check,
    /// Post the conditions' times.
    Heartbeat,
}

/// The calls of one run of the kubelet.
#[derive(Debug)]
pub struct NodeDuties {
    /// The boot that the kubelet runs in.
    pub boot: String,
    /// The Node's UID, once registered.
    pub node_uid: Option<String>,
    /// Transition time of the current readiness.
    pub since: Timestamp,
    ready_at: Instant,
    ready_told: bool,
    mirrors_missing: bool,
    heartbeat: KubeletHeartbeat,
    renew_at: Instant,
    renewals: u32,
    owed: Option<NodeCall>,
    not_before: Option<Instant>,
    in_flight: bool,
}

impl NodeDuties {
    pub fn new(
        boot: String,
        heartbeat: KubeletHeartbeat,
        mirrors: bool,
        now: Instant,
        ready_after: Duration,
        wall: Timestamp,
    ) -> Self {
        Self {
            boot,
            node_uid: None,
            since: wall,
            ready_at: now + ready_after,
            ready_told: false,
            mirrors_missing: mirrors,
            heartbeat,
            renew_at: now,
            renewals: 0,
            owed: None,
            not_before: None,
            in_flight: false,
        }
    }

    /// Whether this run has reported the Node as ready.
    pub fn is_ready(&self) -> bool {
        self.ready_told
    }

    /// A mirror pod was deleted: create it again, after a pause.
    pub fn on_mirror_deleted(&mut self, now: Instant) {
        self.mirrors_missing = true;
        self.not_before = Some(now + RETRY_PAUSE);
    }

    /// The next call, if one is due. One at a time: no other until [`NodeDuties::on_call_ended`].
    pub fn next_due_call(&mut self, now: Instant) -> Option<NodeCall> {
        if self.in_flight || self.not_before.is_some_and(|moment| moment > now) {
            return None;
        }
        let (at, call) = self.next_call();
        if at.is_some_and(|moment| moment > now) {
            return None;
        }
        self.in_flight = call.is_some();
        call
    }

    pub fn on_call_ended(&mut self, call: NodeCall, taken: bool, now: Instant, wall: Timestamp) {
        self.in_flight = false;
        self.not_before = (!taken).then(|| now + RETRY_PAUSE);
        match call {
            NodeCall::Register => {}
            NodeCall::Mirror => self.mirrors_missing = !taken,
            NodeCall::Ready => {
                self.ready_told = taken;
                self.since = wall;
            }
            NodeCall::Renew => self.on_lease_renewed(taken, now),
            NodeCall::Check | NodeCall::Heartbeat => self.owed = (!taken).then_some(call),
        }
    }

    /// When [`NodeDuties::next_due_call`] may return something.
    pub fn wake_at(&self) -> Option<Instant> {
        if self.in_flight {
            return None;
        }
        let (at, call) = self.next_call();
        call.and(at.max(self.not_before))
    }

    fn next_call(&self) -> (Option<Instant>, Option<NodeCall>) {
        if self.node_uid.is_none() {
            return (None, Some(NodeCall::Register));
        }
        if self.mirrors_missing {
            return (None, Some(NodeCall::Mirror));
        }
        if self.owed.is_some() {
            return (None, self.owed);
        }
        let ready = (!self.ready_told).then_some((self.ready_at, NodeCall::Ready));
        let renew = match &self.heartbeat {
            KubeletHeartbeat::Lease { .. } => Some((self.renew_at, NodeCall::Renew)),
            KubeletHeartbeat::Quiet(_) => None,
        };
        let first = [ready, renew]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at);
        (first.map(|(at, _)| at), first.map(|(_, call)| call))
    }

    /// After a renewal the Node is checked, or at every 30th its conditions are posted.
    fn on_lease_renewed(&mut self, taken: bool, now: Instant) {
        let KubeletHeartbeat::Lease { every } = &self.heartbeat else {
            return;
        };
        if !taken {
            return;
        }
        self.renew_at = now + *every;
        self.renewals = (self.renewals + 1) % RENEWALS_PER_STATUS;
        let call = if self.renewals == 0 {
            NodeCall::Heartbeat
        } else {
            NodeCall::Check
        };
        self.owed = self.ready_told.then_some(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn duty(now: Instant) -> NodeDuties {
        let heartbeat = KubeletHeartbeat::Lease { every: 10 * SECOND };
        let boot = "b1".to_owned();
        NodeDuties::new(
            boot,
            heartbeat,
            false,
            now,
            2 * SECOND,
            Timestamp::UNIX_EPOCH,
        )
    }

    fn registered(now: Instant) -> NodeDuties {
        let mut duty = duty(now);
        assert_eq!(duty.next_due_call(now), Some(NodeCall::Register));
        duty.node_uid = Some("u".into());
        duty.on_call_ended(NodeCall::Register, true, now, Timestamp::UNIX_EPOCH);
        duty
    }

    fn take(duty: &mut NodeDuties, now: Instant, taken: bool) -> Option<NodeCall> {
        let call = duty.next_due_call(now)?;
        duty.on_call_ended(call, taken, now, Timestamp::UNIX_EPOCH);
        Some(call)
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_said_before_the_node_is_registered() {
        let now = Instant::now();
        let mut duty = duty(now);
        assert_eq!(take(&mut duty, now, false), Some(NodeCall::Register));
        assert_eq!(take(&mut duty, now, true), None, "a pause after a failure");
        let later = now + SECOND;
        assert_eq!(duty.wake_at(), Some(later));
        assert_eq!(duty.next_due_call(later), Some(NodeCall::Register));
        assert_eq!(duty.next_due_call(later), None, "one call at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_is_ready_only_after_its_time_and_once() {
        let now = Instant::now();
        let mut duty = registered(now);
        assert_eq!(take(&mut duty, now, true), Some(NodeCall::Renew));
        assert_eq!(take(&mut duty, now + SECOND, true), None);
        assert_eq!(
            take(&mut duty, now + 2 * SECOND, true),
            Some(NodeCall::Ready)
        );
        assert_eq!(take(&mut duty, now + 3 * SECOND, true), None);
    }

    #[tokio::test(start_paused = true)]
    async fn each_renewal_is_followed_by_a_look_and_the_thirtieth_by_the_conditions() {
        let now = Instant::now();
        let mut duty = registered(now);
        take(&mut duty, now, true);
        take(&mut duty, now + 2 * SECOND, true);
        let mut later = now;
        for renewal in 2..=30 {
            later += 10 * SECOND;
            assert_eq!(take(&mut duty, later, false), Some(NodeCall::Renew));
            later += SECOND;
            assert_eq!(take(&mut duty, later, true), Some(NodeCall::Renew));
            let follows = if renewal == 30 {
                NodeCall::Heartbeat
            } else {
                NodeCall::Check
            };
            assert_eq!(take(&mut duty, later, true), Some(follows));
            assert_eq!(take(&mut duty, later, true), None);
        }
    }
}
