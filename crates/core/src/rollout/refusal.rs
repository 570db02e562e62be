//! Refuses workloads that cannot be restarted, before anything is written.

use super::types::{ObservedWorkload, RestartTargetKind, WorkloadOwner};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutRefusal {
    /// What is wrong with the object.
    pub what: String,
    /// What to do instead.
    pub next: String,
}

/// Why a new template would not restart this object; `None` if it would.
pub fn find_refusal(object: &ObservedWorkload) -> Option<RolloutRefusal> {
    let name = &object.name;
    if object.deleting {
        return Some(build_refusal(
            format!("{name} is being deleted"),
            "name another",
        ));
    }
    match object.kind {
        RestartTargetKind::Pod => Some(refuse_pod(object)),
        RestartTargetKind::ReplicaSet | RestartTargetKind::ReplicationController => {
            Some(refuse_replica_set(object))
        }
        RestartTargetKind::Job => Some(build_refusal(
            format!("{name} is a Job: its pod template cannot change"),
            "delete the Job and create it again",
        )),
        RestartTargetKind::CronJob => Some(build_refusal(
            format!("{name} is a CronJob: each run creates new pods, and no pod keeps running"),
            format!("start a run now with `kubectl create job --from={name} NAME`"),
        )),
        RestartTargetKind::Deployment
        | RestartTargetKind::StatefulSet
        | RestartTargetKind::DaemonSet
        | RestartTargetKind::Other => refuse_rolling_workload(object),
    }
}

fn refuse_rolling_workload(object: &ObservedWorkload) -> Option<RolloutRefusal> {
    let name = &object.name;
    if !object.template {
        return Some(build_refusal(
            format!("{name} has no pod template in spec.template, so there is nothing to restart"),
            "name the object that controls the pods: `kubectl get pod NAME -o \
             jsonpath={.metadata.ownerReferences}` shows it",
        ));
    }
    if object.paused {
        return Some(build_refusal(
            format!("{name} is paused: a new template would not be rolled out"),
            format!("`kubectl rollout resume {name}` first"),
        ));
    }
    if object.on_delete {
        return Some(build_refusal(
            format!(
                "{name} has the update strategy OnDelete: a pod is replaced only when somebody deletes it"
            ),
            "delete its pods one by one, or set spec.updateStrategy.type to RollingUpdate",
        ));
    }
    None
}

fn refuse_pod(object: &ObservedWorkload) -> RolloutRefusal {
    let name = &object.name;
    match &object.owner {
        Some(owner) => RolloutRefusal {
            what: format!("{name} is a pod of {}", format_owner(owner)),
            next: format!("restart its owner: {}", format_owner(owner)),
        },
        None => RolloutRefusal {
            what: format!("{name} is a pod without a controller: no program would create it again"),
            next: "delete it and create it again".to_owned(),
        },
    }
}

fn refuse_replica_set(object: &ObservedWorkload) -> RolloutRefusal {
    let name = &object.name;
    match &object.owner {
        Some(owner) => RolloutRefusal {
            what: format!("{name} belongs to {}", format_owner(owner)),
            next: format!("restart its owner: {}", format_owner(owner)),
        },
        None => RolloutRefusal {
            what: format!(
                "{name} never replaces running pods: its template applies to new pods only"
            ),
            next: "delete its pods one by one, or make it a Deployment".to_owned(),
        },
    }
}

fn format_owner(owner: &WorkloadOwner) -> String {
    format!("{}/{}", owner.kind.to_lowercase(), owner.name)
}

fn build_refusal(what: String, next: impl Into<String>) -> RolloutRefusal {
    RolloutRefusal {
        what,
        next: next.into(),
    }
}
