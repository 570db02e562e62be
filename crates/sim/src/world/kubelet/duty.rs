//! What a kubelet owes its Node between a start and a stop: pure, time passed in.

use std::time::Duration;

use dogwatch_core::name::BootId;
use jiff::Timestamp;
use tokio::time::Instant;

use super::config::Heartbeat;

/// A pause before a call that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Every so many renewals of the Lease the Node's conditions are posted too (a real kubelet: every
/// 5 minutes beside every 10 seconds).
const RENEWALS_PER_STATUS: u32 = 30;

/// One call about the Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeCall {
    /// Make the Node or post the whole status of this boot, not ready yet.
    Register,
    /// Make the mirror pods that are missing.
    Mirror,
    /// Post that it is ready.
    Ready,
    /// Renew the Lease.
    Renew,
    /// Look whether the Node still says so, and say it again if not: a cluster that did not hear us
    /// writes us off.
    Check,
    /// Post the conditions' times.
    Heartbeat,
}

/// The duties of one run of the kubelet.
#[derive(Debug)]
pub struct Duty {
    /// The boot it runs in.
    pub boot: BootId,
    /// The Node's UID, once registered.
    pub node_uid: Option<String>,
    /// Since when it is as ready, or not, as it is.
    pub since: Timestamp,
    ready_at: Instant,
    ready_told: bool,
    mirrors_missing: bool,
    heartbeat: Heartbeat,
    renew_at: Instant,
    renewals: u32,
    owed: Option<NodeCall>,
    not_before: Option<Instant>,
    in_flight: bool,
}

impl Duty {
    /// The duties of a kubelet that starts now.
    pub fn new(
        boot: BootId,
        heartbeat: Heartbeat,
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

    /// Whether the Node was said to be ready in this run.
    pub fn is_ready(&self) -> bool {
        self.ready_told
    }

    /// A mirror pod was deleted by somebody: it is to be made again, after a pause.
    pub fn mirror_gone(&mut self, now: Instant) {
        self.mirrors_missing = true;
        self.not_before = Some(now + RETRY);
    }

    /// The next call to make, if it is time for one. One at a time: until [`Duty::ended`].
    pub fn due(&mut self, now: Instant) -> Option<NodeCall> {
        if self.in_flight || self.not_before.is_some_and(|moment| moment > now) {
            return None;
        }
        let (at, call) = self.next();
        if at.is_some_and(|moment| moment > now) {
            return None;
        }
        self.in_flight = call.is_some();
        call
    }

    /// How a call ended.
    pub fn ended(&mut self, call: NodeCall, taken: bool, now: Instant, wall: Timestamp) {
        self.in_flight = false;
        self.not_before = (!taken).then(|| now + RETRY);
        match call {
            NodeCall::Register => {}
            NodeCall::Mirror => self.mirrors_missing = !taken,
            NodeCall::Ready => {
                self.ready_told = taken;
                self.since = wall;
            }
            NodeCall::Renew => self.renewed(taken, now),
            NodeCall::Check | NodeCall::Heartbeat => self.owed = (!taken).then_some(call),
        }
    }

    /// When [`Duty::due`] may have something.
    pub fn wake(&self) -> Option<Instant> {
        if self.in_flight {
            return None;
        }
        let (at, call) = self.next();
        call.and(at.max(self.not_before))
    }

    fn next(&self) -> (Option<Instant>, Option<NodeCall>) {
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
            Heartbeat::Lease { .. } => Some((self.renew_at, NodeCall::Renew)),
            Heartbeat::Quiet(_) => None,
        };
        let first = [ready, renew]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at);
        (first.map(|(at, _)| at), first.map(|(_, call)| call))
    }

    /// A renewal is followed by a look at the Node, now and then by its conditions.
    fn renewed(&mut self, taken: bool, now: Instant) {
        let Heartbeat::Lease { every } = &self.heartbeat else {
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

    fn duty(now: Instant) -> Duty {
        let heartbeat = Heartbeat::Lease { every: 10 * SECOND };
        let boot = BootId::new("b1").unwrap();
        Duty::new(
            boot,
            heartbeat,
            false,
            now,
            2 * SECOND,
            Timestamp::UNIX_EPOCH,
        )
    }

    fn registered(now: Instant) -> Duty {
        let mut duty = duty(now);
        assert_eq!(duty.due(now), Some(NodeCall::Register));
        duty.node_uid = Some("u".into());
        duty.ended(NodeCall::Register, true, now, Timestamp::UNIX_EPOCH);
        duty
    }

    fn take(duty: &mut Duty, now: Instant, taken: bool) -> Option<NodeCall> {
        let call = duty.due(now)?;
        duty.ended(call, taken, now, Timestamp::UNIX_EPOCH);
        Some(call)
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_said_before_the_node_is_registered() {
        let now = Instant::now();
        let mut duty = duty(now);
        assert_eq!(take(&mut duty, now, false), Some(NodeCall::Register));
        assert_eq!(take(&mut duty, now, true), None, "a pause after a failure");
        let later = now + SECOND;
        assert_eq!(duty.wake(), Some(later));
        assert_eq!(duty.due(later), Some(NodeCall::Register));
        assert_eq!(duty.due(later), None, "one call at a time");
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
