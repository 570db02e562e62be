//! A coordinator, as far as NodeReboots see it.

use std::collections::BTreeMap;

use dogwatch_api::node_reboot::RebootMethod;

use super::kit::*;
use crate::lock::testkit::run;
use crate::reboot::{
    LastReboot, ParsedAnnotation, RebootOutcome, RebootPhase, RebootRecord, RebootTrigger,
};

impl World {
    pub fn record(&self) -> Option<&RebootRecord> {
        self.node.as_ref()?.record.get()
    }

    /// The coordinator plans a reboot: for the request, or for a sentinel.
    pub fn plan_reboot(&mut self, is_sentinel: bool) {
        let Some(node) = &self.node else { return };
        let has_request = node.request.get().is_some();
        if node.record.get().is_some() || !(is_sentinel || has_request) {
            return;
        }
        let record = RebootRecord::new_waiting(
            run("coordinator/a"),
            self.current_trigger(),
            BTreeMap::new(),
            node.boot_id.clone().unwrap(),
            self.now().wall,
        );
        self.change_node(|node| node.record = ParsedAnnotation::Is(record));
    }

    fn current_trigger(&self) -> RebootTrigger {
        let request = self.node.as_ref().and_then(|node| node.request.get());
        match request {
            Some(request) => RebootTrigger {
                source: "request".into(),
                reason: request.reason.clone(),
                requester: Some(request.requester.clone()),
                method: request.method,
                node_reboots: request.node_reboots.clone(),
            },
            None => RebootTrigger {
                source: "sentinel:/run/reboot-needed".into(),
                ..RebootTrigger::default()
            },
        }
    }

    fn set_phase(&mut self, phase: RebootPhase) {
        let (trigger, now) = (self.current_trigger(), self.now().wall);
        self.change_node(|node| {
            let mut record = node.record.get().unwrap().clone();
            if phase == RebootPhase::Draining {
                record.trigger = trigger;
            }
            record.phase = phase;
            node.unschedulable = phase > RebootPhase::Waiting;
            record.began.insert(phase, now);
            node.record = ParsedAnnotation::Is(record);
        });
    }

    /// The next step of the coordinator.
    pub fn coordinate(&mut self) {
        let Some(record) = self.record().cloned() else {
            return self.plan_reboot(false);
        };
        match record.phase {
            RebootPhase::Waiting if self.is_trigger_gone(&record) => {
                self.finish(RebootOutcome::TriggerGone);
            }
            RebootPhase::Waiting => self.set_phase(RebootPhase::Draining),
            RebootPhase::Draining if record.trigger.method == RebootMethod::Hold => {
                self.set_phase(RebootPhase::Holding);
            }
            RebootPhase::Holding if self.is_hold_over(&record) => {
                self.finish(RebootOutcome::Released);
            }
            RebootPhase::Holding => {}
            RebootPhase::Draining => self.set_phase(RebootPhase::Rebooting),
            RebootPhase::Rebooting if record.trigger.method == RebootMethod::PowerCycle => {
                let node = self.node.as_ref().unwrap();
                if node.boot_id.as_ref() == Some(&record.boot_id) || !self.host.is_on {
                    return;
                }
                for one in &record.trigger.node_reboots {
                    *self.served.entry(one.uid.clone()).or_default() += 1;
                }
                self.set_phase(RebootPhase::Returning);
            }
            RebootPhase::Rebooting => {
                self.boots += 1;
                let boot = boot(self.boots);
                for one in &record.trigger.node_reboots {
                    *self.served.entry(one.uid.clone()).or_default() += 1;
                }
                self.change_node(|node| node.boot_id = Some(boot));
                self.set_phase(RebootPhase::Returning);
            }
            RebootPhase::Returning => self.finish(RebootOutcome::Rebooted),
        }
    }

    fn is_trigger_gone(&self, record: &RebootRecord) -> bool {
        let node = self.node.as_ref().unwrap();
        record.trigger.source == "request" && node.request.get().is_none()
    }

    fn is_hold_over(&self, record: &RebootRecord) -> bool {
        let request = self.node.as_ref().and_then(|node| node.request.get());
        let refs = request.map(|request| request.node_reboots.as_slice());
        let refs = refs.unwrap_or_default();
        let served = &record.trigger.node_reboots;
        !served.iter().any(|one| refs.contains(one))
    }

    /// The drain was given up, and the reboot is queued again.
    pub fn give_up_drain(&mut self) {
        let record = self.record();
        if record.is_some_and(|record| record.phase == RebootPhase::Draining) {
            self.set_phase(RebootPhase::Waiting);
        }
    }

    /// The reboot is over: the record goes, and what was served leaves the request.
    pub fn finish(&mut self, outcome: RebootOutcome) {
        let Some(record) = self.record().cloned() else {
            return;
        };
        let now = self.now().wall;
        self.change_node(|node| {
            node.record = ParsedAnnotation::Absent;
            node.unschedulable = false;
            node.last_reboot = ParsedAnnotation::Is(LastReboot {
                outcome,
                planned: record.planned,
                finished: now,
                old_boot_id: record.boot_id.clone(),
                new_boot_id: node.boot_id.clone().unwrap(),
                trigger: record.trigger.clone(),
                fingerprints: BTreeMap::new(),
                began: record.began.clone(),
                rebooted: None,
                soft: false,
            });
            if let Some(request) = node.request.get() {
                let mut request = request.clone();
                let served = &record.trigger.node_reboots;
                request.node_reboots.retain(|one| !served.contains(one));
                node.request = if request.node_reboots.is_empty() {
                    ParsedAnnotation::Absent
                } else {
                    ParsedAnnotation::Is(request)
                };
            }
        });
    }

    /// Lets the coordinator finish the reboot under way.
    pub fn reboot_to_end(&mut self) {
        for _ in 0..6 {
            self.coordinate();
            self.settle();
        }
    }
}
