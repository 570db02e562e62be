use super::*;
use crate::explain::testkit::{held, in_phase, waiting};
use crate::lock::HolderId;
use crate::name::RunId;
use crate::reboot::{ParsedAnnotation, RebootPhase};

fn there(node: ObservedNode) -> ObservedHolder {
    ObservedHolder::There(Box::new(node))
}

fn is_nobodys(row: &LeaseRow, first: &ObservedHolder, second: &ObservedHolder) -> bool {
    matches!(
        judge_holder(&row.lease, Some((first, second))),
        HolderStatus::Nobody { .. }
    )
}

fn reborn(name: &str) -> ObservedHolder {
    let mut node = node(name);
    node.uid = "another".into();
    there(node)
}

#[test]
fn a_lock_is_nobodys_only_if_two_reads_agree_that_its_node_has_nothing_to_do_with_it() {
    let row = held(0, "n1", 5);
    let idle = || there(node("n1"));
    let busy = || there(waiting("n1", 5));
    for (first, second, free) in [
        (ObservedHolder::Gone, ObservedHolder::Gone, true),
        (reborn("n1"), reborn("n1"), true),
        (idle(), idle(), true),
        (ObservedHolder::Gone, idle(), false),
        (idle(), ObservedHolder::Gone, false),
        (reborn("n1"), idle(), false),
        (idle(), busy(), false),
        (busy(), idle(), false),
        (busy(), busy(), false),
    ] {
        assert_eq!(
            is_nobodys(&row, &first, &second),
            free,
            "{first:?} {second:?}"
        );
    }
}

#[test]
fn every_phase_is_somebody_and_says_how_to_stop_it() {
    for phase in [
        RebootPhase::Waiting,
        RebootPhase::Draining,
        RebootPhase::Rebooting,
        RebootPhase::Returning,
    ] {
        let node = in_phase("n1", phase, 5, ("Draining", ""));
        let found = there(node);
        let judged = judge_holder(&held(0, "n1", 5).lease, Some((&found, &found)));
        let HolderStatus::Somebody { what, instead } = judged else {
            panic!("{phase:?} is nobody");
        };
        assert!(what.contains(phase.as_str()), "{what}");
        assert!(instead.contains("dogwatch abort n1"), "{instead}");
    }
}

#[test]
fn who_holds_through_the_lock_api_or_cannot_be_read_is_somebody() {
    let idle = there(node("n1"));
    let mut api_run = held(0, "n1", 5);
    let record = api_run.lease.record.as_mut().unwrap();
    record.runs = vec![RunId::new("api/p/1").unwrap()];
    assert!(
        !is_nobodys(&api_run, &idle, &idle),
        "a request relies on it"
    );
    let mut unreadable = held(0, "n1", 5);
    unreadable.lease.record = None;
    assert!(
        !is_nobodys(&unreadable, &idle, &idle),
        "its record cannot be read"
    );
    let mut locked = node("n1");
    locked.api_lock = true;
    let locked = there(locked);
    assert!(
        !is_nobodys(&held(0, "n1", 5), &locked, &locked),
        "the lock API has it"
    );
    let mut broken = node("n1");
    broken.record = ParsedAnnotation::Bad { why: "x".into() };
    let broken = there(broken);
    assert!(
        !is_nobodys(&held(0, "n1", 5), &broken, &broken),
        "the Node's record cannot be read"
    );
    for holder in ["api/host-1", "fleetlock/default/x", "remedy"] {
        let mut row = held(0, "n1", 5);
        row.lease.holder = HolderId::new(holder).ok();
        assert!(
            matches!(
                judge_holder(&row.lease, None),
                HolderStatus::Somebody { .. }
            ),
            "{holder}"
        );
    }
}
