//! What other parts see of hosts: the registry, and the hosts of another power controller.

use std::time::Duration;

use dogwatch_core::power::{self, CurrentPower, HostName, PowerOffProof, PowerReason, ProofSource};

use super::world::{Process, World};
use super::{HARD, KEY};

const UUID: &str = "4c4c4544-0047-4b10-8031-b5c04f4e4833";

fn proof(world: &World, process: &Process, name: &HostName) -> Option<PowerOffProof> {
    let now = world.clock.now();
    process.board.off_proof_of(name, &world.config, now)
}

fn bit(world: &World, process: &Process, name: &HostName) -> Option<CurrentPower> {
    let now = world.clock.now();
    let bit = |seen: &power::PowerSnapshot| power::current_power(seen, &world.config, now);
    process.board.inspect_host(name, |seen, _| bit(seen))
}

#[tokio::test(start_paused = true)]
async fn the_board_has_all_hosts_only_while_this_process_leads_and_has_seen_them() {
    let world = World::new();
    let names = [world.add("h0"), world.add("h1")];
    let process = world.process("first");
    let board = &process.board;
    let shown = |_: &World| board.is_in_sync() && board.list_hosts().len() == 2;
    world.until("they are there", shown).await;
    let hosts = board.list_hosts();
    assert_eq!(
        hosts.iter().map(|host| &host.name).collect::<Vec<_>>(),
        [&names[0], &names[1]]
    );
    world.annotate(&names[0], "dogwatch.dev/node", "n0");
    let is_new = |_: &World| {
        board.list_hosts()[0]
            .annotations
            .contains_key("dogwatch.dev/node")
    };
    world.until("it is the newest version", is_new).await;
    process.terms.send_replace(None);
    world
        .until("it is empty", |_| board.list_hosts().is_empty())
        .await;
    assert!(!board.is_in_sync());
    assert_eq!(proof(&world, &process, &names[0]), None);
    process.terms.send_replace(Some(world.term(1_000_000)));
    world.until("they are there again", shown).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_changes_is_told_of_each_that_matters_and_of_no_poll() {
    let world = World::new();
    let name = world.add("h0");
    let process = world.process("first");
    let mut changes = process.board.subscribe_changes();
    world
        .until("it is seen on", |world| {
            bit(world, &process, &name) == Some(CurrentPower::On)
        })
        .await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    changes.mark_unchanged();
    let reads = world.machine(&name).reads;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(world.machine(&name).reads > reads + 50, "it is polled");
    assert!(!changes.has_changed().unwrap(), "and nothing has changed");
    // The object changes.
    world.annotate(&name, "dogwatch.dev/node", "n0");
    changes.changed().await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    changes.mark_unchanged();
    // A reading changes the state, without any write.
    world.change_machine(&name, |machine| machine.hangs = true);
    changes.changed().await.unwrap();
    world
        .until("it is unknown", |world| {
            bit(world, &process, &name) == Some(CurrentPower::Unknown)
        })
        .await;
    world.change_machine(&name, |machine| machine.hangs = false);
    // A proof begins, and ends.
    for wanted in [true, false] {
        if wanted {
            world.annotate(&name, KEY, HARD);
        } else {
            world.change(&name, |host| host.annotations.clear());
        }
        while proof(&world, &process, &name).is_some() != wanted {
            changes.changed().await.unwrap();
        }
    }
    // The host is deleted.
    changes.mark_unchanged();
    process.terms.send_replace(None);
    while !process.board.host_names().is_empty() {
        changes.changed().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_of_a_live_operator_is_read_and_proved_off_and_nothing_but_conditions_is_written() {
    let world = World::new();
    world.lock().operator = Some("bmo-1".into());
    let name = world.add("h0");
    world.change(&name, |host| {
        host.status.provisioning = Some("provisioned".into());
        host.status.powered_on = Some(true);
    });
    world.change_machine(&name, |machine| machine.system_uuid = Some(UUID.into()));
    let process = world.process("first");
    world
        .until("it is seen on", |world| {
            bit(world, &process, &name) == Some(CurrentPower::On)
        })
        .await;
    world.annotate(&name, KEY, HARD);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The other controller obeys.
    world.change_machine(&name, |machine| machine.is_on = false);
    world.change(&name, |host| host.status.powered_on = Some(false));
    let begun = world.clock.now().mono;
    let mut changes = process.board.subscribe_changes();
    while proof(&world, &process, &name).is_none() {
        changes.changed().await.unwrap();
    }
    let took = world.clock.now().mono.saturating_sub(begun);
    let at_most = world.config.settle + world.config.confirm * 2 + Duration::from_secs(1);
    assert!(took < at_most, "{took:?}");
    let proof = proof(&world, &process, &name).unwrap();
    assert_eq!(*proof.source(), ProofSource::Metal3Controller);
    assert_eq!(proof.system_uuid(), Some(UUID));
    assert!(world.machine(&name).commands.is_empty());
    let host = world.host(&name);
    assert_eq!(host.status.power, power::PowerStatus::default());
    assert_eq!(host.status.powered_on, Some(false), "as they wrote it");
    assert!(host.annotations.contains_key(KEY));
}

#[tokio::test(start_paused = true)]
async fn of_two_hosts_whose_bmcs_tell_one_machine_the_older_is_proved_off_and_the_newer_says_whose_it_is()
 {
    let world = World::new();
    // Both were created at the same second: the lesser UID goes first.
    let [older, newer] = [world.add("h0"), world.add("h1")];
    for name in [&older, &newer] {
        world.change_machine(name, |machine| machine.system_uuid = Some(UUID.into()));
        world.annotate(name, KEY, HARD);
    }
    let process = world.process("first");
    let is_said = |world: &World, name: &HostName| {
        let host = world.host(name);
        let mut conditions = host.status.conditions.iter();
        conditions.any(|condition| condition.reason == PowerReason::SameSystemUUID.as_str())
    };
    world
        .until(
            "the older is proved off, and it is said on the newer",
            |world| proof(world, &process, &older).is_some() && is_said(world, &newer),
        )
        .await;
    assert!(!is_said(&world, &older));
    assert!(!world.machine(&newer).is_on, "switched as it is wanted");
    assert_eq!(proof(&world, &process, &newer), None);
    assert_eq!(bit(&world, &process, &newer), Some(CurrentPower::Unknown));
    world.change_machine(&newer, |machine| {
        machine.system_uuid = Some("4c4c4544-0047-4b10-8031-b5c04f4e4834".into());
    });
    world
        .until("both are proved off", |world| {
            [&older, &newer]
                .iter()
                .all(|name| proof(world, &process, name).is_some())
        })
        .await;
    world
        .until("and it is said no more", |world| !is_said(world, &newer))
        .await;
}
