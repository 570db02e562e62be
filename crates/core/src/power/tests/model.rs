//! A model with faults in any order, by people, leaders and BMCs. Off is never reported for a
//! running host, and in the end the host is as spec and keys want it.

use std::time::Duration;

use proptest::prelude::*;

use super::world::*;
use crate::power::*;

const OTHER: &str = "reboot.metal3.io/other";
const CHAOS: u64 = 600_000;

pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// Xorshift; returns a number below `sides`.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

/// What the judge remembers to check the next step.
struct Judge {
    sent: usize,
    writes: usize,
    standing: HostStatus,
    last_lie: u64,
    /// When the machine was last switched by hand: what its BMC said just before proves nothing.
    last_flip: u64,
}

fn chaos(world: &mut World, dice: &mut Dice, judge: &mut Judge, has_lies: bool) {
    let minute = 1_200;
    if dice.one_in(minute / 2) {
        match dice.roll(8) {
            0 => world.annotate(BASE, ""),
            1 => world.annotate(BASE, HARD),
            2 => world.annotate(KEY, ""),
            3 => world.annotate(KEY, HARD),
            4 => world.annotate(OTHER, HARD),
            5 => world.remove(KEY),
            6 => world.remove(OTHER),
            _ => world.seen.host_mut().online = !world.seen.host.online,
        }
    }
    if dice.one_in(minute * 2) {
        let pause = 1_000 + dice.roll(16_000);
        world.crash(pause);
    }
    if dice.one_in(minute * 3) {
        world.wall_ahead += i64::try_from(dice.roll(7_200_000)).unwrap() - 3_600_000;
    }
    if !has_lies && dice.one_in(minute * 4) {
        judge.last_flip = world.time;
        let is_on = dice.one_in(2);
        world.set_power(is_on);
    }
    let time = world.time;
    let bmc = &mut world.bmcs[0];
    any_mood(bmc, dice);
    if has_lies && time > judge.last_lie + 12_000 && dice.one_in(100) {
        bmc.says = vec![Says::Lie(if dice.one_in(2) {
            PowerReading::Off
        } else {
            PowerReading::On
        })];
    }
}

/// Draws the BMC's next behaviour anew.
pub(crate) fn any_mood(bmc: &mut Bmc, dice: &mut Dice) {
    bmc.default_takes = match dice.roll(10) {
        0 => Takes::Ignores,
        1 => Takes::Fails(FaultClass::Refused),
        2 => Takes::Fails(FaultClass::Unsupported),
        3 => Takes::Silent {
            after: dice.roll(10_000),
            runs: None,
        },
        4 | 5 => Takes::Silent {
            after: dice.roll(10_000),
            runs: Some(dice.roll(29_000)),
        },
        6 => Takes::Runs(dice.roll(12_000)),
        7 => Takes::NamesNoTask(dice.roll(29_000)),
        _ => Takes::Runs(dice.roll(2_000)),
    };
    bmc.default_says = match dice.roll(10) {
        0 => Says::Fails(FaultClass::TimedOut),
        1 => Says::Slow(dice.roll(9_000)),
        2 => Says::Lie(PowerReading::PoweringOff),
        _ => Says::Truth,
    };
    bmc.shuts_down = (!dice.one_in(3)).then(|| dice.roll(60_000));
}

impl Judge {
    fn new(world: &World) -> Self {
        Self {
            sent: 0,
            writes: 0,
            standing: world.status().clone(),
            last_lie: 0,
            last_flip: 0,
        }
    }

    fn look(&mut self, world: &World) {
        for (time, status) in &world.writes[self.writes..] {
            let new = status.power.off_confirmed_at;
            if new.is_some() && new != self.standing.power.off_confirmed_at {
                self.confirmed(world, *time, status);
            }
            times(&self.standing, status);
            self.standing = status.clone();
        }
        self.writes = world.writes.len();
        for (index, trace) in world.sent.iter().enumerate().skip(self.sent) {
            Self::sent(world, index, trace);
        }
        self.sent = world.sent.len();
    }

    /// Off is confirmed only by two fresh readings after an answered command of Dogwatch's, and
    /// only when no command may still run.
    fn confirmed(&self, world: &World, time: u64, status: &HostStatus) {
        let command = status
            .power
            .command
            .as_ref()
            .expect("its command stands there");
        assert!(command.command.is_power_off());
        let trace = world
            .sent
            .iter()
            .find(|trace| trace.id == command.id)
            .unwrap();
        // A dead leader has recorded the answer, or the command does not count.
        let answered = trace.answered.expect("answered");
        let readings = &world.seen.memory.readings;
        let mut newest = readings.iter().filter(|read| read.level == command.level);
        let (second, first) = (newest.next().unwrap(), newest.next().unwrap());
        assert_eq!(
            (&first.result, &second.result),
            (&Ok(PowerReading::Off), &Ok(PowerReading::Off))
        );
        assert!(second.asked >= first.answered + Duration::from_secs(5));
        assert!(world.world_time(first.asked) >= answered);
        for earlier in &world.sent {
            let lost = earlier.lost.filter(|lost| *lost <= time);
            assert!(
                lost.is_none_or(|lost| time >= lost + 30_000),
                "{earlier:?} at {time}"
            );
        }
        if self.last_flip + 60_000 < time {
            assert!(!world.is_on(), "it runs: {:?}", world.transitions);
        }
    }

