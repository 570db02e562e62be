//! §2.2: the decisions of one node about the lock.

use std::time::Duration;

use super::super::*;
use super::kit::*;
use crate::Now;
use crate::limit::UnavailabilityLimit;
use crate::lock::{self, BidPause, HolderNode, ObservedLease, UnavailableCount};

#[test]
fn a_newcomer_that_finds_the_lease_free_bids_at_once_with_its_uid_and_version() {
    let decision = decide(&waiting(vec![free(0)]), &config(), now(5));
    let [RebootAction::Bid { lease, record }] = decision.actions.as_slice() else {
        panic!("{decision:?}");
    };
    assert_eq!(
        (lease.uid.as_str(), lease.resource_version.as_str()),
        ("uid-0", "1")
    );
    assert_eq!(record.runs, [run(RUN)]);
    assert_eq!(record.node_uid.as_deref(), Some("uid-n1"));
}

#[test]
fn who_was_not_called_leaves_the_first_second_to_others() {
    let freed = ObservedLease {
        freed_at: Some(Duration::from_secs(5)),
        ..free(0)
    };
    let decision = decide(&waiting(vec![freed]), &config(), now(5));
    assert_eq!(decision.actions, []);
    assert!(decision.wake.unwrap().at >= Duration::from_secs(6));
}

#[test]
fn while_somebody_else_holds_nothing_is_sent_and_the_holder_is_named() {
    let decision = decide(
        &waiting(vec![held(0, "n2", &["coordinator/x"])]),
        &config(),
        now(5),
    );
    assert_eq!(decision.actions, []);
    assert!(
        decision.cause.message.contains("node/n2"),
        "{}",
        decision.cause.message
    );
}

#[test]
fn a_lease_without_anybody_behind_it_is_broken_on_two_fresh_reads_only() {
    let mut seen = waiting(vec![held(0, "n2", &["coordinator/x"])]);
    let gone = HolderNode::Gone;
    let there = HolderNode::There {
        uid: "uid-n2".into(),
    };
    for (reads, version, broken) in [
        ([gone.clone(), gone.clone()], "1", true),
        ([gone.clone(), there.clone()], "1", false),
        ([there.clone(), there], "1", false),
        ([gone.clone(), gone], "0", false),
    ] {
        seen.lock.holder = Some(ObservedHolderNode {
            lease: "dogwatch-default-0".into(),
            resource_version: version.into(),
            reads: lock::HolderReads {
                nodes: reads.clone(),
                apart: lock::MIN_HOLDER_READ_INTERVAL,
            },
            taken: Duration::ZERO,
        });
        let decision = decide(&seen, &config(), now(5));
        let breaks = matches!(decision.actions.as_slice(), [RebootAction::Break { .. }]);
        assert_eq!(breaks, broken, "{reads:?} at {version}");
    }
}

#[test]
fn who_was_refused_a_break_leaves_it_to_the_controller_and_bids_as_soon_as_the_lock_is_free() {
    let mut seen = waiting(vec![held(0, "n2", &["coordinator/x"])]);
    seen.run.waiting_since = Some(Duration::ZERO);
    seen.run.break_forbidden = true;
    seen.lock.holder = Some(ObservedHolderNode {
        lease: "dogwatch-default-0".into(),
        resource_version: "1".into(),
        reads: lock::HolderReads {
            nodes: [HolderNode::Gone, HolderNode::Gone],
            apart: lock::MIN_HOLDER_READ_INTERVAL,
        },
        taken: Duration::ZERO,
    });
    let hours = Now {
        mono: Duration::from_hours(9),
        ..now(5)
    };
    let decision = decide(&seen, &config(), hours);
    assert!(decision.actions.is_empty(), "{decision:?}");
    let holder = |look: &RebootObserve| matches!(look, RebootObserve::Holder { .. });
    assert!(!decision.observe.iter().any(holder), "{decision:?}");
    seen.lock.leases = Some(vec![free(0)]);
    let decision = decide(&seen, &config(), hours);
    let bids = matches!(decision.actions.as_slice(), [RebootAction::Bid { .. }]);
    assert!(bids, "{decision:?}");
}

