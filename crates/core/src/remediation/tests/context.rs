//! The questions that several steps of a decision ask. Source: specification §4.1.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::clear::{Ready, S, ready};
use super::kit::*;
use crate::power::SystemMatch;

const NS: Duration = Duration::from_nanos(1);
const MS: Duration = Duration::from_millis(1);

fn heartbeats(uid: &str, asked: Duration) -> HeartbeatHistory {
    let beat = NodeHeartbeat {
        node_uid: Some(uid.into()),
        ..beat(None, 5)
    };
    HeartbeatHistory::new(asked, asked, beat)
}

#[test]
fn a_heartbeat_is_requested_once_and_again_after_the_host_is_off_or_the_node_is_another() {
    let same = |asked| Some(heartbeats("uid-n-a", asked));
    let other = |asked| Some(heartbeats("uid-other", asked));
    for (beats, off_since, wanted) in [
        (None, None, Some(Duration::ZERO)),
        (None, Some(S * 5), Some(S * 5)),
        (other(S * 7), Some(S * 5), Some(S * 7 + NS)),
        (other(S * 4), Some(S * 5), Some(S * 5)),
        (other(S * 4), None, Some(S * 4 + NS)),
        (same(S * 4), Some(S * 5), Some(S * 5)),
        (same(S * 5), Some(S * 5), None),
        (same(S * 6), Some(S * 5), None),
        (same(S * 6), None, None),
    ] {
        let what = format!("{beats:?} {off_since:?}");
        let mut it = ready();
        it.known.heartbeats = beats;
        it.power().off_since = off_since;
        let around = ConcurrentRemediations::default();
        let decision = crate::decision::decision_with_cause(RemediationReason::ProvingOff, "");
        let decision = it.context(&around).observe_heartbeat(decision);
        let requested = wanted.map(|newer_than| RemediationObserve::Heartbeat {
            node: node_name("a"),
            newer_than,
        });
        assert_eq!(
            decision.observe,
            requested.into_iter().collect::<Vec<_>>(),
            "{what}"
        );
    }
}

#[test]
fn a_heartbeat_is_not_requested_without_a_node() {
    let mut it = ready();
    it.case.node = None;
    it.known.heartbeats = None;
    let around = ConcurrentRemediations::default();
    let decision = crate::decision::decision_with_cause(RemediationReason::ProvingOff, "");
    assert_eq!(it.context(&around).observe_heartbeat(decision).observe, []);
}

#[test]
fn reads_that_were_rejected_are_not_accepted_again() {
    let around = ConcurrentRemediations::default();
    let mut it = ready();
    it.fresh().asked_at = it.now.mono;
    let newer_than = it.now.mono + NS;
    let wanted = RemediationObserve::Fresh { newer_than };
    assert_eq!(it.context(&around).observe_fresh(), wanted);
}

#[test]
fn a_moment_of_the_past_is_given_by_the_wall_clock() {
    let around = ConcurrentRemediations::default();
    let it = ready();
    let at = it
        .context(&around)
        .wall_time_at(it.now.mono.saturating_sub(S * 2));
    let wanted = it.now.wall - jiff::SignedDuration::from_secs(2);
    assert_eq!(at, crate::time::truncate_to_micros(wanted));
}

#[test]
fn another_annotation_on_the_host_does_not_hide_the_proof_for_our_key() {
    let around = ConcurrentRemediations::default();
    let mut it = ready();
    let host = Arc::make_mut(it.case.host.as_mut().unwrap());
    let name = "reboot.metal3.io/a-later-one".to_owned();
    assert!(name.as_str() < MACHINE_KEY);
    host.annotations.insert(name, "{\"mode\":\"hard\"}".into());
    assert!(it.context(&around).off_proof().is_some());
}

#[test]
fn the_power_is_described_by_the_power_controller_or_said_to_be_unread() {
    let around = ConcurrentRemediations::default();
    let mut it = ready();
    it.power().because = Some("PoweringOff: the BMC was told".into());
    let says = it.context(&around).describe_power();
    assert_eq!(says, "PoweringOff: the BMC was told");
    it.known.power = None;
    let says = it.context(&around).describe_power();
    assert_eq!(says, "its power has not been read yet");
}

#[test]
fn a_person_is_told_how_to_confirm_that_the_host_is_off() {
    let around = ConcurrentRemediations::default();
    let mut it = ready();
    let hint = it.context(&around).confirm_off_hint();
    assert!(
        hint.ends_with("dogwatch confirm-off machines/h-a"),
        "{hint}"
    );
    it.case.host = Err((RemediationReason::NoHost, String::new()));
    assert_eq!(it.context(&around).confirm_off_hint(), "");
}

/// Whether the reads suffice, when it is decided again, and whether everything is read again.
fn silence_in_reads(until: Duration, it: &mut Ready) -> (bool, Option<Duration>, bool) {
    // A Node whose BMC reports no system UUID must be silent for 25 s.
    it.power().off_since = Some(until.saturating_sub(S * 25));
    let around = ConcurrentRemediations::default();
    let proof = it.known.power.as_ref().unwrap().proof.clone().unwrap();
    let fresh = it.known.fresh.clone().unwrap();
    let same = SystemMatch::NotComparable;
    let result = node_silence::require_silence_in_reads(&it.context(&around), &fresh, &proof, same);
    match result {
        Ok(()) => (true, None, false),
        Err(decision) => {
            let wake = decision.wake.as_ref().map(|wake| wake.at);
            (false, wake, !decision.observe.is_empty())
        }
    }
}

#[test]
fn reads_from_before_the_end_of_the_silence_are_repeated_after_it() {
    let mut it = ready();
    it.now.mono += S * 100;
    it.fresh().asked_at += S * 100;
    let (now, read) = (it.now.mono, it.fresh().asked_at);
    for (until, wanted) in [
        (now + MS, (false, Some(now + MS), false)),
        (now, (false, None, true)),
        (read + MS, (false, None, true)),
        (read, (true, None, false)),
    ] {
        assert_eq!(silence_in_reads(until, &mut it), wanted, "{until:?}");
    }
}
