//! "Cancelled before off: withdrawn. Cancelled after off: the power-on is finished."

use super::super::super::*;
use super::super::kit::node_name;
use super::super::town::Town;
use super::desk::{DELETE, TAINT};
use crate::power::FaultClass;
use crate::power::tests::world::{Says, Takes};

fn is_gone(town: &Town) -> bool {
    town.request("a").is_none()
}

/// Nothing of ours is left, and the host is on.
fn is_clean(town: &Town) {
    assert!(!town.is_keyed("a") && town.is_on("a"));
    assert!(town.leases.is_empty());
    let node = town.node("a").map(|node| &node.seen);
    assert!(node.is_none_or(|node| !node.being_fenced && !node.out_of_service));
}

#[test]
fn before_the_key_nothing_was_done() {
    let mut town = Town::new(&["a"]);
    town.config.max_fenced = 0;
    town.fails("a", DELETE);
    town.run(10);
    assert_eq!(
        town.condition("a", "Remediation").unwrap().1,
        "TooManyFenced"
    );
    town.delete("a");
    town.until("gone", is_gone);
    is_clean(&town);
    assert!(!town.written.contains(&"AddKey".to_owned()));
    assert_eq!(town.cuts("a"), 0);
}

#[test]
fn before_off_the_key_goes_and_the_node_stays() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    town.fails("a", DELETE);
    town.until("keyed", |town| town.is_keyed("a"));
    town.run(5);
    town.delete("a");
    town.run(60);
    assert!(!town.is_keyed("a"));
    assert!(
        !is_gone(&town),
        "the power controller finishes the reboot that was begun"
    );
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(300);
    town.until("gone", is_gone);
    is_clean(&town);
    assert!(town.cuts("a") <= 1);
    assert!(!town.written.contains(&"Release".to_owned()));
    let record = &town.host("a").annotations["dogwatch.dev/remediation"];
    let record: RemediationRecord = serde_json::from_str(record).unwrap();
    assert!(record.time_of_step(RemediationStep::Withdrawn).is_some());
}

/// A key on a host whose power cannot be read would switch off a healthy machine as soon as its BMC
/// answers.
#[test]
fn while_the_bmc_does_not_answer_the_key_goes_all_the_same() {
    let mut town = Town::new(&["a"]);
    town.fails("a", DELETE);
    town.site("a").power.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
    town.until("keyed", |town| town.is_keyed("a"));
    town.site("a").power.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    town.run(120);
    town.delete("a");
    town.run(5);
    assert!(!town.is_keyed("a"));
    // Nobody waits for ever: the power controller goes on, and reports it on the host.
    town.run(620);
    assert!(is_gone(&town));
    let bmc = &mut town.site("a").power.bmcs[0];
    bmc.default_takes = Takes::Runs(300);
    bmc.default_says = Says::Truth;
    town.run(120);
    is_clean(&town);
}

#[test]
fn after_off_the_finalizer_stays_until_the_host_is_on() {
    let mut town = Town::new(&["a"]);
    town.fails("a", DELETE);
    town.until("released", |town| town.node("a").is_none());
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    town.delete("a");
    town.run(120);
    assert!(!town.is_keyed("a") && !town.is_on("a"));
    assert!(!is_gone(&town), "its host is not on yet");
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(300);
    town.until("gone", is_gone);
    assert!(town.is_on("a"));
}

#[test]
fn a_host_that_its_owner_wants_off_is_not_waited_for() {
    let mut town = Town::new(&["a"]);
    town.fails("a", DELETE);
    town.until("released", |town| town.node("a").is_none());
    town.site("a").power.seen.host_mut().online = false;
    town.delete("a");
    town.until("gone", is_gone);
    assert!(!town.is_keyed("a") && !town.is_on("a"));
}

