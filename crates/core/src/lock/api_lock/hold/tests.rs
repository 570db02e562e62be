//! Steps of a request whose id is on a Lease, case by case.

use jiff::Timestamp;

use super::super::super::testkit::{free, held, record, run};
use super::super::node::tests::{locked, node};
use super::*;
use crate::name::NodeName;
use crate::reboot::ParsedAnnotation;

fn me() -> HolderId {
    HolderId::for_api_host("h")
}

fn mine(runs: &[&str]) -> ObservedLease {
    ObservedLease {
        holder: Some(me()),
        record: Some(record("h", runs)),
        ..free(0)
    }
}

struct Facts {
    leases: Vec<ObservedLease>,
    node: Option<ApiNode>,
    verdict: Option<BudgetVerdict>,
    may_go: bool,
    has_closed: bool,
    drained: bool,
}

fn facts(runs: &[&str], node: Option<ApiNode>) -> Facts {
    let mut mine = mine(runs);
    if node.is_none() {
        let record = mine.record.as_mut().unwrap();
        (record.node, record.node_uid) = (None, None);
    }
    Facts {
        leases: vec![mine],
        node,
        verdict: None,
        may_go: false,
        has_closed: false,
        drained: false,
    }
}

fn step(facts: &Facts) -> HoldStep {
    let (holder, run) = (me(), run("api/p/1"));
    let seen = HoldSnapshot {
        holder: &holder,
        run: &run,
        leases: &facts.leases,
        node: facts.node.as_ref(),
        verdict: facts.verdict.clone(),
        may_go: facts.may_go,
        has_closed: facts.has_closed,
        drained: facts.drained,
    };
    decide_hold(&seen, Timestamp::UNIX_EPOCH)
}

fn word(step: &HoldStep) -> &'static str {
    match step {
        HoldStep::Lost => "lost",
        HoldStep::Unlocked { .. } => "unlocked",
        HoldStep::Refuse { .. } => "refuse",
        HoldStep::Count { .. } => "count",
        HoldStep::OverBudget { .. } => "over budget",
        HoldStep::NodeGone { .. } => "node gone",
        HoldStep::NodeAppeared { .. } => "node appeared",
        HoldStep::Cordon { .. } => "cordon",
        HoldStep::Vetoed { .. } => "vetoed",
        HoldStep::Drain { .. } => "drain",
        HoldStep::Fenced { .. } => "fenced",
        HoldStep::Answer { .. } => "answer",
    }
}

#[test]
fn whoever_is_not_written_on_a_lease_has_lost_it() {
    let mut facts = facts(&["api/p/2"], None);
    assert_eq!(word(&step(&facts)), "unlocked", "the host still holds it");
    facts.leases = vec![held(0, "n1", &["api/p/1"])];
    assert_eq!(step(&facts), HoldStep::Lost, "another's Lease");
    facts.leases = vec![free(0)];
    assert_eq!(step(&facts), HoldStep::Lost);
}

#[test]
fn nobody_goes_ahead_uncounted() {
    let why = || "two are out".to_owned();
    let table = [
        (None, "count"),
        (Some(BudgetVerdict::StaleCount), "count"),
        (
            Some(BudgetVerdict::WaitForHigherSlot { why: why() }),
            "count",
        ),
        (
            Some(BudgetVerdict::YieldOverBudget { why: why() }),
            "over budget",
        ),
        (Some(BudgetVerdict::Go), "answer"),
    ];
    for (verdict, expected) in table {
        let facts = Facts {
            verdict,
            ..facts(&["api/p/1"], None)
        };
        assert_eq!(word(&step(&facts)), expected);
    }
}

#[test]
fn who_was_told_before_is_not_counted_again() {
    let told = facts(&["answered/q/7", "api/p/1"], None);
    assert_eq!(word(&step(&told)), "answer");
    let waiting = facts(&["api/q/7", "api/p/1"], None);
    assert_eq!(
        word(&step(&waiting)),
        "count",
        "the other one is no further"
    );
    let closed = || Some(node(true, locked("api/q/7", true)));
    let went_ahead = facts(&["api/q/7", "api/p/1"], closed());
    assert_eq!(word(&step(&went_ahead)), "cordon");
    let stale = facts(&["api/p/1"], closed());
    assert_eq!(
        word(&step(&stale)),
        "count",
        "a cordon of an older lock proves nothing"
    );
}

#[test]
fn no_node_is_cordoned_that_the_record_does_not_name() {
    let open = || Some(node(false, ParsedAnnotation::Absent));
    for runs in [&["api/p/1"][..], &["answered/q/7", "api/p/1"]] {
        let facts = Facts {
            node: open(),
            may_go: true,
            ..facts(runs, None)
        };
        assert_eq!(word(&step(&facts)), "node appeared", "{runs:?}");
    }
    let named = Facts {
        may_go: true,
        ..facts(&["api/p/1"], open())
    };
    assert_eq!(word(&step(&named)), "cordon");
}

#[test]
fn a_node_is_cordoned_then_drained_and_only_then_its_host_told() {
    let mut facts = Facts {
        may_go: true,
        ..facts(&["api/p/1"], Some(node(false, ParsedAnnotation::Absent)))
    };
    assert_eq!(word(&step(&facts)), "cordon");
    facts.node = Some(node(true, locked("api/p/1", true)));
    assert_eq!(word(&step(&facts)), "drain");
    facts.drained = true;
    let HoldStep::Answer { record, .. } = step(&facts) else {
        panic!("{:?}", step(&facts))
    };
    assert_eq!(record.runs, [run("answered/p/1")]);
}

