//! Some processes and one Lease, with everything that may go wrong between them: never two lead.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::Now;

/// The world's step, in milliseconds.
const TICK: u64 = 50;
const CHAOS: u64 = 90_000;
/// The longest that a message may be on its way.
const LATE: u64 = 20_000;
/// Afterwards nothing goes wrong but what is on its way still (a renewal that lands that late looks
/// like a leader's); then somebody has to lead within the Lease, the spread and a clock's error.
const QUIET: u64 = CHAOS + LATE + 20_000;

#[derive(Clone)]
struct Dice(u64);

impl Dice {
    /// Xorshift: below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

/// A process whose clock runs at `rate` percent, from `begun` on.
struct Process {
    elector: Elector,
    begun: u64,
    rate: u64,
    wall_ahead: i64,
    stopped_until: u64,
    call_ends: Option<u64>,
    inbox: Vec<(u64, Message)>,
}

enum Message {
    Saw(Sight),
    Answer(Result<Sight, ()>),
}

impl Process {
    fn start(name: String, time: u64, dice: &mut Dice) -> Self {
        let skew = i64::try_from(dice.roll(7_200_000)).unwrap() - 3_600_000;
        Self {
            elector: Elector::new(
                name,
                f64::from(u32::try_from(dice.roll(100)).unwrap()) / 100.0,
            ),
            begun: time,
            rate: 90 + dice.roll(21),
            wall_ahead: skew,
            stopped_until: 0,
            call_ends: None,
            inbox: Vec::new(),
        }
    }

