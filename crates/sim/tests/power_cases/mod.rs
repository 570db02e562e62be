//! Cases of the power controller on any API server, with the real Redfish driver.

mod node_reboots;
pub mod world;

use std::time::Duration;

use dogwatch_core::power::{PendingCommandEnd, PowerCommand, PowerConfig};
use dogwatch_kubesim::machine::TransitionCause;
use dogwatch_sim::bmc::{BmcFaultKind, SimBmc};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::life::Life;
use crate::support::objects::{self, CAPI};

pub use self::node_reboots::{
    a_key_is_not_put_on_a_host_for_an_older_version_of_a_nodereboot,
    a_node_reboot_has_the_host_of_its_drained_node_switched_off_and_on,
    a_power_cycle_of_a_node_without_a_host_is_refused_before_anything_begins,
    the_strongest_method_of_two_serves_both,
};
use self::world::{ANY, HARD, KEY, PASSWORD, World};

/// Passes the name of each case to a macro that makes a test of it.
#[macro_export]
macro_rules! every_power_case {
    ($run:ident) => {
        $run! {
            a_reboot_is_one_power_off_and_the_host_is_on_again
            keys_hold_a_host_off_until_the_last_one_is_gone
            hard_goes_before_a_soft_power_off_that_is_under_way
            a_host_that_is_not_to_be_online_is_off_until_it_is
            a_host_whose_bmc_hangs_delays_no_other
            a_secret_that_is_missing_or_half_or_wrong_is_said_and_taken_when_it_is_mended
            of_two_hosts_with_one_bmc_the_older_is_served_and_the_newer_says_whose_it_is
            hosts_of_a_live_baremetal_operator_are_left_alone_unless_they_are_paused
            a_lease_of_metal3s_name_in_anybodys_namespace_stops_no_power_control
            a_host_whose_node_lives_gets_no_command_when_its_bmc_says_off
            a_host_that_is_off_as_it_is_wanted_gets_no_command
            a_bmc_that_names_no_task_is_sent_one_power_off_and_proved_by_two_readings
            a_host_that_is_made_anew_is_kept_anew
            a_host_without_a_usable_address_says_so
            another_leader_carries_a_reboot_on
            no_password_is_ever_shown
            a_node_reboot_has_the_host_of_its_drained_node_switched_off_and_on
            a_key_is_not_put_on_a_host_for_an_older_version_of_a_nodereboot
            the_strongest_method_of_two_serves_both
            a_power_cycle_of_a_node_without_a_host_is_refused_before_anything_begins
        }
    };
}

pub async fn a_reboot_is_one_power_off_and_the_host_is_on_again(world: &World) {
    for mode in ["", HARD] {
        let short = format!("h{}", mode.len());
        let bmc = world.host(&short).await;
        let process = world.process("first");
        world.until_ready(&short).await;
        world.annotate(&short, ANY, Some(mode)).await;
        world.until_rebooted(&short, &bmc).await;
        world.time_passes().await;
        assert_cycled_once(&bmc);
        let reasons = world.said().await.into_iter();
        let reasons: Vec<String> = reasons.filter_map(|event| event.reason).collect();
        for reason in ["RebootRequested", "OffConfirmed", "PoweredOn"] {
            let count = reasons.iter().filter(|said| *said == reason).count();
            assert_eq!(
                count,
                if mode.is_empty() { 1 } else { 2 },
                "{reason}: {reasons:?}"
            );
        }
        drop(process);
    }
}

pub async fn keys_hold_a_host_off_until_the_last_one_is_gone(world: &World) {
    let bmc = world.host("h0").await;
    let process = world.process("first");
    world.until_ready("h0").await;
    world.annotate("h0", KEY, Some(HARD)).await;
    world
        .annotate("h0", "reboot.metal3.io/other", Some(""))
        .await;
    world.until_confirmed("h0").await;
    world
        .until("it says so", || async {
            world.condition("h0", "HeldOff").await.0 == "True"
        })
        .await;
    world.annotate("h0", KEY, None).await;
    world.time_passes().await;
    assert!(!bmc.machine().power_state().is_powered());
    let shown = process.board.find_host(&world.name("h0")).unwrap();
    assert!(shown.decision.is_some());
    world.annotate("h0", "reboot.metal3.io/other", None).await;
    bmc.machine()
        .wait_for_state(dogwatch_kubesim::machine::MachineState::is_powered)
        .await;
    world.time_passes().await;
    assert_cycled_once(&bmc);
    let (held, _) = world.condition("h0", "HeldOff").await;
    assert_eq!(held, "False");
}

