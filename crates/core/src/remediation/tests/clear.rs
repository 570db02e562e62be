//! A release needs every one of its conditions. Serves S2.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::kit::*;
use crate::power::HostSnapshot;
use crate::power::tests::world::World as Power;
use crate::reboot::ObservedNode;

/// Row 1101, with everything that a release needs.
#[derive(Clone)]
pub(super) struct Ready {
    pub(super) case: Remediation,
    pub(super) known: RemediationMemory,
    pub(super) config: RemediationConfig,
    pub(super) now: crate::Now,
}

pub(super) const S: Duration = Duration::from_secs(1);

pub(super) fn ready() -> Ready {
    let owner = KeyOwner::Machine("uid-a".into());
    let host = begun(host("a"), &owner);
    let node = ObservedNode {
        being_fenced: true,
        ..node("a")
    };
    let mut power = power_of(&host, true);
    power.until_confirmed();
    power.run(7);
    ready_with(&power, &node)
}

fn ready_with(power: &Power, node: &ObservedNode) -> Ready {
    let world = world(
        [marked("a")],
        [power.seen.host.as_ref().clone()],
        [node.clone()],
    );
    let backup = NodeBackup::from_node(node, BTreeMap::new(), Vec::new());
    let mut world = keeping(world, stored(&power.seen.host, backup));
    world.leases.insert(node_name("a"), own_lease());
    let case = case_of(&world, "machine/machines/a").unwrap();
    let now = power.now();
    let beat = beat(case.node.as_ref(), 5);
    let taken = now.mono.saturating_sub(S);
    let mut known = RemediationMemory {
        power: Some(power_seen(power)),
        fresh: Some(fresh(&world, &case, &beat, taken)),
        ..RemediationMemory::default()
    };
    let before = now.mono.saturating_sub(S * 60);
    known.record_heartbeat(before, before, beat.clone());
    known.record_heartbeat(taken, now.mono, beat);
    Ready {
        case,
        known,
        config: RemediationConfig::default(),
        now,
    }
}

impl Ready {
    pub(super) fn context<'a>(
        &'a self,
        concurrent: &'a ConcurrentRemediations,
    ) -> context::RemediationContext<'a> {
        context::RemediationContext {
            case: &self.case,
            memory: &self.known,
            concurrent,
            config: &self.config,
            now: self.now,
        }
    }

    pub(super) fn decision(&self) -> RemediationDecision {
        let around =
            ConcurrentRemediations::from_remediations(std::slice::from_ref(&self.case), |_| true);
        decide(&self.case, &self.known, &around, &self.config, self.now)
    }

    pub(super) fn releases(&self) -> bool {
        let actions = self.decision().actions;
        actions
            .iter()
            .any(|action| matches!(action, RemediationAction::Release(_)))
    }

    pub(super) fn fresh(&mut self) -> &mut FreshReads {
        self.known.fresh.as_mut().unwrap()
    }

    fn fresh_host(&mut self) -> &mut HostSnapshot {
        Arc::make_mut(self.fresh().host.as_mut().unwrap())
    }

    pub(super) fn fresh_node(&mut self) -> &mut ObservedNode {
        Arc::make_mut(self.fresh().node.as_mut().unwrap())
    }

    pub(super) fn power(&mut self) -> &mut ObservedPower {
        self.known.power.as_mut().unwrap()
    }

    fn since(&self) -> Duration {
        let power = self.known.power.as_ref().unwrap();
        power
            .proof
            .as_ref()
            .map_or(S, power::PowerOffProof::valid_since)
    }

    /// The heartbeats: when each was requested, and its value.
    fn beats(&mut self, seen: &[(Duration, i64)]) {
        self.known.heartbeats = None;
        for (asked, second) in seen {
            let beat = beat(self.case.node.as_ref(), *second);
            self.known.record_heartbeat(*asked, *asked, beat);
        }
    }
}

use crate::power;

/// Breaks one condition.
type Breaks = fn(&mut Ready);