#[test]
fn the_holders_node_is_looked_at_seldom_and_one_that_cannot_be_judged_hides_no_other() {
    let host = ObservedLease {
        holder: crate::lock::HolderId::new("api/host").ok(),
        ..held(0, "x", &[])
    };
    let mut seen = waiting(vec![host, held(1, "n2", &["coordinator/x"])]);
    seen.run.waiting_since = Some(Duration::ZERO);
    let config = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(2),
        ..config()
    };
    let soon = decide(&seen, &config, now(5));
    assert!(
        !soon
            .observe
            .iter()
            .any(|look| matches!(look, RebootObserve::Holder { .. }))
    );
    let later = decide(
        &seen,
        &config,
        Now {
            mono: Duration::from_secs(61),
            ..now(61)
        },
    );
    let at_second = |look: &RebootObserve| matches!(look, RebootObserve::Holder { lease } if lease.name == "dogwatch-default-1");
    assert!(later.observe.iter().any(at_second));
}

#[test]
fn waiting_never_spins_however_little_is_known() {
    let above = held(0, "n2", &["coordinator/x"]);
    for leases in [vec![], vec![above.clone()], vec![above, free(1)]] {
        let decision = decide(&waiting(leases.clone()), &config(), now(5));
        let wake = decision.wake.expect("a wait has an end");
        assert!(wake.at > Duration::from_secs(5), "{leases:?}");
    }
}

#[test]
fn the_winner_counts_before_it_touches_anything() {
    let mut seen = waiting(vec![ours()]);
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(decision.actions, []);
    assert!(
        decision
            .observe
            .iter()
            .any(|look| matches!(look, RebootObserve::Count { .. }))
    );
    let stale = UnavailableCount {
        for_resource_version: "0".into(),
        ..nobody_out()
    };
    seen.lock.count = Some(ObservedBudgetCount {
        count: stale,
        taken: Duration::ZERO,
        arrived: Duration::ZERO,
    });
    assert_eq!(
        decide(&seen, &config(), now(5)).actions,
        [],
        "a count for an earlier win"
    );
}

#[test]
fn over_budget_the_lock_goes_back_and_the_next_bid_waits() {
    let mut seen = waiting(vec![ours()]);
    seen.lock.count = Some(ObservedBudgetCount {
        count: over_budget(),
        taken: Duration::ZERO,
        arrived: Duration::ZERO,
    });
    let decision = decide(&seen, &config(), now(5));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Release {
            over_budget: true,
            ..
        }]
    ));
    seen.lock.leases = Some(vec![free(0)]);
    seen.run.bid_pause = Some(BidPause {
        since: Duration::ZERO,
        until: Duration::from_secs(9),
    });
    let backing_off = decide(&seen, &config(), now(5));
    assert_eq!(
        (backing_off.actions, backing_off.wake.unwrap().at.as_secs()),
        (vec![], 9)
    );
    assert!(matches!(
        decide(&seen, &config(), now(9)).actions.as_slice(),
        [RebootAction::Bid { .. }]
    ));
}

#[test]
fn the_next_count_is_due_in_the_future_or_looked_for_now() {
    let mut seen = waiting(vec![ObservedLease {
        record: Some(fresh_record()),
        ..ours()
    }]);
    let count = UnavailableCount {
        higher_slot_undecided: true,
        ..over_budget()
    };
    seen.lock.count = Some(ObservedBudgetCount {
        count,
        taken: Duration::from_secs(4),
        arrived: Duration::from_secs(4),
    });
    let early = decide(
        &seen,
        &config(),
        Now {
            mono: Duration::from_millis(4_200),
            ..now(4)
        },
    );
    assert_eq!(
        early.wake.map(|wake| wake.at),
        Some(Duration::from_millis(4_500))
    );
    let due = decide(&seen, &config(), now(5));
    assert!(
        due.observe
            .iter()
            .any(|look| matches!(look, RebootObserve::Count { .. }))
    );
    assert!(due.wake.is_none_or(|wake| wake.at > Duration::from_secs(5)));
}

