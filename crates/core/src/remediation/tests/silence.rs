//! Where system UUIDs cannot show that the host is the Node's machine, the Node's silence must.
//! Serves S2.

use std::sync::Arc;
use std::time::Duration;

use super::super::*;
use super::clear::{Ready, S, ready};
use super::kit::*;
use super::town::Town;
use crate::condition::CurrentCondition;

/// Everything that a release needs except comparable system UUIDs; read afresh one second ago.
fn unnamed() -> Ready {
    let mut it = ready();
    it.fresh_node().system_uuid = None;
    Arc::make_mut(it.case.node.as_mut().unwrap()).system_uuid = None;
    it
}

impl Ready {
    /// For how long the host is off and heartbeats are read, and when one last changed.
    fn silent(&mut self, off: Duration, looked: Duration, moved: Option<Duration>) {
        let now = self.now.mono;
        let ago = |long: Duration| now.saturating_sub(long);
        self.power().off_since = Some(ago(off));
        let beat = self.fresh().heartbeat.clone();
        let other = NodeHeartbeat {
            renewed: None,
            ..beat.clone()
        };
        let first = moved.map_or(beat.clone(), |_| other);
        self.known.heartbeats = Some(HeartbeatHistory::new(Duration::ZERO, ago(looked), first));
        if let Some(moved) = moved {
            self.known
                .record_heartbeat(ago(moved), ago(moved), beat.clone());
        }
        let taken = self.fresh().asked_at;
        self.known.record_heartbeat(taken, now, beat);
    }

    fn lease_lasts(&mut self, lasts: Option<Duration>) {
        self.fresh().heartbeat.lease_duration = lasts;
    }
}

const MS: Duration = Duration::from_millis(1);

fn less(seconds: u32, short: Duration) -> Duration {
    (S * seconds).saturating_sub(short)
}

#[test]
fn without_a_uuid_a_node_is_released_after_25_s_of_silence_since_its_host_is_off_and_not_before() {
    let long = S * 100;
    // The reads are one second old.
    for (what, off, looked, moved, is_released) in [
        ("all of it", S * 26, long, None, true),
        ("a long time", long, long, None, true),
        ("off later", less(26, MS), long, None, false),
        ("looked at later", long, less(26, MS), None, false),
        ("looked at then", long, S * 26, None, true),
        ("moved later", long, long, Some(less(26, MS)), false),
        ("moved before", long, long, Some(S * 26), true),
    ] {
        let mut it = unnamed();
        it.silent(off, looked, moved);
        let decision = it.decision();
        assert_eq!(it.releases(), is_released, "{what}: {:?}", decision.cause);
        if !is_released {
            let because = decision.cause;
            assert_eq!(
                because.reason,
                RemediationReason::WaitingForSilence,
                "{what}"
            );
            assert_eq!(decision.observe.len(), 1, "{what}: the reads are too old");
        }
    }
}

#[test]
fn with_the_nodes_own_uuid_no_silence_is_waited_for() {
    let mut it = ready();
    it.silent(S * 6, S * 5, None);
    assert!(it.releases(), "{:?}", it.decision().cause);
}

fn ready_condition(status: &str) -> CurrentCondition {
    CurrentCondition {
        kind: "Ready".into(),
        status: status.into(),
        reason: String::new(),
        message: String::new(),
        last_transition: None,
        last_heartbeat: None,
    }
}

#[test]
fn a_kubelet_that_was_alive_must_miss_a_renewal_although_the_uuids_match() {
    for (status, silence, is_released) in [
        ("True", S * 13, true),
        ("True", less(13, MS), false),
        ("False", less(13, MS), false),
        // The node controller has heard nothing for 40 s.
        ("Unknown", S * 5, true),
    ] {
        let mut it = ready();
        let node = Arc::make_mut(it.case.node.as_mut().unwrap());
        node.conditions.push(ready_condition(status));
        it.silent(S * 6, silence, None);
        let decision = it.decision();
        assert_eq!(
            it.releases(),
            is_released,
            "{status} {silence:?}: {:?}",
            decision.cause
        );
        if !is_released {
            assert_eq!(decision.cause.reason, RemediationReason::WaitingForSilence);
        }
    }
}

#[test]
fn it_is_looked_at_again_when_the_silence_has_lasted_and_not_before_and_it_is_said_when() {
    let mut it = unnamed();
    it.silent(S * 10, S * 12, None);
    let due = it.now.mono + S * 15;
    let decision = it.decision();
    assert_eq!(decision.cause.reason, RemediationReason::WaitingForSilence);
    assert_eq!(decision.wake.as_ref().unwrap().at, due);
    assert_eq!((&decision.observe, &decision.actions), (&vec![], &vec![]));
    let clock = it.now.wall_after(S * 15).strftime("%H:%M:%SZ").to_string();
    let says = format!("send no heartbeat for 25s: waits until {clock}");
    assert!(decision.cause.message.ends_with(&says), "{decision:?}");
    // The result does not depend on how often it is decided in between, nor on whether the reads
    // are old by then.
    for after in [MS, S * 4, S * 9, less(15, MS)] {
        let mut it = it.clone();
        it.now.mono += after;
        it.now.wall = it.now.wall_after(after);
        let later = it.decision();
        assert_eq!(later.cause, decision.cause, "{after:?}");
        assert_eq!(later.wake, decision.wake, "{after:?}");
    }
    it.now.mono = due;
    let decision = it.decision();
    assert_eq!(decision.observe.len(), 1, "{decision:?}");
    assert!(!it.releases());
}

