//! From what asked for a remediation to what is waited for.

use super::judged::{Judged, around, judge, judged};
use super::lines::whom;
use super::timeline::timeline;
use super::{RemedyExplanation, RemedyView, advice, foreseen};
use crate::Now;
use crate::explain::words::{age, since};
use crate::explain::{Line, Topic};
use crate::name::NodeName;
use crate::reboot::NodeSeen;
use crate::remedy::{Case, ObjectName, PowerRequest, Subject, cases};

/// What is explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemedyTarget {
    /// A Machine, of whichever API.
    Machine(ObjectName),
    /// A request.
    Request(ObjectName),
    /// Everything that is about a Node, under way or left over.
    Node(NodeName),
}

/// Explains remediations: of a Machine or a request one, of a Node as many as there are. Empty: there is no
/// such Machine or request, or nothing is to be told of the Node.
pub fn explain_remedies(
    view: &RemedyView,
    target: &RemedyTarget,
    now: Now,
) -> Vec<RemedyExplanation> {
    let all = judged(view, now);
    let found: Vec<&Judged> = all.iter().filter(|it| is_about(&it.case, target)).collect();
    let explain = |judged: &Judged| Chain::new(view, judged, now).explanation();
    if !found.is_empty() {
        return found.into_iter().map(explain).collect();
    }
    match target {
        RemedyTarget::Machine(name) => quiet(view, name, now).iter().map(explain).collect(),
        RemedyTarget::Request(_) | RemedyTarget::Node(_) => Vec::new(),
    }
}

fn is_about(case: &Case, target: &RemedyTarget) -> bool {
    match (target, &case.subject) {
        (RemedyTarget::Machine(name), Subject::Machine(machine)) => machine.object == *name,
        (RemedyTarget::Request(name), Subject::Request(request)) => request == name,
        (RemedyTarget::Node(name), _) => case.node_name.as_ref() == Some(name),
        (
            RemedyTarget::Machine(_) | RemedyTarget::Request(_),
            Subject::Machine(_) | Subject::Node(_) | Subject::Request(_) | Subject::Host(_),
        ) => false,
    }
}

/// A Machine of which nothing is asked: its links are followed as if it were marked.
fn quiet(view: &RemedyView, name: &ObjectName, now: Now) -> Option<Judged> {
    let mut machines = view.world.machines.values();
    let machine = machines.find(|machine| machine.name.object == *name)?;
    let mut case = foreseen::marked_machine(view, &machine.name)?;
    case.needs = false;
    let around = around(view, &cases(&view.world), now);
    Some(judge(case, &around, now))
}

pub(super) struct Chain<'a> {
    pub(super) view: &'a RemedyView,
    pub(super) judged: &'a Judged,
    pub(super) case: &'a Case,
    pub(super) now: Now,
    lines: Vec<Line>,
}

impl<'a> Chain<'a> {
    fn new(view: &'a RemedyView, judged: &'a Judged, now: Now) -> Self {
        let (case, lines) = (&judged.case, Vec::new());
        Self {
            view,
            judged,
            case,
            now,
            lines,
        }
    }

    fn explanation(mut self) -> RemedyExplanation {
        self.asked();
        self.host();
        self.node();
        if self.judged.is_under_way() {
            self.guards();
            self.lease();
            self.key();
        }
        self.power();
        self.proof();
        self.kept();
        self.says();
        self.deadline();
        self.steps();
        self.controller();
        let case = self.case;
        RemedyExplanation {
            subject: case.subject.to_string(),
            node: case.node_name.as_ref().map(ToString::to_string),
            host: case.host.as_ref().ok().map(|host| host.name.to_string()),
            under_way: self.judged.is_under_way(),
            summary: self.summary(),
            chain: self.lines,
            timeline: timeline(case),
            advice: advice::advice(self.view, self.judged, self.now),
        }
    }

    pub(super) fn add(&mut self, topic: Topic, text: impl Into<String>) {
        let text = text.into();
        self.lines.push(Line { topic, text });
    }

