//! Random faults in any order: kubelets, BMCs, leaders, watches that are behind, lost answers,
//! health checks that mark again, and people who change their minds. No Node is deleted while its
//! machine runs (the town checks each deletion), no host is switched off twice for one mark, and in
//! the end every host is on and nothing of ours is left, although the health check goes on marking.

use crate::model_depth::model_cases;
use std::collections::BTreeMap;

use super::super::*;
use super::kit::*;
use super::town::{Faults, Town};
use crate::power::tests::model::{Dice, any_mood};
use crate::power::tests::world::{Bmc, Says, Takes};
use crate::power::{HostName, PowerReading};

const NAMES: [&str; 2] = ["a", "b"];
/// In ticks of 50 ms.
const MINUTE: u64 = 1_200;

/// A health check, and what it has asked for.
#[derive(Default)]
struct Check {
    /// By machine: since when its Node is not healthy, in ticks.
    ill: BTreeMap<&'static str, u64>,
    marks: BTreeMap<&'static str, usize>,
    last_lie: u64,
}

impl Check {
    /// Marks every machine that is unhealthy for 20 s, also one that is on its way back.
    fn look(&mut self, town: &mut Town) {
        for name in NAMES {
            let is_well = town.node(name).is_some_and(|node| node.seen.ready);
            let ill = self.ill.entry(name).or_default();
            *ill = if is_well { 0 } else { *ill + 1 };
            if *ill >= MINUTE / 3 && town.machine(name).need.is_none() {
                town.mark(name);
                *self.marks.entry(name).or_default() += 1;
            }
        }
    }

    fn chaos(&mut self, town: &mut Town, dice: &mut Dice) {
        let name = NAMES[usize::try_from(dice.roll(2)).unwrap()];
        if dice.one_in(MINUTE) {
            let site = town.site(name);
            site.is_connected = !site.is_connected;
        }
        if dice.one_in(MINUTE * 2) {
            town.mark(name);
            *self.marks.entry(name).or_default() += 1;
        }
        if dice.one_in(MINUTE * 2) {
            town.machine(name).need = None;
        }
        if dice.one_in(MINUTE * 3) {
            town.crash(1_000 + dice.roll(16_000));
        }
        if dice.one_in(MINUTE * 6) {
            town.nodes.remove(&node_name(name));
        }
        for site in &mut town.sites {
            let time = site.power.time;
            let is_keyed = site.power.seen.host.annotations.contains_key(MACHINE_KEY);
            let bmc = &mut site.power.bmcs[0];
            any_mood(bmc, dice);
            // On a host that nobody holds off, a lying BMC makes the power controller prove it off;
            // that concerns no remediation.
            if !is_keyed {
                bmc.says.clear();
            } else if time > self.last_lie + 12_000 && dice.one_in(200) {
                self.last_lie = time;
                let lie = if dice.one_in(2) {
                    PowerReading::Off
                } else {
                    PowerReading::On
                };
                bmc.says = vec![Says::Lie(lie)];
            }
        }
    }

    fn judge(&self, town: &Town, seed: u64) {
        for name in NAMES {
            let keys = town.keys.get(&host_name(name)).copied().unwrap_or(0);
            let marks = self.marks.get(name).copied().unwrap_or(0);
            assert!(keys <= marks, "seed {seed}: {keys} keys for {marks} needs");
            let mut sites = town.sites.iter();
            let site = sites.find(|site| site.name == name).unwrap();
            let (power, written) = (&site.power, &town.written);
            let offs = power.power_offs();
            assert!(
                offs <= keys,
                "seed {seed}: off {offs} times for {keys} keys: {:?}\n{:?}\n{:?}",
                written,
                power.sent,
                power.events,
            );
        }
    }
}

/// Nothing of ours is left, and every machine runs.
fn is_calm(town: &Town) -> bool {
    let is_quiet = |name: &&str| {
        let notes = &town.host(name).annotations;
        let record = notes.get("dogwatch.dev/remediation");
        let record = record.map(|text| serde_json::from_str::<RemediationRecord>(text).unwrap());
        let node = town.node(name);
        record.is_none_or(|record| record.ended_at().is_some())
            && !notes.contains_key(MACHINE_KEY)
            && !town.keeps(name)
            && town.machines[&machine_name(name)].need.is_none()
            && node.is_some_and(|node| node.seen.ready && !node.seen.being_fenced)
    };
    NAMES.iter().all(is_quiet)
        && town.leases.is_empty()
        && town.sites.iter().all(|site| site.power.is_on())
}

/// When nothing fails any more, what was marked before is remediated once, and what the health check
/// marks while a Node is missing costs no power cut.
fn judge_last_keys(before: &BTreeMap<HostName, usize>, town: &Town, seed: u64) {
    for (host, keys) in &town.keys {
        let more = keys - before.get(host).copied().unwrap_or(0);
        assert!(more <= 1, "seed {seed}: {more} more keys on {host}");
    }
}

fn run(seed: u64) {
    let mut dice = Dice::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut town = Town::new(&NAMES);
    town.every = 1_000;
    town.faults = Some(Faults::new(dice.roll(u64::MAX)));
    let mut check = Check::default();
    for _ in 0..6 * MINUTE {
        check.chaos(&mut town, &mut dice);
        check.look(&mut town);
        town.tick();
        check.judge(&town, seed);
    }
    // From here on nothing fails any more; what was requested still has to be done.
    town.faults = None;
    for site in &mut town.sites {
        site.is_connected = true;
        let gives = site.power.bmcs[0].gives;
        let pending = std::mem::take(&mut site.power.bmcs[0].pending);
        site.power.bmcs[0] = Bmc {
            pending,
            default_takes: Takes::Runs(300),
            ..Bmc::new(gives)
        };
    }
    let keys_before = town.keys.clone();
    for _ in 0..60 * MINUTE {
        if is_calm(&town) {
            return;
        }
        check.look(&mut town);
        town.tick();
        check.judge(&town, seed);
        judge_last_keys(&keys_before, &town, seed);
    }
    panic!(
        "seed {seed}: {:?}\n{:?}\n{:?}\n{:?}",
        town.written,
        town.reasons,
        town.events,
        town.host("a")
    );
}

/// How many seeds each test below runs at full depth: 300 in all, shared by the processors.
const SEEDS: u32 = 50;

fn seeds(from: u64) {
    (from..from + u64::from(model_cases(SEEDS))).for_each(run);
}

macro_rules! no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off {
    ($($name:ident from $from:literal),+) => {
        $(
            #[test]
            fn $name() {
                seeds($from);
            }
        )+
    };
}

no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off! {
    no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off_1 from 0,
    no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off_2 from 50,
    no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off_3 from 100,
    no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off_4 from 150,
    no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off_5 from 200,
    no_node_is_deleted_while_its_machine_runs_and_no_host_stays_off_6 from 250
}
