//! The targets of an occurrence, and the state of each.

use std::collections::BTreeMap;

use dogwatch_api::annotation;
use jiff::Timestamp;

use super::host::PowerRebootRefusal;
use super::snapshot::{
    CarriedNode, ObservedTargets, ScheduleSnapshot, StandingRequest, TargetObject,
};
use super::target::{
    RebootRequestPatch, ScheduleMark, ScheduleMarks, ScheduleTarget, ScheduleTargetKind,
};
use super::types::{CurrentOccurrence, SchedulePlan, TargetChoice, TargetResult};
use crate::Now;
use crate::reboot::{ParsedAnnotation, RebootRequest};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TargetState {
    /// The target has to be asked.
    Open(Box<RebootRequestPatch>),
    /// It cannot be known at the moment whether the target has to be asked.
    Blocked(String),
    /// Nothing more is done about the target.
    Settled(TargetResult, String),
}

/// All targets of this occurrence, with their states.
pub(super) fn resolve_targets(
    seen: &ScheduleSnapshot,
    plan: &SchedulePlan,
    targets: &ObservedTargets,
    current: CurrentOccurrence,
    now: Now,
) -> BTreeMap<ScheduleTarget, TargetState> {
    let mut resolved = TargetResolver {
        seen,
        plan,
        targets,
        current,
        now: now.wall,
        states: BTreeMap::new(),
    };
    if let Some(chosen) = &plan.nodes {
        resolved.resolve_nodes(chosen);
    }
    if let Some(chosen) = &plan.hosts {
        resolved.resolve_hosts(chosen);
    }
    resolved.states
}

struct TargetResolver<'a> {
    seen: &'a ScheduleSnapshot,
    plan: &'a SchedulePlan,
    targets: &'a ObservedTargets,
    current: CurrentOccurrence,
    now: Timestamp,
    states: BTreeMap<ScheduleTarget, TargetState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChosenBy {
    /// By its name, its host's name, or both: its outcome is always reported.
    Name,
    /// By a selector alone: left out if it needs no reboot.
    Selector,
}

