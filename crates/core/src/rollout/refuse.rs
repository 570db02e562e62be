//! What cannot be restarted, found before anything is written.

use super::types::{Kind, ObjectSeen, Owner};

/// Why an object is not restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong with it.
    pub what: String,
    /// What to do instead.
    pub next: String,
}

/// Why this object would not be restarted by a new template; `None` where it would.
pub fn refuse(object: &ObjectSeen) -> Option<Refusal> {
    let name = &object.name;
    if object.deleting {
        return Some(refusal(format!("{name} is being deleted"), "name another"));
    }
    match object.kind {
        Kind::Pod => Some(pod(object)),
        Kind::ReplicaSet | Kind::ReplicationController => Some(replicas(object)),
        Kind::Job => Some(refusal(
            format!("{name} is a Job: its pod template cannot change"),
            "delete the Job and create it again",
        )),
        Kind::CronJob => Some(refusal(
            format!("{name} is a CronJob: each run makes its pods anew, and none keeps running"),
            format!("start a run now with `kubectl create job --from={name} NAME`"),
        )),
        Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet | Kind::Other => rolling(object),
    }
}

fn rolling(object: &ObjectSeen) -> Option<Refusal> {
    let name = &object.name;
    if !object.template {
        return Some(refusal(
            format!("{name} has no pod template in spec.template, so there is nothing to restart"),
            "name the object that controls the pods: `kubectl get pod NAME -o jsonpath={.metadata.ownerReferences}` tells",
        ));
    }
    if object.paused {
        return Some(refusal(
            format!("{name} is paused: a new template would not be rolled out"),
            format!("`kubectl rollout resume {name}` first"),
        ));
    }
    if object.on_delete {
        return Some(refusal(
            format!(
                "{name} has the update strategy OnDelete: nobody replaces its pods but who deletes them"
            ),
            "delete its pods one by one, or set spec.updateStrategy.type to RollingUpdate",
        ));
    }
    None
}

fn pod(object: &ObjectSeen) -> Refusal {
    let name = &object.name;
    match &object.owner {
        Some(owner) => Refusal {
            what: format!("{name} is a pod of {}", spelt(owner)),
            next: format!("restart its owner: {}", spelt(owner)),
        },
        None => Refusal {
            what: format!("{name} is a pod that nothing controls: nobody would make it again"),
            next: "delete it and create it again".to_owned(),
        },
    }
}

fn replicas(object: &ObjectSeen) -> Refusal {
    let name = &object.name;
    match &object.owner {
        Some(owner) => Refusal {
            what: format!("{name} belongs to {}", spelt(owner)),
            next: format!("restart its owner: {}", spelt(owner)),
        },
        None => Refusal {
            what: format!("{name} never replaces pods: its template is for pods to come only"),
            next: "delete its pods one by one, or make it a Deployment".to_owned(),
        },
    }
}

fn spelt(owner: &Owner) -> String {
    format!("{}/{}", owner.kind.to_lowercase(), owner.name)
}

fn refusal(what: String, next: impl Into<String>) -> Refusal {
    Refusal {
        what,
        next: next.into(),
    }
}