fn fresh_record() -> crate::lock::LockRecord {
    crate::lock::LockRecord {
        since: wall(4),
        ..ours().record.unwrap()
    }
}

#[test]
fn the_smallest_maximum_among_bidder_and_holders_rules() {
    let config = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(5),
        ..config()
    };
    let mut seen = waiting(vec![ours()]);
    let count = UnavailableCount {
        maxima: vec![1],
        ..over_budget()
    };
    seen.lock.count = Some(ObservedBudgetCount {
        count,
        taken: Duration::ZERO,
        arrived: Duration::ZERO,
    });
    let decision = decide(&seen, &config, now(5));
    assert!(matches!(
        decision.actions.as_slice(),
        [RebootAction::Release { .. }]
    ));
}

#[test]
fn a_bid_of_unknown_end_is_settled_before_any_other_and_before_leaving() {
    let config = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(2),
        ..config()
    };
    let mut seen = waiting(vec![free(0), free(1)]);
    seen.lock.unsettled_bid = Some("dogwatch-default-1".into());
    for triggers in [vec![present("a")], vec![absent()]] {
        seen.host.triggers = triggers;
        let decision = decide(&seen, &config, now(5));
        assert_eq!(decision.cause.reason, RebootReason::SettlingBid);
        let [RebootAction::Bid { lease, .. }] = decision.actions.as_slice() else {
            panic!("{decision:?}");
        };
        assert_eq!(lease.slot, 1);
    }
}

#[test]
fn who_leaves_gives_up_its_own_id_only_once() {
    let mut seen = waiting(vec![held(0, "n1", &["api/x"])]);
    seen.host.triggers = vec![absent()];
    let decision = decide(&seen, &config(), now(5));
    assert_eq!(
        patch(&decision).record,
        RecordChange::Remove,
        "the rest is the request's to free"
    );
}

#[test]
fn a_node_waits_for_holders_with_a_smaller_maximum_and_checks_whether_they_exist() {
    let config = RebootConfig {
        max_unavailable: UnavailabilityLimit::Count(2),
        ..config()
    };
    let mut seen = waiting(vec![held(0, "n2", &["coordinator/x"]), free(1)]);
    seen.run.waiting_since = Some(Duration::ZERO);
    let decision = decide(&seen, &config, now(5));
    assert!(decision.actions.is_empty(), "{decision:?}");
    assert_eq!(decision.cause.reason, RebootReason::LockHeldByOther);
    let text = decision.cause.message;
    assert!(text.contains("at most 1 may hold it"), "{text}");
    assert!(text.contains("dogwatch-default-0 by node/n2"), "{text}");
    let later = decide(&seen, &config, now(600));
    assert!(
        matches!(later.observe.first(), Some(RebootObserve::Holder { .. })),
        "{:?}",
        later.observe
    );
}

#[test]
fn the_checks_of_holders_are_as_many_as_a_waiting_node_makes() {
    let mut seen = waiting(vec![held(0, "n2", &["coordinator/x"])]);
    seen.run.waiting_since = Some(Duration::ZERO);
    let mut checks = 0;
    for second in 0..3_600_u32 {
        let waited = Duration::from_secs(second.into());
        let decision = decide(&seen, &config(), now(second));
        let mut looks = decision.observe.into_iter();
        if looks.any(|look| matches!(look, RebootObserve::Holder { .. })) {
            checks += 1;
            let there = HolderNode::There {
                uid: "uid-n2".into(),
            };
            seen.lock.holder = Some(ObservedHolderNode {
                lease: "dogwatch-default-0".into(),
                resource_version: "1".into(),
                reads: lock::HolderReads {
                    nodes: [there.clone(), there],
                    apart: Duration::from_secs(1),
                },
                taken: waited,
            });
        }
        assert_eq!(checks, count_holder_checks(waited, seen.run.jitter));
    }
    assert!(checks > 5, "{checks}");
}