    fn now(&self, time: u64) -> Now {
        let mono = (time - self.begun) * self.rate / 100;
        let wall = 1_700_000_000_000 + self.wall_ahead + i64::try_from(time).unwrap();
        Now {
            wall: Timestamp::from_millisecond(wall).unwrap(),
            mono: Duration::from_millis(mono),
        }
    }
}

struct World {
    dice: Dice,
    time: u64,
    lease: Option<LeaderLease>,
    version: u64,
    incarnation: u64,
    started: u64,
    processes: Vec<Process>,
    /// Writes on their way: when they arrive, whose, and what.
    wire: Vec<(u64, String, Write)>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: Dice(seed | 1),
            time: 0,
            lease: None,
            version: 0,
            incarnation: 0,
            started: 0,
            processes: Vec::new(),
            wire: Vec::new(),
        };
        for _ in 0..3 {
            world.start();
        }
        world
    }

    fn chaos(&self) -> bool {
        self.time < CHAOS
    }

    fn start(&mut self) {
        self.started += 1;
        let name = format!("p{}", self.started);
        self.processes
            .push(Process::start(name, self.time, &mut self.dice));
    }

    /// Mostly quick, sometimes longer than anything may take.
    fn delay(&mut self) -> u64 {
        match (self.chaos(), self.dice.roll(20)) {
            (true, 0) => self.dice.roll(LATE),
            (true, 1..=4) => self.dice.roll(3_000),
            (true | false, _) => self.dice.roll(100),
        }
    }

    fn sight(&self) -> Sight {
        self.lease.clone().map_or(Sight::Missing, Sight::There)
    }

    fn changed(&mut self) {
        for index in 0..self.processes.len() {
            // A watch that broke tells later; one that lags keeps its order by versions.
            let at = self.time + self.delay();
            let sight = self.sight();
            self.processes[index].inbox.push((at, Message::Saw(sight)));
        }
    }

    fn put(&mut self, change: impl FnOnce(&mut LeaderLease)) {
        self.version += 1;
        let version = self.version.to_string();
        if let Some(lease) = &mut self.lease {
            lease.resource_version = version;
            change(lease);
            self.changed();
        }
    }

    /// What the API server does.
    fn apply(&mut self, who: &str, write: Write) -> Result<Sight, ()> {
        let same = |seen: &LeaderLease| {
            let there = self.lease.as_ref().ok_or(())?;
            let is = there.uid == seen.uid && there.resource_version == seen.resource_version;
            is.then_some(()).ok_or(())
        };
        match write {
            Write::Create if self.lease.is_some() => return Err(()),
            Write::Create => self.create(),
            Write::Take { lease, renewed } => {
                same(&lease)?;
                self.put(|lease| {
                    lease.holder = Some(who.to_owned());
                    lease.renewed = Some(renewed);
                    lease.transitions += 1;
                    lease.released = false;
                });
            }
            Write::Renew { lease, renewed } => {
                same(&lease)?;
                self.put(|lease| lease.renewed = Some(renewed));
            }
            Write::Release { lease } => {
                same(&lease)?;
                self.put(|lease| {
                    lease.holder = None;
                    lease.released = true;
                });
            }
        }
        Ok(self.sight())
    }

    fn create(&mut self) {
        self.version += 1;
        self.incarnation += 1;
        self.lease = Some(LeaderLease {
            uid: self.incarnation.to_string(),
            resource_version: self.version.to_string(),
            holder: None,
            renewed: None,
            transitions: 0,
            released: false,
        });
        self.changed();
    }

    fn misfortune(&mut self) {
        let whom = usize::try_from(self.dice.roll(3)).unwrap();
        match self.dice.roll(400) {
            0 => {
                self.lease = None;
                self.changed();
            }
            1 => self.put(|lease| lease.holder = Some("a person".into())),
            2 => self.put(|lease| lease.holder = None),
            3 => self.put(|_| {}),
            4 | 5 => self.processes[whom].stopped_until = self.time + self.dice.roll(30_000),
            6 => {
                self.processes.remove(whom);
                self.start();
            }
            7 => self.processes[whom].elector.stop(),
            8 => self.processes[whom].wall_ahead += 60_000,
            9 => self.processes[whom].wall_ahead -= 3_600_000,
            _ => {}
        }
    }

    fn deliver(&mut self) {
        let time = self.time;
        let (due, wire) = std::mem::take(&mut self.wire)
            .into_iter()
            .partition(|(at, _, _)| *at <= time);
        self.wire = wire;
        let due: Vec<(u64, String, Write)> = due;
        for (_, who, write) in due {
            let answer = self.apply(&who, write);
            let lost = self.chaos() && self.dice.one_in(10);
            let at = self.time + self.delay();
            let process = self.processes.iter_mut().find(|p| p.elector.me() == who);
            if let Some(process) = process.filter(|_| !lost) {
                process.inbox.push((at, Message::Answer(answer)));
            }
        }
    }

    fn run(&mut self, index: usize) {
        let (time, sight) = (self.time, self.sight());
        let process = &mut self.processes[index];
        if time < process.stopped_until {
            return;
        }
        let now = process.now(time);
        let inbox = std::mem::take(&mut process.inbox);
        let (due, later): (Vec<_>, Vec<_>) = inbox.into_iter().partition(|(at, _)| *at <= time);
        process.inbox = later;
        for (_, message) in due {
            match message {
                Message::Saw(sight) => process.elector.saw(sight, now),
                // An answer that came too late is not listened to.
                Message::Answer(_) if process.call_ends.is_none() => {}
                Message::Answer(answer) => {
                    process.call_ends = None;
                    // Refused: it is read afresh.
                    process.elector.saw(answer.unwrap_or(sight.clone()), now);
                }
            }
        }
        if process.call_ends.is_some_and(|at| at <= time) {
            process.call_ends = None;
            process.elector.failed(now);
        }
        if process.call_ends.is_some() {
            return;
        }
        match process.elector.step(now) {
            Step::Wait { .. } => {}
            Step::Read => process.elector.saw(sight, now),
            Step::Write(write) => {
                process.call_ends = Some(time + 3_000);
                let who = process.elector.me().to_owned();
                let at = time + self.delay();
                if !(self.chaos() && self.dice.one_in(10)) {
                    self.wire.push((at, who, write));
                }
            }
        }
    }

    fn leaders(&self) -> Vec<&str> {
        let leads = |process: &&Process| process.elector.term(process.now(self.time)).is_some();
        let leading = self.processes.iter().filter(leads);
        leading.map(|process| process.elector.me()).collect()
    }

    fn tick(&mut self) {
        self.time += TICK;
        if self.chaos() {
            self.misfortune();
        } else if self.time < CHAOS + TICK {
            self.processes.iter_mut().for_each(|p| p.stopped_until = 0);
            // One that stopped for good is replaced.
            self.processes.remove(0);
            self.start();
        }
        self.deliver();
        for index in 0..self.processes.len() {
            self.run(index);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn two_never_lead_at_once_and_one_leads_soon_after_the_trouble(seed: u64) {
        let mut world = World::new(seed);
        while world.time < QUIET {
            world.tick();
            let leaders = world.leaders();
            prop_assert!(leaders.len() <= 1, "at {} ms: {leaders:?}", world.time);
        }
        prop_assert_eq!(world.leaders().len(), 1, "somebody leads in the end");
    }
}