const CONDITIONS: [(&str, Breaks); 30] = [
    ("no proof", |it| it.power().proof = None),
    ("a reading that says on", |it| {
        it.power().now = power::CurrentPower::On;
    }),
    ("nothing known of the power", |it| it.known.power = None),
    (
        "the key has another value than the one that was proved",
        |it| {
            let host = Arc::make_mut(it.case.host.as_mut().unwrap());
            let value = host.annotations.get_mut(MACHINE_KEY).unwrap();
            value.insert(1, ' ');
        },
    ),
    ("the proof is of a host with another UID", |it| {
        Arc::make_mut(it.case.host.as_mut().unwrap()).uid = "other".into();
    }),
    ("the proof is of a host with another name", |it| {
        Arc::make_mut(it.case.host.as_mut().unwrap()).name = host_name("b");
    }),
    ("the link is refused", |it| {
        it.case.problem = Some((RemediationReason::HostShared, String::new()));
    }),
    ("nothing was read afresh", |it| it.known.fresh = None),
    ("what was read is 5 s old", |it| {
        it.now.mono = it.known.fresh.as_ref().unwrap().asked_at + RemediationConfig::RELEASE_WITHIN;
    }),
    ("it was read before the proof", |it| {
        let since = it.since();
        it.fresh().asked_at = since.saturating_sub(Duration::from_millis(1));
        it.now.mono = since + S * 3;
    }),
    ("the host is gone", |it| it.fresh().host = None),
    ("the host was replaced", |it| {
        it.fresh_host().uid = "other".into();
    }),
    ("the key is gone", |it| {
        it.fresh_host().annotations.remove(MACHINE_KEY);
    }),
    ("the key is another Machine's", |it| {
        let other = KeyOwner::Machine("uid-b".into());
        it.fresh_host()
            .annotations
            .insert(MACHINE_KEY.into(), other.annotation_value());
    }),
    ("the key was put there anew, in other words", |it| {
        let host = it.fresh_host();
        let value = host.annotations.get_mut(MACHINE_KEY).unwrap();
        value.insert(1, ' ');
    }),
    ("the need is gone", |it| {
        it.fresh().needs_remediation = false;
    }),
    ("the Node is gone", |it| it.fresh().node = None),
    ("the Node was replaced", |it| {
        it.fresh_node().uid = "other".into();
    }),
    ("the watch shows another Node", |it| {
        let node = it.case.node.as_mut().unwrap();
        Arc::make_mut(node).uid = "another".into();
    }),
    ("another machine's BMC", |it| {
        it.fresh_node().system_uuid = Some("4d2c7f0e-1111-4222-8333-0123456789ac".into());
    }),
    ("no identity, where it is required", |it| {
        it.fresh_node().system_uuid = None;
        it.config.require_identity = true;
    }),
    ("no sign of life was looked at before", |it| {
        it.known.heartbeats = None;
    }),
    ("it was looked at once", |it| {
        let taken = it.known.fresh.as_ref().unwrap().asked_at;
        it.beats(&[(taken, 5)]);
    }),
    ("it moved after the first reading", |it| {
        let since = it.since();
        it.beats(&[(since.saturating_sub(S), 4), (since, 5)]);
    }),
    ("it moved since it was looked at last", |it| {
        it.fresh().heartbeat = beat(it.case.node.as_ref(), 6);
    }),
    ("it is that of another Node", |it| {
        let mut other = beat(it.case.node.as_ref(), 5);
        other.node_uid = Some("other".into());
        it.known.heartbeats = Some(HeartbeatHistory::new(S, S, other));
    }),
    ("what is on the Node is not kept", |it| {
        it.case.stored_backup = None;
    }),
    ("what was kept is gone, by a fresh read", |it| {
        it.fresh().stored_backup = None;
    }),
    ("what was kept was changed, by a fresh read", |it| {
        if let Some(kept) = it.fresh().stored_backup.as_mut() {
            Arc::make_mut(kept).resource_version = "newer".into();
        }
    }),
    ("what is kept is another Node's", |it| {
        if let Some(kept) = it.case.stored_backup.as_mut() {
            Arc::make_mut(kept).backup.uid = "uid-old".into();
        }
    }),
];

#[test]
fn a_node_is_released_when_all_conditions_hold() {
    let ready = ready();
    let decision = ready.decision();
    assert!(ready.releases(), "{decision:#?}");
    let RemediationAction::Release(release) = &decision.actions[0] else {
        panic!("{decision:?}");
    };
    let cleared = &release.permit;
    assert_eq!(cleared.node().as_str(), "n-a");
    assert_eq!(cleared.node_uid(), "uid-n-a");
    assert_eq!(cleared.host(), &host_name("a"));
    let taken = ready.known.fresh.unwrap().asked_at;
    let until = taken + Duration::from_secs(5);
    assert!(cleared.is_valid_at(until.saturating_sub(Duration::from_nanos(1))));
    assert!(!cleared.is_valid_at(until));
}