#[test]
fn a_group_that_is_blocked_for_long_is_an_event() {
    let seen = waiting(vec![held(0, "n2", &["coordinator/x"])]);
    assert!(!has_event(
        &decide(&seen, &config(), now(3599)),
        RebootReason::LockHeldByOther
    ));
    assert!(has_event(
        &decide(&seen, &config(), now(3600)),
        RebootReason::LockHeldByOther
    ));
    let said = |holder: &str| {
        let seen = waiting(vec![held(0, holder, &["coordinator/x"])]);
        let events = decide(&seen, &config(), now(3600)).report.events;
        let mut events = events.into_iter();
        events.find(|event| event.reason == RebootReason::LockHeldByOther.as_str())
    };
    assert_eq!(
        said("n2"),
        said("n3"),
        "a thousand who wait say it once each, and not at each handover"
    );
    let freed = ObservedLease {
        freed_at: Some(Duration::from_hours(1)),
        ..free(0)
    };
    let turn = decide(&waiting(vec![freed]), &config(), now(3600));
    assert!(!has_event(&turn, RebootReason::NotOurTurn), "soon over");
}

#[test]
fn what_asked_for_it_goes_while_waiting_then_the_lock_goes_before_the_record() {
    let mut seen = waiting(vec![ours()]);
    seen.host.triggers = vec![absent()];
    let first = decide(&seen, &config(), now(5));
    assert!(matches!(
        first.actions.as_slice(),
        [RebootAction::Release {
            over_budget: false,
            ..
        }]
    ));
    seen.lock.leases = Some(vec![free(0)]);
    let then = decide(&seen, &config(), now(5));
    assert_eq!(patch(&then).record, RecordChange::Remove);
    assert_eq!(patch(&then).waiting_label, Some(false));
}

#[test]
fn a_deleted_node_that_holds_a_slot_beside_the_one_given_back_is_looked_at_in_the_pause() {
    let mut seen = waiting(vec![free(0), held(1, "n2", &["coordinator/x"])]);
    seen.run.bid_pause = Some(BidPause {
        since: Duration::ZERO,
        until: Duration::from_secs(9),
    });
    let decision = decide(&seen, &config(), now(5));
    let at_second = |look: &RebootObserve| matches!(look, RebootObserve::Holder { lease } if lease.name == "dogwatch-default-1");
    assert!(decision.observe.iter().any(at_second), "{decision:?}");
    seen.lock.holder = Some(ObservedHolderNode {
        lease: "dogwatch-default-1".into(),
        resource_version: "1".into(),
        reads: lock::HolderReads {
            nodes: [HolderNode::Gone, HolderNode::Gone],
            apart: lock::MIN_HOLDER_READ_INTERVAL,
        },
        taken: Duration::from_secs(5),
    });
    let decision = decide(&seen, &config(), now(6));
    assert!(
        matches!(decision.actions.as_slice(), [RebootAction::Break { .. }]),
        "{decision:?}"
    );
}

#[test]
fn the_nodes_of_several_holders_are_looked_at_in_a_circle() {
    let leases = vec![
        held(0, "n2", &["coordinator/x"]),
        held(1, "n3", &["coordinator/x"]),
        held(2, "n4", &["coordinator/x"]),
    ];
    for (last, next) in [(0, 1), (1, 2), (2, 0)] {
        let mut seen = waiting(leases.clone());
        seen.run.waiting_since = Some(Duration::ZERO);
        let there = HolderNode::There {
            uid: format!("uid-n{}", last + 2),
        };
        seen.lock.holder = Some(ObservedHolderNode {
            lease: leases[last].name.clone(),
            resource_version: "1".into(),
            reads: lock::HolderReads {
                nodes: [there.clone(), there],
                apart: Duration::from_secs(1),
            },
            taken: Duration::ZERO,
        });
        let decision = decide(&seen, &config(), now(1800));
        let expected = RebootObserve::Holder {
            lease: Box::new(leases[next].clone()),
        };
        assert!(
            decision.observe.contains(&expected),
            "after {last}: {decision:?}"
        );
    }
}

