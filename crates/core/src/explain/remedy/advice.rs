//! What a person can do about a remediation.

use super::RemedyView;
use super::judged::Judged;
use crate::Now;
use crate::power::HostName;
use crate::remedy::{MachineApi, Subject, reason};

/// The most likely help first; empty where there is nothing but to wait.
pub(super) fn advice(view: &RemedyView, judged: &Judged, now: Now) -> Vec<String> {
    let mut advice: Vec<String> = Vec::new();
    if judged.is_under_way() {
        let (reason, _) = judged.because();
        advice.extend(about(judged, reason));
        advice.extend(to_call_it_off(judged));
        let has_condition = !matches!(judged.case.subject, Subject::Host(_));
        let is_idle = has_condition && judged.said().is_none();
        advice.extend(view.controller.advice(is_idle, "power,remediation", now));
    }
    advice
}

fn about(judged: &Judged, word: &str) -> Vec<String> {
    let host = judged.case.host.as_ref().ok().map(|host| &host.name);
    let explain_host = || host.map(|host| format!("dogwatch explain host/{host}"));
    let one = |text: &str| vec![text.to_owned()];
    match word {
        reason::POWER_UNKNOWN => {
            let mut advice: Vec<String> = explain_host().into_iter().collect();
            advice.extend(host.filter(|_| judged.case.is_keyed()).map(confirm));
            advice
        }
        reason::POWERING_OFF | reason::PROVING_OFF | reason::POWERING_ON => {
            explain_host().into_iter().collect()
        }
        reason::WAITING_FOR_NODE => {
            let look = "look at the machine's console: its kubelet has not registered yet";
            let mut advice = one(look);
            advice.extend(explain_host());
            advice
        }
        reason::RELEASING => one("look at what is named: a finalizer, or a CSI driver"),
        reason::NO_HOST | reason::HOST_NOT_FOUND | reason::BAD_HOST_LINK | reason::NO_NODE => {
            vec![link(&judged.case.subject)]
        }
        reason::WRONG_HOST => {
            one("correct the link, or the address of the BMC: it is another machine's")
        }
        reason::IDENTITY_UNKNOWN => {
            one("run the controller without --require-host-identity, or link a BMC that tells it")
        }
        reason::NODE_IS_ALIVE => {
            one("look at the machine: the BMC errs, or the link leads to another one")
        }
        reason::HOST_NOT_PROVISIONED => {
            one("set spec.externallyProvisioned on the host, or have metal3 provision it")
        }
        reason::PAUSED => one("remove annotation cluster.x-k8s.io/paused"),
        reason::TOO_MANY_FENCED => one("wait for the others, or raise --max-fenced"),
        reason::ATTEMPTS_USED_UP => {
            let mut advice =
                one("look at the machine; a health check that still wants it asks anew");
            advice.extend(explain_host());
            advice
        }
        _ => Vec::new(),
    }
}

fn confirm(host: &HostName) -> String {
    format!(
        "if you have made sure that it is off: dogwatch confirm-off {host} --reason TEXT. If it still runs, two writers will have your volumes"
    )
}

/// Where the link to a host is written.
fn link(subject: &Subject) -> String {
    match subject {
        Subject::Machine(name) => {
            let object = &name.object;
            format!(
                "kubectl annotate -n {} {} {} metal3.io/BareMetalHost=NAMESPACE/NAME",
                object.namespace,
                resource(name.api),
                object.name
            )
        }
        Subject::Node(_) | Subject::Request(_) | Subject::Host(_) => {
            "kubectl annotate -n NAMESPACE bmh HOST dogwatch.dev/node=NODE, on the host that carries it".to_owned()
        }
    }
}

pub(super) fn resource(api: MachineApi) -> &'static str {
    match api {
        MachineApi::OpenShift => "machines.machine.openshift.io",
        MachineApi::ClusterApi => "machines.cluster.x-k8s.io",
    }
}

/// How what was asked is taken back.
fn to_call_it_off(judged: &Judged) -> Option<String> {
    if !judged.case.needs {
        return None;
    }
    let what = match &judged.case.subject {
        Subject::Machine(name) => format!(
            "kubectl annotate -n {} {} {} host.metal3.io/external-remediation-",
            name.object.namespace,
            resource(name.api),
            name.object.name
        ),
        Subject::Node(name) => {
            format!("kubectl annotate node {name} host.metal3.io/external-remediation-")
        }
        Subject::Request(name) => format!(
            "kubectl delete -n {} powerremediation {}",
            name.namespace, name.name
        ),
        Subject::Host(_) => return None,
    };
    Some(format!("to call it off: {what}"))
}
