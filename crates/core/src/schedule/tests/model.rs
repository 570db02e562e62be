//! Whatever crashes, is lost, is late or is changed: each occurrence asks each target at most once,
//! never overwrites a request of somebody else, and is recorded in the end. Where the kind NodeReboot
//! is installed, each occurrence makes one for each node, and counts no end twice.

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
    /// The oldest NodeReboot of a target that has not ended ends, with this reason.
    Ended(usize, &'static str),
    /// Somebody deletes the NodeReboots of a target that the schedule knows to be made.
    Deleted(usize),
    /// A person changes the schedule: suspends it, resumes it, or moves its time. `is_shown`: the managed
    /// fields show the time.
    Changed { hour: Option<u8>, is_shown: bool },
    /// A person changes a label, with the field manager of the spec.
    Labelled,
}

fn happens() -> impl Strategy<Value = Happens> {
    let target = 0..TARGETS.len();
    prop_oneof![
        3 => (1..200_u16).prop_map(Happens::Time),
        1 => (-100..100_i8).prop_map(Happens::ClockIsSet),
        8 => (0..5_usize, any::<bool>()).prop_map(|(calls, old)| Happens::Leads { calls, old }),
        3 => target.clone().prop_map(Happens::Served),
        1 => target.clone().prop_map(Happens::Asked),
        1 => target.clone().prop_map(Happens::Touched),
        3 => (target.clone(), end_reason()).prop_map(|(target, why)| Happens::Ended(target, why)),
        1 => target.prop_map(Happens::Deleted),
        1 => (proptest::option::of(0..24_u8), any::<bool>())
            .prop_map(|(hour, is_shown)| Happens::Changed { hour, is_shown }),
        1 => Just(Happens::Labelled),
    ]
}

fn end_reason() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        3 => Just("Rebooted"),
        1 => Just("NodeGone"),
        1 => Just("DeadlinePassed"),
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
    /// The NodeReboots that exist; `None`: the kind is not installed.
    made: Option<BTreeMap<String, MadeNodeReboot>>,
    /// Each NodeReboot that was ever made, with its occurrence and the reason of its end.
    ever: BTreeMap<String, (Timestamp, Option<&'static str>)>,
    real: Duration,
    off: SignedDuration,
}

