//! The chain of a remediation's explanation, from the request to what it waits for.

use super::assessment::{
    AssessedRemediation, assess_all, assess_remediation, concurrent_remediations,
};
use super::lines::subject_text;
use super::timeline::remediation_timeline;
use super::{RemediationExplanation, RemediationReportInput, advice, forecast};
use crate::Now;
use crate::explain::human_format::{format_age, format_since};
use crate::explain::{ExplanationLine, ExplanationTopic};
use crate::name::NodeName;
use crate::reboot::ObservedNode;
use crate::remediation::{
    ObjectName, PowerRequest, Remediation, RemediationSubject, discover_remediations,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExplainRemediationTarget {
    /// A Machine of either API.
    Machine(ObjectName),
    /// A `PowerRemediation`.
    Request(ObjectName),
    /// Every remediation of a Node, under way or left over.
    Node(NodeName),
}

/// Explains one remediation of a Machine or a request, or all remediations of a Node. Empty if
/// there is no such Machine or request, or if there is nothing to say about the Node.
pub fn explain_remediations(
    view: &RemediationReportInput,
    target: &ExplainRemediationTarget,
    now: Now,
) -> Vec<RemediationExplanation> {
    let all = assess_all(view, now);
    let found: Vec<&AssessedRemediation> = all
        .iter()
        .filter(|it| is_about(&it.remediation, target))
        .collect();
    let explain = |judged: &AssessedRemediation| {
        RemediationExplainer::new(view, judged, now).build_explanation()
    };
    if !found.is_empty() {
        return found.into_iter().map(explain).collect();
    }
    match target {
        ExplainRemediationTarget::Machine(name) => assess_unrequested_machine(view, name, now)
            .iter()
            .map(explain)
            .collect(),
        ExplainRemediationTarget::Request(_) | ExplainRemediationTarget::Node(_) => Vec::new(),
    }
}

fn is_about(case: &Remediation, target: &ExplainRemediationTarget) -> bool {
    match (target, &case.subject) {
        (ExplainRemediationTarget::Machine(name), RemediationSubject::Machine(machine)) => {
            machine.object == *name
        }
        (ExplainRemediationTarget::Request(name), RemediationSubject::Request(request)) => {
            request == name
        }
        (ExplainRemediationTarget::Node(name), _) => case.node_name.as_ref() == Some(name),
        (
            ExplainRemediationTarget::Machine(_) | ExplainRemediationTarget::Request(_),
            RemediationSubject::Machine(_)
            | RemediationSubject::Node(_)
            | RemediationSubject::Request(_)
            | RemediationSubject::WorkloadNode(..)
            | RemediationSubject::Host(_),
        ) => false,
    }
}

/// Decides for a Machine without a request as if it were marked, to check its links.
fn assess_unrequested_machine(
    view: &RemediationReportInput,
    name: &ObjectName,
    now: Now,
) -> Option<AssessedRemediation> {
    let mut machines = view.snapshot.machines.values();
    let machine = machines.find(|machine| machine.name.object == *name)?;
    let mut case = forecast::remediation_if_machine_marked(view, &machine.name)?;
    case.needs_remediation = false;
    let around = concurrent_remediations(view, &discover_remediations(&view.snapshot), now);
    Some(assess_remediation(case, &around, now))
}

pub(super) struct RemediationExplainer<'a> {
    pub(super) view: &'a RemediationReportInput,
    pub(super) assessed: &'a AssessedRemediation,
    pub(super) remediation: &'a Remediation,
    pub(super) now: Now,
    lines: Vec<ExplanationLine>,
}

impl<'a> RemediationExplainer<'a> {
    fn new(view: &'a RemediationReportInput, judged: &'a AssessedRemediation, now: Now) -> Self {
        let (case, lines) = (&judged.remediation, Vec::new());
        Self {
            view,
            assessed: judged,
            remediation: case,
            now,
            lines,
        }
    }

    fn build_explanation(mut self) -> RemediationExplanation {
        self.add_request();
        self.add_host();
        self.add_node();
        if self.assessed.is_under_way() {
            self.add_guards();
            self.add_lease();
            self.add_key();
        }
        self.add_power();
        self.add_proof();
        self.add_node_backup();
        self.add_decision();
        self.add_deadline();
        self.add_steps();
        self.add_controller();
        let case = self.remediation;
        RemediationExplanation {
            subject: case.subject.to_string(),
            node: case.node_name.as_ref().map(ToString::to_string),
            host: case.host.as_ref().ok().map(|host| host.name.to_string()),
            under_way: self.assessed.is_under_way(),
            summary: self.summary_line(),
            chain: self.lines,
            timeline: remediation_timeline(case),
            advice: advice::remediation_advice(self.view, self.assessed, self.now),
        }
    }

