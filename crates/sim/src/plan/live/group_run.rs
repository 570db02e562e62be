//! One run of one group: a place frees, and the next in line that may begin takes it.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::policy::{self, Policy};
use dogwatch_core::reboot::{ObservedNode, RebootPhase};
use dogwatch_kubesim::seed::RandomStream;
use jiff::Timestamp;

use super::group_calendar::CalendarAnswer;
use super::group_shape::complete_reboot;
use super::live_group::{LiveGroup, offset_of};
use super::phase_times::{RebootTimes, TimeSamples};
use super::queue::{LiveQueue, LiveQueuePlace, LiveWaiter};
use crate::plan::event_queue::EventQueue;

/// From the release of a lock until the next node's drain begins.
const HANDOVER_TIME: Duration = Duration::from_millis(500);
/// A place that frees without a Lease is noticed late: winners that were over budget pause for so
/// long, on average.
const UNNOTICED_TIME: Duration = Duration::from_secs(20);
/// What lies further ahead than this is never.
const HORIZON: Duration = Duration::from_hours(24 * 366);
/// A drain that a window has cut off so often does not fit into it.
const MAX_CUTS: u32 = 20;
/// After so many looks at which nobody began, nobody ever will.
const MAX_IDLE_LOOKS: u32 = 2_000;

/// When nodes began and were back, from the start of the run, by the index of the node.
#[derive(Debug, Default)]
pub(super) struct GroupTimes {
    pub(super) name: String,
    /// Of nodes that begin in this run.
    pub(super) starts: BTreeMap<usize, Duration>,
    pub(super) finishes: BTreeMap<usize, Duration>,
}

pub(super) enum LiveEvent {
    /// A node is back, or a host has released its lock.
    Back { node: Option<usize>, limit: usize },
    /// A window cut the drain off.
    CutOff { waiter: LiveWaiter, limit: usize },
    /// Somebody else's node is back.
    OtherBack(String),
    /// A time has come at which somebody may begin.
    LookAgain,
}

pub(super) fn run_group(
    group: &LiveGroup,
    times: TimeSamples<'_>,
    stream: &mut RandomStream,
    start: Now,
) -> GroupTimes {
    let mut run = GroupRun::new(group, times, stream, start);
    run.begin_with_present();
    run.fill_places();
    while let Some((at, event)) = run.events.pop_event() {
        if at > HORIZON || run.is_over() {
            break;
        }
        run.now = at;
        run.handle_event(event);
        run.fill_places();
    }
    run.result
}

pub(super) struct GroupRun<'a> {
    pub(super) group: &'a LiveGroup,
    pub(super) times: TimeSamples<'a>,
    pub(super) stream: &'a mut RandomStream,
    pub(super) start: Now,
    pub(super) now: Duration,
    pub(super) events: EventQueue<LiveEvent>,
    pub(super) queue: LiveQueue,
    /// How many reboots, holds and hosts of the queue are out.
    pub(super) out: usize,
    /// How many of them come back.
    pub(super) ends: usize,
    /// Members that others have taken.
    pub(super) taken: BTreeMap<String, Option<Timestamp>>,
    /// The policy, with the state of its rollout in this run.
    pub(super) policy: Option<Policy>,
    /// The nodes of this run; only if the policy has a `rollout`.
    pub(super) nodes: Vec<ObservedNode>,
    pub(super) allowed: usize,
    /// What `allowed` was when each of those who are out took its lock: the smallest rules until its
    /// holder is back. With how many have it.
    pub(super) held_limits: BTreeMap<usize, usize>,
    pub(super) calendar: Option<CalendarAnswer>,
    /// When the group looks again anyway.
    pub(super) look_due: Option<Duration>,
    pub(super) cuts: u32,
    /// Events since somebody began or was back.
    pub(super) idle_looks: u32,
    /// The zone of the node that was back last.
    pub(super) zone: Option<String>,
    pub(super) result: GroupTimes,
}

impl<'a> GroupRun<'a> {
    fn new(
        group: &'a LiveGroup,
        times: TimeSamples<'a>,
        stream: &'a mut RandomStream,
        start: Now,
    ) -> Self {
        let shape = group
            .policy
            .as_ref()
            .filter(|it| it.rollout.shape.is_some());
        Self {
            times,
            stream,
            start,
            now: Duration::ZERO,
            events: EventQueue::default(),
            queue: LiveQueue::of_waiters(&group.waiting),
            out: 0,
            ends: 0,
            taken: group.taken.clone(),
            nodes: shape.map_or_else(Vec::new, |_| group.nodes.clone()),
            policy: group.policy.clone(),
            allowed: group.allowed_nodes(group.policy.as_ref()),
            held_limits: BTreeMap::new(),
            calendar: None,
            look_due: None,
            cuts: 0,
            idle_looks: 0,
            zone: None,
            result: GroupTimes {
                name: group.name.clone(),
                ..GroupTimes::default()
            },
            group,
        }
    }

    /// Nothing that comes changes when the others begin or finish.
    fn is_over(&self) -> bool {
        self.idle_looks > MAX_IDLE_LOOKS || (self.queue.is_empty() && self.ends == 0)
    }

    pub(super) fn current_time(&self) -> Now {
        Now {
            wall: self.start.wall_after(self.now),
            mono: self.now,
        }
    }

