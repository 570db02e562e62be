//! A health check that marks a machine again as soon as its Node is missing, and never removes a
//! mark. Source: OpenShift's MachineHealthCheck, `needsRemediation`, `remediationStrategyExternal`.

use super::super::*;
use super::kit::*;
use super::town::Town;

/// Machine a failed, was marked, and its Node was deleted.
fn released() -> Town {
    let mut town = Town::new(&["a"]);
    town.every = 1_000;
    town.site("a").is_connected = false;
    town.run(60);
    town.mark("a");
    town.until("released", |town| town.node("a").is_none());
    town.site("a").is_connected = true;
    town
}

/// Runs, and returns how often the health check marked.
fn run_with_check(town: &mut Town, seconds: u64) -> usize {
    let mut marks = 0;
    for _ in 0..seconds * 20 {
        let is_marked = town.machines[&machine_name("a")].need.is_some();
        if town.node("a").is_none() && !is_marked {
            town.mark("a");
            marks += 1;
        }
        town.tick();
    }
    marks
}

#[test]
fn one_failure_costs_one_power_cut_however_long_the_machine_boots() {
    // Once with time for the cooldown after it is back.
    for (boot, seconds) in [(60_000, 600), (900_000, 1_000)] {
        let mut town = released();
        town.boot = boot;
        assert_eq!(run_with_check(&mut town, seconds), 1, "{boot}");
        let offs = town.site("a").power.power_offs();
        assert_eq!((town.keys[&host_name("a")], offs), (1, 1), "{boot}");
        assert_eq!(town.machine("a").need, None, "{boot}");
        assert!(town.node("a").is_some_and(|node| node.seen.ready));
        assert!(town.leases.is_empty() && !town.keeps("a"));
        let says = town.reasons.iter().map(|(_, reason)| *reason);
        let says: Vec<RemediationReason> = says.collect();
        assert!(
            !says.contains(&RemediationReason::NothingToDo),
            "Dogwatch powered the host off itself: {says:?}"
        );
        let mut events = town.events.iter();
        assert!(events.any(|event| event.contains("which was set again")));
    }
}

#[test]
fn a_machine_that_does_not_come_back_is_cut_once_more_after_its_time() {
    let mut town = released();
    town.site("a").is_connected = false;
    run_with_check(&mut town, 1_500);
    assert_eq!(town.keys[&host_name("a")], 1);
    let mut events = town.events.iter();
    assert!(events.any(|event| event.starts_with("CoolingDown: for more than 10m")));
    run_with_check(&mut town, 600);
    assert_eq!(town.keys[&host_name("a")], 2);
}
