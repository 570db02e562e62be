//! What is known of one schedule beside its object.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dogwatch_core::decision::Event;
use dogwatch_core::schedule::{Kind, Object, Schedule, Seen, Target, TargetsSeen};

use super::job::{Asked, Done};
use crate::healer::pace::Pace;

/// One schedule.
pub(super) struct Eye {
    /// As the watch shows it, or as the answer to our own write did, if that is newer.
    schedule: Schedule,
    targets: Option<TargetsSeen>,
    trouble: BTreeMap<Target, String>,
    said: Vec<Event>,
    pace: Pace,
    busy: bool,
}

impl Eye {
    pub(super) fn of(schedule: &Schedule) -> Self {
        Self {
            schedule: schedule.clone(),
            targets: None,
            trouble: BTreeMap::new(),
            said: Vec::new(),
            pace: Pace::default(),
            busy: false,
        }
    }

    pub(super) fn uid(&self) -> &str {
        &self.schedule.uid
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(super) fn paused_until(&self) -> Option<Duration> {
        self.pace.until()
    }

    pub(super) fn begins(&mut self) {
        self.busy = true;
    }

    /// The watch shows it so.
    pub(super) fn sees(&mut self, schedule: &Schedule) {
        if older(&schedule.resource_version, &self.schedule.resource_version) {
            return;
        }
        if schedule.generation != self.schedule.generation {
            // A person has changed it, perhaps because of the trouble.
            self.pace.well();
        }
        self.is(schedule.clone());
    }

    fn is(&mut self, schedule: Schedule) {
        if schedule.status.current != self.schedule.status.current {
            self.targets = None;
            self.trouble.clear();
        }
        self.schedule = schedule;
    }

    pub(super) fn seen(&self, living: &BTreeSet<String>) -> Seen {
        Seen {
            schedule: self.schedule.clone(),
            living: living.clone(),
            targets: self.targets.clone(),
            trouble: self.trouble.clone(),
        }
    }

    /// Events that were not said yet.
    pub(super) fn unsaid(&mut self, events: &[Event]) -> Vec<Event> {
        self.said.retain(|said| events.contains(said));
        let unsaid = events.iter().filter(|event| !self.said.contains(event));
        unsaid.cloned().collect()
    }

    /// What came of a job.
    pub(super) fn learns(&mut self, done: Done, now: Duration) {
        self.busy = false;
        let progress = done.is_progress();
        let trouble = done.trouble().is_some() || done.is_changed();
        self.said.extend(done.said);
        if let Some(schedule) = done.wrote {
            self.sees(&schedule);
        }
        if let Some(targets) = done.looked {
            self.targets = Some(targets);
        }
        for (target, asked) in done.asked {
            self.learns_of(target, asked);
        }
        if trouble && !progress {
            self.pace.trouble(now);
        } else {
            self.pace.well();
        }
    }

    fn learns_of(&mut self, target: Target, asked: Asked) {
        match asked {
            Asked::Is { object, .. } => {
                self.trouble.remove(&target);
                self.replace(&target, *object);
            }
            // Whatever it is now, it is read anew.
            Asked::Changed => self.targets = None,
            Asked::Failed(why) => {
                self.trouble.insert(target, why);
            }
        }
    }

    fn replace(&mut self, target: &Target, object: Object) {
        let Some(targets) = &mut self.targets else {
            return;
        };
        let all = match target.kind {
            Kind::Node => &mut targets.nodes,
            Kind::Host => &mut targets.hosts,
        };
        let mut all = all.iter_mut().flatten();
        if let Some(there) = all.find(|there| there.name == target.name) {
            *there = object;
        }
    }
}

/// Versions of one object are decimal numbers that grow (KEP-5504); where they are not, the watch is
/// believed.
fn older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        (Ok(_) | Err(_), _) => false,
    }
}