    /// A power-on follows only a confirmed off, or a host that was found off. After a crash a
    /// command is repeated only on a reading.
    fn sent(world: &World, index: usize, trace: &Trace) {
        if trace.command == PowerCommand::On {
            let last = world.sent[..index].iter().rev();
            let before = last
                .take_while(|other| other.command == PowerCommand::On)
                .count();
            let confirmed = world
                .writes
                .iter()
                .any(|(_, s)| s.power.off_confirmed_at.is_some());
            let is_plain = trace.why == PowerReason::FoundOff.as_str();
            assert!(
                before > 0 || confirmed || is_plain,
                "off is confirmed before the first power-on"
            );
        }
        let Some(earlier) = index.checked_sub(1).map(|index| &world.sent[index]) else {
            return;
        };
        // After a withdrawal another need began: that is no repetition.
        let ids = world.writes.iter().map(|(_, status)| {
            let command = status.power.command.as_ref();
            command.map(|command| command.id.as_str())
        });
        let before = ids.take_while(|id| *id != Some(&trace.id)).last().flatten();
        let is_foreign = earlier.process != trace.process && earlier.lost.is_some();
        let is_same_need = before == Some(&earlier.id) && earlier.command == trace.command;
        if !is_foreign || !is_same_need {
            return;
        }
        let newest = world
            .seen
            .memory
            .readings
            .iter()
            .find(|read| read.level == trace.level);
        let shows = |read: &LevelReading| match trace.command {
            PowerCommand::On => read.result == Ok(PowerReading::Off),
            PowerCommand::Off | PowerCommand::SoftOff => read.result.is_ok(),
        };
        assert!(
            newest.is_some_and(shows),
            "{trace:?} repeats {earlier:?}: {newest:?}"
        );
    }
}

/// Each recorded time is later than the other two.
fn times(before: &HostStatus, after: &HostStatus) {
    let all = |status: &HostStatus| {
        [
            status.pending_reboot_since,
            status.last_powered_on,
            status.power.off_confirmed_at,
        ]
    };
    let (old, new) = (all(before), all(after));
    for (index, time) in new.iter().enumerate() {
        if time.is_some() && *time != old[index] {
            for other in old
                .iter()
                .chain(&new)
                .flatten()
                .filter(|other| Some(**other) != *time)
            {
                assert!(*other < time.unwrap(), "{old:?} {new:?}");
            }
        }
    }
}

fn ends_where_it_should(world: &mut World) {
    let bmc = &mut world.bmcs[0];
    bmc.default_takes = Takes::Runs(500);
    bmc.default_says = Says::Truth;
    bmc.says.clear();
    bmc.shuts_down = Some(10_000);
    world.run(700);
    let held = [KEY, OTHER]
        .iter()
        .any(|key| world.seen.host.annotations.contains_key(*key));
    let wanted = world.seen.host.online && !held;
    let story = format!(
        "{:?} {:?}",
        world.seen.host,
        world.last.as_ref().map(|last| &last.cause)
    );
    assert_eq!(world.is_on(), wanted, "{story}");
    assert_eq!(world.status().powered_on, Some(wanted), "{story}");
    assert!(!world.seen.host.annotations.contains_key(BASE), "{story}");
    let proof = find_off_proof(&world.seen, &world.config, world.now());
    // A host that is off already, with `online: false` and no key, gets no command and needs no proof.
    assert!(proof.is_some() || !held, "{story}");
    assert!(proof.is_none() || !wanted, "{story}");
    assert_eq!(world.power().command.is_none(), proof.is_none(), "{story}");
    assert_eq!(
        world.power().off_confirmed_at.is_none(),
        proof.is_none(),
        "{story}"
    );
    for request in reboot_annotations(&world.seen.host) {
        assert!(
            proof
                .as_ref()
                .is_some_and(|proof| proof.covers_annotation(&request)),
            "{story}"
        );
    }
    if wanted {
        let status = world.status();
        assert!(
            status.last_powered_on >= status.pending_reboot_since,
            "{story}"
        );
    }
}

fn run(seed: u64) {
    let mut dice = Dice::new(seed);
    let (online, is_on) = (!dice.one_in(4), !dice.one_in(4));
    let mut world = World::new(&[], online, is_on);
    let mut judge = Judge::new(&world);
    let has_lies = dice.one_in(2);
    let end = world.time + CHAOS;
    while world.time < end {
        chaos(&mut world, &mut dice, &mut judge, has_lies);
        let lies = world.bmcs[0].says.len();
        world.tick();
        if world.bmcs[0].says.len() < lies {
            judge.last_lie = world.time;
        }
        judge.look(&world);
    }
    ends_where_it_should(&mut world);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::model_depth::model_cases(64), ..ProptestConfig::default() })]

    #[test]
    fn off_is_never_said_of_a_host_that_runs_and_it_ends_where_spec_and_keys_want_it(seed in any::<u64>()) {
        run(seed);
    }
}
