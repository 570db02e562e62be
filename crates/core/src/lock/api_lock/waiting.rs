//! Those who wait: how long before they are told why, and what is told of them to others.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lock::HolderId;
use crate::name::{GroupName, NodeName};
use crate::policy::Allowance;
use crate::reboot::reason;

/// A wait for the policy that is longer is answered, and not waited for: nobody sees that a call without an
/// answer waits for a window.
pub const SOON: Duration = Duration::from_mins(10);

/// The most bytes in which one replica tells who waits: whoever counts reads its Lease as well. Some seventy hosts.
pub const LONGEST_TOLD: usize = 16 * 1024;
/// The most characters of a sentence.
const LONGEST_SENTENCE: usize = 200;

/// How long the answer to a request may take. In the queue everybody but [`Wait::No`] waits for as long as it
/// takes: how long others hold the lock is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It comes at once.
    No,
    /// It comes when the lock is held, or when the policy is known to forbid it for longer than [`SOON`].
    Soon,
    /// It comes when the lock is held.
    Always,
}

impl Wait {
    /// Whether the answer may come later at all.
    pub fn is_some(self) -> bool {
        match self {
            Wait::No => false,
            Wait::Soon | Wait::Always => true,
        }
    }
}

/// Why a request may not begin, by the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAllowed {
    /// One word.
    pub reason: &'static str,
    /// A sentence with the policy and the times.
    pub message: String,
    /// When that may change by itself.
    pub until: Option<Timestamp>,
}

impl NotAllowed {
    /// What an allowance forbids.
    pub fn of(allowance: Allowance) -> Option<Self> {
        match allowance {
            Allowance::Yes { .. } => None,
            Allowance::No {
                reason,
                message,
                until,
            } => Some(Self {
                reason,
                message,
                until,
            }),
        }
    }

    /// A gate that is shut. It may open at any moment.
    pub fn gates(shut: &[String]) -> Self {
        Self {
            reason: reason::GATE_SHUT,
            message: format!("a gate is closed: {}", shut.join("; ")),
            until: None,
        }
    }

    /// Whether nobody but a person ends it.
    fn is_lasting(&self) -> bool {
        let passes = [
            reason::GATE_SHUT,
            reason::LOOKING_AT_POLICIES,
            reason::POLICIES_UNREADABLE,
        ];
        self.until.is_none() && !passes.contains(&self.reason)
    }
}

/// Whether a request is answered that it may not begin, and then when to ask again; it was forbidden for
/// `so_far` without a break.
pub fn answered_now(
    not: &NotAllowed,
    wait: Wait,
    so_far: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let opens = not
        .until
        .map(|until| Duration::try_from(until.duration_since(now)).unwrap_or_default());
    let again = opens.unwrap_or(SOON);
    match wait {
        Wait::No => Some(again),
        Wait::Always => None,
        Wait::Soon => {
            let is_long = match opens {
                Some(opens) => opens > SOON,
                None => not.is_lasting() || so_far >= SOON,
            };
            is_long.then_some(again)
        }
    }
}

/// One who waits at a lock API, as its replica tells. The JSON names are public.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingHost {
    /// Who would hold the lock.
    pub holder: HolderId,
    /// Its group, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// The Node that it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// Since when.
    pub since: Timestamp,
    /// Why: one word.
    pub reason: String,
    /// Why: a sentence.
    pub message: String,
}

/// Those who wait longest, as a text for an annotation of at most [`LONGEST_TOLD`] bytes; `None` if nobody does.
pub fn tell(waiting: &[WaitingHost]) -> Option<String> {
    let mut longest: Vec<&WaitingHost> = waiting.iter().collect();
    longest.sort_by_key(|host| (host.since, &host.holder));
    let mut texts = String::new();
    for host in longest {
        let text =
            serde_json::to_string(&shortened(host)).expect("names, times and texts serialise");
        // Two brackets, and a comma before it.
        if texts.len() + text.len() + 3 > LONGEST_TOLD {
            break;
        }
        if !texts.is_empty() {
            texts.push(',');
        }
        texts.push_str(&text);
    }
    (!texts.is_empty()).then(|| format!("[{texts}]"))
}

fn shortened(host: &WaitingHost) -> WaitingHost {
    WaitingHost {
        message: host.message.chars().take(LONGEST_SENTENCE).collect(),
        ..host.clone()
    }
}

/// What such a text tells. One that cannot be read tells of nobody: it is only shown.
pub fn told(text: &str) -> Vec<WaitingHost> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    fn not(reason: &'static str, until: Option<i64>) -> NotAllowed {
        NotAllowed {
            reason,
            message: "outside the windows".into(),
            until: until.map(at),
        }
    }

    fn minutes(minutes: u64) -> Duration {
        Duration::from_mins(minutes)
    }

    #[test]
    fn a_call_that_cannot_be_served_soon_is_told_so_with_the_time() {
        let window = |opens| not(reason::OUTSIDE_WINDOW, Some(opens));
        let pause = not(reason::PAUSED, None);
        let gates = NotAllowed::gates(&["pod shop/backup runs".into()]);
        let table = [
            (window(600), Wait::Soon, 0, Some(minutes(600))),
            (window(600), Wait::No, 0, Some(minutes(600))),
            (window(600), Wait::Always, 700, None),
            (window(10), Wait::Soon, 0, None),
            (window(10), Wait::No, 0, Some(minutes(10))),
            // A person ends it, nobody knows when.
            (pause.clone(), Wait::Soon, 0, Some(SOON)),
            (pause, Wait::Always, 700, None),
            // It may open at any moment, but is not waited for in silence for ever.
            (gates.clone(), Wait::Soon, 9, None),
            (gates.clone(), Wait::Soon, 10, Some(SOON)),
            (gates, Wait::No, 0, Some(SOON)),
            (not(reason::POLICIES_UNREADABLE, None), Wait::Soon, 0, None),
        ];
        for (not, wait, so_far, expected) in table {
            let found = answered_now(&not, wait, minutes(so_far), NOW);
            assert_eq!(found, expected, "{not:?} {wait:?} {so_far}");
        }
    }

    fn host(name: &str, since: i64) -> WaitingHost {
        WaitingHost {
            holder: HolderId::api(name),
            group: Some(GroupName::default_group()),
            node: None,
            since: at(since),
            reason: reason::OUTSIDE_WINDOW.into(),
            message: "outside the windows of RebootPolicy nights".into(),
        }
    }

    #[test]
    fn what_is_told_reads_back_the_longest_waiting_first() {
        let text = tell(&[host("late", 5), host("early", 1)]).unwrap();
        assert_eq!(told(&text), [host("early", 1), host("late", 5)]);
        assert_eq!(tell(&[]), None);
    }

    #[test]
    fn what_is_told_stays_small_however_many_wait() {
        let long = WaitingHost {
            message: "é".repeat(10_000),
            ..host("long", 1)
        };
        let all: Vec<_> = (0..5_000).map(|_| long.clone()).collect();
        let text = tell(&all).unwrap();
        assert!(text.len() <= LONGEST_TOLD, "{}", text.len());
        assert!(told(&text).len() > 20, "{}", told(&text).len());
    }

    #[test]
    fn what_cannot_be_read_tells_of_nobody() {
        for text in ["", "{}", "[{\"holder\":\"\"}]", "null"] {
            assert_eq!(told(text), [], "{text:?}");
        }
    }
}
