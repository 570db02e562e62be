//! Whatever crashes, is lost, is late or is changed: each occurrence asks each target at most once,
//! never overwrites a request of somebody else, and is recorded in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::kit::*;
use crate::Now;
use crate::reboot::ParsedAnnotation;
use crate::schedule::*;

const TARGETS: [(ScheduleTargetKind, &str); 3] = [
    (ScheduleTargetKind::Node, "n1"),
    (ScheduleTargetKind::Node, "n2"),
    (ScheduleTargetKind::Host, "h1"),
];

/// The next event of the model.
#[derive(Debug, Clone)]
enum Happens {
    /// This many minutes pass.
    Time(u16),
    /// The wall clock is set by this many minutes.
    ClockIsSet(i8),
    /// A leader decides and acts. It is killed after `calls` calls; the answer to the last one may
    /// be lost. With `old` it sees the schedule as it was before its last change.
    Leads { calls: usize, old: bool },
    /// A request is served and removed.
    Served(usize),
    /// Somebody else requests a reboot.
    Asked(usize),
    /// Something else changes on a target.
    Touched(usize),
    /// A person changes the schedule: suspends it, resumes it, or moves its time.
    Changed(Option<u8>),
}

fn happens() -> impl Strategy<Value = Happens> {
    let target = 0..TARGETS.len();
    prop_oneof![
        3 => (1..200_u16).prop_map(Happens::Time),
        1 => (-100..100_i8).prop_map(Happens::ClockIsSet),
        8 => (0..5_usize, any::<bool>()).prop_map(|(calls, old)| Happens::Leads { calls, old }),
        3 => target.clone().prop_map(Happens::Served),
        1 => target.clone().prop_map(Happens::Asked),
        1 => target.prop_map(Happens::Touched),
        1 => proptest::option::of(0..24_u8).prop_map(Happens::Changed),
    ]
}

struct Thing {
    object: TargetObject,
    version: u32,
    /// How often each occurrence has asked this target.
    asked: BTreeMap<Timestamp, u32>,
}

struct World {
    schedule: Schedule,
    /// The schedule before its last change.
    before: Schedule,
    version: u32,
    things: Vec<Thing>,
    real: Duration,
    off: SignedDuration,
}

impl World {
    fn new() -> Self {
        let mut plan = daily("10:00");
        plan.nodes.as_mut().unwrap().names.push("n2".into());
        plan.hosts = Some(TargetChoice {
            names: vec!["h1".into()],
            selector: None,
        });
        let schedule = schedule(plan);
        let thing = |(_, name): (ScheduleTargetKind, &str)| Thing {
            object: object(name),
            version: 1,
            asked: BTreeMap::new(),
        };
        Self {
            before: schedule.clone(),
            schedule,
            version: 1,
            things: TARGETS.map(thing).into(),
            real: Duration::from_hours(34),
            off: SignedDuration::ZERO,
        }
    }

    fn now(&self) -> Now {
        let wall = at("2026-01-01T00:00:00Z") + SignedDuration::try_from(self.real).unwrap();
        Now {
            wall: wall + self.off,
            mono: self.real,
        }
    }

    fn happens(&mut self, what: &Happens) {
        match what {
            Happens::Time(minutes) => self.real += Duration::from_mins((*minutes).into()),
            Happens::ClockIsSet(minutes) => {
                self.off += SignedDuration::from_mins((*minutes).into());
            }
            Happens::Leads { calls, old } => {
                self.leads(*calls, *old);
            }
            Happens::Served(target) => self.set_asked(*target, false),
            Happens::Asked(target) => self.set_asked(*target, true),
            Happens::Touched(target) => self.touch(*target),
            Happens::Changed(hour) => self.change(*hour),
        }
    }

    fn set_asked(&mut self, target: usize, is_asked: bool) {
        let request = if is_asked {
            StandingRequest::Now
        } else {
            StandingRequest::Absent
        };
        self.things[target].object.request = request;
        self.touch(target);
    }

    fn touch(&mut self, target: usize) {
        let thing = &mut self.things[target];
        thing.version += 1;
        thing.object.resource_version = thing.version.to_string();
    }

