//! Who is fenced now: what the guards look at beside the case itself. Source: specification §4.4.

use super::case::{Case, Decision, Subject};
use super::reason;
use crate::name::NodeName;
use crate::policy::Policies;
use crate::power::HostName;
use crate::reboot::RebootsWatched;

/// What the guards look at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Around {
    /// Who is fenced, or about to be.
    pub fenced: Vec<FencedSeen>,
    /// Who holds the control plane's lock for a planned reboot: a Node's name, or what else a holder is
    /// called.
    pub control_plane_lock: Option<String>,
    /// The cluster's RebootPolicies: whose `rebootTimeout` goes before the flag's.
    pub policies: Policies,
    /// Since when each node that reboots as planned is where it is.
    pub reboots: RebootsWatched,
}

/// One who is fenced, or about to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedSeen {
    /// Whose case it is.
    pub subject: Subject,
    /// Which host.
    pub host: HostName,
    /// Its Node's name.
    pub node: Option<NodeName>,
    /// It is of the control plane.
    pub control_plane: bool,
    /// Its BMC answers: one that does not is not switched off by us, and counts in no cap.
    pub answers: bool,
    /// How far it is.
    pub stage: Stage,
}

/// How far a remediation is, for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its Lease is held, and its key is not on the host yet.
    Preparing,
    /// It was let go ahead, in this pass or by a job that is under way.
    Admitted,
    /// Its key is on the host.
    HeldOff,
    /// Its key is gone, and its Node is not back.
    Returning,
}

impl Around {
    /// What is seen of all cases. `answers` says whether a host's BMC does.
    pub fn of(cases: &[Case], answers: impl Fn(&HostName) -> bool) -> Self {
        let fenced = cases.iter().filter_map(|case| {
            let stage = case.stage()?;
            FencedSeen::of(case, stage, &answers)
        });
        Self {
            fenced: fenced.collect(),
            ..Self::default()
        }
    }

    /// This case was decided so: if it goes ahead, those decided after it see it. To be called after each
    /// decision of a pass, and for each job that is under way.
    pub fn admit(&mut self, case: &Case, decision: &Decision, answers: bool) {
        if decision.because.reason != reason::PREPARING {
            return;
        }
        let of_it =
            |seen: &FencedSeen| seen.subject == case.subject && seen.stage == Stage::Preparing;
        self.fenced.retain(|seen| !of_it(seen));
        let seen = FencedSeen::of(case, Stage::Admitted, |_| answers);
        self.fenced.extend(seen);
    }

    /// Everybody but this case.
    pub(super) fn others<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a FencedSeen> {
        let fenced = self.fenced.iter();
        fenced.filter(|seen| seen.subject != case.subject)
    }

    /// Somebody else has this Node in hand.
    pub(super) fn is_claimed(&self, case: &Case, node: &NodeName) -> bool {
        self.others(case)
            .any(|seen| seen.node.as_ref() == Some(node))
    }
}

impl FencedSeen {
    fn of(case: &Case, stage: Stage, answers: impl Fn(&HostName) -> bool) -> Option<Self> {
        let host = case.host.as_ref().ok()?;
        Some(Self {
            subject: case.subject.clone(),
            host: host.name.clone(),
            node: case.node_name.clone(),
            control_plane: case.control_plane,
            answers: answers(&host.name),
            stage,
        })
    }
}

impl Case {
    /// How far it is, if it is under way.
    pub fn stage(&self) -> Option<Stage> {
        if self.is_keyed() {
            return Some(Stage::HeldOff);
        }
        let is_open = |record: &super::Record| record.ended().is_none();
        if self.record.as_ref().is_some_and(is_open) {
            return Some(Stage::Returning);
        }
        (self.needs && self.leased).then_some(Stage::Preparing)
    }

    /// Its key is on its host.
    pub fn is_keyed(&self) -> bool {
        let host = self.host.as_ref().ok();
        host.is_some_and(|host| self.key.is_on(host))
    }
}