pub async fn hard_goes_before_a_soft_power_off_that_is_under_way(world: &World) {
    let bmc = world.host("h0").await;
    bmc.add_fault(BmcFaultKind::SoftIgnored);
    // With this limit the controller itself would cut the power only after an hour, so a slow test
    // machine cannot cause the cut.
    let patient = PowerConfig {
        soft: Duration::from_hours(1),
        ..world.config
    };
    let _process = world.process_with("first", patient);
    world.until_ready("h0").await;
    world.annotate("h0", KEY, Some("")).await;
    world
        .until("soft is answered", || async {
            let command = world.read("h0").await.status.power.command;
            command.is_some_and(|command| {
                command.command == PowerCommand::SoftOff
                    && matches!(command.end, PendingCommandEnd::Answered { .. })
            })
        })
        .await;
    assert!(bmc.machine().power_state().is_powered());
    let asked = tokio::time::Instant::now();
    world.annotate("h0", KEY, Some(HARD)).await;
    bmc.machine()
        .wait_for_state(|state| !state.is_powered())
        .await;
    let took = asked.elapsed();
    assert!(took < patient.soft, "{took:?}");
    world.until_confirmed("h0").await;
}

pub async fn a_host_that_is_not_to_be_online_is_off_until_it_is(world: &World) {
    let bmc = world.host("h0").await;
    let _process = world.process("first");
    world.until_ready("h0").await;
    world
        .change("h0", json!({ "spec": { "online": false } }))
        .await;
    world
        .until("poweredOn is false", || async {
            world.read("h0").await.status.powered_on == Some(false)
        })
        .await;
    assert!(!bmc.machine().power_state().is_powered());
    world
        .change("h0", json!({ "spec": { "online": true } }))
        .await;
    world
        .until("poweredOn is true", || async {
            world.read("h0").await.status.powered_on == Some(true)
        })
        .await;
    bmc.machine()
        .wait_for_state(dogwatch_kubesim::machine::MachineState::is_powered)
        .await;
    assert_eq!(bmc.machine().transition_log().count_power_offs(), 1);
}

pub async fn a_host_whose_bmc_hangs_delays_no_other(world: &World) {
    let hung = world.host("hung").await;
    hung.add_fault(BmcFaultKind::Hang);
    let bmc = world.host("h0").await;
    let _process = world.process("first");
    world.until_ready("h0").await;
    world.annotate("hung", KEY, Some(HARD)).await;
    world
        .until("the hung one is found out", || async {
            let (status, reason) = world.condition("hung", "PowerControlReady").await;
            status == "False" && reason == "BMCTimedOut"
        })
        .await;
    world.annotate("h0", ANY, Some(HARD)).await;
    world.until_rebooted("h0", &bmc).await;
    let status = world.read("hung").await.status;
    assert_eq!(status.powered_on, Some(true), "what hangs is not off");
    assert_eq!(status.power.off_confirmed_at, None);
    hung.cure_all_faults();
    world.until_confirmed("hung").await;
    assert!(!hung.machine().power_state().is_powered());
}

