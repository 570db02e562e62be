//! Random runs of hosts that metal3's own power controller manages: whatever it does and its BMC
//! says, no key is proved while the machine runs. Source: specification §1 S2, §4.3.

use proptest::prelude::*;

use super::model::Dice;
use super::world::*;
use crate::power::*;

const OTHER: &str = "reboot.metal3.io/other";
/// The length of the random phase in milliseconds.
const CHAOS: u64 = 12 * 60_000;
/// The longest delay of a command of metal3's, in milliseconds. With the delay until it sees a key,
/// it is shorter than the settle time.
const LATEST: u64 = 25_000;

/// metal3's controller, which sees the host late and reports late.
struct Operator {
    /// When it reads the keys again.
    looks: u64,
    wants_off: bool,
    /// Commands on their way: when they arrive, and whether they mean on.
    sent: Vec<(u64, bool)>,
    /// Reports on their way: when they arrive, and whether they say on.
    says: Vec<(u64, bool)>,
    last_lie: u64,
}

impl Operator {
    fn step(&mut self, world: &mut World, dice: &mut Dice) {
        let now = world.time;
        let is_held = world.seen.host.annotations.keys().any(|name| name != BASE);
        if now >= self.looks {
            self.wants_off = is_held;
            self.looks = now + dice.roll(4_000);
        }
        // It sends now and then what it wants, and its commands arrive late.
        if dice.one_in(80) {
            let at = now + dice.roll(LATEST);
            self.sent.push((at, !self.wants_off));
        }
        if let Some((_, is_on)) = take_due(&mut self.sent, now) {
            world.set_power(is_on);
            self.says.push((now + dice.roll(90_000), is_on));
        }
        if let Some((_, is_on)) = take_due(&mut self.says, now) {
            world.seen.host_mut().status.powered_on = Some(is_on);
            world.version += 1;
        }
    }
}

/// Returns the newest due entry, and drops it and all older ones.
fn take_due(all: &mut Vec<(u64, bool)>, now: u64) -> Option<(u64, bool)> {
    let due = all.iter().copied().filter(|(at, _)| *at <= now).max();
    all.retain(|(at, _)| *at > now);
    due
}

fn chaos(world: &mut World, dice: &mut Dice, operator: &mut Operator) {
    if dice.one_in(1_200) {
        match dice.roll(5) {
            0 | 1 => world.annotate(KEY, HARD),
            2 => world.annotate(OTHER, ""),
            3 => world.remove(KEY),
            _ => world.remove(OTHER),
        }
    }
    if dice.one_in(6_000) {
        world.crash(1_000 + dice.roll(16_000));
    }
    let bmc = &mut world.bmcs[0];
    bmc.default_says = match dice.roll(12) {
        0 => Says::Fails(FaultClass::TimedOut),
        1 => Says::Slow(dice.roll(9_000)),
        2 => Says::Lie(PowerReading::PoweringOff),
        _ => Says::Truth,
    };
    if world.time > operator.last_lie + 12_000 && dice.one_in(200) {
        bmc.says = vec![Says::Lie(PowerReading::Off)];
    }
}

fn run(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let mut world = World::new(&[], true, true);
    world.seen.owner = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    world.seen.host_mut().status.provisioning = Some("provisioned".into());
    // metal3's default, which does not come from a reading.
    world.seen.host_mut().status.powered_on = Some(false);
    let mut operator = Operator {
        looks: 0,
        wants_off: false,
        sent: Vec::new(),
        says: Vec::new(),
        last_lie: 0,
    };
    let (mut proved, end) = (0, world.time + CHAOS);
    while world.time < end {
        chaos(&mut world, &mut dice, &mut operator);
        operator.step(&mut world, &mut dice);
        let lies = world.bmcs[0].says.len();
        world.tick();
        if world.bmcs[0].says.len() < lies {
            operator.last_lie = world.time;
        }
        proved += judge(&world);
    }
    assert!(
        world.writes.is_empty() && world.sent.is_empty(),
        "only read"
    );
    proved
}

/// The number of keys that are proved now; fails if one is proved while the machine runs.
fn judge(world: &World) -> usize {
    if world.time < world.down_until {
        return 0;
    }
    let Some(proof) = find_off_proof(&world.seen, &world.config, world.now()) else {
        return 0;
    };
    let keys = reboot_annotations(&world.seen.host);
    let proved = keys
        .iter()
        .filter(|key| proof.covers_annotation(key))
        .count();
    assert!(
        proved == 0 || !world.is_on(),
        "proved off while it runs: {proof:?}"
    );
    proved
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::model_depth::model_cases(24), ..ProptestConfig::default() })]

    #[test]
    fn no_key_is_proved_by_their_off_while_the_machine_runs(seed in any::<u64>()) {
        run(seed);
    }
}

#[test]
fn keys_are_proved_by_their_off_all_the_same() {
    let proved: usize = (1..5).map(run).sum();
    assert!(proved > 1_000, "{proved} moments");
}
