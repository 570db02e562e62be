//! Whatever would refuse the release is checked before a host is switched off, so that no host is
//! switched off in vain. Source: specification §4.1.

use std::collections::BTreeMap;

use super::super::*;
use super::kit::*;
use super::town::Town;
use crate::power::tests::world::World as Power;
use crate::reboot::ObservedNode;

/// Row 1110, with Lease and fencing annotation, and with fresh reads.
struct Asked {
    power: Power,
    node: ObservedNode,
    config: RemediationConfig,
    kept: Option<NodeBackup>,
    lease: HeldRemediationLease,
    around: ConcurrentRemediations,
    is_control_plane: bool,
}

impl Asked {
    fn new() -> Self {
        let mut power = power_of(&host("a"), true);
        power.run(10);
        Self {
            power,
            node: ObservedNode {
                being_fenced: true,
                ..node("a")
            },
            config: RemediationConfig::default(),
            kept: None,
            lease: own_lease(),
            around: ConcurrentRemediations::default(),
            is_control_plane: false,
        }
    }

    fn decision(&self, bmc: Option<&str>) -> RemediationDecision {
        let host = self.power.seen.host.as_ref().clone();
        let machine = ObservedMachine {
            control_plane: self.is_control_plane,
            ..marked("a")
        };
        let mut world = world([machine], [host.clone()], [self.node.clone()]);
        world.leases.insert(node_name("a"), self.lease.clone());
        if let Some(kept) = &self.kept {
            world = keeping(world, stored(&host, kept.clone()));
        }
        let case = case_of(&world, "machine/machines/a").unwrap();
        let now = self.power.now();
        let beat = beat(case.node.as_ref(), 5);
        let power = ObservedPower {
            system_uuid: bmc.map(str::to_owned),
            ..power_seen(&self.power)
        };
        let known = RemediationMemory {
            power: Some(power),
            fresh: Some(fresh(&world, &case, &beat, now.mono)),
            ..RemediationMemory::default()
        };
        decide(&case, &known, &self.around, &self.config, now)
    }
}

/// Whether the decision begins anything; to remove leftovers of an earlier attempt does not count.
fn begins(decision: &RemediationDecision) -> bool {
    let mut actions = decision.actions.iter();
    actions.any(|it| {
        matches!(
            it,
            RemediationAction::TakeLease { .. }
                | RemediationAction::KeepBackup { .. }
                | RemediationAction::AddKey { .. }
        )
    })
}

fn on_the_node() -> NodeBackup {
    NodeBackup::from_node(&node("a"), BTreeMap::new(), Vec::new())
}

#[test]
fn what_is_on_the_node_is_written_down_before_its_host_is_switched_off() {
    let mut it = Asked::new();
    let stale = NodeBackup {
        node: "n-old".into(),
        uid: "uid-old".into(),
        ..NodeBackup::default()
    };
    for kept in [None, Some(stale)] {
        it.kept = kept;
        let first = it.decision(Some(UUID));
        assert_eq!(first.cause.reason, RemediationReason::Preparing);
        assert!(
            matches!(&first.actions[..], [RemediationAction::KeepBackup { .. }]),
            "{first:?}"
        );
    }
    it.kept = Some(on_the_node());
    let then = it.decision(Some(UUID));
    assert!(
        matches!(&then.actions[..], [RemediationAction::AddKey { .. }]),
        "{then:?}"
    );
}

#[test]
fn a_host_whose_bmc_is_another_machines_is_not_switched_off() {
    let mut it = Asked::new();
    it.kept = Some(on_the_node());
    let other = "00112233-1111-4222-8333-0123456789ab";
    let refused = it.decision(Some(other));
    assert_eq!(refused.cause.reason, RemediationReason::WrongHost);
    assert!(!begins(&refused), "{refused:?}");
}

#[test]
fn where_the_identity_has_to_be_known_a_host_that_does_not_tell_it_is_not_switched_off() {
    let mut it = Asked::new();
    it.kept = Some(on_the_node());
    assert!(matches!(
        &it.decision(None).actions[..],
        [RemediationAction::AddKey { .. }]
    ));
    it.config.require_identity = true;
    let refused = it.decision(None);
    assert_eq!(refused.cause.reason, RemediationReason::IdentityUnknown);
    assert!(!begins(&refused), "{refused:?}");
}