pub async fn a_secret_that_is_missing_or_half_or_wrong_is_said_and_taken_when_it_is_mended(
    world: &World,
) {
    world
        .secrets()
        .delete("bmc", &DeleteParams::default())
        .await
        .unwrap();
    let bmc = world.host("h0").await;
    let _process = world.process("first");
    let is = async |reason: &str| {
        world
            .until(reason, || async {
                let (status, said) = world.condition("h0", "PowerControlReady").await;
                status == "False" && said == reason
            })
            .await;
    };
    is("SecretNotFound").await;
    world.give_secret("bmc", &[("username", "admin")]).await;
    is("SecretIncomplete").await;
    let wrong = [("username", "admin"), ("password", "wrong")];
    world.give_secret("bmc", &wrong).await;
    is("WrongCredentials").await;
    let right = [("username", "admin"), ("password", PASSWORD)];
    world.give_secret("bmc", &right).await;
    world.until_ready("h0").await;
    assert_eq!(bmc.machine().transition_log().count_power_offs(), 0);
}

/// Otherwise anybody who may create hosts could stop the fencing of another host by using its BMC's
/// address.
pub async fn of_two_hosts_with_one_bmc_the_older_is_served_and_the_newer_says_whose_it_is(
    world: &World,
) {
    let bmc = world.host("h0").await;
    // Creation times have whole seconds.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let address = world.park.bmc_address("h0", 80);
    let more = json!({ "spec": { "bmc": { "address": address } } });
    world.put_host("h1", &more).await;
    let _process = world.process("first");
    world.annotate("h1", KEY, Some(HARD)).await;
    world
        .until("it says so", || async {
            world.condition("h1", "PowerAsWanted").await.1 == "SharedBMC"
        })
        .await;
    world.time_passes().await;
    assert_eq!(
        bmc.machine().transition_log().count_power_offs(),
        0,
        "the newer never acts"
    );
    world.annotate("h0", KEY, Some(HARD)).await;
    world.until_confirmed("h0").await;
    assert_eq!(bmc.machine().transition_log().count_power_offs(), 1);
    let newer = world.read("h1").await;
    assert_ne!(newer.status.powered_on, Some(false));
    assert_eq!(newer.status.power.off_confirmed_at, None);
    let params = DeleteParams::default();
    world.hosts().delete("h0", &params).await.unwrap();
    world.until_confirmed("h1").await;
}

pub async fn hosts_of_a_live_baremetal_operator_are_left_alone_unless_they_are_paused(
    world: &World,
) {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), &world.namespace);
    let lease = json!({ "metadata": { "name": "baremetal-operator" }, "spec": {
        "holderIdentity": "bmo-1", "leaseDurationSeconds": 15,
        "renewTime": "2026-01-01T00:00:00.000000Z" } });
    let lease: Lease = serde_json::from_value(lease).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
    let renewing = tokio::spawn({
        let (leases, pause) = (leases.clone(), world.config.confirm);
        async move {
            for second in 0.. {
                let at = jiff::Timestamp::from_second(1_800_000_000 + second).unwrap();
                let at = format!("{}.000000Z", at.strftime("%Y-%m-%dT%H:%M:%S"));
                let body = Patch::Merge(json!({ "spec": { "renewTime": at } }));
                let params = PatchParams::default();
                leases
                    .patch("baremetal-operator", &params, &body)
                    .await
                    .unwrap();
                tokio::time::sleep(pause).await;
            }
        }
    });
    let bmc = world.host("h0").await;
    let paused = world.host("paused").await;
    world
        .annotate("paused", "baremetalhost.metal3.io/paused", Some(""))
        .await;
    let _process = world.process("first");
    for short in ["h0", "paused"] {
        world.annotate(short, ANY, Some(HARD)).await;
    }
    world.until_rebooted("paused", &paused).await;
    world
        .until("the other one is said to be theirs", || async {
            world.condition("h0", "PowerAsWanted").await.1 == "OwnedByBaremetalOperator"
        })
        .await;
    assert_eq!(bmc.machine().transition_log().count_power_offs(), 0);
    assert_eq!(bmc.request_counters().commands, 0);
    renewing.abort();
    leases
        .delete("baremetal-operator", &DeleteParams::default())
        .await
        .unwrap();
    world.until_rebooted("h0", &bmc).await;
}

