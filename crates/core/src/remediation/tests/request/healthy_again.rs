//! "so is a request whose Node is Ready again with a heartbeat later than the request": before each
//! attempt's power-off. Source: specification §4.2.

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

fn is_withdrawn(town: &Town) -> bool {
    town.condition("a", "Succeeded") == Some(("False".into(), "NodeHealthy".into()))
}

fn count_keys(town: &Town) -> usize {
    let keys = town.written.iter().filter(|it| *it == "AddKey");
    keys.count()
}

/// Its BMC accepts commands and does nothing; the key is on the host.
fn keyed_without_power_off(strategy: RemediationStrategy) -> Town {
    let mut town = Town::new(&["a"]);
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    town.fails("a", strategy);
    town.until("keyed", |town| {
        town.attempt("a").is_some_and(|it| it.key_at.is_some())
    });
    town
}

#[test]
fn a_node_that_recovers_while_no_power_off_works_has_its_key_removed_and_is_left_alone() {
    for strategy in [
        QUICK,
        RemediationStrategy {
            timeout: QUICK.timeout,
            ..TAINT
        },
    ] {
        let mut town = keyed_without_power_off(strategy);
        town.site("a").is_connected = true;
        town.run(110);
        assert!(!town.is_keyed("a"), "{:?}", town.reasons);
        assert_eq!(town.attempt("a").unwrap().number, 1);
        town.until("withdrawn", is_withdrawn);
        // However long it takes, no later attempt begins.
        town.run(900);
        assert_eq!(count_keys(&town), 1);
        assert_eq!(town.cuts("a"), 0);
        assert!(town.leases.is_empty() && !town.node("a").unwrap().seen.being_fenced);
        assert!(!town.written.contains(&"Release".to_owned()));
    }
}

/// The power controller owes the host the reboot that it has recorded (specification §3.2). That is
/// said, and no Node is released for it.
#[test]
fn a_reboot_that_is_owed_is_said_and_releases_nothing() {
    let mut town = keyed_without_power_off(QUICK);
    town.site("a").is_connected = true;
    town.until("withdrawn", is_withdrawn);
    let says = |text: &str| town.events.iter().any(|it| it.contains(text));
    assert!(says("still has a pending reboot"), "{:?}", town.events);
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(300);
    town.run(300);
    assert!(town.cuts("a") == 1 && town.is_on("a"));
    assert_eq!(count_keys(&town), 1);
    assert!(!town.written.contains(&"Release".to_owned()));
    assert!(town.node("a").unwrap().seen.ready);
}

/// Here the power is not known, so the key stays until the attempt is over.
#[test]
fn a_node_that_recovers_before_the_next_attempt_is_not_switched_off_by_it() {
    for retry_limit in [0, 1, 3] {
        let strategy = RemediationStrategy {
            retry_limit,
            ..QUICK
        };
        let mut town = keyed_without_power_off(strategy);
        town.site("a").power.bmcs[0].default_takes = Takes::Fails(FaultClass::Unreachable);
        town.site("a").power.bmcs[0].default_says = Says::Fails(FaultClass::Unreachable);
        town.site("a").is_connected = true;
        town.run(100);
        assert!(town.is_keyed("a"));
        town.until("withdrawn", is_withdrawn);
        town.run(600);
        assert_eq!((count_keys(&town), town.cuts("a")), (1, 0));
        assert_eq!(town.attempt("a").unwrap().number, 1);
        assert!(town.desk.handed_back.is_empty());
    }
}

#[test]
fn a_node_that_fails_again_soon_is_served_by_the_next_attempt() {
    let mut town = keyed_without_power_off(QUICK);
    town.site("a").is_connected = true;
    town.until("withdrawing", |town| !town.is_keyed("a"));
    town.run(60);
    assert!(!is_withdrawn(&town));
    town.site("a").is_connected = false;
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(300);
    town.until("tried again", |town| {
        town.attempt("a").is_some_and(|it| it.number == 2)
    });
    town.site("a").is_connected = true;
    town.until("ended", |town| town.status("a").ended_at.is_some());
    assert!(town.is_on("a") && !town.is_keyed("a"));
}

/// A machine that dies while its key stands: what its last heartbeats say is no health.
#[test]
fn the_last_heartbeats_before_a_power_off_remove_no_key() {
    let mut town = Town::new(&["a"]);
    town.site("a").power.bmcs[0].default_takes = Takes::Runs(40_000);
    town.fails("a", DELETE);
    town.until("keyed", |town| town.is_keyed("a"));
    town.site("a").is_connected = true;
    town.until("released", |town| town.node("a").is_none());
    assert_eq!((count_keys(&town), town.cuts("a")), (1, 1));
    town.until("ended", |town| town.status("a").ended_at.is_some());
    assert_eq!(town.condition("a", "Succeeded").unwrap().0, "True");
}

/// The BMC is another machine's: it was proved off, and the Node runs on with the boot that should
/// have ended. The next attempt would only cut that machine's power again.
#[test]
fn a_node_that_runs_on_with_its_old_boot_is_not_tried_again() {
    let mut town = Town::new(&["a"]);
    town.desk.left = vec!["default/web-0".into()];
    let timeout = QUICK.timeout;
    town.fails("a", RemediationStrategy { timeout, ..TAINT });
    town.until("off", |town| town.cuts("a") == 1);
    // The second attempt waits for a guard until the Node is Ready.
    town.config.max_fenced = 0;
    town.until("on again", |town| town.is_on("a"));
    town.site("a").boots -= 1;
    town.site("a").is_connected = true;
    town.until("Ready", |town| town.node("a").unwrap().seen.ready);
    town.config.max_fenced = 1;
    town.run(900);
    let done = (count_keys(&town), town.cuts("a"));
    assert_eq!(done, (1, 1), "{:?}", town.reasons);
    assert!(is_withdrawn(&town), "{:?}", town.reasons);
}

#[test]
fn a_machine_of_cluster_api_that_works_is_not_handed_back_after_the_last_attempt() {
    let mut town = Town::new(&["a"]);
    let mut machine = town.machines.remove(&machine_name("a")).unwrap();
    machine.name.api = MachineApi::ClusterApi;
    town.machines.insert(machine.name.clone(), machine);
    town.site("a").power.bmcs[0].default_takes = Takes::Ignores;
    let retry_limit = 0;
    let strategy = RemediationStrategy {
        retry_limit,
        ..QUICK
    };
    town.fails("a", strategy);
    town.until("keyed", |town| town.is_keyed("a"));
    town.site("a").is_connected = true;
    town.until("withdrawn", is_withdrawn);
    assert!(town.desk.handed_back.is_empty());
}
