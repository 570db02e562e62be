//! Machines: boots, power buttons, power feeds.

use std::time::Duration;

use dogwatch_bmc::{Bmc as _, FaultClass, PowerCommand, PowerReading};
use dogwatch_kubesim::machine::{
    MachineSpec, MachineState, PowerRestorePolicy, SimMachine, TransitionCause,
};
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_sim::bmc::{BmcSpec, MakerProfile, SimBmc};
use std::sync::Arc;

use crate::bench::{Bench, CALL, SECOND, after, driver};

#[tokio::test(start_paused = true)]
async fn processes_live_from_the_end_of_a_boot_until_the_power_goes() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    let machine = &bench.machine;
    machine.cut_power(TransitionCause::Hand);
    machine.cut_power(TransitionCause::Hand);
    after(5 * SECOND).await;
    machine.turn_on(TransitionCause::Hand);
    machine.turn_on(TransitionCause::Hand);
    after(29 * SECOND).await;
    assert_eq!(
        machine.power_state().running_boot(),
        None,
        "its firmware works"
    );
    after(2 * SECOND).await;
    machine.press_power_button(TransitionCause::Hand);
    assert!(
        machine.power_state().running_boot().is_some(),
        "they still live"
    );
    after(6 * SECOND).await;
    let log = machine.transition_log();
    let lived: Vec<_> = log
        .lives
        .iter()
        .map(|life| life.until.unwrap().duration_since(life.from).as_secs())
        .collect();
    assert_eq!(lived, [0, 6], "{log}");
    assert_ne!(log.lives[0].boot, log.lives[1].boot);
    assert_eq!((log.count_power_offs(), log.count_power_ons()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_another_boot_and_no_loss_of_power() {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    let before = bench.machine.power_state().boot_id().map(str::to_owned);
    bench.machine.restart_machine(TransitionCause::Reboot);
    let runs = |state: &MachineState| state.running_boot().is_some();
    let now = bench.machine.wait_for_state(runs).await;
    assert_ne!(now.boot_id().map(str::to_owned), before);
    let log = bench.machine.transition_log();
    assert_eq!(
        (
            log.count_power_offs(),
            log.count_power_ons(),
            log.lives.len()
        ),
        (0, 0, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_cut_while_it_boots_or_shuts_down_is_final() {
    let bench = Bench::new(MakerProfile::plain_profile(), false);
    bench.machine.turn_on(TransitionCause::Hand);
    after(10 * SECOND).await;
    bench.machine.cut_power(TransitionCause::Hand);
    after(60 * SECOND).await;
    assert_eq!(bench.machine.power_state(), MachineState::Off);
    assert_eq!(bench.machine.transition_log().lives, []);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_boots_and_tokens() {
    let tell = || async {
        let bench = Bench::new(MakerProfile::plain_profile(), true);
        bench.read().await.unwrap();
        bench.send(PowerCommand::Off).await.unwrap();
        after(5 * SECOND).await;
        bench.send(PowerCommand::On).await.unwrap();
        after(60 * SECOND).await;
        format!(
            "{}{:?}",
            bench.machine.transition_log(),
            bench.machine.transition_log().lives
        )
    };
    assert_eq!(tell().await, tell().await);
}

/// A machine with a BMC and two power strips.
struct Fed {
    machine: SimMachine,
    bmc: SimBmc,
    strips: [SimBmc; 2],
}

fn fed(after_feed: PowerRestorePolicy) -> Fed {
    let bench = Bench::new(MakerProfile::plain_profile(), true);
    let mut spec = MachineSpec::new("h2", SimulationSeed(9), Arc::clone(&bench.clock));
    spec.after_feed = after_feed;
    spec.boots_after = Duration::from_secs(1);
    let machine = SimMachine::running_first_boot(spec);
    machine.set_outlets(2);
    let spec = |name: &str| BmcSpec::new(name, SimulationSeed(9), Arc::clone(&bench.clock));
    Fed {
        bmc: SimBmc::for_machine(spec("h2-bmc"), machine.clone()),
        strips: ["left", "right"].map(|name| SimBmc::power_strip(spec(name), machine.clone())),
        machine,
    }
}

#[tokio::test(start_paused = true)]
async fn power_goes_with_the_last_outlet_and_the_bmc_with_it() {
    let fed = fed(PowerRestorePolicy::AsBefore);
    let bmc = driver(&fed.bmc, "sekret16");
    let [left, right] = [0, 1].map(|index| driver(&fed.strips[index], "sekret16"));
    left.send_command(PowerCommand::Off, CALL).await.unwrap();
    after(2 * SECOND).await;
    assert_eq!(left.read_power(CALL).await, Ok(PowerReading::Off));
    assert!(
        fed.machine.power_state().is_powered(),
        "the other one feeds it"
    );
    assert_eq!(bmc.read_power(CALL).await, Ok(PowerReading::On));
    right.send_command(PowerCommand::Off, CALL).await.unwrap();
    after(2 * SECOND).await;
    assert_eq!(fed.machine.power_state(), MachineState::Off);
    assert_eq!(
        bmc.read_power(CALL).await.unwrap_err().class,
        FaultClass::Unreachable
    );
    assert_eq!(right.read_power(CALL).await, Ok(PowerReading::Off));
    left.send_command(PowerCommand::On, CALL).await.unwrap();
    after(5 * SECOND).await;
    assert!(fed.machine.power_state().running_boot().is_some());
    assert_eq!(bmc.read_power(CALL).await, Ok(PowerReading::On));
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_does_when_its_feed_is_back_is_its_own_affair() {
    for (after_feed, was_on, is_on) in [
        (PowerRestorePolicy::StaysOff, true, false),
        (PowerRestorePolicy::AsBefore, true, true),
        (PowerRestorePolicy::AsBefore, false, false),
        (PowerRestorePolicy::Boots, false, true),
    ] {
        let Fed { machine, .. } = fed(after_feed);
        if !was_on {
            machine.cut_power(TransitionCause::Hand);
        }
        for outlet in ["left", "right"] {
            machine.open_outlet(outlet);
        }
        machine.turn_on(TransitionCause::Hand);
        assert_eq!(
            machine.power_state(),
            MachineState::Off,
            "there is nothing to power it"
        );
        machine.close_outlet("right");
        assert_eq!(machine.power_state().is_powered(), is_on, "{after_feed:?}");
    }
}