/// The attack: one create by anybody who may write Leases in one namespace stops all fencing.
pub async fn a_lease_of_metal3s_name_in_anybodys_namespace_stops_no_power_control(world: &World) {
    let tenant = format!("{}-tenant", world.namespace);
    objects::make_namespace(&world.client, &tenant).await;
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), &tenant);
    let lease = json!({ "metadata": { "name": "baremetal-operator" }, "spec": {
        "holderIdentity": "me", "leaseDurationSeconds": i32::MAX,
        "renewTime": "2026-01-01T00:00:00.000000Z" } });
    objects::create(&leases, lease).await;
    let bmc = world.host("h0").await;
    let _process = world.process("first");
    world.annotate("h0", KEY, Some(HARD)).await;
    world.until_confirmed("h0").await;
    let renewed = json!({ "spec": { "renewTime": "2026-01-01T00:00:09.000000Z" } });
    objects::change(&leases, "baremetal-operator", renewed).await;
    world.annotate("h0", KEY, None).await;
    world
        .until("it is on", || async {
            bmc.machine().power_state().is_powered()
        })
        .await;
    let params = DeleteParams::default();
    leases.delete("baremetal-operator", &params).await.unwrap();
}

/// A rack's BMCs are updated, and report running hosts as off.
pub async fn a_host_whose_node_lives_gets_no_command_when_its_bmc_says_off(world: &World) {
    let life = Life::of(&world.client, &world.namespace).await;
    let bmcs = [world.host("h0").await, world.host("h1").await];
    let named = life.node("h0");
    world
        .annotate("h0", "dogwatch.dev/node", Some(&named))
        .await;
    life.machine(CAPI, "h1", "h1", json!({})).await;
    let _process = world.process("first");
    world.until_ready("h0").await;
    world.until_ready("h1").await;
    for bmc in &bmcs {
        bmc.add_fault(BmcFaultKind::PowerState("Off".into()));
    }
    let renewing = async {
        for second in 0.. {
            let at = jiff::Timestamp::from_second(1_800_000_000 + second).unwrap();
            let at = format!("{}.000000Z", at.strftime("%Y-%m-%dT%H:%M:%S"));
            life.renew("h0", &at).await;
            life.renew("h1", &at).await;
            tokio::time::sleep(world.config.confirm).await;
        }
    };
    let contradicted = async {
        for short in ["h0", "h1"] {
            world
                .until("it is said", || async {
                    let said = world.condition(short, "PowerAsWanted").await;
                    said == ("Unknown".into(), "PowerContradicted".into())
                })
                .await;
            assert_ne!(world.read(short).await.status.powered_on, Some(false));
        }
        world.time_passes().await;
        bmcs.iter().for_each(SimBmc::cure_all_faults);
        for short in ["h0", "h1"] {
            world
                .until("it is as wanted", || async {
                    world.condition(short, "PowerAsWanted").await.0 == "True"
                })
                .await;
        }
    };
    tokio::select! {
        () = contradicted => {}
        () = renewing => {}
    }
    for bmc in &bmcs {
        assert_eq!(bmc.request_counters().commands, 0);
        assert_eq!(bmc.machine().transition_log().count_power_offs(), 0);
    }
    life.clear(&["h0", "h1"]).await;
}

pub async fn a_host_that_is_off_as_it_is_wanted_gets_no_command(world: &World) {
    let bmc = world.machine("h0");
    bmc.machine().cut_power(TransitionCause::Hand);
    let more = json!({ "spec": { "online": false } });
    world.put_host("h0", &more).await;
    for process in ["first", "second"] {
        let _process = world.process(process);
        world
            .until("it is as wanted", || async {
                let wanted = world.condition("h0", "PowerAsWanted").await;
                wanted == ("True".into(), "AsWanted".into())
            })
            .await;
        assert_eq!(world.read("h0").await.status.powered_on, Some(false));
    }
    assert_eq!(bmc.request_counters().commands, 0);
}