#[test]
fn a_release_without_a_uuid_says_what_it_rests_on() {
    let mut it = unnamed();
    it.silent(S * 100, S * 100, None);
    let message = it.decision().cause.message;
    assert!(message.contains("could not be compared"), "{message}");
    assert!(message.contains("sent no heartbeat for 25s"), "{message}");
    let message = ready().decision().cause.message;
    assert!(!message.contains("compared"), "{message}");
}

#[test]
fn a_lease_that_is_renewed_less_often_asks_for_a_longer_silence_of_five_minutes_at_most() {
    for (lasts, silence) in [
        (None, 25),
        (Some(0), 25),
        (Some(4), 25),
        (Some(40), 25),
        (Some(120), 75),
        (Some(480), 300),
        (Some(1_000_000), 300),
        (Some(u64::MAX), 300),
    ] {
        for (short, is_released) in [(Duration::ZERO, true), (MS, false)] {
            let mut it = unnamed();
            // Later than the start of the process, so that the whole test lies in its time.
            let on = S * 400;
            it.now.mono += on;
            it.fresh().asked_at += on;
            it.lease_lasts(lasts.map(Duration::from_secs));
            it.silent(S * 399, less(silence + 1, short), None);
            let is_proved = it.known.power.as_ref().unwrap().proof.is_some();
            assert!(is_proved);
            assert_eq!(it.releases(), is_released, "{lasts:?} less {short:?}");
        }
    }
}

#[test]
fn where_the_identity_is_required_nothing_is_waited_for() {
    let mut it = unnamed();
    it.config.require_identity = true;
    it.silent(S * 6, S * 6, None);
    assert_eq!(
        it.decision().cause.reason,
        RemediationReason::IdentityUnknown
    );
}

#[test]
fn silence_before_this_process_looked_counts_for_nothing() {
    let mut it = unnamed();
    it.power().off_since = Some(Duration::ZERO);
    it.known.heartbeats = None;
    let decision = it.decision();
    assert!(!it.releases());
    assert!(matches!(
        decision.observe[..],
        [RemediationObserve::Heartbeat { .. }]
    ));
    let beat = it.fresh().heartbeat.clone();
    it.known.heartbeats = Some(HeartbeatHistory::new(it.now.mono, it.now.mono, beat));
    let wake = it.decision().wake.unwrap();
    assert_eq!(wake.at, it.now.mono + S * 25);
}

/// Machine `a` is linked to the host of machine `b`, which has no Machine object, and whose BMC
/// reports no UUID.
fn wrongly_linked(beat_at: u64) -> Town {
    let mut town = Town::new(&["a", "b"]);
    town.machines.remove(&machine_name("b"));
    town.machine("a").host = Some("machines/h-b".into());
    town.site("b").power.about.system_uuid = None;
    town.site("b").power.seen.memory.bmc_infos.clear();
    for _ in 0..beat_at {
        town.tick();
    }
    town
}

#[test]
fn a_node_that_lives_is_not_released_because_another_machine_is_off() {
    // A kubelet's heartbeat may come at any moment of a proof.
    for beat_at in [0, 27, 55, 83, 111, 139, 167, 195] {
        let mut town = wrongly_linked(beat_at);
        town.mark("a");
        town.until("the other machine is off", |town| !town.is_on("b"));
        town.run(150);
        assert!(town.node("a").is_some() && town.is_on("a"), "{beat_at}");
        let reasons: Vec<RemediationReason> =
            town.reasons.iter().map(|(_, reason)| *reason).collect();
        assert!(
            reasons.contains(&RemediationReason::NodeIsAlive),
            "{reasons:?}"
        );
        assert!(
            !reasons.contains(&RemediationReason::Released),
            "{reasons:?}"
        );
    }
}

#[test]
fn a_machine_whose_bmc_tells_no_uuid_is_released_after_its_silence_and_comes_back() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.about.system_uuid = None;
    town.site("a").power.seen.memory.bmc_infos.clear();
    town.site("a").is_connected = false;
    town.mark("a");
    town.until("off", |town| !town.is_on("a"));
    let off = town.mono();
    town.until("released", |town| town.node("a").is_none());
    let took = town.mono().saturating_sub(off);
    assert!(took >= S * 25 && took < S * 32, "{took:?}");
    town.site("a").is_connected = true;
    town.until("back", |town| {
        town.node("a").is_some_and(|it| it.seen.ready)
    });
    let reasons: Vec<RemediationReason> = town.reasons.iter().map(|(_, reason)| *reason).collect();
    assert!(
        reasons.contains(&RemediationReason::WaitingForSilence),
        "{reasons:?}"
    );
}
