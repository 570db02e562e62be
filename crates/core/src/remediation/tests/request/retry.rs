//! Attempts, timeouts, and how both end.

use std::time::Duration;

use super::super::super::*;
use super::super::kit::*;
use super::super::town::Town;
use super::desk::{DELETE, TAINT};
use crate::power::FaultClass;
use crate::power::tests::world::{Says, Takes};

const QUICK: RemediationStrategy = RemediationStrategy {
    timeout: Duration::from_mins(3),
    ..DELETE
};

fn has_failed(town: &Town) -> bool {
    town.condition("a", "Succeeded") == Some(("False".into(), "AttemptsUsedUp".into()))
}

/// "attempts = limit + 1", "Succeeded False when the attempts are used up, and then our key is gone
/// too and the host is powered on if its owner wants it on"
#[test]
fn attempts_are_one_more_than_retries_and_in_the_end_the_host_is_on_without_our_key() {
    for retry_limit in 0..3 {
        let mut town = Town::new(&["a"]);
        town.fails(
            "a",
            RemediationStrategy {
                retry_limit,
                ..QUICK
            },
        );
        town.until("failed", has_failed);
        let attempts = retry_limit + 1;
        assert_eq!(town.attempt("a").unwrap().number, attempts);
        assert_eq!(town.cuts("a"), usize::try_from(attempts).unwrap());
        assert!(!town.is_keyed("a"));
        town.run(30);
        assert!(town.is_on("a") && town.leases.is_empty());
        assert_eq!(town.condition("a", "Processing").unwrap().0, "False");
        assert!(town.request("a").unwrap().has_finalizer);
        let written = town.written.len();
        town.run(60);
        assert_eq!(town.written.len(), written, "{:?}", town.written);
    }
}

#[test]
fn an_attempt_that_is_not_enough_is_followed_by_one_that_is() {
    for strategy in [
        QUICK,
        RemediationStrategy {
            kind: StrategyType::OutOfServiceTaint,
            ..QUICK
        },
    ] {
        let mut town = Town::new(&["a"]);
        town.fails("a", strategy);
        let second = |town: &Town| town.attempt("a").is_some_and(|it| it.number == 2);
        town.until("tried again", second);
        town.heals_by_boot("a");
        town.until("done", |town| town.status("a").ended_at.is_some());
        assert_eq!(town.condition("a", "Succeeded").unwrap().0, "True");
        assert_eq!(town.cuts("a"), 2);
        assert!(!town.node("a").unwrap().seen.out_of_service);
    }
}

#[test]
fn a_limit_that_is_lowered_below_the_count_ends_it() {
    let mut town = Town::new(&["a"]);
    town.fails(
        "a",
        RemediationStrategy {
            retry_limit: 9,
            ..QUICK
        },
    );
    town.until("tried again", |town| {
        town.attempt("a").is_some_and(|it| it.number == 3)
    });
    town.change("a", |it| {
        it.strategy = Ok(RemediationStrategy {
            retry_limit: 0,
            ..QUICK
        });
    });
    town.until("failed", has_failed);
    assert_eq!(town.attempt("a").unwrap().number, 3);
}

#[test]
fn a_machine_of_cluster_api_is_handed_back_to_its_owner_once() {
    let mut town = Town::new(&["a"]);
    let mut machine = town.machines.remove(&machine_name("a")).unwrap();
    machine.name.api = MachineApi::ClusterApi;
    town.machines.insert(machine.name.clone(), machine);
    town.fails(
        "a",
        RemediationStrategy {
            retry_limit: 0,
            ..QUICK
        },
    );
    town.until("failed", has_failed);
    town.run(60);
    assert_eq!(
        town.desk.handed_back.len(),
        1,
        "{:?}",
        town.desk.handed_back
    );
}

#[test]
fn what_waits_for_a_guard_uses_no_attempt_up() {
    let mut town = Town::new(&["a"]);
    town.config.max_fenced = 0;
    town.fails(
        "a",
        RemediationStrategy {
            retry_limit: 0,
            ..QUICK
        },
    );
    town.run(900);
    assert_eq!(town.attempt("a"), None);
    assert_eq!(
        town.condition("a", "Processing").unwrap(),
        ("True".into(), "TooManyFenced".into())
    );
    town.config.max_fenced = 1;
    town.heals_by_boot("a");
    town.until("done", |town| town.status("a").ended_at.is_some());
    assert_eq!(town.condition("a", "Succeeded").unwrap().0, "True");
}

