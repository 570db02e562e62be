//! A model of several processes and one Lease, with delays and losses: two processes never lead.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::Now;

const TICK_MS: u64 = 50;
const CHAOS_END_MS: u64 = 90_000;
const MAX_DELAY_MS: u64 = 20_000;
/// In this time nothing new goes wrong, but late messages still arrive (a renewal that lands late
/// looks like a leader's). At its end some process must lead: within the Lease's duration, the
/// spread and the error of a clock.
const QUIET_END_MS: u64 = CHAOS_END_MS + MAX_DELAY_MS + 20_000;

#[derive(Clone)]
struct ModelRandom(u64);

impl ModelRandom {
    /// Xorshift; returns a number below `sides`.
    fn roll_below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll_below(sides) == 0
    }
}

/// A process whose clock runs at `rate` percent, started at `begun`.
struct ElectorProcess {
    elector: LeaderElector,
    begun: u64,
    rate: u64,
    wall_ahead: i64,
    stopped_until: u64,
    call_ends: Option<u64>,
    inbox: Vec<(u64, ElectorMessage)>,
}

enum ElectorMessage {
    Saw(ObservedLeaderLease),
    Answer(Result<ObservedLeaderLease, ()>),
}

impl ElectorProcess {
    fn start_process(name: String, time: u64, dice: &mut ModelRandom) -> Self {
        let skew = i64::try_from(dice.roll_below(7_200_000)).unwrap() - 3_600_000;
        Self {
            elector: LeaderElector::new(
                name,
                f64::from(u32::try_from(dice.roll_below(100)).unwrap()) / 100.0,
            ),
            begun: time,
            rate: 90 + dice.roll_below(21),
            wall_ahead: skew,
            stopped_until: 0,
            call_ends: None,
            inbox: Vec::new(),
        }
    }

    fn local_now(&self, time: u64) -> Now {
        let mono = (time - self.begun) * self.rate / 100;
        let wall = 1_700_000_000_000 + self.wall_ahead + i64::try_from(time).unwrap();
        Now {
            wall: Timestamp::from_millisecond(wall).unwrap(),
            mono: Duration::from_millis(mono),
        }
    }
}

struct ElectionModel {
    dice: ModelRandom,
    time: u64,
    lease: Option<LeaderLease>,
    version: u64,
    incarnation: u64,
    started: u64,
    processes: Vec<ElectorProcess>,
    /// Writes on their way: arrival time, sender and content.
    wire: Vec<(u64, String, LeaderLeaseWrite)>,
}

