//! Machines: boots, power buttons, feeds.

use std::time::Duration;

use dogwatch_bmc::{Bmc as _, Class, Command, Reading};
use dogwatch_sim::bmc::{AfterFeed, BmcSpec, Cause, Machine, MachineSpec, Shape, SimBmc, State};
use dogwatch_sim::seed::Seed;
use std::sync::Arc;

use crate::bench::{Bench, CALL, SECOND, after, driver};

#[tokio::test(start_paused = true)]
async fn processes_live_from_the_end_of_a_boot_until_the_power_goes() {
    let bench = Bench::new(Shape::plain(), true);
    let machine = &bench.machine;
    machine.cut(Cause::Hand);
    machine.cut(Cause::Hand);
    after(5 * SECOND).await;
    machine.power_on(Cause::Hand);
    machine.power_on(Cause::Hand);
    after(29 * SECOND).await;
    assert_eq!(machine.state().living(), None, "its firmware works");
    after(2 * SECOND).await;
    machine.ask_to_shut_down(Cause::Hand);
    assert!(machine.state().living().is_some(), "they still live");
    after(6 * SECOND).await;
    let log = machine.log();
    let lived: Vec<_> = log
        .lives
        .iter()
        .map(|life| life.until.unwrap().duration_since(life.from).as_secs())
        .collect();
    assert_eq!(lived, [0, 6], "{log}");
    assert_ne!(log.lives[0].boot, log.lives[1].boot);
    assert_eq!((log.power_offs(), log.power_ons()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_another_boot_and_no_loss_of_power() {
    let bench = Bench::new(Shape::plain(), true);
    let before = bench.machine.state().boot().cloned();
    bench.machine.restart(Cause::Reboot);
    let runs = |state: &State| state.living().is_some();
    let now = bench.machine.until(runs).await;
    assert_ne!(now.boot().cloned(), before);
    let log = bench.machine.log();
    assert_eq!(
        (log.power_offs(), log.power_ons(), log.lives.len()),
        (0, 0, 2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_cut_while_it_boots_or_shuts_down_is_final() {
    let bench = Bench::new(Shape::plain(), false);
    bench.machine.power_on(Cause::Hand);
    after(10 * SECOND).await;
    bench.machine.cut(Cause::Hand);
    after(60 * SECOND).await;
    assert_eq!(bench.machine.state(), State::Off);
    assert_eq!(bench.machine.log().lives, []);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_boots_and_tokens() {
    let tell = || async {
        let bench = Bench::new(Shape::plain(), true);
        bench.read().await.unwrap();
        bench.send(Command::Off).await.unwrap();
        after(5 * SECOND).await;
        bench.send(Command::On).await.unwrap();
        after(60 * SECOND).await;
        format!("{}{:?}", bench.machine.log(), bench.machine.log().lives)
    };
    assert_eq!(tell().await, tell().await);
}

/// A machine with a BMC and two power strips.
struct Fed {
    machine: Machine,
    bmc: SimBmc,
    strips: [SimBmc; 2],
}

fn fed(after_feed: AfterFeed) -> Fed {
    let bench = Bench::new(Shape::plain(), true);
    let mut spec = MachineSpec::new("h2", Seed(9), Arc::clone(&bench.clock));
    spec.after_feed = after_feed;
    spec.boots_after = Duration::from_secs(1);
    let machine = Machine::running(spec);
    machine.set_outlets(2);
    let spec = |name: &str| BmcSpec::new(name, Seed(9), Arc::clone(&bench.clock));
    Fed {
        bmc: SimBmc::of(spec("h2-bmc"), machine.clone()),
        strips: ["left", "right"].map(|name| SimBmc::strip(spec(name), machine.clone())),
        machine,
    }
}

#[tokio::test(start_paused = true)]
async fn power_goes_with_the_last_outlet_and_the_bmc_with_it() {
    let fed = fed(AfterFeed::AsBefore);
    let bmc = driver(&fed.bmc, "sekret16");
    let [left, right] = [0, 1].map(|index| driver(&fed.strips[index], "sekret16"));
    left.send(Command::Off, CALL).await.unwrap();
    after(2 * SECOND).await;
    assert_eq!(left.read(CALL).await, Ok(Reading::Off));
    assert!(fed.machine.state().is_powered(), "the other one feeds it");
    assert_eq!(bmc.read(CALL).await, Ok(Reading::On));
    right.send(Command::Off, CALL).await.unwrap();
    after(2 * SECOND).await;
    assert_eq!(fed.machine.state(), State::Off);
    assert_eq!(bmc.read(CALL).await.unwrap_err().class, Class::Unreachable);
    assert_eq!(right.read(CALL).await, Ok(Reading::Off));
    left.send(Command::On, CALL).await.unwrap();
    after(5 * SECOND).await;
    assert!(fed.machine.state().living().is_some());
    assert_eq!(bmc.read(CALL).await, Ok(Reading::On));
}

#[tokio::test(start_paused = true)]
async fn what_a_machine_does_when_its_feed_is_back_is_its_own_affair() {
    for (after_feed, was_on, is_on) in [
        (AfterFeed::StaysOff, true, false),
        (AfterFeed::AsBefore, true, true),
        (AfterFeed::AsBefore, false, false),
        (AfterFeed::Boots, false, true),
    ] {
        let Fed { machine, .. } = fed(after_feed);
        if !was_on {
            machine.cut(Cause::Hand);
        }
        for outlet in ["left", "right"] {
            machine.open_outlet(outlet);
        }
        machine.power_on(Cause::Hand);
        assert_eq!(machine.state(), State::Off, "there is nothing to power it");
        machine.close_outlet("right");
        assert_eq!(machine.state().is_powered(), is_on, "{after_feed:?}");
    }
}