impl TargetResolver<'_> {
    fn resolve_nodes(&mut self, chosen: &TargetChoice) {
        let all = match &self.targets.nodes {
            Ok(all) => all.as_slice(),
            Err(why) => {
                return self.block_unreadable_targets(ScheduleTargetKind::Node, chosen, why);
            }
        };
        for (name, by) in chosen_names(chosen, all) {
            self.resolve_node(name, by, "no Node has this name");
        }
    }

    fn resolve_hosts(&mut self, chosen: &TargetChoice) {
        let all = match &self.targets.hosts {
            Ok(all) => all.as_slice(),
            Err(why) => {
                return self.block_unreadable_targets(ScheduleTargetKind::Host, chosen, why);
            }
        };
        for (name, by) in chosen_names(chosen, all) {
            match all.iter().find(|host| host.name == name) {
                None => self.add_missing_host(name),
                Some(host) => {
                    if let Some(carried) = &host.carries {
                        self.resolve_carrier_host(host, carried, by);
                    } else {
                        let stand = self.target_state(ScheduleTargetKind::Host, host, by);
                        self.add_target(ScheduleTargetKind::Host, name, stand);
                    }
                }
            }
        }
    }

    /// A host that carries a Node is rebooted as that Node.
    fn resolve_carrier_host(&mut self, host: &TargetObject, carried: &CarriedNode, by: ChosenBy) {
        let (name, node) = (&host.name, &carried.node);
        let Some(older) = &carried.older_claim else {
            let gone = format!("BareMetalHost {name} names this Node, which does not exist");
            return self.resolve_node(node, by, &gone);
        };
        let why = format!(
            "its annotation names node {node}, and so does that of host {older}, which is older: \
             correct annotation dogwatch.dev/node of the wrong one"
        );
        let stand = TargetState::Settled(TargetResult::Failed, why);
        self.add_target(ScheduleTargetKind::Host, name, Some(stand));
    }

    /// A Node that is chosen twice, for example through its host, is one target.
    fn resolve_node(&mut self, name: &str, by: ChosenBy, gone: &str) {
        let stand = match &self.targets.nodes {
            Err(why) => Some(TargetState::Blocked(why.clone())),
            Ok(all) => match all.iter().find(|node| node.name == name) {
                Some(node) => self.target_state(ScheduleTargetKind::Node, node, by),
                None => Some(TargetState::Settled(TargetResult::Failed, gone.to_owned())),
            },
        };
        self.add_target(ScheduleTargetKind::Node, name, stand);
    }

    fn add_missing_host(&mut self, name: &str) {
        let why = "no BareMetalHost in the schedule's namespace has this name".to_owned();
        self.add_target(
            ScheduleTargetKind::Host,
            name,
            Some(TargetState::Settled(TargetResult::Failed, why)),
        );
    }

    /// While the objects cannot be read, those that a selector matches are unknown: `*` stands for
    /// all of them.
    fn block_unreadable_targets(
        &mut self,
        kind: ScheduleTargetKind,
        chosen: &TargetChoice,
        why: &str,
    ) {
        let all = chosen.selector.is_some().then_some("*");
        for name in chosen.names.iter().map(String::as_str).chain(all) {
            self.add_target(kind, name, Some(TargetState::Blocked(why.to_owned())));
        }
    }

    /// `None` adds nothing; a state that another choice has added stays.
    fn add_target(&mut self, kind: ScheduleTargetKind, name: &str, stand: Option<TargetState>) {
        let name = name.to_owned();
        if let Some(stand) = stand {
            self.states.insert(ScheduleTarget { kind, name }, stand);
        }
    }

    /// The target's state; `None` if only a selector chose it and it needs no request.
    fn target_state(
        &self,
        kind: ScheduleTargetKind,
        object: &TargetObject,
        by: ChosenBy,
    ) -> Option<TargetState> {
        let marks = match &object.marks {
            ParsedAnnotation::Absent => &ScheduleMarks::new(),
            ParsedAnnotation::Is(marks) => marks,
            // The unreadable annotation may say that the target was asked.
            ParsedAnnotation::Bad { why } => {
                let why = format!(
                    "its annotation dogwatch.dev/scheduled cannot be read, so a reboot may have \
                     been requested already: remove the annotation ({why})"
                );
                return Some(TargetState::Blocked(why));
            }
        };
        let own = marks.get(&self.seen.schedule.uid);
        match own.filter(|mark| mark.at == self.current.at) {
            Some(mark) if mark.noted => Some(TargetState::Settled(
                TargetResult::Noted,
                "it already had a request, which was left as it is".into(),
            )),
            Some(_) => Some(TargetState::Settled(TargetResult::Requested, String::new())),
            None => self.unasked_target_state(kind, object, marks, by),
        }
    }

    fn unasked_target_state(
        &self,
        kind: ScheduleTargetKind,
        object: &TargetObject,
        marks: &ScheduleMarks,
        by: ChosenBy,
    ) -> Option<TargetState> {
        if let Some(why) = self.find_exclusion_cause(object) {
            let failed = || TargetState::Settled(TargetResult::Failed, why);
            return (by == ChosenBy::Name).then(failed);
        }
        if let Some(in_use @ PowerRebootRefusal::InUse { .. }) = &object.power_refusal {
            return Some(TargetState::Settled(
                TargetResult::Failed,
                in_use.describe_refusal(),
            ));
        }
        Some(match self.find_unserved_cause(&object.request) {
            Some(why) => TargetState::Blocked(why),
            None => TargetState::Open(Box::new(self.build_request_patch(kind, object, marks))),
        })
    }

    /// Why rebooting this target for this occurrence has no purpose.
    fn find_exclusion_cause(&self, object: &TargetObject) -> Option<String> {
        if object.created > self.current.begun {
            // The marks were on the object that this one replaces, which may have been asked and
            // rebooted.
            return Some(format!(
                "it was created at {}, after the appointed time: it has booted since",
                object.created
            ));
        }
        let not_by_power = object.power_refusal.as_ref()?;
        let is_unused = matches!(not_by_power, PowerRebootRefusal::NotProvisioned { .. });
        is_unused.then(|| not_by_power.describe_refusal())
    }

    /// Why the request that is on the target causes no reboot now. Somebody else made it, so it
    /// stays.
    fn find_unserved_cause(&self, request: &StandingRequest) -> Option<String> {
        match request {
            StandingRequest::NotBefore(at) if *at > self.now => Some(format!(
                "it already has a request for a reboot at {at}, and a node can have only one: to \
                 withdraw that, run `dogwatch abort`"
            )),
            StandingRequest::Unreadable { why } => Some(format!(
                "its annotation dogwatch.dev/reboot-requested cannot be read, so no coordinator \
                 serves it: remove the annotation ({why})"
            )),
            StandingRequest::Absent | StandingRequest::Now | StandingRequest::NotBefore(_) => None,
        }
    }

    fn build_request_patch(
        &self,
        kind: ScheduleTargetKind,
        object: &TargetObject,
        marks: &ScheduleMarks,
    ) -> RebootRequestPatch {
        let living = &self.seen.living;
        let schedule = &self.seen.schedule;
        let mut marks: ScheduleMarks = marks
            .iter()
            .filter(|(uid, _)| living.contains(*uid))
            .map(|(uid, mark)| (uid.clone(), mark.clone()))
            .collect();
        let is_asked = object.request != StandingRequest::Absent;
        let mark = ScheduleMark {
            by: schedule.name.to_string(),
            at: self.current.at,
            noted: is_asked,
        };
        marks.insert(schedule.uid.clone(), mark);
        RebootRequestPatch {
            target: ScheduleTarget {
                kind,
                name: object.name.clone(),
            },
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
            marks,
            request: (!is_asked).then(|| self.build_request_annotation(kind)),
        }
    }

    fn build_request_annotation(&self, kind: ScheduleTargetKind) -> (&'static str, String) {
        let name = &self.seen.schedule.name;
        match kind {
            ScheduleTargetKind::Node => {
                let request = RebootRequest {
                    // Contains the time, so that two occurrences make two requests.
                    reason: format!("{} (scheduled for {})", self.plan.reason, self.current.at),
                    requester: format!("rebootschedule/{name}"),
                    not_before: None,
                    ..RebootRequest::default()
                };
                let text = serde_json::to_string(&request).expect("two texts serialise");
                (annotation::REBOOT_REQUESTED, text)
            }
            ScheduleTargetKind::Host => {
                let value = serde_json::json!({ "mode": self.plan.mode.as_str() });
                (annotation::METAL3_REBOOT, value.to_string())
            }
        }
    }
}

/// Each chosen name once; a choice by name overrides one by selector.
fn chosen_names<'a>(
    chosen: &'a TargetChoice,
    all: &'a [TargetObject],
) -> BTreeMap<&'a str, ChosenBy> {
    let selected = all.iter().filter(|object| {
        let selector = chosen.selector.as_ref();
        selector.is_some_and(|selector| selector.matches_labels(&object.labels))
    });
    let selected = selected.map(|object| (object.name.as_str(), ChosenBy::Selector));
    let named = chosen
        .names
        .iter()
        .map(|name| (name.as_str(), ChosenBy::Name));
    selected.chain(named).collect()
}
