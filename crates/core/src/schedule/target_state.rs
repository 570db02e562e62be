//! The targets of an occurrence, and the state of each.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::host::PowerRebootRefusal;
use super::made_reboot::{
    MadeNodeReboot, MadeNodeReboots, MadeNodeRebootsRead, NodeRebootDraft, draft_node_reboot,
    node_reboot_name,
};
use super::snapshot::{
    CarriedNode, ObservedTargets, ScheduleSnapshot, StandingRequest, TargetObject,
};
use super::target::{
    RebootRequestPatch, ScheduleMark, ScheduleMarks, ScheduleTarget, ScheduleTargetKind,
};
use super::types::{CurrentOccurrence, SchedulePlan, TargetChoice, TargetResult};
use crate::Now;
use crate::reboot::ParsedAnnotation;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TargetState {
    /// The target has to be asked.
    Open(Box<OpenRequest>),
    /// The NodeReboot that asks the Node exists; the Node is to be marked with it, unless it is.
    Made {
        node_reboot: String,
        mark: Option<Box<RebootRequestPatch>>,
    },
    /// It cannot be known at the moment whether the target has to be asked.
    Blocked(String),
    /// Nothing more is done about the target.
    Settled(TargetResult, String),
}

/// How a target is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OpenRequest {
    /// A NodeReboot is created.
    Create(NodeRebootDraft),
    /// An annotation is written, together with the mark.
    Patch(RebootRequestPatch),
}

/// All targets of this occurrence, with their states.
pub(super) fn resolve_targets(
    seen: &ScheduleSnapshot,
    plan: &SchedulePlan,
    (targets, reboots): (&ObservedTargets, &MadeNodeRebootsRead),
    current: CurrentOccurrence,
    now: Now,
) -> BTreeMap<ScheduleTarget, TargetState> {
    let mut resolved = TargetResolver {
        seen,
        plan,
        targets,
        reboots,
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

pub(super) struct TargetResolver<'a> {
    pub(super) seen: &'a ScheduleSnapshot,
    pub(super) plan: &'a SchedulePlan,
    targets: &'a ObservedTargets,
    reboots: &'a MadeNodeRebootsRead,
    pub(super) current: CurrentOccurrence,
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
            Some(mark) => Some(marked_target_state(mark)),
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
        if let Some(made) = self.made_target_state(kind, object, marks) {
            return Some(made);
        }
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
            None => self.build_open_state(kind, object, marks),
        })
    }

    /// The NodeReboot of this occurrence exists, and the Node has no mark yet.
    fn made_target_state(
        &self,
        kind: ScheduleTargetKind,
        object: &TargetObject,
        marks: &ScheduleMarks,
    ) -> Option<TargetState> {
        let (ScheduleTargetKind::Node, MadeNodeReboots::Known(made)) = (kind, &self.reboots.made)
        else {
            return None;
        };
        let name = node_reboot_name(&self.seen.schedule, self.current.at, &object.uid);
        made.contains_key(&name).then(|| TargetState::Made {
            mark: Some(Box::new(self.build_mark_patch(
                kind,
                object,
                marks,
                Some(name.clone()),
            ))),
            node_reboot: name,
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

    fn build_open_state(
        &self,
        kind: ScheduleTargetKind,
        object: &TargetObject,
        marks: &ScheduleMarks,
    ) -> TargetState {
        let by_annotation = || {
            let patch = self.build_request_patch(kind, object, marks);
            TargetState::Open(Box::new(OpenRequest::Patch(patch)))
        };
        match (kind, &self.reboots.made) {
            (ScheduleTargetKind::Host, _)
            | (ScheduleTargetKind::Node, MadeNodeReboots::Unavailable(_)) => by_annotation(),
            (ScheduleTargetKind::Node, MadeNodeReboots::Unreadable(why)) => {
                TargetState::Blocked(why.clone())
            }
            (ScheduleTargetKind::Node, MadeNodeReboots::Known(made)) => {
                match (find_open_reboot(made, object), &self.reboots.refused) {
                    (Some(open), _) => self.note_open_reboot(object, marks, open),
                    (None, Some(_)) => by_annotation(),
                    (None, None) => self.draft_state(object),
                }
            }
        }
    }

    fn draft_state(&self, node: &TargetObject) -> TargetState {
        let (schedule, at) = (&self.seen.schedule, self.current.at);
        let draft = draft_node_reboot(schedule, self.plan, at, &node.name, &node.uid);
        TargetState::Open(Box::new(OpenRequest::Create(draft)))
    }

    fn note_open_reboot(
        &self,
        node: &TargetObject,
        marks: &ScheduleMarks,
        open: &MadeNodeReboot,
    ) -> TargetState {
        let name = Some(open.name.clone());
        let mut patch = self.build_mark_patch(ScheduleTargetKind::Node, node, marks, name);
        if let Some(mark) = patch.marks.get_mut(&self.seen.schedule.uid) {
            mark.noted = true;
        }
        TargetState::Open(Box::new(OpenRequest::Patch(patch)))
    }
}

/// The target was asked: its mark says how.
fn marked_target_state(mark: &ScheduleMark) -> TargetState {
    match (&mark.node_reboot, mark.noted) {
        (Some(earlier), true) => {
            let why = format!("NodeReboot {earlier} of an earlier time has not ended");
            TargetState::Settled(TargetResult::Noted, why)
        }
        (None, true) => TargetState::Settled(
            TargetResult::Noted,
            "it already had a request, which was left as it is".into(),
        ),
        (Some(made), false) => TargetState::Made {
            node_reboot: made.clone(),
            mark: None,
        },
        (None, false) => TargetState::Settled(TargetResult::Requested, String::new()),
    }
}

/// A NodeReboot of an earlier occurrence that has not ended: a second one would be joined with it, and
/// on a node that does not reboot, one would be added each time.
fn find_open_reboot<'a>(
    made: &'a BTreeMap<String, MadeNodeReboot>,
    node: &TargetObject,
) -> Option<&'a MadeNodeReboot> {
    let mut made = made.values();
    made.find(|one| one.end.is_none() && one.node_uid.as_ref() == Some(&node.uid))
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