#[test]
fn our_taint_is_lifted_before_the_request_goes() {
    let mut town = Town::new(&["a"]);
    town.desk.left = vec!["default/web-0".into()];
    town.fails("a", TAINT);
    town.until("tainted", |town| {
        town.node("a").unwrap().seen.out_of_service
    });
    town.delete("a");
    town.until("on", |town| town.is_on("a"));
    town.run(30);
    assert!(town.node("a").unwrap().seen.out_of_service);
    assert!(!is_gone(&town), "its taint stands");
    town.site("a").is_connected = true;
    town.until("gone", is_gone);
    is_clean(&town);
}

/// The call that taints gets no answer, and the request is deleted. Returns when that was.
fn deleted_after_an_unanswered_taint(town: &mut Town) -> jiff::Timestamp {
    town.fails("a", TAINT);
    town.until("proved off", |town| {
        town.attempt("a").is_some_and(|it| it.off_at.is_some())
    });
    let at = jiff::Timestamp::from_second(town.now().wall.as_second()).unwrap();
    town.change("a", |it| it.status.tainted_at = Some(at));
    town.delete("a");
    town.site("a").is_connected = true;
    town.run(65);
    assert!(!town.is_keyed("a") && town.is_on("a"));
    assert!(!town.node("a").unwrap().seen.out_of_service);
    assert!(!is_gone(town), "the taint may still come");
    at
}

#[test]
fn a_taint_that_may_still_come_keeps_the_finalizer_until_a_read_shows_that_it_did_not() {
    let mut town = Town::new(&["a"]);
    deleted_after_an_unanswered_taint(&mut town);
    town.until("gone", is_gone);
    is_clean(&town);
}

#[test]
fn a_taint_that_comes_late_is_lifted() {
    let mut town = Town::new(&["a"]);
    let at = deleted_after_an_unanswered_taint(&mut town);
    town.taint(&node_name("a"), at);
    town.until("gone", is_gone);
    is_clean(&town);
    assert!(town.written.contains(&"Untaint".to_owned()));
}

#[test]
fn when_the_health_check_gives_up_it_is_called_off_and_stays_for_the_check_to_delete() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    town.fails("a", DELETE);
    town.until("keyed", |town| town.is_keyed("a"));
    town.change("a", |it| it.timed_out = true);
    town.run(5);
    assert!(!town.is_keyed("a"));
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(300);
    town.until("ended", |town| town.status("a").ended_at.is_some());
    town.run(5);
    let said = |town: &Town, kind| town.condition("a", kind).unwrap();
    assert_eq!(
        said(&town, "Processing"),
        ("False".into(), "TimedOut".into())
    );
    assert_eq!(
        said(&town, "Succeeded"),
        ("False".into(), "TimedOut".into())
    );
    assert!(town.request("a").unwrap().has_finalizer);
    let written = town.written.len();
    // The backup goes once a late deletion of the Node can no longer happen, and nothing else is done.
    assert!(town.keeps("a"));
    town.run(120);
    assert_eq!(town.written[written..], ["DropBackup"]);
    town.delete("a");
    town.until("gone", is_gone);
}

#[test]
fn called_off_at_any_step_it_leaves_nothing_behind() {
    for strategy in [DELETE, TAINT] {
        for step in 1.. {
            let mut town = Town::new(&["a"]);
            town.fails("a", strategy);
            let before = town.written.len();
            let mut ticks = 0;
            while town.written.len() < before + step && ticks < 6_000 {
                town.tick();
                ticks += 1;
                if !town.is_on("a") {
                    town.site("a").is_connected = true;
                }
            }
            if town
                .request("a")
                .is_some_and(|it| it.status.ended_at.is_some())
            {
                assert!(step > 12);
                break;
            }
            town.delete("a");
            town.site("a").is_connected = true;
            town.until("gone", is_gone);
            town.run(120);
            is_clean(&town);
            assert!(town.node("a").unwrap().seen.ready, "step {step}");
            assert!(town.cuts("a") <= 1, "step {step}");
            assert!(!town.keeps("a"), "step {step}");
        }
    }
}