    /// Takes over what is under way.
    fn begin_with_present(&mut self) {
        for reboot in &self.group.out {
            self.out += 1;
            if reboot.is_endless {
                continue;
            }
            self.ends += 1;
            let rest = self
                .times
                .draw_rest(reboot.phase, reboot.elapsed, self.stream);
            let limit = self.hold_limit();
            let node = Some(reboot.node);
            self.events
                .schedule_event(rest, LiveEvent::Back { node, limit });
        }
        for (name, ends) in &self.group.taken {
            if let Some(ends) = ends {
                let at = offset_of(*ends, self.start) + UNNOTICED_TIME;
                self.events
                    .schedule_event(at, LiveEvent::OtherBack(name.clone()));
            }
        }
        self.advance_shape();
    }

    fn handle_event(&mut self, event: LiveEvent) {
        match event {
            LiveEvent::Back { node, limit } => {
                self.release_place(limit);
                if let Some(node) = node {
                    self.finish_node(node);
                }
                // The next node takes the lock before the controller has counted this one.
                self.fill_places();
            }
            LiveEvent::CutOff { waiter, limit } => {
                self.release_place(limit);
                self.cuts += 1;
                if let Some(node) = waiter.node {
                    self.set_phase(node, RebootPhase::Waiting);
                }
                if self.cuts < MAX_CUTS {
                    self.queue.queue_again(waiter);
                }
            }
            LiveEvent::OtherBack(name) => {
                self.taken.remove(&name);
            }
            LiveEvent::LookAgain => {
                self.look_due = None;
                self.idle_looks += 1;
            }
        }
        self.advance_shape();
    }

    /// Notes the maximum with which somebody takes a lock.
    fn hold_limit(&mut self) -> usize {
        *self.held_limits.entry(self.allowed).or_default() += 1;
        self.allowed
    }

    fn release_place(&mut self, limit: usize) {
        self.out -= 1;
        self.ends -= 1;
        if let Some(holders) = self.held_limits.get_mut(&limit) {
            *holders -= 1;
            if *holders == 0 {
                self.held_limits.remove(&limit);
            }
        }
    }

    /// How many may be out now: the smallest maximum of the next and of the holders.
    fn places(&self) -> usize {
        let held = self.held_limits.keys().next();
        held.map_or(self.allowed, |held| self.allowed.min(*held))
    }

    fn finish_node(&mut self, node: usize) {
        self.result.finishes.insert(node, self.now);
        let group = self.group;
        self.zone = policy::zone_of_labels(&group.policies, &group.nodes[node].labels);
        let finished = self.current_time().wall;
        if let Some(seen) = self.nodes.get_mut(node) {
            complete_reboot(seen, finished, self.stream);
        }
    }

    /// Lets all begin that may.
    fn fill_places(&mut self) {
        while let Some(place) = self.find_next() {
            let Some(waiter) = self.queue.remove_waiter(place) else {
                return;
            };
            self.begin_reboot(waiter);
        }
    }

    /// The first in line for whom there is a place, and who may begin now. If nobody may, the group
    /// looks again when that can change.
    fn find_next(&mut self) -> Option<LiveQueuePlace> {
        if self.queue.is_empty() || self.out >= self.places() {
            return None;
        }
        let now = self.current_time();
        let calendar = self.ask_calendar(now);
        if !calendar.is_open {
            if let Some(at) = calendar.changes {
                self.look_again_at(at);
            }
            return None;
        }
        let found = self.find_able(now);
        if found.is_none()
            && let Some(at) = self.queue.next_ready(now.wall)
        {
            self.look_again_at(at);
        }
        found
    }

    fn find_able(&self, now: Now) -> Option<LiveQueuePlace> {
        let mut in_order = self.queue.in_order(self.zone.as_deref());
        let found = in_order.find(|(_, waiter)| self.may_begin(waiter, now));
        found.map(|(place, _)| place)
    }

    fn may_begin(&self, waiter: &LiveWaiter, now: Now) -> bool {
        let node = waiter.node.map(|node| &self.group.nodes[node]);
        let name = node.map(|node| node.name.as_str());
        let others = self
            .taken
            .keys()
            .filter(|taken| Some(taken.as_str()) != name);
        let is_ready = waiter.ready_at.is_none_or(|at| at <= now.wall);
        is_ready && self.out + others.count() < self.places() && self.shape_allows(waiter)
    }

    fn begin_reboot(&mut self, waiter: LiveWaiter) {
        self.out += 1;
        self.idle_looks = 0;
        let times = self.times.draw_reboot(self.stream);
        let begin = self.now + HANDOVER_TIME;
        if let Some(node) = waiter.node {
            self.result.starts.insert(node, begin);
            self.set_phase(node, RebootPhase::Draining);
        }
        if waiter.is_hold {
            return self.advance_shape();
        }
        self.ends += 1;
        self.schedule_end(waiter, begin, &times);
        self.advance_shape();
    }

    fn schedule_end(&mut self, waiter: LiveWaiter, begin: Duration, times: &RebootTimes) {
        let ends = self.window_end(self.current_time());
        let ends = ends.map(|end| offset_of(end, self.start));
        let limit = self.hold_limit();
        let node = waiter.node;
        let (at, event) = match ends.filter(|end| *end < begin + times.drain) {
            Some(end) => (end, LiveEvent::CutOff { waiter, limit }),
            None => (begin + times.total_time(), LiveEvent::Back { node, limit }),
        };
        self.events.schedule_event(at, event);
    }

    pub(super) fn look_again_at(&mut self, at: Timestamp) {
        let at = offset_of(at, self.start);
        if at <= self.now || self.look_due.is_some_and(|due| due <= at) {
            return;
        }
        self.look_due = Some(at);
        self.events.schedule_event(at, LiveEvent::LookAgain);
    }
}
