//! Each case with what the remediator would say of it.

use std::time::Duration;

use super::RemedyView;
use crate::Now;
use crate::condition::Condition;
use crate::explain::{POWER_AS_WANTED, POWER_CONTROL_READY, host_condition};
use crate::power::{Host, HostName, PowerNow, State};
use crate::reboot::RebootsWatched;
use crate::remedy::{
    Around, CONDITION, Case, Config, Decision, Known, PowerSeen, Subject, World, cases, decide,
};

/// A host that a controller looks after has a reading that is no older: one is written down each fifth poll
/// at the latest.
const LOOKED_AFTER: Duration = Duration::from_mins(15);

/// A case, and what is decided from here.
pub(super) struct Judged {
    pub(super) case: Case,
    pub(super) decision: Decision,
}

/// All cases.
pub(super) fn judged(view: &RemedyView, now: Now) -> Vec<Judged> {
    let cases = cases(&view.world);
    let around = around(view, &cases, now);
    let judge = |case: Case| judge(case, &around, now);
    cases.into_iter().map(judge).collect()
}

pub(super) fn judge(case: Case, around: &Around, now: Now) -> Judged {
    let host = case.host.as_ref().ok();
    let power = host.map(|host| power(host, now));
    judge_with(case, power, around, now)
}

/// The same, as if its host were on: what would hold back its key.
pub(super) fn judge_running(case: Case, around: &Around, now: Now) -> Judged {
    let host = case.host.as_ref().ok();
    let power = host.map(|host| PowerSeen {
        now: PowerNow::On,
        ..power(host, now)
    });
    judge_with(case, power, around, now)
}

fn judge_with(case: Case, power: Option<PowerSeen>, around: &Around, now: Now) -> Judged {
    let known = Known {
        power,
        ..Known::default()
    };
    let decision = decide(&case, &known, around, &Config::default(), now);
    Judged { case, decision }
}

/// Who is fenced, and what else the guards look at.
pub(super) fn around(view: &RemedyView, cases: &[Case], now: Now) -> Around {
    let answers = |name: &HostName| answers(&view.world, name);
    let mut reboots = RebootsWatched::default();
    reboots.saw(view.world.nodes.values().map(AsRef::as_ref), now);
    Around {
        control_plane_lock: view.control_plane_lock.clone(),
        policies: view.policies.clone(),
        reboots,
        ..Around::of(cases, answers)
    }
}

fn answers(world: &World, name: &HostName) -> bool {
    let ready = world
        .hosts
        .get(name)
        .and_then(|host| host_condition(host, POWER_CONTROL_READY));
    ready.is_some_and(|ready| ready.status == "True")
}

/// What stands in the host's status. That is less than the controller knows: no proof is in it.
fn power(host: &Host, now: Now) -> PowerSeen {
    let status = &host.status.power;
    let observed = status.observed_at.or(status.off_confirmed_at);
    let is_fresh = observed.is_some_and(|at| now.since(at) < LOOKED_AFTER);
    let said = host_condition(host, POWER_AS_WANTED);
    PowerSeen {
        now: match status.state {
            Some(State::On) if is_fresh => PowerNow::On,
            Some(State::Off) if is_fresh => PowerNow::Off,
            Some(
                State::On | State::Off | State::PoweringOn | State::PoweringOff | State::Unknown,
            )
            | None => PowerNow::Unknown,
        },
        proof: None,
        answers: false,
        system_uuid: None,
        off_since: None,
        because: said.map(|said| {
            (
                POWER_AS_WANTED,
                format!("{}: {}", said.reason, said.message),
            )
        }),
    }
}

impl Judged {
    /// What the controller wrote, while that says that something is under way or in the way.
    pub(super) fn said(&self) -> Option<&Condition> {
        let case = &self.case;
        let conditions = match &case.subject {
            Subject::Machine(_) => case.machine.as_ref().map(|it| &it.conditions),
            Subject::Node(_) => case.node.as_ref().map(|it| &it.conditions),
            Subject::Request(_) => case.request.as_ref().map(|it| &it.status.conditions),
            Subject::Host(_) => None,
        };
        let mut conditions = conditions.into_iter().flatten();
        let said = conditions.find(|condition| condition.kind == CONDITION)?;
        // One that says that nothing is asked comes from before, where something is.
        (said.status == "True" || !self.is_under_way()).then_some(said)
    }

    /// Something is asked or in the way, or something of ours is left.
    pub(super) fn is_under_way(&self) -> bool {
        let case = &self.case;
        let is_open = case
            .record
            .as_ref()
            .is_some_and(|record| record.ended().is_none());
        let is_left = case.kept.is_some() || case.legacy.is_some() || case.trouble.is_some();
        case.needs || case.is_keyed() || is_open || is_left || is_answered(case)
    }

    /// Why it stands where it stands: a reason and a sentence, the controller's first.
    pub(super) fn because(&self) -> (&str, &str) {
        match self.said() {
            Some(said) => (&said.reason, &said.message),
            None => (self.decision.because.reason, &self.decision.because.message),
        }
    }
}

/// A mark that is refused: no need is counted for it.
fn is_answered(case: &Case) -> bool {
    let node = case.node.as_ref();
    matches!(case.subject, Subject::Node(_)) && node.is_some_and(|node| node.needs_remediation)
}