#[test]
fn a_node_that_is_deleted_before_it_was_drained_is_not_told_as_held() {
    let uid = |uid: &str, lock| {
        let mut node = node(true, lock);
        node.seen.uid = uid.into();
        Some(node)
    };
    let mine = || locked("api/p/1", true);
    let table = [
        (None, &["api/p/1"][..], "node gone"),
        (
            uid("another", ParsedAnnotation::Absent),
            &["api/p/1"],
            "node gone",
        ),
        (uid("another", mine()), &["api/p/1"], "node gone"),
        (uid("uid-h", mine()), &["api/p/1"], "drain"),
        // Answered before: its lock stays, and a Node that is back is cordoned again.
        (None, &["answered/q/7", "api/p/1"], "answer"),
        (
            uid("another", ParsedAnnotation::Absent),
            &["answered/q/7", "api/p/1"],
            "cordon",
        ),
    ];
    for (seen, runs, expected) in table {
        let facts = Facts {
            node: seen.clone(),
            may_go: true,
            ..facts(runs, Some(node(true, mine())))
        };
        assert_eq!(word(&step(&facts)), expected, "{runs:?} {seen:?}");
    }
}

#[test]
fn on_a_node_that_is_being_fenced_nothing_is_begun_and_what_was_begun_stays_as_it_is() {
    let fenced = |unschedulable, lock| {
        let mut node = node(unschedulable, lock);
        node.seen.being_fenced = true;
        Some(node)
    };
    let table = [
        (fenced(false, ParsedAnnotation::Absent), false, "refuse"),
        (fenced(true, locked("api/q/7", true)), false, "refuse"),
        (fenced(true, locked("api/p/1", true)), false, "fenced"),
        (fenced(true, locked("api/p/1", true)), true, "fenced"),
        (Some(node(true, locked("api/p/1", true))), true, "answer"),
    ];
    for (node, drained, expected) in table {
        let facts = Facts {
            may_go: true,
            drained,
            ..facts(&["api/p/1"], node)
        };
        assert_eq!(word(&step(&facts)), expected, "{:?}", facts.node);
    }
}

#[test]
fn a_retry_writes_the_cordon_itself_so_that_an_uncordon_on_its_way_fails() {
    let mut facts = Facts {
        may_go: true,
        drained: true,
        ..facts(
            &["api/q/7", "api/p/1"],
            Some(node(true, locked("api/q/7", true))),
        )
    };
    let HoldStep::Cordon { write, .. } = step(&facts) else {
        panic!("{:?}", step(&facts))
    };
    assert_eq!(write.unschedulable, None);
    assert!(write.lock.is_some_and(|lock| lock.cordoned_by_us));
    facts.has_closed = true;
    assert_eq!(word(&step(&facts)), "answer", "once is enough");
}

/// The runs on the host's Lease, the annotation on its cordoned Node, the step, and whether the
/// policy must allow it.
#[test]
fn the_policy_is_asked_until_the_host_was_told_that_it_holds() {
    let (first, again) = (&["api/p/1"][..], &["answered/q/7", "api/p/1"][..]);
    let (ours, others) = (locked("api/p/1", true), locked("api/q/7", true));
    let table = [
        (first, ParsedAnnotation::Absent, "cordon", true),
        (first, others, "cordon", false),
        (first, ours.clone(), "drain", true),
        (again, ParsedAnnotation::Absent, "cordon", false),
        (again, ours, "drain", false),
    ];
    for (runs, lock, expected, expects_allowance) in table {
        let step = step(&Facts {
            may_go: true,
            has_closed: expected == "drain",
            ..facts(runs, Some(node(true, lock)))
        });
        assert_eq!(word(&step), expected, "{runs:?}");
        let (HoldStep::Cordon {
            needs_allowance, ..
        }
        | HoldStep::Drain { needs_allowance }) = step
        else {
            panic!("{step:?}")
        };
        assert_eq!(needs_allowance, expects_allowance, "{runs:?} {expected}");
    }
}

#[test]
fn an_uncordon_is_a_veto_only_after_the_cordon() {
    let table = [
        (
            node(false, locked("api/p/1", true)),
            "somebody uncordoned node h: that is a veto",
        ),
        (
            node(true, ParsedAnnotation::Absent),
            "somebody removed annotation dogwatch.dev/api-lock from node h: that is a veto",
        ),
    ];
    for (node, veto) in table {
        let mut facts = Facts {
            may_go: true,
            ..facts(&["api/p/1"], Some(node))
        };
        assert_eq!(word(&step(&facts)), "cordon");
        facts.has_closed = true;
        let why = veto.to_owned();
        assert_eq!(step(&facts), HoldStep::Vetoed { why });
    }
}

#[test]
fn a_node_that_another_host_of_this_lock_stands_for_is_left_alone() {
    let other = ObservedLease {
        holder: Some(HolderId::for_fleetlock_client("default", "h")),
        record: Some(record("h", &["answered/q/1"])),
        ..free(1)
    };
    let lock = crate::lock::api_lock::ApiLock {
        lease: other.name.clone(),
        ..locked("answered/q/1", true).get().unwrap().clone()
    };
    let mut facts = facts(&["api/p/1"], Some(node(true, ParsedAnnotation::Is(lock))));
    facts.leases.push(other);
    assert_eq!(word(&step(&facts)), "refuse");
    facts.leases[1].record.as_mut().unwrap().node = NodeName::new("somebody").ok();
    assert_eq!(
        word(&step(&facts)),
        "count",
        "the annotation is a left-over"
    );
}