/// "An unknown power state is neither 0 nor 1: nothing"
#[test]
fn a_host_that_cannot_be_read_gets_no_key_and_whoever_asked_hears_of_it() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    town.run(180);
    town.fails("a", QUICK);
    town.until("failed", has_failed);
    assert_eq!(town.attempt("a").unwrap().number, 2);
    assert!(!town.written.contains(&"AddKey".to_owned()));
}

#[test]
fn a_key_that_somebody_removes_is_not_put_back_by_the_same_attempt() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    town.fails("a", DELETE);
    town.until("keyed", |town| {
        town.attempt("a").is_some_and(|it| it.key_at.is_some())
    });
    let key = RemediationKey::keys_on_host(town.host("a"))
        .next()
        .unwrap()
        .name;
    town.site("a").power.remove(&key);
    town.until("tried again", |town| {
        town.attempt("a").is_some_and(|it| it.number == 2)
    });
    let keys = town.written.iter().filter(|it| *it == "AddKey");
    assert_eq!(keys.count(), 1);
    town.until("keyed", |town| town.is_keyed("a"));
    assert_eq!(town.attempt("a").unwrap().number, 2);
}

/// CAPM3's fault: a volume attachment that never goes blocks the power-on for ever.
#[test]
fn what_never_leaves_a_tainted_node_does_not_keep_the_host_off() {
    let mut town = Town::new(&["a"]);
    town.desk.left = vec!["default/web-0".into()];
    town.fails(
        "a",
        RemediationStrategy {
            timeout: QUICK.timeout,
            ..TAINT
        },
    );
    town.until("failed", has_failed);
    town.until("on", |town| town.is_on("a"));
    town.site("a").is_connected = true;
    town.until("lifted", |town| {
        !town.node("a").unwrap().seen.out_of_service
    });
}

#[test]
fn nor_does_a_later_attempt_that_waits_for_one() {
    let mut town = Town::new(&["a"]);
    town.fails("a", QUICK);
    town.until("released", |town| town.node("a").is_none());
    town.config.max_fenced = 0;
    town.until("tried again", |town| {
        town.attempt("a").is_some_and(|it| it.number == 2)
    });
    town.run(900);
    // The BMC fails for a moment, long after the attempt would have been over.
    town.site("a").power.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
    town.run(60);
    town.site("a").power.bmcs[0].default_says = Says::Truth;
    town.run(60);
    assert_eq!(town.status("a").ended_at, None);
    town.config.max_fenced = 1;
    town.heals_by_boot("a");
    town.until("done", |town| town.status("a").ended_at.is_some());
    assert_eq!(town.condition("a", "Succeeded").unwrap().0, "True");
}

/// A tainted node whose first attempt ended too late: the host is on again, its kubelet has posted the
/// new boot, and the Node is not Ready. The host's BMC ignores a second power-off.
fn tainted_and_tried_again() -> Town {
    let mut town = Town::new(&["a"]);
    town.fails(
        "a",
        RemediationStrategy {
            timeout: QUICK.timeout,
            ..TAINT
        },
    );
    town.until("tainted", |town| {
        town.node("a").unwrap().seen.out_of_service
    });
    town.until("on", |town| town.is_on("a"));
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    let boots = town.site("a").boots + 1;
    post_boot(&mut town, boots);
    town.until("tried again", |town| {
        town.is_keyed("a") && town.attempt("a").is_some_and(|it| it.number == 2)
    });
    town
}

fn post_boot(town: &mut Town, boots: u32) {
    let node = town.nodes.get_mut(&node_name("a")).unwrap();
    node.seen.boot_id = Some(crate::name::BootId::new(format!("boot-{boots}")).unwrap());
}

#[test]
fn a_new_boot_that_is_ready_after_a_retrys_key_ends_the_request_and_its_taint() {
    let mut town = tainted_and_tried_again();
    town.site("a").is_connected = true;
    town.until("done", |town| town.status("a").ended_at.is_some());
    assert_eq!(town.condition("a", "Succeeded").unwrap().0, "True");
    assert!(!town.node("a").unwrap().seen.out_of_service);
    assert_eq!(town.cuts("a"), 1, "it was back without another one");
}

#[test]
fn the_boot_that_a_retry_ends_is_the_last_one_before_its_off() {
    let mut town = tainted_and_tried_again();
    let first = town.status("a").boot_id.unwrap();
    assert_eq!(first, "boot-0", "the boot that the first attempt ended");
    post_boot(&mut town, 77);
    town.run(1);
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(300);
    town.until("off", |town| {
        town.attempt("a").is_some_and(|it| it.off_at.is_some())
    });
    assert_eq!(town.status("a").boot_id.as_deref(), Some("boot-77"));
}
