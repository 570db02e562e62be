//! What a remediation would run into, before anybody asks for one.

use std::sync::Arc;

use super::RemedyView;
use super::judged::{around, judge_running};
use super::row::needs_somebody;
use crate::Now;
use crate::explain::{POWER_CONTROL_READY, host_condition};
use crate::name::NodeName;
use crate::power::{Host, SystemId};
use crate::remedy::{Case, Machine, MachineName, Subject, World, cases, reason};

/// What would become of a Node, if it were marked now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreseen {
    /// Whose remediation it would be: the Node's, or its Machine's.
    pub subject: String,
    /// `NAMESPACE/NAME` of its host, if one is found.
    pub host: Option<String>,
    /// One is under way, so that nothing has to be foreseen.
    pub under_way: bool,
    /// Why it would not begin: a reason, and a sentence; and whether that passes by itself.
    pub refusal: Option<(&'static str, String, bool)>,
    /// Why power control of that host may not work.
    pub not_ready: Option<String>,
    /// The Node's system UUID is not known, so that it cannot be compared with what the BMC says.
    pub no_identity: bool,
}

/// `None`: there is no such Node.
///
/// The flags of the controller do not stand on the cluster: their defaults are taken.
pub fn foreseen(view: &RemedyView, node: &NodeName, now: Now) -> Option<Foreseen> {
    view.world.nodes.get(node)?;
    let is_its = |case: &Case| case.node_name.as_ref() == Some(node) && is_asked(case);
    let found = cases(&view.world).into_iter().find(is_its);
    let under_way = found.is_some();
    let case = match found {
        Some(case) => case,
        None => marked(view, node)?,
    };
    Some(judged(view, case, under_way, now))
}

/// The same for a Machine, which may have no Node. `None`: there is no such Machine.
pub fn foreseen_machine(view: &RemedyView, machine: &MachineName, now: Now) -> Option<Foreseen> {
    let subject = Subject::Machine(machine.clone());
    let found = case(&view.world, &subject).filter(is_asked);
    let under_way = found.is_some();
    let case = match found {
        Some(case) => case,
        None => marked_machine(view, machine)?,
    };
    Some(judged(view, case, under_way, now))
}

fn judged(view: &RemedyView, case: Case, under_way: bool, now: Now) -> Foreseen {
    let around = around(view, &cases(&view.world), now);
    let judged = judge_running(case, &around, now);
    let host = judged.case.host.as_ref().ok();
    let why = &judged.decision.because;
    let goes_on = under_way || why.reason == reason::PREPARING;
    let node = judged.case.node.as_ref();
    let no_identity = node.and_then(|node| node.system_uuid.as_deref());
    Foreseen {
        subject: judged.case.subject.to_string(),
        host: host.map(|host| host.name.to_string()),
        under_way,
        refusal: (!goes_on).then(|| {
            let passes = !needs_somebody(why.reason);
            (why.reason, why.message.clone(), passes)
        }),
        not_ready: host.and_then(|host| not_ready(host)),
        no_identity: no_identity.and_then(SystemId::parse).is_none(),
    }
}

/// It is under way, or was asked for.
fn is_asked(case: &Case) -> bool {
    match case.subject {
        Subject::Machine(_) | Subject::Node(_) | Subject::Request(_) => {
            case.needs || case.is_keyed()
        }
        Subject::Host(_) => false,
    }
}

/// The case that there would be.
fn marked(view: &RemedyView, node: &NodeName) -> Option<Case> {
    let is_its = |machine: &&Arc<Machine>| machine.node.as_deref() == Some(node.as_str());
    if let Some(machine) = view.world.machines.values().find(is_its) {
        return marked_machine(view, &machine.name);
    }
    let mut world = view.world.clone();
    Arc::make_mut(world.nodes.get_mut(node)?).needs_remediation = true;
    case(&world, &Subject::Node(node.clone()))
}

/// The same, for a Machine.
pub(super) fn marked_machine(view: &RemedyView, name: &MachineName) -> Option<Case> {
    let mut world = view.world.clone();
    Arc::make_mut(world.machines.get_mut(name)?).need = Some(String::new());
    case(&world, &Subject::Machine(name.clone()))
}

fn case(world: &World, subject: &Subject) -> Option<Case> {
    let mut cases = cases(world).into_iter();
    cases.find(|case| case.subject == *subject)
}

fn not_ready(host: &Host) -> Option<String> {
    match host_condition(host, POWER_CONTROL_READY) {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(format!("{}: {}", ready.reason, ready.message)),
        None => Some("power control was never checked".to_owned()),
    }
}
