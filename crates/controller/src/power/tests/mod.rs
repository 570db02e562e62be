//! The power controller with hosts, machines and an API server in memory, under paused time.

mod board;
mod refused_writes;
mod world;

use std::time::Duration;

use dogwatch_core::power::HostName;

use self::world::{Cut, Machine, World};

const ANY: &str = "reboot.metal3.io";
const KEY: &str = "reboot.metal3.io/key";
const HARD: &str = r#"{"mode":"hard"}"#;

fn is_settled(world: &World, name: &HostName) -> bool {
    let (host, machine) = (world.host(name), world.machine(name));
    let status = &host.status;
    let is_served = !host.annotations.contains_key(ANY)
        && status.last_powered_on > status.pending_reboot_since
        && status.pending_reboot_since.is_some();
    is_served && machine.is_on && status.powered_on == Some(true)
}

/// A reboot whose process dies at its `cut`; the next process takes over 15 s later.
async fn reboot(annotation: &str, cut: Option<(usize, Cut)>) -> (World, Machine) {
    let world = World::new();
    let name = world.add("h0");
    let process = world.process("first");
    world
        .until("it is read", |world| {
            world.host(&name).status.powered_on == Some(true) && world.machine(&name).reads > 0
        })
        .await;
    let begun = world.lock().calls.len();
    world.lock().cut = cut.map(|(at, cut)| (begun + at, cut));
    world.annotate(&name, ANY, annotation);
    let is_done = world.until("the reboot is done", |world| is_settled(world, &name));
    let has_died = tokio::select! {
        biased;
        () = world.death() => true,
        () = is_done => false,
    };
    drop(process);
    world.lock().cut = None;
    let mut calls = world.lock().calls.split_off(begun);
    if has_died {
        tokio::time::sleep(Duration::from_secs(15)).await;
        let _second = world.process("second");
        world
            .until("the reboot is done by the next one", |world| {
                is_settled(world, &name)
            })
            .await;
    } else {
        calls.push("done".into());
    }
    world.lock().calls = calls;
    let machine = world.machine(&name);
    (world, machine)
}

