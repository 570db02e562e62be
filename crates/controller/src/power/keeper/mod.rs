//! One host's power, while this process leads: observe, decide, do the first batch, sleep until the
//! wake-up or a change.
//!
//! **Promises:**
//! - Nothing that hangs keeps a decision up: readings, checks, commands and writes run beside the loop.
//! - One write at a time, and one command at a time. A command has its place in the lane before its
//!   intention is written, so that it is sent at once on the answer.
//! - A write that only tells is decided when its turn has come: nothing that presses waits for it, and what
//!   changed meanwhile is in it.
//! - Whatever this process remembers of the host ends with its lead.

mod act;
mod conditions;
mod look;
mod pace;
mod take;
mod turn;
mod work;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::condition;
use dogwatch_core::decision::Event;
use dogwatch_core::power::{Decision, Host, HostName, Memory, Owner, Seen, Seniority, decide};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;

use self::pace::Pace;
use self::turn::Telling;
use self::work::Done;
use super::board::Spot;
use super::lanes::Place;
use super::links::Links;
use super::services::Services;
use super::tally::Entry;
use crate::Stop;

/// What is seen of a host from outside.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Input {
    /// The object, as the watch shows it.
    pub(super) host: Arc<Host>,
    /// Whose it is.
    pub(super) owner: Owner,
    /// Other hosts with one of its devices, which they keep.
    pub(super) shared_with: Vec<HostName>,
    /// Whether it goes before others that claim what it has.
    pub(super) seniority: Seniority,
}

/// A wake-up that is due already, while what was begun is under way: looked at again so soon.
const WHILE_BUSY: Duration = Duration::from_secs(1);
/// The same with nothing under way.
const WHILE_IDLE: Duration = Duration::from_millis(50);

/// One host's keeper.
pub(super) struct Keeper {
    services: Arc<Services>,
    input: watch::Receiver<Input>,
    spot: Spot,
    links: Links,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    under_way: UnderWay,
    /// The place for the next command, and its level.
    place: Option<(usize, Place)>,
    telling: Telling,
    writes: Pace,
    secrets: Pace,
    signs_of_life: Pace,
    /// Why nothing that is written stays, if that is so.
    pruned: Option<String>,
    said: Vec<Event>,
    /// When to look again although the decision does not ask for it.
    again: Option<Duration>,
    /// Which drivers these are, counted: what others found out means nothing.
    epoch: u64,
    tally: Entry,
    /// 0..1, another one whenever something has ended.
    jitter: f64,
    is_finishing: bool,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a job of its own")]
struct UnderWay {
    polls: BTreeSet<usize>,
    urgent: BTreeSet<usize>,
    checks: BTreeSet<usize>,
    command: bool,
    write: bool,
    place: Option<usize>,
    secrets: bool,
    signs_of_life: bool,
}

impl Keeper {
    /// Nothing is remembered yet.
    pub(super) fn new(services: Arc<Services>, input: watch::Receiver<Input>, spot: Spot) -> Self {
        let jitter = services.jitter.draw();
        let tally = services.tally.entry();
        Self {
            services,
            input,
            spot,
            links: Links::default(),
            jobs: FuturesUnordered::new(),
            under_way: UnderWay::default(),
            place: None,
            telling: Telling::default(),
            writes: Pace::default(),
            secrets: Pace::default(),
            signs_of_life: Pace::default(),
            pruned: None,
            said: Vec::new(),
            again: None,
            epoch: 0,
            tally,
            jitter,
            is_finishing: false,
        }
    }

    /// What a keeper knows at first.
    pub(super) fn first(input: &Input) -> Seen {
        Seen {
            host: Arc::clone(&input.host),
            owner: input.owner.clone(),
            shared_with: input.shared_with.clone(),
            same_system: Vec::new(),
            access: Vec::new(),
            memory: Memory::default(),
        }
    }

    /// Keeps the host until it is gone, or `stop` is told and the command under way has ended.
    pub(super) async fn run(mut self: Box<Self>, stop: Stop) {
        loop {
            self.observe();
            let wake = self.step();
            if self.is_finishing && self.has_finished() {
                break;
            }
            tokio::select! {
                changed = self.input.changed() => if changed.is_err() { break },
                Some(done) = self.jobs.next() => self.take(done),
                () = self.services.clock.sleep_until(wake) => {}
                () = stop.told(), if !self.is_finishing => self.is_finishing = true,
            }
        }
        let Self {
            links, services, ..
        } = *self;
        Box::pin(links.close(&services.lanes)).await;
    }

    /// Takes in what is seen from outside. A version that a write of ours is about to replace waits.
    fn observe(&mut self) {
        let now = self.services.clock.now();
        let input = self.input.borrow_and_update().clone();
        let mut spot = self.spot.lock();
        let seen = &mut spot.seen;
        seen.owner = input.owner;
        seen.shared_with = input.shared_with;
        // The answer to a write of ours is the version that the watch shows: one of the two is enough.
        let is_same = input.host.resource_version == seen.host.resource_version;
        if is_same || !self.under_way.write && is_newer(&input.host, &seen.host) {
            seen.host = input.host;
        }
        if self.links.follow(&seen.host.levels, &self.services.lanes) {
            seen.memory.forget_bmc();
            self.spot.tells(&seen.host.name, None);
            self.epoch += 1;
            self.secrets = Pace::default();
        }
        seen.same_system = self.spot.same_system(&seen.host.name);
        seen.memory.saw(&seen.host, now);
        seen.access = self.access();
    }

    /// Decides, and begins what is to be done. When to look again.
    fn step(&mut self) -> Duration {
        let now = self.services.clock.now();
        let id = self.services.ids.draw();
        let decision = {
            let mut spot = self.spot.lock();
            let decision = decide(&spot.seen, &self.services.config, &id, self.jitter, now);
            let decision = Arc::new(decision);
            spot.decision = Some(Arc::clone(&decision));
            self.tally.count(&spot.seen, &decision, now);
            decision
        };
        self.spot.show(&self.services.config, now);
        self.begin(&decision, now);
        self.wake(&decision)
    }

    fn wake(&mut self, decision: &Decision) -> Duration {
        let now = self.services.clock.now();
        let standing = &self.spot.lock().seen.host.status.conditions;
        let pauses = [&self.writes, &self.secrets, &self.signs_of_life];
        let pauses = pauses.map(|pace| pace.until().filter(|until| *until > now.mono));
        let wakes = [
            decision.wake.as_ref().map(|wake| wake.at),
            condition::next_write(standing, &decision.report.conditions, now),
            self.again.take(),
        ];
        let wakes = wakes.into_iter().chain(pauses);
        let pause = if self.jobs.is_empty() {
            WHILE_IDLE
        } else {
            WHILE_BUSY
        };
        let soonest = now.mono + pause;
        let wake = wakes.flatten().min();
        wake.map_or(
            Duration::MAX,
            |wake| {
                if wake <= now.mono { soonest } else { wake }
            },
        )
    }

    fn has_finished(&self) -> bool {
        !self.under_way.command && !self.under_way.write
    }
}

/// Versions of one object are ordered (Kubernetes promises it since 1.35, and always kept it). An
/// object of another UID has another keeper.
fn is_newer(new: &Host, known: &Host) -> bool {
    let number = |host: &Host| host.resource_version.parse::<u128>().ok();
    match (number(new), number(known)) {
        (Some(new), Some(known)) => new > known,
        (_, _) => new.resource_version != known.resource_version,
    }
}
