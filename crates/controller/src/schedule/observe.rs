//! What the leader knows of one schedule beyond its object: targets as they were read, and why
//! some could not be asked.

use std::collections::{BTreeMap, BTreeSet};

use dogwatch_core::resource_version::is_older_version;
use dogwatch_core::schedule::{
    MadeNodeReboot, MadeNodeReboots, MadeNodeRebootsRead, ObservedTargets, Schedule,
    ScheduleSnapshot, ScheduleTarget, ScheduleTargetKind, TargetObject,
};

pub(super) struct ScheduleMemory {
    /// From the watch, or from the answer to our own write if that is newer.
    schedule: Schedule,
    targets: Option<ObservedTargets>,
    reboots: Option<MadeNodeRebootsRead>,
    /// Why no NodeReboot can be created; until the occurrence is over.
    refused: Option<String>,
    request_errors: BTreeMap<ScheduleTarget, String>,
}

impl ScheduleMemory {
    pub(super) fn new(schedule: &Schedule) -> Self {
        Self {
            schedule: schedule.clone(),
            targets: None,
            reboots: None,
            refused: None,
            request_errors: BTreeMap::new(),
        }
    }

    pub(super) fn watched_schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Applies a version from the watch or from an answer, unless it is older.
    pub(super) fn observe_schedule(&mut self, schedule: &Schedule) {
        if is_older_version(&schedule.resource_version, &self.schedule.resource_version) {
            return;
        }
        if schedule.status.current != self.schedule.status.current {
            self.targets = None;
            self.reboots = None;
            self.refused = None;
            self.request_errors.clear();
        }
        self.schedule = schedule.clone();
    }

    pub(super) fn build_snapshot(&self, living: &BTreeSet<String>) -> ScheduleSnapshot {
        ScheduleSnapshot {
            schedule: self.schedule.clone(),
            living: living.clone(),
            targets: self.targets.clone(),
            reboots: self.reboots.clone(),
            request_errors: self.request_errors.clone(),
        }
    }

    pub(super) fn observe_targets(&mut self, targets: ObservedTargets) {
        self.targets = Some(targets);
    }

    pub(super) fn observe_reboots(&mut self, mut read: MadeNodeRebootsRead) {
        read.refused = read.refused.or_else(|| self.refused.clone());
        self.reboots = Some(read);
    }

    /// The NodeReboots are read again.
    pub(super) fn forget_reboots(&mut self) {
        self.reboots = None;
    }

    pub(super) fn record_made_reboot(&mut self, target: &ScheduleTarget, made: MadeNodeReboot) {
        self.request_errors.remove(target);
        if let Some(MadeNodeReboots::Known(known)) = self.reboots.as_mut().map(|it| &mut it.made) {
            known.insert(made.name.clone(), made);
        }
    }

    /// No NodeReboot can be created for this occurrence.
    pub(super) fn record_refusal(&mut self, why: String) {
        if let Some(read) = &mut self.reboots {
            read.refused = Some(why.clone());
        }
        self.refused = Some(why);
    }

    /// The targets are read again.
    pub(super) fn forget_targets(&mut self) {
        self.targets = None;
    }

    pub(super) fn record_request(&mut self, target: &ScheduleTarget, object: TargetObject) {
        self.request_errors.remove(target);
        let Some(targets) = &mut self.targets else {
            return;
        };
        let all = match target.kind {
            ScheduleTargetKind::Node => &mut targets.nodes,
            ScheduleTargetKind::Host => &mut targets.hosts,
        };
        let mut all = all.iter_mut().flatten();
        if let Some(there) = all.find(|there| there.name == target.name) {
            *there = object;
        }
    }

    pub(super) fn record_request_error(&mut self, target: &ScheduleTarget, error: String) {
        self.request_errors.insert(target.clone(), error);
    }
}
