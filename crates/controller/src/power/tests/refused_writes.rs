//! Hosts whose status cannot be written delay no other host that needs the same permits.

use std::time::Duration;

use dogwatch_core::power::{CallCost, HostName, PendingCommandEnd};

use super::world::{Process, World};
use super::{HARD, KEY, assert_off_without_delay};

async fn until_all_are_read(world: &World, hosts: &[HostName]) {
    world
        .until("all are read", |world| {
            let is_read = |name| world.host(name).status.powered_on == Some(true);
            hosts.iter().all(is_read)
        })
        .await;
}

/// Each write of these hosts is refused from now on, and each must go off.
async fn fence_and_refuse(world: &World, hosts: &[HostName]) {
    world.lock().refused.extend(hosts.iter().cloned());
    for name in hosts {
        world.annotate(name, KEY, HARD);
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
}

/// Five hosts of one chassis, and the process: the writes of the first four are refused.
async fn chassis_with_four_refused() -> (World, [HostName; 5], Process) {
    let world = World::new();
    let names = ["h0", "h1", "h2", "h3", "h4"];
    let hosts = names.map(|name| world.add_to_chassis(name));
    let process = world.process("first");
    until_all_are_read(&world, &hosts).await;
    fence_and_refuse(&world, &hosts[..4]).await;
    (world, hosts, process)
}

#[tokio::test(start_paused = true)]
async fn hosts_whose_writes_are_refused_keep_no_bmc_from_the_others_in_their_chassis() {
    let (world, hosts, _process) = chassis_with_four_refused().await;
    assert_off_without_delay(&world, &hosts[4]).await;
    for name in &hosts[..4] {
        assert!(world.machine(name).commands.is_empty(), "not recorded");
    }
    // Once the writes succeed, those hosts go off as well.
    world.lock().refused.clear();
    world
        .until("all are off", |world| {
            hosts.iter().all(|name| !world.machine(name).is_on)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_writes_are_refused_keeps_no_child_process_from_another_host() {
    let mut world = World::new();
    world.max_concurrent = 1;
    world.cost = CallCost::Process;
    let hosts = ["h0", "h1"].map(|name| world.add(name));
    let _process = world.process("first");
    until_all_are_read(&world, &hosts).await;
    fence_and_refuse(&world, &hosts[..1]).await;
    world.annotate(&hosts[1], KEY, HARD);
    let asked = world.clock.now().mono;
    world
        .until("it is off", |world| !world.machine(&hosts[1]).is_on)
        .await;
    let took = world.clock.now().mono.saturating_sub(asked);
    assert!(took < Duration::from_millis(250), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_even_be_written_slowly_holds_its_permit_for_one_write() {
    let (world, hosts, _process) = chassis_with_four_refused().await;
    // From now on their writes have no answer at all.
    world.lock().stuck.extend(hosts[..4].iter().cloned());
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_off_without_delay(&world, &hosts[4]).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_succeeds_after_refusals_is_followed_by_its_command() {
    let world = World::new();
    let hosts = [world.add("h0")];
    let _process = world.process("first");
    until_all_are_read(&world, &hosts).await;
    fence_and_refuse(&world, &hosts).await;
    world.lock().refused.clear();
    world
        .until("off is confirmed", |world| {
            let power = world.host(&hosts[0]).status.power;
            power.off_confirmed_at.is_some()
        })
        .await;
    let power = world.host(&hosts[0]).status.power;
    let command = power.command.unwrap();
    assert!(
        matches!(command.end, PendingCommandEnd::Answered { .. }),
        "{command:?}"
    );
    assert_eq!(world.machine(&hosts[0]).commands.len(), 1, "sent once");
}

/// How often the status of these hosts was written, or refused, within this time.
async fn count_writes(world: &World, within: Duration) -> usize {
    world.lock().calls.clear();
    tokio::time::sleep(within).await;
    let calls = &world.lock().calls;
    calls
        .iter()
        .filter(|call| call.contains(" writes "))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_conflict_that_no_newer_version_explains_is_not_written_at_full_speed() {
    let world = World::new();
    let names = ["h0", "h1", "h2", "h3", "h4"];
    let hosts = names.map(|name| world.add_to_chassis(name));
    let _process = world.process("first");
    until_all_are_read(&world, &hosts).await;
    world.lock().conflicting.extend(hosts[..4].iter().cloned());
    for name in &hosts[..4] {
        world.annotate(name, KEY, HARD);
    }
    let writes = count_writes(&world, Duration::from_secs(10)).await;
    assert!((4..=24).contains(&writes), "{writes} writes of four hosts");
    assert_off_without_delay(&world, &hosts[4]).await;
    for name in &hosts[..4] {
        assert!(world.machine(name).commands.is_empty(), "not recorded");
    }
    world.lock().conflicting.clear();
    world
        .until("all are off", |world| {
            hosts.iter().all(|name| !world.machine(name).is_on)
        })
        .await;
}

/// The stored host is older than what the watch showed, and the watch does not notice it.
#[tokio::test(start_paused = true)]
async fn a_host_of_a_restored_store_is_written_on_the_version_that_is_stored() {
    let world = World::new();
    world.lock().version = 1_000;
    let name = world.add("h0");
    let _process = world.process("first");
    world
        .until("it is reported on", |world| {
            world.host(&name).status.power.state.is_some()
        })
        .await;
    {
        let mut state = world.lock();
        (state.is_watch_silent, state.version) = (true, 500);
        let host = state.hosts.get_mut(&name).unwrap();
        host.resource_version = "500".into();
        host.annotations.insert(KEY.into(), HARD.into());
    }
    // What the BMC reads by now must be written.
    world.change_machine(&name, |machine| machine.is_on = false);
    let writes = count_writes(&world, Duration::from_mins(5)).await;
    assert!((1..30).contains(&writes), "{writes} writes");
    let power = world.host(&name).status.power;
    assert!(
        power.off_confirmed_at.is_some(),
        "the key is obeyed: {power:?}"
    );
}