#[test]
fn what_is_kept_of_a_node_that_never_came_back_does_not_block_the_next_remediation() {
    let mut town = Town::new(&["a"]);
    let stale = NodeBackup {
        node: "n-old".into(),
        uid: "uid-old".into(),
        labels: [("rack".into(), "r1".into())].into(),
        ..NodeBackup::default()
    };
    let kept = stored(town.host("a"), stale);
    town.backups.insert(kept.host_uid.clone(), kept);
    town.site("a").is_connected = false;
    town.mark("a");
    town.until("gone", |town| town.node("a").is_none());
    town.site("a").is_connected = true;
    town.until("back", |town| {
        town.node("a").is_some_and(|it| it.seen.ready)
    });
    town.run(60);
    assert!(!town.keeps("a") && town.leases.is_empty());
    assert!(town.node("a").unwrap().seen.labels.is_empty());
}

#[test]
fn what_did_not_come_back_on_a_node_that_failed_again_comes_back_on_the_one_after_it() {
    let before = NodeBackup {
        uid: "uid-old".into(),
        labels: [("rack".into(), "r1".into())].into(),
        ..on_the_node()
    };
    let mut now = on_the_node();
    now.labels = [("tier".into(), "db".into())].into();
    let both = now.clone().merged_with(&before);
    assert_eq!(both.uid, now.uid);
    assert_eq!(both.labels.len(), 2);
    assert_eq!(now.merged_with(&both), both, "once more it is the same");
}

#[test]
fn what_is_written_down_has_with_it_what_did_not_come_back_yet_and_nothing_of_another_node() {
    let rack = || [("rack".to_owned(), "r1".to_owned())].into();
    let due = NodeBackup {
        uid: "uid-old".into(),
        labels: rack(),
        ..on_the_node()
    };
    let stale = NodeBackup {
        node: "n-old".into(),
        uid: "uid-old".into(),
        labels: rack(),
        ..NodeBackup::default()
    };
    for (kept, labels) in [(due, rack()), (stale, BTreeMap::new())] {
        let mut it = Asked::new();
        it.kept = Some(kept);
        let first = it.decision(Some(UUID));
        let [RemediationAction::KeepBackup { backup, .. }, then @ ..] = &first.actions[..] else {
            panic!("{first:?}");
        };
        assert_eq!((&*backup.uid, &backup.labels), ("uid-n-a", &labels));
        // Found by the search of remediation's table: otherwise it is dropped with this backup when
        // the remediation has to wait.
        let restored: Vec<&BTreeMap<String, String>> = then
            .iter()
            .filter_map(|action| {
                if let RemediationAction::Restore { backup, .. } = action {
                    return Some(&backup.labels);
                }
                None
            })
            .collect();
        let due: Vec<_> = Some(&labels)
            .filter(|labels| !labels.is_empty())
            .into_iter()
            .collect();
        assert_eq!(restored, due);
    }
}

#[test]
fn a_lease_that_is_not_held_for_certain_is_taken_again_before_the_key() {
    let of_another = HeldRemediationLease {
        subject: Some("machine/machines/b".into()),
        ..own_lease()
    };
    let may_be_freed = HeldRemediationLease {
        may_be_freed: true,
        ..own_lease()
    };
    let alone = HeldRemediationLease {
        alone: true,
        ..own_lease()
    };
    for (lease, is_control_plane, is_taken) in [
        (own_lease(), false, false),
        (alone.clone(), true, false),
        (of_another.clone(), false, true),
        (may_be_freed, false, true),
        (own_lease(), true, true),
    ] {
        let mut it = Asked::new();
        it.kept = Some(on_the_node());
        (it.lease, it.is_control_plane) = (lease, is_control_plane);
        let decision = it.decision(Some(UUID));
        let takes = |action: &RemediationAction| {
            let rule = LeaseConflictRule::FreeLease;
            matches!(action, RemediationAction::TakeLease { on_conflict, .. } if *on_conflict == rule)
        };
        assert_eq!(decision.actions.len(), 1, "{decision:?}");
        assert_eq!(takes(&decision.actions[0]), is_taken, "{decision:?}");
    }
}

/// Two of one Node would otherwise take it from each other for ever.
#[test]
fn a_lease_of_another_remediation_of_the_node_that_is_under_way_is_left_to_it() {
    let mut it = Asked::new();
    it.kept = Some(on_the_node());
    it.lease.subject = Some("machine/machines/b".into());
    it.around.fenced = vec![FencedHost {
        host: host_name("a"),
        node: Some(node_name("a")),
        ..fenced("b", RemediationStage::Preparing)
    }];
    assert!(matches!(
        &it.decision(Some(UUID)).actions[..],
        [RemediationAction::AddKey { .. }]
    ));
    // Of the control plane it is looked at once more, and a refusal does not free it.
    it.is_control_plane = true;
    assert!(matches!(
        &it.decision(Some(UUID)).actions[..],
        [RemediationAction::TakeLease {
            on_conflict: LeaseConflictRule::KeepLease,
            ..
        }]
    ));
}