pub async fn a_bmc_that_names_no_task_is_sent_one_power_off_and_proved_by_two_readings(
    world: &World,
) {
    let bmc = world.host("h0").await;
    bmc.add_fault(BmcFaultKind::TaskUnnamed);
    let _process = world.process("first");
    world.until_ready("h0").await;
    world.annotate("h0", KEY, Some(HARD)).await;
    world.until_confirmed("h0").await;
    assert_eq!(bmc.request_counters().commands, 1, "it is not sent again");
    assert_eq!(bmc.machine().transition_log().count_power_offs(), 1);
    world.annotate("h0", KEY, None).await;
    world
        .until("it is on", || async {
            bmc.machine().power_state().is_powered()
        })
        .await;
    world.time_passes().await;
    assert_eq!(bmc.request_counters().commands, 2);
}

pub async fn a_host_that_is_made_anew_is_kept_anew(world: &World) {
    let bmc = world.host("h0").await;
    let process = world.process("first");
    world.until_ready("h0").await;
    let uid_of_kept = || {
        let kept = process.board.find_host(&world.name("h0")).unwrap();
        kept.seen.host.uid.clone()
    };
    let before = uid_of_kept();
    world
        .hosts()
        .delete("h0", &DeleteParams::default())
        .await
        .unwrap();
    world
        .until("nobody keeps it", || async {
            process.board.host_names().is_empty()
        })
        .await;
    world.put_host("h0", &json!({})).await;
    world.until_ready("h0").await;
    assert_ne!(before, uid_of_kept());
    world
        .until("the first session is closed", || async {
            bmc.count_sessions() == 1
        })
        .await;
}

pub async fn a_host_without_a_usable_address_says_so(world: &World) {
    for (short, bmc, reason) in [
        ("none", json!(null), "NoBMC"),
        (
            "bad",
            json!({ "address": "telnet://10.0.0.1" }),
            "InvalidBMCAddress",
        ),
        (
            "gone",
            json!({ "address": "ilo4://10.0.0.1" }),
            "InvalidBMCAddress",
        ),
    ] {
        world
            .put_host(short, &json!({ "spec": { "bmc": bmc } }))
            .await;
        let _process = world.process("first");
        world
            .until(reason, || async {
                let (status, said) = world.condition(short, "PowerControlReady").await;
                status == "False" && said == reason
            })
            .await;
        assert_ne!(world.read(short).await.status.powered_on, Some(false));
    }
}

pub async fn another_leader_carries_a_reboot_on(world: &World) {
    let bmc = world.host("h0").await;
    let first = world.process("first");
    let second = world.process("second");
    second.leader.loses_the_lead();
    world.until_ready("h0").await;
    world.annotate("h0", ANY, Some(HARD)).await;
    bmc.machine()
        .wait_for_state(|state| !state.is_powered())
        .await;
    first.leader.loses_the_lead();
    second.leader.leads(2);
    world.until_rebooted("h0", &bmc).await;
    assert_cycled_once(&bmc);
    assert!(first.board.host_names().is_empty());
}

pub async fn no_password_is_ever_shown(world: &World) {
    let bmc = world.host("h0").await;
    let process = world.process("first");
    world.until_ready("h0").await;
    world.annotate("h0", ANY, Some(HARD)).await;
    world.until_rebooted("h0", &bmc).await;
    bmc.set_password("another");
    bmc.restart_bmc();
    world
        .until("the password is wrong", || async {
            world.condition("h0", "PowerControlReady").await.1 == "WrongCredentials"
        })
        .await;
    let object = world.hosts().get("h0").await.unwrap();
    let shown = [
        serde_json::to_string(&object).unwrap(),
        serde_json::to_string(&world.said().await).unwrap(),
        process.leader.metrics.render_page(),
        format!("{:?}", process.board.find_host(&world.name("h0"))),
    ];
    for text in shown {
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

/// Number of power-offs among the BMC's commands.
pub fn offs(bmc: &SimBmc) -> usize {
    bmc.machine().transition_log().count_power_offs()
}

/// Checks that the machine was switched off once and on once.
#[track_caller]
pub fn assert_cycled_once(bmc: &SimBmc) {
    let log = bmc.machine().transition_log();
    assert_eq!(
        (log.count_power_offs(), log.count_power_ons()),
        (1, 1),
        "{log}"
    );
}