    fn summary(&self) -> String {
        let whom = whom(self.case);
        if !self.judged.is_under_way() {
            return format!("{whom}: nothing is asked of it");
        }
        let (reason, _) = self.judged.because();
        let standing = self.judged.said().and_then(|said| said.last_transition);
        let long = standing.map(|at| format!(" for {}", age(self.now.since(at))));
        format!("{whom}: {reason}{}", long.unwrap_or_default())
    }

    fn asked(&mut self) {
        let text = match (&self.case.subject, &self.case.request) {
            (_, Some(request)) => self.requested(request),
            (Subject::Machine(_) | Subject::Node(_), None) if self.is_marked() => {
                "annotation host.metal3.io/external-remediation stands on it".to_owned()
            }
            (Subject::Host(_), None) => "nobody: it is brought to an end".to_owned(),
            (Subject::Machine(_) | Subject::Node(_) | Subject::Request(_), None) => {
                "nothing: no annotation host.metal3.io/external-remediation".to_owned()
            }
        };
        self.add(Topic::Asked, text);
    }

    fn is_marked(&self) -> bool {
        let node = self.case.node.as_ref();
        let is_node = matches!(self.case.subject, Subject::Node(_));
        self.case.needs || (is_node && node.is_some_and(|node| node.needs_remediation))
    }

    fn requested(&self, request: &PowerRequest) -> String {
        let made = format!("made {}", since(request.created, self.now));
        let how = match &request.strategy {
            Ok(strategy) => format!(
                "{}, {} attempts of {} each",
                strategy.kind.as_str(),
                strategy.retry_limit.saturating_add(1),
                crate::duration::format(strategy.timeout)
            ),
            Err(wrong) => format!("its specification cannot be served: {wrong}"),
        };
        let attempt = request
            .status
            .attempt
            .map(|it| format!("; attempt {}", it.number));
        let back = match (request.deleting, request.timed_out) {
            (true, _) => "; it is being deleted",
            (false, true) => "; the health check has given up on it",
            (false, false) => "",
        };
        format!("{made}; {how}{}{back}", attempt.unwrap_or_default())
    }

    fn host(&mut self) {
        match &self.case.host {
            Ok(host) => {
                let by = match (&self.case.subject, &self.case.machine) {
                    (Subject::Host(_), _) => String::new(),
                    (_, Some(machine)) if machine.host.is_some() => {
                        ", by annotation metal3.io/BareMetalHost on the Machine".to_owned()
                    }
                    (_, Some(_)) => {
                        ", by annotation metal3.io/BareMetalHost on its Metal3Machine".to_owned()
                    }
                    (_, None) => ", by its annotation dogwatch.dev/node".to_owned(),
                };
                self.add(Topic::Host, format!("{}{by}", host.name));
            }
            Err((reason, text)) => self.add(Topic::Host, format!("none: {reason}: {text}")),
        }
        if let Some((reason, text)) = &self.case.trouble {
            self.add(Topic::Host, format!("in the way: {reason}: {text}"));
        }
    }

    fn node(&mut self) {
        let text = match (&self.case.node_name, &self.case.node) {
            (Some(name), Some(node)) => format!("{name}, {}", state(node)),
            (Some(name), None) => format!("{name} is not there"),
            (None, _) => return self.add(Topic::Node, "it has no Node"),
        };
        self.add(Topic::Node, text);
        let record = self.case.node.as_ref().and_then(|node| node.record.get());
        if let Some(record) = record {
            let text = format!(
                "a planned reboot of it is {}, {}",
                record.phase.as_str(),
                since(record.since, self.now)
            );
            self.add(Topic::Phase, text);
        }
    }
}

fn state(node: &NodeSeen) -> String {
    let ready = if node.ready { "Ready" } else { "not Ready" };
    let boot = node.boot_id.as_ref().map(|boot| format!(", boot {boot}"));
    let tainted = if node.out_of_service {
        ", tainted out of service"
    } else {
        ""
    };
    format!(
        "{ready}, UID {}{}{tainted}",
        node.uid,
        boot.unwrap_or_default()
    )
}