#[tokio::test(start_paused = true)]
async fn a_reboot_is_one_power_off_and_the_host_is_on_again() {
    for mode in ["", HARD] {
        let (_, machine) = reboot(mode, None).await;
        assert_eq!(machine.offs(), 1, "{machine:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_call_of_a_reboot_the_next_one_makes_it_one_power_off_and_the_host_on() {
    for mode in ["", HARD] {
        for cut in [Cut::Before, Cut::After] {
            for at in 0.. {
                let (world, machine) = reboot(mode, Some((at, cut))).await;
                assert_eq!(
                    machine.offs(),
                    1,
                    "{mode} {cut:?} {at}: {machine:?}, {:#?}",
                    world.lock().calls
                );
                if world.lock().calls.last().is_some_and(|last| last == "done") {
                    assert!(at > 8, "a reboot has more calls: {:?}", world.lock().calls);
                    break;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn keys_hold_a_host_off_until_the_last_one_is_gone() {
    let world = World::new();
    let name = world.add("h0");
    let process = world.process("first");
    world.annotate(&name, KEY, HARD);
    world.annotate(&name, "reboot.metal3.io/other", "");
    world
        .until("off is confirmed", |world| {
            world.host(&name).status.power.off_confirmed_at.is_some()
        })
        .await;
    assert!(!world.machine(&name).is_on);
    let proof = || {
        let now = world.clock.now();
        process.board.off_proof_of(&name, &world.config, now)
    };
    assert!(proof().is_some());
    world.change(&name, |host| {
        host.annotations.remove(KEY);
    });
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!world.machine(&name).is_on);
    world.change(&name, |host| host.annotations.clear());
    world
        .until("it is on", |world| world.machine(&name).is_on)
        .await;
    assert_eq!(proof(), None);
    assert_eq!(world.machine(&name).offs(), 1);
    assert_eq!(process.board.host_names(), [name]);
}

#[tokio::test(start_paused = true)]
async fn hard_goes_before_a_soft_power_off_that_is_under_way() {
    let world = World::new();
    let name = world.add("h0");
    world.change_machine(&name, |machine| machine.ignores_soft = true);
    let _process = world.process("first");
    world.annotate(&name, KEY, "");
    world
        .until("soft is sent", |world| {
            !world.machine(&name).commands.is_empty()
        })
        .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.machine(&name).is_on);
    let asked = world.clock.now().mono;
    world.annotate(&name, KEY, HARD);
    world
        .until("it is off", |world| !world.machine(&name).is_on)
        .await;
    let (at, _) = world.machine(&name).log[0];
    let took = at.saturating_sub(asked);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn hosts_whose_bmcs_hang_delay_nobody_else() {
    let world = World::new();
    let hung: Vec<HostName> = (0..200).map(|n| world.add(&format!("hung-{n}"))).collect();
    for name in &hung {
        world.change_machine(name, |machine| machine.hangs = true);
        world.annotate(name, KEY, HARD);
    }
    let well: Vec<HostName> = (0..50).map(|n| world.add(&format!("well-{n}"))).collect();
    let _process = world.process("first");
    tokio::time::sleep(Duration::from_mins(5)).await;
    let asked = world.clock.now().mono;
    for name in &well {
        world.annotate(name, KEY, HARD);
    }
    world
        .until("all are off", |world| {
            well.iter().all(|name| !world.machine(name).is_on)
        })
        .await;
    let last = well.iter().map(|name| world.machine(name).log[0].0).max();
    let took = last.unwrap().saturating_sub(asked);
    assert!(took < Duration::from_millis(250), "{took:?}");
}

/// From the key to the proof nothing but the confirm interval delays the host.
async fn assert_off_without_delay(world: &World, name: &HostName) {
    let begun = world.clock.now().mono;
    world.annotate(name, KEY, HARD);
    world
        .until("off is confirmed", |world| {
            world.host(name).status.power.off_confirmed_at.is_some()
        })
        .await;
    let took = world.clock.now().mono.saturating_sub(begun);
    let expected = world.config.confirm + Duration::from_millis(250);
    assert!(took < expected, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_power_off_waits_for_no_write_that_only_tells() {
    let world = World::new();
    let name = world.add("h0");
    let _process = world.process("first");
    world
        .until("it is read", |world| {
            world.host(&name).status.powered_on == Some(true)
        })
        .await;
    // All permits for reporting writes are taken, by writes without an answer.
    for n in 0..50 {
        let stuck = HostName::new(&name.namespace, format!("stuck-{n}"));
        world.lock().stuck.insert(stuck);
        world.add(&format!("stuck-{n}"));
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_off_without_delay(&world, &name).await;
}

#[tokio::test(start_paused = true)]
async fn a_password_that_was_changed_is_read_again_when_the_old_one_is_refused() {
    let world = World::new();
    let name = world.add("h0");
    let _process = world.process("first");
    let secrets = |world: &World| {
        let calls = &world.lock().calls;
        calls.iter().filter(|call| *call == "Secret bmc").count()
    };
    world
        .until("it is checked", |world| secrets(world) == 2)
        .await;
    world.change_machine(&name, |machine| machine.refuses_password = true);
    world
        .until("the Secret is read again", |world| secrets(world) == 3)
        .await;
    world.change_machine(&name, |machine| machine.refuses_password = false);
    world.give_secret("bmc", world::secret("another"));
    world.change(&name, |host| host.online = false);
    world
        .until("it is off", |world| !world.machine(&name).is_on)
        .await;
}

#[tokio::test(start_paused = true)]
async fn where_nothing_that_is_written_stays_nothing_is_commanded() {
    let world = World::new();
    let name = world.add("h0");
    world.lock().pruned = true;
    let _process = world.process("first");
    world.annotate(&name, KEY, HARD);
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert!(world.machine(&name).commands.is_empty());
    world.lock().pruned = false;
    world
        .until("it is off", |world| !world.machine(&name).is_on)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_power_off_waits_for_no_poll_of_its_own_host() {
    let world = World::new();
    let name = world.add("h0");
    let _process = world.process("first");
    let asked = |world: &World| {
        let calls = &world.lock().calls;
        calls.iter().filter(|call| *call == "h0 is read").count()
    };
    world.until("it is read", |world| asked(world) == 1).await;
    world.change_machine(&name, |machine| machine.hangs = true);
    world.until("a poll hangs", |world| asked(world) == 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.change_machine(&name, |machine| machine.hangs = false);
    assert_off_without_delay(&world, &name).await;
}

#[tokio::test(start_paused = true)]
async fn no_command_is_begun_that_the_lead_may_not_outlast() {
    let world = World::new();
    let name = world.add("h0");
    let process = world.process("first");
    world
        .until("it is read", |world| world.machine(&name).reads > 0)
        .await;
    process.terms.send_replace(Some(world.term(6)));
    world.annotate(&name, KEY, HARD);
    tokio::time::sleep(Duration::from_secs(7)).await;
    let machine = world.machine(&name);
    assert!(machine.commands.is_empty(), "{machine:?}");
    assert_eq!(world.host(&name).status.power.command, None);
    process.terms.send_replace(Some(world.term(9)));
    world
        .until("it is off", |world| !world.machine(&name).is_on)
        .await;
}

#[tokio::test(start_paused = true)]
async fn who_has_lost_the_lead_sends_nothing_more() {
    let world = World::new();
    let name = world.add("h0");
    world.change_machine(&name, |machine| machine.ignores_soft = true);
    let process = world.process("first");
    world.annotate(&name, KEY, "");
    world
        .until("soft is sent", |world| {
            !world.machine(&name).commands.is_empty()
        })
        .await;
    process.terms.send_replace(None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let calls = world.lock().calls.len();
    world.annotate(&name, KEY, HARD);
    tokio::time::sleep(Duration::from_mins(10)).await;
    let more = world.lock().calls.split_off(calls);
    assert!(more.is_empty(), "{more:?}");
    assert!(process.board.host_names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_told_to_stop_ends_its_command_and_says_goodbye() {
    let world = World::new();
    let name = world.add("h0");
    let process = world.process("first");
    world
        .until("it is read", |world| world.machine(&name).reads > 0)
        .await;
    world.change_machine(&name, |machine| machine.hangs = true);
    world.annotate(&name, KEY, HARD);
    let sent = |world: &World| world.lock().calls.iter().any(|call| call == "h0 PowerOff");
    world.until("off is sent", sent).await;
    process.stopper.signal_stop();
    process.ended().await;
    let end = world.host(&name).status.power.command.unwrap().end;
    assert!(
        matches!(end, dogwatch_core::power::PendingCommandEnd::Unknown { .. }),
        "{end:?}"
    );
    world
        .until("it is closed", |world| {
            let calls = &world.lock().calls;
            calls.iter().any(|call| call == "h0 is closed")
        })
        .await;
}

/// A host that is deleted and created again between two events of a watch that stands still.
#[tokio::test(start_paused = true)]
async fn a_host_that_was_created_anew_unseen_is_not_written_at_full_speed() {
    let world = World::new();
    let name = world.add("h0");
    let _process = world.process("first");
    world
        .until("it is reported on", |world| {
            world.host(&name).status.power.state.is_some()
        })
        .await;
    {
        let mut state = world.lock();
        let host = state.hosts.get_mut(&name).unwrap();
        (host.uid, host.resource_version) = ("uid-anew".into(), "9999".into());
        state.calls.clear();
    }
    // What the BMC reads by now would be written on the old host.
    world.change_machine(&name, |machine| machine.is_on = false);
    tokio::time::sleep(Duration::from_mins(5)).await;
    let calls = &world.lock().calls;
    let writes = calls.iter().filter(|call| call.contains(" writes "));
    let writes = writes.count();
    assert!((1..30).contains(&writes), "{writes} writes: {calls:?}");
}