    pub(super) fn add_line(&mut self, topic: ExplanationTopic, text: impl Into<String>) {
        let text = text.into();
        self.lines.push(ExplanationLine { topic, text });
    }

    fn summary_line(&self) -> String {
        let whom = subject_text(self.remediation);
        if !self.assessed.is_under_way() {
            return format!("{whom}: no remediation is requested");
        }
        let (reason, _) = self.assessed.reason_and_message();
        let standing = self
            .assessed
            .controller_condition()
            .and_then(|said| said.last_transition);
        let long = standing.map(|at| format!(" for {}", format_age(self.now.elapsed_since(at))));
        format!("{whom}: {reason}{}", long.unwrap_or_default())
    }

    fn add_request(&mut self) {
        let text = match (&self.remediation.subject, &self.remediation.request) {
            (_, Some(request)) => self.describe_request(request),
            (RemediationSubject::Machine(_) | RemediationSubject::Node(_), None)
                if self.is_marked() =>
            {
                "it has annotation host.metal3.io/external-remediation".to_owned()
            }
            (RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_), None) => {
                "no request any more: the remediation is being ended".to_owned()
            }
            (
                RemediationSubject::Machine(_)
                | RemediationSubject::Node(_)
                | RemediationSubject::Request(_),
                None,
            ) => "nothing: no annotation host.metal3.io/external-remediation".to_owned(),
        };
        self.add_line(ExplanationTopic::Asked, text);
    }

    fn is_marked(&self) -> bool {
        let node = self.remediation.node.as_ref();
        let is_node = matches!(self.remediation.subject, RemediationSubject::Node(_));
        self.remediation.needs_remediation
            || (is_node && node.is_some_and(|node| node.needs_remediation))
    }

    fn describe_request(&self, request: &PowerRequest) -> String {
        let made = format!("made {}", format_since(request.created, self.now));
        let how = match &request.strategy {
            Ok(strategy) => format!(
                "{}, {} attempts of {} each",
                strategy.kind.as_str(),
                strategy.retry_limit.saturating_add(1),
                crate::duration::format_duration(strategy.timeout)
            ),
            Err(wrong) => format!("its specification is invalid: {wrong}"),
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

    fn add_host(&mut self) {
        match &self.remediation.host {
            Ok(host) => {
                let by = match (&self.remediation.subject, &self.remediation.machine) {
                    (RemediationSubject::Host(_), _) => String::new(),
                    (_, Some(machine)) if machine.host.is_some() => {
                        ", by annotation metal3.io/BareMetalHost on the Machine".to_owned()
                    }
                    (_, Some(_)) => {
                        ", by annotation metal3.io/BareMetalHost on its Metal3Machine".to_owned()
                    }
                    (_, None) => ", by its annotation dogwatch.dev/node".to_owned(),
                };
                self.add_line(ExplanationTopic::Host, format!("{}{by}", host.name));
            }
            Err((reason, text)) => {
                self.add_line(ExplanationTopic::Host, format!("none: {reason}: {text}"));
            }
        }
        if let Some((reason, text)) = &self.remediation.problem {
            self.add_line(
                ExplanationTopic::Host,
                format!("blocked by: {reason}: {text}"),
            );
        }
    }

    fn add_node(&mut self) {
        let text = match (&self.remediation.node_name, &self.remediation.node) {
            (Some(name), Some(node)) => format!("{name}, {}", describe_node_state(node)),
            (Some(name), None) => format!("{name} does not exist"),
            (None, _) => return self.add_line(ExplanationTopic::Node, "it has no Node"),
        };
        self.add_line(ExplanationTopic::Node, text);
        let record = self
            .remediation
            .node
            .as_ref()
            .and_then(|node| node.record.get());
        if let Some(record) = record {
            let text = format!(
                "a planned reboot of it is {}, {}",
                record.phase.as_str(),
                format_since(record.since, self.now)
            );
            self.add_line(ExplanationTopic::Phase, text);
        }
    }
}

fn describe_node_state(node: &ObservedNode) -> String {
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
