//! A Node's heartbeats: only a change of them has a meaning. Source: specification §4.1.

use std::time::Duration;

use jiff::Timestamp;

/// A Node's heartbeat: the renewal of its Lease in `kube-node-lease`, and the newest
/// `lastHeartbeatTime` of its Ready condition. Its times are only compared for equality.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeHeartbeat {
    pub node_uid: Option<String>,
    /// `spec.renewTime` of the Lease.
    pub renewed: Option<Timestamp>,
    /// `lastHeartbeatTime` of the Ready condition.
    pub posted: Option<Timestamp>,
    /// `spec.leaseDurationSeconds` of the Lease: the kubelet renews it four times as often.
    pub lease_duration: Option<Duration>,
}

impl NodeHeartbeat {
    /// How long a machine must be silent before its silence alone shows that it does not run. A
    /// living kubelet recreates a missing Lease, so that a missing Lease counts as silence as well.
    pub fn required_silence(&self) -> Duration {
        crate::power::required_silence(self.lease_duration)
    }

    /// How long a kubelet must be silent to have missed one renewal of its Lease.
    pub fn missed_renewal(&self) -> Duration {
        crate::power::missed_renewal(self.lease_duration)
    }
}

/// The heartbeats that this process has read from one Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatHistory {
    /// When the first heartbeat was requested, and when the answer arrived.
    first: [Duration; 2],
    /// When the newest answer arrived that differed from the one before it.
    moved: Option<Duration>,
    /// When the newest heartbeat was requested, and the heartbeat.
    newest: (Duration, NodeHeartbeat),
}

impl HeartbeatHistory {
    pub fn new(asked: Duration, answered: Duration, beat: NodeHeartbeat) -> Self {
        Self {
            first: [asked, answered],
            moved: None,
            newest: (asked, beat),
        }
    }

    /// Adds a heartbeat. One from another Node of the same name starts a new history: the two
    /// cannot be compared.
    #[must_use]
    pub fn record_heartbeat(
        self,
        asked: Duration,
        answered: Duration,
        beat: NodeHeartbeat,
    ) -> Self {
        if beat.node_uid != self.newest.1.node_uid {
            return Self::new(asked, answered, beat);
        }
        // An answer that was overtaken by a later one is outdated.
        if asked < self.newest.0 {
            return self;
        }
        let has_moved = beat != self.newest.1;
        Self {
            first: self.first,
            moved: if has_moved {
                Some(answered)
            } else {
                self.moved
            },
            newest: (asked, beat),
        }
    }

    pub fn first_asked_at(&self) -> Duration {
        self.first[0]
    }

    /// Since when the heartbeat has not changed, as of [`Self::last_asked_at`].
    pub fn silent_since(&self) -> Duration {
        let [_, first] = self.first;
        self.moved.unwrap_or(first)
    }

    pub fn last_asked_at(&self) -> Duration {
        self.newest.0
    }

    pub fn newest_heartbeat(&self) -> &NodeHeartbeat {
        &self.newest.1
    }

    /// When the answer arrived that showed the last change. The node sent that heartbeat after the
    /// request for the answer before it.
    pub fn last_moved_at(&self) -> Option<Duration> {
        self.moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn beat(uid: &str, second: i64) -> NodeHeartbeat {
        NodeHeartbeat {
            node_uid: Some(uid.into()),
            renewed: Timestamp::from_second(second).ok(),
            posted: None,
            lease_duration: None,
        }
    }

    #[test]
    fn silence_is_since_the_first_answer_or_the_newest_move() {
        let beats = HeartbeatHistory::new(S, S * 2, beat("a", 1));
        assert_eq!((beats.last_moved_at(), beats.silent_since()), (None, S * 2));
        let same = beats.record_heartbeat(S * 5, S * 6, beat("a", 1));
        assert_eq!((same.last_moved_at(), same.silent_since()), (None, S * 2));
        assert_eq!(same.last_asked_at(), S * 5);
        let moved = same.record_heartbeat(S * 8, S * 9, beat("a", 2));
        assert_eq!(
            (moved.last_moved_at(), moved.silent_since()),
            (Some(S * 9), S * 9)
        );
    }

    #[test]
    fn an_answer_that_comes_late_is_an_old_one_and_no_sign_of_life() {
        let beats = HeartbeatHistory::new(S * 5, S * 6, beat("a", 2));
        let late = beats.clone().record_heartbeat(S * 4, S * 20, beat("a", 1));
        assert_eq!(late, beats);
    }

    #[test]
    fn of_two_answers_to_requests_of_one_moment_the_later_counts() {
        let beats = HeartbeatHistory::new(S * 5, S * 6, beat("a", 1));
        let moved = beats.record_heartbeat(S * 5, S * 7, beat("a", 2));
        assert_eq!(moved.last_moved_at(), Some(S * 7));
    }

    #[test]
    fn another_node_of_that_name_begins_anew() {
        let beats = HeartbeatHistory::new(S, S, beat("a", 1));
        let other = beats.record_heartbeat(S * 30, S * 31, beat("b", 1));
        assert_eq!(other, HeartbeatHistory::new(S * 30, S * 31, beat("b", 1)));
    }
}
