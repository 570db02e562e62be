//! A password that a BMC refuses is not tried so often that the BMC locks the account.

use std::time::Duration;

use dogwatch_core::power::{CallCost, HostName};

use super::world::{World, secret};
use super::{HARD, KEY};

/// All calls of these hosts' BMC, in order.
fn calls(world: &World, hosts: &[HostName]) -> Vec<Duration> {
    let called = hosts.iter().flat_map(|name| world.machine(name).called);
    let mut called: Vec<Duration> = called.collect();
    called.sort();
    called
}

fn assert_at_most_two_a_minute(called: &[Duration]) {
    assert!(!called.is_empty());
    for three in called.windows(3) {
        let apart = three[2].saturating_sub(three[0]);
        assert!(apart >= Duration::from_mins(1), "{called:?}");
    }
}

fn refuse_password(world: &World, hosts: &[HostName], refuses: bool) {
    for name in hosts {
        world.change_machine(name, |machine| machine.refuses_password = refuses);
    }
}

#[tokio::test(start_paused = true)]
async fn reads_checks_and_commands_try_a_refused_password_twice_a_minute_at_most() {
    for annotation in [None, Some(KEY)] {
        let mut world = World::new();
        world.cost = CallCost::Process;
        let hosts = [world.add("h0")];
        refuse_password(&world, &hosts, true);
        if let Some(annotation) = annotation {
            world.annotate(&hosts[0], annotation, HARD);
        }
        let _process = world.process("first");
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_at_most_two_a_minute(&calls(&world, &hosts));
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_of_one_bmc_try_a_refused_password_together() {
    for annotation in [None, Some(KEY)] {
        let world = World::new();
        let hosts: Vec<HostName> = (0..8)
            .map(|n| world.add_to_chassis(&format!("h{n}")))
            .collect();
        refuse_password(&world, &hosts, true);
        for name in &hosts {
            if let Some(annotation) = annotation {
                world.annotate(name, annotation, HARD);
            }
        }
        let _process = world.process("first");
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_at_most_two_a_minute(&calls(&world, &hosts));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_secret_is_used_at_once_and_an_account_that_works_again_within_the_pause() {
    for is_new in [true, false] {
        let world = World::new();
        let hosts = ["h0", "h1"].map(|name| world.add_to_chassis(name));
        refuse_password(&world, &hosts, true);
        for name in &hosts {
            world.annotate(name, KEY, HARD);
        }
        let _process = world.process("first");
        tokio::time::sleep(Duration::from_mins(30)).await;
        refuse_password(&world, &hosts, false);
        if is_new {
            world.give_secret("bmc", secret("another"));
        }
        let begun = world.clock.now().mono;
        world
            .until("both are off", |world| {
                hosts.iter().all(|name| !world.machine(name).is_on)
            })
            .await;
        let took = world.clock.now().mono.saturating_sub(begun);
        let most = Duration::from_mins(if is_new { 1 } else { 6 });
        assert!(took <= most + Duration::from_secs(30), "{is_new}: {took:?}");
    }
}
