//! The status of a policy: written by the controller only.

use dogwatch_api::CONTROLLER;
use dogwatch_api::reboot_policy::{
    Conflict, OutNode, RebootPolicyStatus, STATUS_LIST_LIMIT, WaitingNode,
};
use dogwatch_core::condition::{Observation, since};
use dogwatch_core::policy::{Lost, Out, Policy, PolicyStatus, Waiting};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::PolicyObject;
use crate::cluster::PolicyStanding;
use crate::condition;
use crate::error::{Error, ask};
use crate::field::name_absent;
use crate::manager::patched_by;

/// What a status leaves out when it is empty; a merge patch has to say so.
const OPTIONAL: [&str; 5] = [
    "observedGeneration",
    "out",
    "waiting",
    "conflicts",
    "conditions",
];

/// The status to be written over what stands there; `None` where that says the same already.
///
/// `policies` are those that the conflicts' places are among.
pub fn status_to_write(
    status: &PolicyStatus,
    policies: &[Policy],
    standing: &PolicyStanding,
    now: Timestamp,
) -> Option<RebootPolicyStatus> {
    let wanted = RebootPolicyStatus {
        observed_generation: standing.generation,
        nodes: status.nodes,
        ready: status.ready,
        blocked: status.blocked,
        out_total: count(&status.out),
        out: first(&status.out, out),
        waiting_total: count(&status.waiting),
        waiting: first(&status.waiting, waiting),
        conflicts: first(&status.conflicts, |lost| conflict(lost, policies)),
        conditions: conditions(&status.conditions, standing, now),
    };
    (standing.status.as_ref() != Some(&wanted)).then_some(wanted)
}

/// Writes a policy's status, on the condition that the policy is as it was seen.
///
/// # Errors
/// [`Kind::Conflict`](crate::Kind::Conflict) where it has changed: look at the watch, work it out
/// anew.
pub async fn write_status(
    client: &Client,
    name: &str,
    seen: &PolicyStanding,
    status: &RebootPolicyStatus,
) -> Result<(), Error> {
    let policies: Api<PolicyObject> = Api::all(client.clone());
    let params = patched_by(CONTROLLER);
    let body = body(seen, status);
    ask(policies.patch_status(name, &params, &Patch::Merge(&body))).await?;
    Ok(())
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

fn first<T, W>(list: &[T], written: impl Fn(&T) -> W) -> Vec<W> {
    list.iter().take(STATUS_LIST_LIMIT).map(written).collect()
}

fn out(out: &Out) -> OutNode {
    OutNode {
        node: out.node.to_string(),
        phase: out.phase.to_owned(),
        since: out.since,
        reason: out.reason.clone(),
    }
}

fn waiting(waiting: &Waiting) -> WaitingNode {
    WaitingNode {
        node: waiting.node.to_string(),
        since: Some(waiting.since),
        reason: waiting.reason.clone(),
        message: waiting.message.clone(),
    }
}

fn conflict(lost: &Lost, policies: &[Policy]) -> Conflict {
    Conflict {
        policy: policies[lost.to].name.to_string(),
        nodes: lost.nodes,
        example: lost.example.to_string(),
    }
}

fn conditions(wanted: &[Observation], standing: &PolicyStanding, now: Timestamp) -> Vec<Condition> {
    let there = standing.status.iter().flat_map(|it| it.conditions.clone());
    let there: Vec<_> = there.map(condition::seen).collect();
    let written =
        |wanted| condition::written(wanted, since(&there, wanted, now), standing.generation);
    wanted.iter().map(written).collect()
}

fn body(seen: &PolicyStanding, status: &RebootPolicyStatus) -> Value {
    let mut status = serde_json::to_value(status).expect("numbers, texts and times serialise");
    name_absent(&mut status, &OPTIONAL);
    json!({
        "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version },
        "status": status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::condition::Status;
    use dogwatch_core::name::NodeName;

    fn standing(status: Option<RebootPolicyStatus>) -> PolicyStanding {
        PolicyStanding {
            uid: "u".into(),
            resource_version: "7".into(),
            generation: Some(1),
            status,
        }
    }

    fn idle(accepted: Status) -> PolicyStatus {
        let observation = |kind, status| Observation {
            kind,
            status,
            reason: "Because".into(),
            message: String::new(),
            heartbeat: false,
        };
        PolicyStatus {
            stuck: None,
            nodes: 3,
            ready: 3,
            blocked: 0,
            out: Vec::new(),
            waiting: Vec::new(),
            conflicts: Vec::new(),
            conditions: [
                observation("Accepted", accepted),
                observation("Progressing", Status::False),
                observation("Blocked", Status::False),
            ],
        }
    }

    #[test]
    fn what_stands_there_already_is_not_written_again_at_whatever_time() {
        let first = Timestamp::from_second(100).unwrap();
        let written = status_to_write(&idle(Status::True), &[], &standing(None), first).unwrap();
        // As it comes back from the API server.
        let text = serde_json::to_value(&written).unwrap();
        let there = standing(serde_json::from_value(text).ok());
        let later = Timestamp::from_second(900).unwrap();
        assert_eq!(
            status_to_write(&idle(Status::True), &[], &there, later),
            None
        );
        let changed = status_to_write(&idle(Status::False), &[], &there, later).unwrap();
        let times: Vec<i64> = changed
            .conditions
            .iter()
            .map(|condition| condition.last_transition_time.0.as_second())
            .collect();
        assert_eq!(times, [900, 100, 100], "only what changed has changed");
    }

    #[test]
    fn long_lists_are_cut_and_their_length_is_told() {
        let mut status = idle(Status::True);
        let out = |number| Out {
            node: NodeName::new(format!("n{number}")).unwrap(),
            phase: "draining",
            since: None,
            reason: String::new(),
        };
        status.out = (0..25).map(out).collect();
        let written = status_to_write(&status, &[], &standing(None), Timestamp::UNIX_EPOCH);
        let written = written.unwrap();
        assert_eq!(
            (written.out.len(), written.out_total),
            (STATUS_LIST_LIMIT, 25)
        );
    }

    #[test]
    fn what_is_empty_now_is_taken_away_and_not_left_as_it_was() {
        let body = body(&standing(None), &RebootPolicyStatus::default());
        let expected = json!({
            "metadata": { "uid": "u", "resourceVersion": "7" },
            "status": {
                "nodes": 0, "ready": 0, "blocked": 0, "outTotal": 0, "waitingTotal": 0,
                "observedGeneration": null, "out": null, "waiting": null, "conflicts": null,
                "conditions": null,
            },
        });
        assert_eq!(body, expected);
    }
}
