//! Waiting requests: how long they wait before they are told why, and how they are published.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lock::HolderId;
use crate::name::{GroupName, NodeName};
use crate::policy::RebootAllowance;
use crate::reboot::RebootReason;

/// A policy wait longer than this is answered instead of waited for: nobody can see that a call
/// without an answer waits for a window.
pub const MAX_POLICY_WAIT: Duration = Duration::from_mins(10);

/// The size limit of one replica's list of waiting hosts, in bytes: each budget count reads the
/// Lease that carries it. Enough for some seventy hosts.
pub const MAX_WAITING_HOSTS_BYTES: usize = 16 * 1024;
/// The limit of one message, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// How long the answer to a request may take. In the queue every mode but [`WaitMode::No`] waits
/// without a limit: nobody knows how long others hold the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    No,
    /// The answer comes when the lock is held, or when the policy is known to forbid it for longer
    /// than [`MAX_POLICY_WAIT`].
    Soon,
    /// The answer comes when the lock is held.
    Always,
}

impl WaitMode {
    /// Whether the answer may come later at all.
    pub fn may_wait(self) -> bool {
        match self {
            WaitMode::No => false,
            WaitMode::Soon | WaitMode::Always => true,
        }
    }
}

/// Why the policy does not let a request begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDenial {
    pub reason: RebootReason,
    /// A sentence with the policy and the times.
    pub message: String,
    /// When the policy may allow it by itself.
    pub until: Option<Timestamp>,
}