impl ElectionModel {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: ModelRandom(seed | 1),
            time: 0,
            lease: None,
            version: 0,
            incarnation: 0,
            started: 0,
            processes: Vec::new(),
            wire: Vec::new(),
        };
        for _ in 0..3 {
            world.start_process();
        }
        world
    }

    fn is_chaotic(&self) -> bool {
        self.time < CHAOS_END_MS
    }

    fn start_process(&mut self) {
        self.started += 1;
        let name = format!("p{}", self.started);
        self.processes.push(ElectorProcess::start_process(
            name,
            self.time,
            &mut self.dice,
        ));
    }

    /// Mostly short, sometimes longer than any timeout.
    fn random_delay(&mut self) -> u64 {
        match (self.is_chaotic(), self.dice.roll_below(20)) {
            (true, 0) => self.dice.roll_below(MAX_DELAY_MS),
            (true, 1..=4) => self.dice.roll_below(3_000),
            (true | false, _) => self.dice.roll_below(100),
        }
    }

    fn current_lease(&self) -> ObservedLeaderLease {
        self.lease
            .clone()
            .map_or(ObservedLeaderLease::Missing, ObservedLeaderLease::There)
    }

    fn notify_watches(&mut self) {
        for index in 0..self.processes.len() {
            // A watch that broke reports later; one that lags keeps its order by versions.
            let at = self.time + self.random_delay();
            let sight = self.current_lease();
            self.processes[index]
                .inbox
                .push((at, ElectorMessage::Saw(sight)));
        }
    }

    fn update_lease(&mut self, change: impl FnOnce(&mut LeaderLease)) {
        self.version += 1;
        let version = self.version.to_string();
        if let Some(lease) = &mut self.lease {
            lease.resource_version = version;
            change(lease);
            self.notify_watches();
        }
    }

    /// Applies a write as the API server would.
    fn apply_write(
        &mut self,
        who: &str,
        write: LeaderLeaseWrite,
    ) -> Result<ObservedLeaderLease, ()> {
        let same = |seen: &LeaderLease| {
            let there = self.lease.as_ref().ok_or(())?;
            let is = there.uid == seen.uid && there.resource_version == seen.resource_version;
            is.then_some(()).ok_or(())
        };
        match write {
            LeaderLeaseWrite::Create if self.lease.is_some() => return Err(()),
            LeaderLeaseWrite::Create => self.create_lease(),
            LeaderLeaseWrite::Take { lease, renewed } => {
                same(&lease)?;
                self.update_lease(|lease| {
                    lease.holder = Some(who.to_owned());
                    lease.renewed = Some(renewed);
                    lease.transitions += 1;
                    lease.released = false;
                });
            }
            LeaderLeaseWrite::Renew { lease, renewed } => {
                same(&lease)?;
                self.update_lease(|lease| lease.renewed = Some(renewed));
            }
            LeaderLeaseWrite::Release { lease } => {
                same(&lease)?;
                self.update_lease(|lease| {
                    lease.holder = None;
                    lease.released = true;
                });
            }
        }
        Ok(self.current_lease())
    }

    fn create_lease(&mut self) {
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
        self.notify_watches();
    }

    fn inject_fault(&mut self) {
        let whom = usize::try_from(self.dice.roll_below(3)).unwrap();
        match self.dice.roll_below(400) {
            0 => {
                self.lease = None;
                self.notify_watches();
            }
            1 => self.update_lease(|lease| lease.holder = Some("a person".into())),
            2 => self.update_lease(|lease| lease.holder = None),
            3 => self.update_lease(|_| {}),
            4 | 5 => self.processes[whom].stopped_until = self.time + self.dice.roll_below(30_000),
            6 => {
                self.processes.remove(whom);
                self.start_process();
            }
            7 => self.processes[whom].elector.stop(),
            8 => self.processes[whom].wall_ahead += 60_000,
            9 => self.processes[whom].wall_ahead -= 3_600_000,
            _ => {}
        }
    }

    fn deliver_writes(&mut self) {
        let time = self.time;
        let (due, wire) = std::mem::take(&mut self.wire)
            .into_iter()
            .partition(|(at, _, _)| *at <= time);
        self.wire = wire;
        let due: Vec<(u64, String, LeaderLeaseWrite)> = due;
        for (_, who, write) in due {
            let answer = self.apply_write(&who, write);
            let lost = self.is_chaotic() && self.dice.one_in(10);
            let at = self.time + self.random_delay();
            let process = self
                .processes
                .iter_mut()
                .find(|p| p.elector.identity() == who);
            if let Some(process) = process.filter(|_| !lost) {
                process.inbox.push((at, ElectorMessage::Answer(answer)));
            }
        }
    }

    fn run_process(&mut self, index: usize) {
        let (time, sight) = (self.time, self.current_lease());
        let process = &mut self.processes[index];
        if time < process.stopped_until {
            return;
        }
        let now = process.local_now(time);
        let inbox = std::mem::take(&mut process.inbox);
        let (due, later): (Vec<_>, Vec<_>) = inbox.into_iter().partition(|(at, _)| *at <= time);
        process.inbox = later;
        for (_, message) in due {
            match message {
                ElectorMessage::Saw(sight) => process.elector.observe_lease(sight, now),
                // An answer after the timeout is ignored.
                ElectorMessage::Answer(_) if process.call_ends.is_none() => {}
                ElectorMessage::Answer(answer) => {
                    process.call_ends = None;
                    // Refused: the process reads the Lease again.
                    process
                        .elector
                        .observe_lease(answer.unwrap_or(sight.clone()), now);
                }
            }
        }
        if process.call_ends.is_some_and(|at| at <= time) {
            process.call_ends = None;
            process.elector.record_call_failure(now);
        }
        if process.call_ends.is_some() {
            return;
        }
        match process.elector.next_step(now) {
            ElectionStep::Wait { .. } => {}
            ElectionStep::Read => process.elector.observe_lease(sight, now),
            ElectionStep::Write(write) => {
                process.call_ends = Some(time + 3_000);
                let who = process.elector.identity().to_owned();
                let at = time + self.random_delay();
                if !(self.is_chaotic() && self.dice.one_in(10)) {
                    self.wire.push((at, who, write));
                }
            }
        }
    }

    fn current_leaders(&self) -> Vec<&str> {
        let leads = |process: &&ElectorProcess| {
            process
                .elector
                .current_term(process.local_now(self.time))
                .is_some()
        };
        let leading = self.processes.iter().filter(leads);
        leading.map(|process| process.elector.identity()).collect()
    }

    fn tick(&mut self) {
        self.time += TICK_MS;
        if self.is_chaotic() {
            self.inject_fault();
        } else if self.time < CHAOS_END_MS + TICK_MS {
            self.processes.iter_mut().for_each(|p| p.stopped_until = 0);
            // A process that stopped for good is replaced.
            self.processes.remove(0);
            self.start_process();
        }
        self.deliver_writes();
        for index in 0..self.processes.len() {
            self.run_process(index);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::model_depth::model_cases(300)))]

    #[test]
    fn two_never_lead_at_once_and_one_leads_soon_after_the_trouble(seed: u64) {
        let mut world = ElectionModel::new(seed);
        while world.time < QUIET_END_MS {
            world.tick();
            let leaders = world.current_leaders();
            prop_assert!(leaders.len() <= 1, "at {} ms: {leaders:?}", world.time);
        }
        prop_assert_eq!(world.current_leaders().len(), 1, "somebody leads in the end");
    }
}
