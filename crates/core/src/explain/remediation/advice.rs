//! Advice for a person about a remediation.

use super::RemediationReportInput;
use super::assessment::AssessedRemediation;
use crate::Now;
use crate::power::HostName;
use crate::remediation::{MachineApi, RemediationReason, RemediationSubject};

/// The most likely help first; empty when waiting is all.
pub(super) fn remediation_advice(
    view: &RemediationReportInput,
    judged: &AssessedRemediation,
    now: Now,
) -> Vec<String> {
    let mut advice: Vec<String> = Vec::new();
    if judged.is_under_way() {
        let (reason, _) = judged.reason_and_message();
        advice.extend(reason_advice(judged, reason));
        advice.extend(call_off_advice(judged));
        let has_condition = !matches!(
            judged.remediation.subject,
            RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_)
        );
        let is_idle = has_condition && judged.controller_condition().is_none();
        advice.extend(
            view.controller
                .controller_advice(is_idle, "power,remediation", now),
        );
    }
    advice
}

fn reason_advice(judged: &AssessedRemediation, word: &str) -> Vec<String> {
    let host = judged.remediation.host.as_ref().ok().map(|host| &host.name);
    let explain_host = || host.map(|host| format!("dogwatch explain host/{host}"));
    let Some(reason) = RemediationReason::parse(word) else {
        return Vec::new();
    };
    if reason == RemediationReason::PowerUnknown {
        let keyed = host.filter(|_| judged.remediation.is_keyed());
        let confirm = keyed.map(confirm_off_advice);
        return explain_host().into_iter().chain(confirm).collect();
    }
    if matches!(
        reason,
        RemediationReason::NoHost
            | RemediationReason::HostNotFound
            | RemediationReason::BadHostLink
            | RemediationReason::NoNode
    ) {
        return vec![host_link_advice(&judged.remediation.subject)];
    }
    let is_about_host = matches!(
        reason,
        RemediationReason::PoweringOff
            | RemediationReason::ProvingOff
            | RemediationReason::PoweringOn
            | RemediationReason::WaitingForNode
            | RemediationReason::AttemptsUsedUp
    );
    let step = reason.next_step().map(str::to_owned);
    let explain = explain_host().filter(|_| is_about_host);
    step.into_iter().chain(explain).collect()
}

fn confirm_off_advice(host: &HostName) -> String {
    format!(
        "if you have made sure that the host is off: dogwatch confirm-off {host} --reason TEXT. \
         If it still runs, two machines will write to the same volumes"
    )
}

/// Where the link to a host is written.
fn host_link_advice(subject: &RemediationSubject) -> String {
    match subject {
        RemediationSubject::Machine(name) => {
            let object = &name.object;
            format!(
                "kubectl annotate -n {} {} {} metal3.io/BareMetalHost=NAMESPACE/NAME",
                object.namespace,
                machine_resource(name.api),
                object.name
            )
        }
        RemediationSubject::Node(_)
        | RemediationSubject::Request(_)
        | RemediationSubject::WorkloadNode(..)
        | RemediationSubject::Host(_) => {
            "kubectl annotate -n NAMESPACE bmh HOST dogwatch.dev/node=NODE, on the host that carries it".to_owned()
        }
    }
}

pub(super) fn machine_resource(api: MachineApi) -> &'static str {
    match api {
        MachineApi::OpenShift => "machines.machine.openshift.io",
        MachineApi::ClusterApi => "machines.cluster.x-k8s.io",
    }
}

/// How a person withdraws the request.
fn call_off_advice(judged: &AssessedRemediation) -> Option<String> {
    if !judged.remediation.needs_remediation {
        return None;
    }
    let what = match &judged.remediation.subject {
        RemediationSubject::Machine(name) => format!(
            "kubectl annotate -n {} {} {} host.metal3.io/external-remediation-",
            name.object.namespace,
            machine_resource(name.api),
            name.object.name
        ),
        RemediationSubject::Node(name) => {
            format!("kubectl annotate node {name} host.metal3.io/external-remediation-")
        }
        RemediationSubject::Request(name) => format!(
            "kubectl delete -n {} powerremediation {}",
            name.namespace, name.name
        ),
        RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_) => return None,
    };
    Some(format!("to cancel the remediation: {what}"))
}