#[test]
fn each_condition_alone_holds_it_back_and_says_why() {
    for (what, breaks) in CONDITIONS {
        let mut it = ready();
        breaks(&mut it);
        let decision = it.decision();
        assert!(!it.releases(), "{what}");
        let goes_on =
            !decision.observe.is_empty() || !decision.actions.is_empty() || decision.wake.is_some();
        assert!(goes_on, "{what}: waits without an end");
        assert_ne!(decision.cause.reason, RemediationReason::Released, "{what}");
    }
}

#[test]
fn why_it_is_held_back_is_the_fields_own_word() {
    for (what, word) in [
        ("another machine's BMC", RemediationReason::WrongHost),
        (
            "no identity, where it is required",
            RemediationReason::IdentityUnknown,
        ),
        (
            "it moved after the first reading",
            RemediationReason::NodeIsAlive,
        ),
        (
            "it moved since it was looked at last",
            RemediationReason::NodeIsAlive,
        ),
        ("the Node was replaced", RemediationReason::NodeReplaced),
        ("no proof", RemediationReason::ProvingOff),
        ("the link is refused", RemediationReason::HostShared),
    ] {
        let mut it = ready();
        let breaks = CONDITIONS.iter().find(|(name, _)| *name == what).unwrap().1;
        breaks(&mut it);
        let decision = it.decision();
        let because = decision.cause;
        // Off by a reading, without a proof: the power controller's reason decides.
        assert_eq!(because.reason, word, "{what}: {}", because.message);
    }
}

#[test]
fn a_sign_of_life_that_moved_before_the_host_was_off_holds_nothing_back() {
    let mut it = ready();
    let since = it.since();
    it.beats(&[
        (since.saturating_sub(S * 9), 4),
        (since.saturating_sub(S), 5),
    ]);
    assert!(it.releases());
}

#[test]
fn a_sign_of_life_that_came_late_holds_it_back_until_off_was_read_twice_after_it() {
    let owner = KeyOwner::Machine("uid-a".into());
    let mut power = power_of(&begun(host("a"), &owner), true);
    power.until_confirmed();
    power.run(2);
    let node = node("a");
    let mut it = ready_with(&power, &node);
    let moved = it.now.mono.saturating_sub(S);
    it.beats(&[(moved.saturating_sub(S * 30), 4), (moved, 5)]);
    assert_eq!(it.decision().cause.reason, RemediationReason::NodeIsAlive);
    // The held host is read on.
    power.run(130);
    let mut it = ready_with(&power, &node);
    it.beats(&[(moved.saturating_sub(S * 30), 4), (moved, 5)]);
    assert_ne!(it.decision().cause.reason, RemediationReason::NodeIsAlive);
}

#[test]
fn what_is_on_the_node_is_kept_first_whatever_else_was_kept_for_the_host() {
    let other = |node: &str| NodeBackup {
        node: node.into(),
        uid: "uid-old".into(),
        ..NodeBackup::default()
    };
    for there in [None, Some(other("n-a")), Some(other("n-old"))] {
        let mut it = ready();
        let host = Arc::clone(it.case.host.as_ref().unwrap());
        it.case.stored_backup = there.map(|there| Arc::new(stored(&host, there)));
        let over = it.case.stored_backup.clone();
        let wanted = it.fresh().backup.clone().unwrap();
        let keep = RemediationAction::KeepBackup {
            host,
            backup: wanted,
            over,
        };
        assert_eq!(it.decision().actions, vec![keep]);
    }
}

proptest! {
    #[test]
    fn no_set_of_broken_conditions_releases(
        broken in proptest::collection::btree_set(0..CONDITIONS.len(), 0..6),
        later in 0_u64..6_000,
    ) {
        let mut it = ready();
        for at in &broken {
            // After some breaks there is nothing left for another to break.
            let breaks = CONDITIONS[*at].1;
            let has_all = it.known.fresh.as_ref().is_some_and(|fresh| fresh.host.is_some() && fresh.node.is_some())
                && it.known.power.is_some()
                && it.case.host.as_ref().is_ok_and(|host| host.annotations.contains_key(MACHINE_KEY))
                && it.known.fresh.as_ref().and_then(|fresh| fresh.host.as_ref()).is_some_and(|host| host.annotations.contains_key(MACHINE_KEY));
            if has_all {
                breaks(&mut it);
            }
        }
        let taken = it.known.fresh.as_ref().map_or(it.now.mono, |fresh| fresh.asked_at);
        if broken.is_empty() {
            it.now.mono = taken + Duration::from_millis(later);
            prop_assert_eq!(it.releases(), later < 5_000);
        } else {
            prop_assert!(!it.releases(), "{:?}", broken);
        }
    }
}