impl World {
    fn new(has_kind: bool) -> Self {
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
            made: has_kind.then(BTreeMap::new),
            ever: BTreeMap::new(),
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
            Happens::Time(minutes) => {
                self.real += Duration::from_mins((*minutes).into());
                self.delete_old_reboots();
            }
            Happens::ClockIsSet(minutes) => {
                self.off += SignedDuration::from_mins((*minutes).into());
            }
            Happens::Leads { calls, old } => {
                self.leads(*calls, *old);
            }
            Happens::Served(target) => self.set_asked(*target, false),
            Happens::Asked(target) => self.set_asked(*target, true),
            Happens::Touched(target) => self.touch(*target),
            Happens::Changed { hour, is_shown } => self.change(*hour, *is_shown),
            Happens::Labelled => {
                self.remember();
                self.schedule.changed = Some(self.now().wall);
            }
            Happens::Ended(target, why) => self.end_reboot(*target, why),
            Happens::Deleted(target) => self.delete_reboots(*target),
        }
    }

    /// `ttlAfterFinished` has passed.
    fn delete_old_reboots(&mut self) {
        let wall = self.now().wall;
        if let Some(made) = &mut self.made {
            made.retain(|_, one| {
                let kept = SignedDuration::from_hours(25);
                let over = one.end.as_ref().map(|end| end.at + kept);
                over.is_none_or(|over| over > wall)
            });
        }
    }

    fn end_reboot(&mut self, target: usize, why: &'static str) {
        let at = self.now().wall;
        let of_target = |one: &&mut MadeNodeReboot| one.node == TARGETS[target].1;
        let mut made = self.made.iter_mut().flat_map(BTreeMap::values_mut);
        if let Some(one) = made.find(|one| of_target(one) && one.end.is_none()) {
            one.end = Some(MadeRebootEnd {
                is_success: why == "Rebooted",
                reason: why.into(),
                message: String::new(),
                at,
            });
            self.ever.get_mut(&one.name).unwrap().1 = Some(why);
        }
    }

    fn delete_reboots(&mut self, target: usize) {
        let thing = &self.things[target].object;
        let marks = thing.marks.get();
        let marked = marks.and_then(|marks| marks["u1"].node_reboot.as_ref());
        if let (Some(made), Some(marked)) = (&mut self.made, marked) {
            made.remove(marked);
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
    fn change(&mut self, hour: Option<u8>, is_shown: bool) {
        self.remember();
        let wall = self.now().wall;
        self.schedule.generation = self.schedule.generation.map(|generation| generation + 1);
        let plan = self.schedule.plan.as_mut().unwrap();
        match hour {
            Some(hour) => plan.when = daily(&format!("{hour:02}:00")).when,
            None => plan.suspend = !plan.suspend,
        }
        if is_shown {
            self.schedule.changed = Some(wall);
        }
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
        seen.reboots = None;
        let mut made = 0;
        while made < calls {
            let decision = decide(&seen, self.now());
            let Some(action) = decision.actions.first() else {
                if decision.observe.is_empty() {
                    break;
                }
                for what in &decision.observe {
                    match what {
                        ScheduleObserve::Targets => seen.targets = Some(self.look()),
                        ScheduleObserve::Reboots => seen.reboots = Some(self.list_reboots()),
                    }
                }
                continue;
            };
            made += 1;
            let done = match action {
                ScheduleAction::WriteStatus(status) => {
                    self.write(&seen.schedule, status, &decision)
                }
                ScheduleAction::CreateReboot(draft) => self.create_reboot(draft),
                ScheduleAction::Ask(ask) => self.ask(ask),
            };
            if !done {
                break;
            }
            // The leader knows the answers to its own calls.
            seen.schedule = self.schedule.clone();
            seen.targets = None;
            seen.reboots = None;
        }
        made
    }

    fn list_reboots(&self) -> MadeNodeRebootsRead {
        MadeNodeRebootsRead {
            made: match &self.made {
                Some(made) => MadeNodeReboots::Known(made.clone()),
                None => without_kind().made,
            },
            refused: None,
            taken: self.now().mono,
        }
    }

    fn create_reboot(&mut self, draft: &NodeRebootDraft) -> bool {
        self.assert_written_down(draft.at);
        let made = self.made.as_mut().unwrap();
        if made.contains_key(&draft.name) {
            return false;
        }
        let before = self.ever.insert(draft.name.clone(), (draft.at, None));
        assert_eq!(before, None, "made twice: {draft:?}");
        let one = MadeNodeReboot {
            name: draft.name.clone(),
            node: draft.target.name.clone(),
            node_uid: Some(draft.node_uid.clone()),
            at: Some(draft.at),
            end: None,
        };
        made.insert(draft.name.clone(), one);
        true
    }

    fn assert_written_down(&self, at: Timestamp) {
        let status = &self.schedule.status;
        let intended = status.current.is_some_and(|current| current.at == at);
        let recorded = status.history.iter().any(|record| record.at == at);
        assert!(
            intended || recorded,
            "asked for what nobody had written down"
        );
    }

    /// No end is counted twice, and no NodeReboot is left out of the counts.
    fn check_counts(&self) {
        for record in &self.schedule.status.history {
            let Some(reboots) = &record.reboots else {
                continue;
            };
            let of_it = self.ever.values().filter(|(at, _)| *at == record.at);
            let truth = |wanted: &str| {
                let ended = of_it.clone().filter(|(_, why)| *why == Some(wanted));
                u32::try_from(ended.count()).unwrap()
            };
            assert!(reboots.succeeded <= truth("Rebooted"), "{reboots:?}");
            assert!(reboots.failed <= truth("NodeGone"), "{reboots:?}");
            assert!(reboots.given_up <= truth("DeadlinePassed"), "{reboots:?}");
            let ends = reboots.succeeded + reboots.failed + reboots.given_up;
            assert_eq!(reboots.made, reboots.open + ends + reboots.unknown);
            assert_eq!(reboots.open == 0, reboots.ended.is_some(), "{reboots:?}");
        }
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
        let thing = &self.things[index];
        if thing.object.resource_version != ask.resource_version {
            return false;
        }
        let mark = &ask.marks["u1"];
        let by_annotation = mark.node_reboot.is_none();
        assert!(!by_annotation || mark.noted == ask.request.is_none());
        self.assert_written_down(mark.at);
        let thing = &mut self.things[index];
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
        has_kind: bool,
        story in proptest::collection::vec(happens(), 1..60)
    ) {
        let mut world = World::new(has_kind);
        for what in &story {
            world.happens(what);
            for thing in &world.things {
                prop_assert!(thing.asked.values().all(|times| *times == 1), "{:?}", thing.asked);
            }
            world.check_counts();
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