#[test]
fn holders_are_checked_at_moments_of_each_nodes_own_half_a_minute_late_at_the_earliest() {
    let table = [
        (0.0, [(29, 0), (30, 1), (329, 1), (330, 2)]),
        (0.5, [(44, 0), (45, 1), (494, 1), (495, 2)]),
    ];
    for (jitter, counts) in table {
        for (second, checks) in counts {
            let counted = count_holder_checks(Duration::from_secs(second), jitter);
            assert_eq!(counted, checks, "{jitter} at {second}");
        }
    }
}

#[test]
fn before_it_bids_or_releases_a_node_writes_down_which_of_the_two_it_is_about_to_do() {
    for (lease, retry_after, message) in [
        (
            free(0),
            None,
            "about to ask for the lock at 2027-01-15T08:00:05Z",
        ),
        (
            ours(),
            Some(wall(60)),
            "about to release the lock at 2027-01-15T08:00:05Z",
        ),
    ] {
        let mut seen = waiting(vec![lease]);
        set_record(&mut seen, |record| record.retry_after = retry_after);
        seen.run.unanswered_patch_version = Some("1".into());
        let decision = decide(&seen, &config(), now(5));
        assert_eq!(written(&decision).message, message);
    }
}

#[test]
fn after_the_pause_the_node_waits_in_line_from_that_moment_on() {
    let mut seen = waiting(vec![free(0)]);
    set_record(&mut seen, |record| record.retry_after = Some(wall(60)));
    let again = decide(&seen, &config(), now(60));
    assert_eq!(written(&again).since, wall(60));
}

#[test]
fn a_count_of_long_ago_is_taken_again_before_the_cordon() {
    let mut seen = waiting(vec![ours()]);
    seen.lock.count = Some(ObservedBudgetCount {
        count: nobody_out(),
        taken: Duration::from_secs(1),
        arrived: Duration::from_secs(1),
    });
    let begins = decide(&seen, &config(), now(11));
    assert_eq!(written(&begins).phase, RebootPhase::Draining);
    // The API server took a minute to answer: another count would take as long.
    seen.lock.count.as_mut().unwrap().arrived = Duration::from_mins(1);
    let begins = decide(&seen, &config(), now(60));
    assert_eq!(written(&begins).phase, RebootPhase::Draining);
    // The patch failed for an hour. Other nodes may have failed meanwhile.
    let counts = decide(&seen, &config(), now(3600));
    assert_eq!(counts.actions, []);
    assert_eq!(counts.cause.reason, RebootReason::CountingBudget);
    let again = |look: &RebootObserve| matches!(look, RebootObserve::Count { newer_than, .. } if newer_than.as_secs() == 1);
    assert!(counts.observe.iter().any(again), "{:?}", counts.observe);
}

#[test]
fn a_long_wait_is_reported_after_an_hour_in_which_the_policy_allowed_the_reboot() {
    let mut seen = waiting(vec![held(0, "n2", &["coordinator/x"])]);
    seen.run.permission_since = Some(Duration::from_hours(2));
    let warns = |second| {
        let decision = decide(&seen, &config(), now(second));
        let events = decision.report.events.into_iter();
        let waits = events.filter(|event| event.reason == "LockHeldByOther");
        waits.map(|event| event.message).collect::<Vec<String>>()
    };
    assert_eq!(warns(7300), [""; 0], "it waited for its window");
    assert_eq!(warns(7200 + 3599), [""; 0]);
    let text =
        "has waited in line for more than an hour; `dogwatch explain node/n1` shows for what";
    assert_eq!(warns(7200 + 3600), [text]);
    seen.run.permission_since = None;
    assert!(!has_event(
        &decide(&seen, &config(), now(3599)),
        RebootReason::LockHeldByOther
    ));
    assert!(has_event(
        &decide(&seen, &config(), now(3600)),
        RebootReason::LockHeldByOther
    ));
}