    /// Without an hour: suspends or resumes.
    fn change(&mut self, hour: Option<u8>) {
        self.remember();
        let wall = self.now().wall;
        let plan = self.schedule.plan.as_mut().unwrap();
        match hour {
            Some(hour) => plan.when = daily(&format!("{hour:02}:00")).when,
            None => plan.suspend = !plan.suspend,
        }
        self.schedule.changed = Some(wall);
    }

    /// Call before the schedule changes.
    fn remember(&mut self) {
        self.before = self.schedule.clone();
        self.version += 1;
        self.schedule.resource_version = self.version.to_string();
    }

    /// Returns how many calls the leader made.
    fn leads(&mut self, calls: usize, old: bool) -> usize {
        let mut seen = seen(daily("00:00"));
        seen.schedule = if old {
            self.before.clone()
        } else {
            self.schedule.clone()
        };
        let mut made = 0;
        while made < calls {
            let decision = decide(&seen, self.now());
            if seen.targets.is_none() && !decision.observe.is_empty() {
                seen.targets = Some(self.look());
                continue;
            }
            let Some(action) = decision.actions.first() else {
                break;
            };
            made += 1;
            let done = match action {
                ScheduleAction::WriteStatus(status) => {
                    self.write(&seen.schedule, status, &decision)
                }
                ScheduleAction::Ask(ask) => self.ask(ask),
            };
            if !done {
                break;
            }
            // The leader knows the answers to its own calls.
            seen.schedule = self.schedule.clone();
            seen.targets = None;
        }
        made
    }

    fn look(&self) -> ObservedTargets {
        let of = |kind| {
            let all = TARGETS.iter().zip(&self.things);
            let of = all.filter(|((other, _), _)| *other == kind);
            Ok(of.map(|(_, thing)| thing.object.clone()).collect())
        };
        ObservedTargets {
            nodes: of(ScheduleTargetKind::Node),
            hosts: of(ScheduleTargetKind::Host),
            taken: self.now().mono,
        }
    }

    fn write(
        &mut self,
        as_seen: &Schedule,
        status: &ScheduleStatus,
        decision: &ScheduleDecision,
    ) -> bool {
        if as_seen.resource_version != self.schedule.resource_version {
            return false;
        }
        self.remember();
        let mut seen = seen(daily("00:00"));
        seen.write(status, decision);
        self.schedule.status = seen.schedule.status;
        true
    }

    fn ask(&mut self, ask: &RebootRequestPatch) -> bool {
        let index = TARGETS
            .iter()
            .position(|(_, name)| *name == ask.target.name);
        let index = index.unwrap();
        let thing = &mut self.things[index];
        if thing.object.resource_version != ask.resource_version {
            return false;
        }
        let mark = &ask.marks["u1"];
        assert_eq!(mark.noted, ask.request.is_none());
        let status = &self.schedule.status;
        let intended = status.current.is_some_and(|current| current.at == mark.at);
        let recorded = status.history.iter().any(|record| record.at == mark.at);
        assert!(
            intended || recorded,
            "asked for what nobody had written down"
        );
        thing.object.marks = ParsedAnnotation::Is(ask.marks.clone());
        if ask.request.is_some() {
            let request = &mut thing.object.request;
            assert_eq!(
                *request,
                StandingRequest::Absent,
                "somebody's request was overwritten"
            );
            *request = StandingRequest::Now;
            *thing.asked.entry(mark.at).or_default() += 1;
        }
        self.touch(index);
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::model_depth::model_cases(2_000)))]

    #[test]
    fn each_occurrence_asks_each_target_at_most_once_and_is_written_down(
        story in proptest::collection::vec(happens(), 1..60)
    ) {
        let mut world = World::new();
        for what in &story {
            world.happens(what);
            for thing in &world.things {
                prop_assert!(thing.asked.values().all(|times| *times == 1), "{:?}", thing.asked);
            }
        }
        // Without further events, the leader stops writing.
        let calls = world.leads(100, false);
        prop_assert!(calls < 100);
        prop_assert_eq!(world.schedule.status.current, None);
        prop_assert_eq!(world.leads(100, false), 0);
        let records = &world.schedule.status.history;
        prop_assert!(records.len() <= MAX_HISTORY_RECORDS);
        let mut times: Vec<Timestamp> = records.iter().map(|record| record.at).collect();
        times.sort_unstable();
        times.dedup();
        prop_assert_eq!(times.len(), records.len(), "an occurrence has one record");
    }
}