impl PolicyDenial {
    /// `None`: the allowance permits a reboot.
    pub fn of_allowance(allowance: RebootAllowance) -> Option<Self> {
        match allowance {
            RebootAllowance::Yes { .. } => None,
            RebootAllowance::No {
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

    /// For closed gates. They may open at any moment.
    pub fn of_closed_gates(shut: &[String]) -> Self {
        Self {
            reason: RebootReason::GateShut,
            message: format!("a gate is closed: {}", shut.join("; ")),
            until: None,
        }
    }

    /// Whether only a person can end it.
    fn is_lasting(&self) -> bool {
        let passes = [
            RebootReason::GateShut,
            RebootReason::LookingAtPolicies,
            RebootReason::PoliciesUnreadable,
            RebootReason::RolloutNotStarted,
            RebootReason::AwaitingCanary,
            RebootReason::RolloutSoaking,
        ];
        self.until.is_none() && !passes.contains(&self.reason)
    }
}

/// Whether a request is answered that it may not begin, and how long its client should wait before
/// it asks again. `so_far`: for how long the request has been forbidden without a break.
pub fn denial_retry_delay(
    not: &PolicyDenial,
    wait: WaitMode,
    so_far: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let opens = not
        .until
        .map(|until| Duration::try_from(until.duration_since(now)).unwrap_or_default());
    let again = opens.unwrap_or(MAX_POLICY_WAIT);
    match wait {
        WaitMode::No => Some(again),
        WaitMode::Always => None,
        WaitMode::Soon => {
            let is_long = match opens {
                Some(opens) => opens > MAX_POLICY_WAIT,
                None => not.is_lasting() || so_far >= MAX_POLICY_WAIT,
            };
            is_long.then_some(again)
        }
    }
}

/// One host that waits at the lock API, as its replica publishes it. The JSON names are public.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingHost {
    /// The identity that would hold the lock.
    pub holder: HolderId,
    /// Its group, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// The host's Node, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    pub since: Timestamp,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// The hosts that wait longest, as text for an annotation of at most [`MAX_WAITING_HOSTS_BYTES`].
/// `None`: no host waits.
pub fn render_waiting_hosts(waiting: &[WaitingHost]) -> Option<String> {
    let mut longest: Vec<&WaitingHost> = waiting.iter().collect();
    longest.sort_by_key(|host| (host.since, &host.holder));
    let mut texts = String::new();
    for host in longest {
        let text = serde_json::to_string(&shorten_message(host))
            .expect("names, times and texts serialise");
        // Two brackets, and a comma before it.
        if texts.len() + text.len() + 3 > MAX_WAITING_HOSTS_BYTES {
            break;
        }
        if !texts.is_empty() {
            texts.push(',');
        }
        texts.push_str(&text);
    }
    (!texts.is_empty()).then(|| format!("[{texts}]"))
}

fn shorten_message(host: &WaitingHost) -> WaitingHost {
    WaitingHost {
        message: host.message.chars().take(MAX_MESSAGE_CHARS).collect(),
        ..host.clone()
    }
}

/// An unreadable text yields no hosts: it is only shown to people.
pub fn parse_waiting_hosts(text: &str) -> Vec<WaitingHost> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    fn not(reason: RebootReason, until: Option<i64>) -> PolicyDenial {
        PolicyDenial {
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
        let window = |opens| not(RebootReason::OutsideWindow, Some(opens));
        let pause = not(RebootReason::Paused, None);
        let gates = PolicyDenial::of_closed_gates(&["pod shop/backup runs".into()]);
        let table = [
            (window(600), WaitMode::Soon, 0, Some(minutes(600))),
            (window(600), WaitMode::No, 0, Some(minutes(600))),
            (window(600), WaitMode::Always, 700, None),
            (window(10), WaitMode::Soon, 0, None),
            (window(10), WaitMode::No, 0, Some(minutes(10))),
            // Only a person ends a pause, and nobody knows when.
            (pause.clone(), WaitMode::Soon, 0, Some(MAX_POLICY_WAIT)),
            (pause, WaitMode::Always, 700, None),
            // The controller goes on with a rollout; a halt ends only by a person.
            (
                not(RebootReason::RolloutNotStarted, None),
                WaitMode::Soon,
                0,
                None,
            ),
            (
                not(RebootReason::RolloutHalted, None),
                WaitMode::Soon,
                0,
                Some(MAX_POLICY_WAIT),
            ),
            // A gate may open at any moment, but the client is told after a while.
            (gates.clone(), WaitMode::Soon, 9, None),
            (gates.clone(), WaitMode::Soon, 10, Some(MAX_POLICY_WAIT)),
            (gates, WaitMode::No, 0, Some(MAX_POLICY_WAIT)),
            (
                not(RebootReason::PoliciesUnreadable, None),
                WaitMode::Soon,
                0,
                None,
            ),
        ];
        for (not, wait, so_far, expected) in table {
            let found = denial_retry_delay(&not, wait, minutes(so_far), NOW);
            assert_eq!(found, expected, "{not:?} {wait:?} {so_far}");
        }
    }

    fn host(name: &str, since: i64) -> WaitingHost {
        WaitingHost {
            holder: HolderId::for_api_host(name),
            group: Some(GroupName::default_group()),
            node: None,
            since: at(since),
            reason: RebootReason::OutsideWindow.to_string(),
            message: "outside the windows of RebootPolicy nights".into(),
        }
    }

    #[test]
    fn what_is_told_reads_back_the_longest_waiting_first() {
        let text = render_waiting_hosts(&[host("late", 5), host("early", 1)]).unwrap();
        assert_eq!(
            parse_waiting_hosts(&text),
            [host("early", 1), host("late", 5)]
        );
        assert_eq!(render_waiting_hosts(&[]), None);
    }

    #[test]
    fn what_is_told_stays_small_however_many_wait() {
        let long = WaitingHost {
            message: "é".repeat(10_000),
            ..host("long", 1)
        };
        let all: Vec<_> = (0..5_000).map(|_| long.clone()).collect();
        let text = render_waiting_hosts(&all).unwrap();
        assert!(text.len() <= MAX_WAITING_HOSTS_BYTES, "{}", text.len());
        assert!(
            parse_waiting_hosts(&text).len() > 20,
            "{}",
            parse_waiting_hosts(&text).len()
        );
    }

    #[test]
    fn the_text_may_be_as_long_as_the_annotation() {
        let with_message = |length| WaitingHost {
            message: "m".repeat(length),
            ..host("h", 1)
        };
        let whole = serde_json::to_string(&with_message(MAX_MESSAGE_CHARS)).unwrap();
        // Each with a comma, but one; and two brackets.
        let others = (MAX_WAITING_HOSTS_BYTES - 1) / (whole.len() + 1) - 1;
        let left = MAX_WAITING_HOSTS_BYTES - 1 - others * (whole.len() + 1);
        let (short, shorter) = (left / 2, left - left / 2);
        let empty = serde_json::to_string(&with_message(0)).unwrap().len() + 1;
        for (more, hosts) in [(0, others + 2), (1, others + 1)] {
            let mut all = vec![with_message(MAX_MESSAGE_CHARS); others];
            all.extend([
                with_message(short - empty),
                with_message(shorter - empty + more),
            ]);
            let text = render_waiting_hosts(&all).unwrap();
            assert_eq!(parse_waiting_hosts(&text).len(), hosts, "{more} more");
        }
    }

    #[test]
    fn only_a_call_that_wants_its_answer_at_once_does_not_wait() {
        for (wait, may_wait) in [
            (WaitMode::No, false),
            (WaitMode::Soon, true),
            (WaitMode::Always, true),
        ] {
            assert_eq!(wait.may_wait(), may_wait, "{wait:?}");
        }
    }

    #[test]
    fn a_policys_refusal_is_told_as_it_is_and_a_permission_is_none() {
        let denied = not(RebootReason::OutsideWindow, Some(600));
        let refusal = RebootAllowance::No {
            reason: RebootReason::OutsideWindow,
            message: "outside the windows".into(),
            until: Some(at(600)),
        };
        assert_eq!(PolicyDenial::of_allowance(refusal), Some(denied));
        let until = Some(at(600));
        let allowed = RebootAllowance::Yes { until };
        assert_eq!(PolicyDenial::of_allowance(allowed), None);
    }

    #[test]
    fn what_cannot_be_read_tells_of_nobody() {
        for text in ["", "{}", "[{\"holder\":\"\"}]", "null"] {
            assert_eq!(parse_waiting_hosts(text), [], "{text:?}");
        }
    }
}
