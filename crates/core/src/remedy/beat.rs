//! Signs of life of a Node: only whether they move means anything. Source: specification §4.1.

use std::time::Duration;

use jiff::Timestamp;

/// A Node's sign of life: the renewal of its Lease in `kube-node-lease`, and the newest
/// `lastHeartbeatTime` of its Ready condition. Only a change of it means anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The UID of the Node it belongs to.
    pub node_uid: Option<String>,
    /// `spec.renewTime` of the Lease.
    pub renewed: Option<Timestamp>,
    /// `lastHeartbeatTime`.
    pub posted: Option<Timestamp>,
    /// `spec.leaseDurationSeconds` of the Lease: the kubelet renews it four times as often.
    pub lease_lasts: Option<Duration>,
}

impl Beat {
    /// How long a machine has to be silent until that says by itself that it does not run. A Lease that is not
    /// there is made anew by a kubelet that lives, so that this holds for it as well.
    pub fn silence(&self) -> Duration {
        crate::power::silence_of(self.lease_lasts)
    }
}

/// What was seen of a Node's sign of life, over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beats {
    /// When the first of them was asked for, and answered.
    first: [Duration; 2],
    /// When the newest answer came that differed from the one before it.
    moved: Option<Duration>,
    /// When the newest was asked for, and what was said.
    newest: (Duration, Beat),
}

impl Beats {
    /// The first one.
    pub fn new(asked: Duration, answered: Duration, beat: Beat) -> Self {
        Self {
            first: [asked, answered],
            moved: None,
            newest: (asked, beat),
        }
    }

    /// Another one. That of another Node of the same name begins anew: of the two nothing can be compared.
    #[must_use]
    pub fn saw(self, asked: Duration, answered: Duration, beat: Beat) -> Self {
        if beat.node_uid != self.newest.1.node_uid {
            return Self::new(asked, answered, beat);
        }
        // An answer that comes late is an old one.
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

    /// When the first was asked for.
    pub fn first(&self) -> Duration {
        self.first[0]
    }

    /// Since when it has been seen not to move, up to when the newest was asked for.
    pub fn silent_since(&self) -> Duration {
        let [_, first] = self.first;
        self.moved.unwrap_or(first)
    }

    /// When the newest was asked for.
    pub fn asked(&self) -> Duration {
        self.newest.0
    }

    /// The newest.
    pub fn newest(&self) -> &Beat {
        &self.newest.1
    }

    /// When it was last seen to move. It was between the question before that answer and the answer.
    pub fn moved(&self) -> Option<Duration> {
        self.moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn beat(uid: &str, second: i64) -> Beat {
        Beat {
            node_uid: Some(uid.into()),
            renewed: Timestamp::from_second(second).ok(),
            posted: None,
            lease_lasts: None,
        }
    }

    #[test]
    fn silence_is_since_the_first_answer_or_the_newest_move() {
        let beats = Beats::new(S, S * 2, beat("a", 1));
        assert_eq!((beats.moved(), beats.silent_since()), (None, S * 2));
        let same = beats.saw(S * 5, S * 6, beat("a", 1));
        assert_eq!((same.moved(), same.silent_since()), (None, S * 2));
        assert_eq!(same.asked(), S * 5);
        let moved = same.saw(S * 8, S * 9, beat("a", 2));
        assert_eq!((moved.moved(), moved.silent_since()), (Some(S * 9), S * 9));
    }

    #[test]
    fn an_answer_that_comes_late_is_an_old_one_and_no_sign_of_life() {
        let beats = Beats::new(S * 5, S * 6, beat("a", 2));
        let late = beats.clone().saw(S * 4, S * 20, beat("a", 1));
        assert_eq!(late, beats);
    }

    #[test]
    fn another_node_of_that_name_begins_anew() {
        let beats = Beats::new(S, S, beat("a", 1));
        let other = beats.saw(S * 30, S * 31, beat("b", 1));
        assert_eq!(other, Beats::new(S * 30, S * 31, beat("b", 1)));
    }
}
