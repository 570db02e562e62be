//! The status of a policy, which only the controller writes.

use dogwatch_api::CONTROLLER;
use dogwatch_api::reboot_policy::{
    API_VERSION, KIND, OutNode, PolicyConflictStatus, RebootPolicyStatus, STATUS_LIST_LIMIT,
    WaitingNode,
};
use dogwatch_core::Now;
use dogwatch_core::condition::{DesiredCondition, transition_time};
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::policy::{OutOfServiceNode, Policy, PolicyConflict, PolicyStatus, QueuedNode};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::PolicyObject;
use crate::cluster::PolicyObjectState;
use crate::condition;
use crate::error::{Error, with_timeout};
use crate::event::{EventDraft, EventName};
use crate::field_manager::patch_params_for;
use crate::json_field::null_absent_fields;
use crate::readable_dates::ReadableApi as _;

/// Fields that an empty status omits; a merge patch has to remove them.
const OPTIONAL_FIELDS: [&str; 6] = [
    "observedGeneration",
    "rollout",
    "out",
    "waiting",
    "conflicts",
    "conditions",
];

/// The same of `status.rollout`.
const OPTIONAL_ROLLOUT_FIELDS: [&str; 7] = [
    "canaries",
    "soakEnds",
    "limit",
    "underWay",
    "failed",
    "halted",
    "quietSince",
];

/// The status to write; `None` if the current one is equal.
///
/// `policies` is the list that the conflicts refer to.
pub fn status_to_write(
    status: &PolicyStatus,
    policies: &[Policy],
    standing: &PolicyObjectState,
    now: Timestamp,
) -> Option<RebootPolicyStatus> {
    let wanted = RebootPolicyStatus {
        observed_generation: standing.generation,
        nodes: status.nodes,
        ready: status.ready,
        blocked: status.blocked,
        out_total: saturating_count(&status.out),
        out: limit_list(&status.out, out_node),
        waiting_total: saturating_count(&status.waiting),
        waiting: limit_list(&status.waiting, waiting_node),
        conflicts: limit_list(&status.conflicts, |lost| policy_conflict(lost, policies)),
        rollout: status.rollout.clone(),
        conditions: status_conditions(&status.conditions, standing, now),
    };
    (standing.status.as_ref() != Some(&wanted)).then_some(wanted)
}

/// Writes a policy's status, unless the policy has changed since it was read.
///
/// # Errors
/// [`ApiErrorKind::Conflict`](crate::ApiErrorKind::Conflict) if it has changed: wait for the watch
/// and compute the status again.
pub async fn write_status(
    client: &Client,
    name: &str,
    seen: &PolicyObjectState,
    status: &RebootPolicyStatus,
) -> Result<(), Error> {
    let policies: Api<PolicyObject> = Api::all(client.clone());
    let params = patch_params_for(CONTROLLER);
    let body = status_patch_body(seen, status);
    let body = Patch::Merge(&body);
    with_timeout(policies.patch_readable_status(name, &params, &body)).await?;
    Ok(())
}

/// Writes an Event about the policy of this name and UID, unless it was written before in the same
/// episode. Events about cluster-scoped objects live in namespace `default`.
///
/// # Errors
/// When the request fails.
pub async fn write_policy_event(
    client: &Client,
    (name, uid): (&str, &str),
    event: &DecisionEvent,
    episode: &str,
    now: Now,
) -> Result<(), Error> {
    let draft = EventDraft {
        namespace: "default",
        name: EventName::of_episode(name, uid, episode, event),
        involved_object: json!({
            "kind": KIND, "apiVersion": API_VERSION, "name": name, "uid": uid,
        }),
        component: CONTROLLER,
        host: None,
        event,
    };
    draft.write_event(client, now).await
}

fn saturating_count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

fn limit_list<T, W>(list: &[T], written: impl Fn(&T) -> W) -> Vec<W> {
    list.iter().take(STATUS_LIST_LIMIT).map(written).collect()
}

fn out_node(out: &OutOfServiceNode) -> OutNode {
    OutNode {
        node: out.node.to_string(),
        phase: out.phase.to_owned(),
        since: out.since,
        reason: out.reason.clone(),
    }
}

fn waiting_node(waiting: &QueuedNode) -> WaitingNode {
    WaitingNode {
        node: waiting.node.to_string(),
        since: Some(waiting.since),
        reason: waiting.reason.clone(),
        message: waiting.message.clone(),
    }
}

fn policy_conflict(lost: &PolicyConflict, policies: &[Policy]) -> PolicyConflictStatus {
    PolicyConflictStatus {
        policy: policies[lost.winner].name.to_string(),
        nodes: lost.nodes,
        example: lost.example.to_string(),
    }
}

fn status_conditions(
    wanted: &[DesiredCondition],
    standing: &PolicyObjectState,
    now: Timestamp,
) -> Vec<Condition> {
    let there = standing.status.iter().flat_map(|it| it.conditions.clone());
    let there: Vec<_> = there.map(condition::from_meta_condition).collect();
    let written = |wanted| {
        condition::to_meta_condition(
            wanted,
            transition_time(&there, wanted, now),
            standing.generation,
        )
    };
    wanted.iter().map(written).collect()
}

fn status_patch_body(seen: &PolicyObjectState, status: &RebootPolicyStatus) -> Value {
    let mut status = serde_json::to_value(status).expect("numbers, texts and times serialise");
    null_absent_fields(&mut status, &OPTIONAL_FIELDS);
    if let Some(rollout) = status.get_mut("rollout").filter(|it| it.is_object()) {
        null_absent_fields(rollout, &OPTIONAL_ROLLOUT_FIELDS);
    }
    json!({
        "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version },
        "status": status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dogwatch_core::condition::ConditionStatus;
    use dogwatch_core::name::NodeName;

    fn standing(status: Option<RebootPolicyStatus>) -> PolicyObjectState {
        PolicyObjectState {
            uid: "u".into(),
            resource_version: "7".into(),
            generation: Some(1),
            status,
        }
    }

    fn idle(accepted: ConditionStatus) -> PolicyStatus {
        let observation = |kind, status| DesiredCondition {
            kind,
            status,
            reason: "Because".into(),
            message: String::new(),
            heartbeat: false,
            shows_reason: false,
        };
        PolicyStatus {
            stuck: None,
            nodes: 3,
            ready: 3,
            blocked: 0,
            out: Vec::new(),
            waiting: Vec::new(),
            conflicts: Vec::new(),
            rollout: None,
            conditions: vec![
                observation("Accepted", accepted),
                observation("Progressing", ConditionStatus::False),
                observation("Blocked", ConditionStatus::False),
            ],
        }
    }

    #[test]
    fn what_stands_there_already_is_not_written_again_at_whatever_time() {
        let first = Timestamp::from_second(100).unwrap();
        let written =
            status_to_write(&idle(ConditionStatus::True), &[], &standing(None), first).unwrap();
        // The status as the API server returns it.
        let text = serde_json::to_value(&written).unwrap();
        let there = standing(serde_json::from_value(text).ok());
        let later = Timestamp::from_second(900).unwrap();
        assert_eq!(
            status_to_write(&idle(ConditionStatus::True), &[], &there, later),
            None
        );
        let changed = status_to_write(&idle(ConditionStatus::False), &[], &there, later).unwrap();
        let times: Vec<i64> = changed
            .conditions
            .iter()
            .map(|condition| condition.last_transition_time.0.as_second())
            .collect();
        assert_eq!(times, [900, 100, 100], "only what changed has changed");
    }

    #[test]
    fn long_lists_are_cut_and_their_length_is_told() {
        let mut status = idle(ConditionStatus::True);
        let out = |number| OutOfServiceNode {
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
    fn of_the_older_state_of_a_rollout_nothing_stays() {
        let shape = dogwatch_core::policy::rollout::RolloutShape::default();
        let status = RebootPolicyStatus {
            rollout: Some(shape.first_state()),
            ..RebootPolicyStatus::default()
        };
        let body = status_patch_body(&standing(None), &status);
        let rollout = &body["status"]["rollout"];
        for field in OPTIONAL_ROLLOUT_FIELDS {
            assert_eq!(rollout.get(field), Some(&Value::Null), "{field}");
        }
        let state = serde_json::to_value(build_full_state()).unwrap();
        let written = state.as_object().unwrap().keys();
        for field in written {
            assert!(rollout.get(field).is_some(), "{field} would stay");
        }
    }

    /// Every optional field is set.
    fn build_full_state() -> dogwatch_api::reboot_policy::PolicyRolloutState {
        let at = "2026-01-01T00:00:00Z";
        serde_json::from_value(json!({
            "shape": "ramp 1", "phase": "Ramping", "soakEnds": at, "limit": 1, "quietSince": at,
            "canaries": [{ "node": "n1", "uid": "u", "bootId": "b" }],
            "underWay": [{ "node": "n1", "uid": "u", "bootId": "b" }],
            "failed": [{ "node": "n1", "uid": "u", "bootId": "b", "reason": "RebootFailed" }],
            "halted": { "since": at, "reason": "1 failure" },
        }))
        .unwrap()
    }

    #[test]
    fn what_is_empty_now_is_taken_away_and_not_left_as_it_was() {
        let body = status_patch_body(&standing(None), &RebootPolicyStatus::default());
        let expected = json!({
            "metadata": { "uid": "u", "resourceVersion": "7" },
            "status": {
                "nodes": 0, "ready": 0, "blocked": 0, "outTotal": 0, "waitingTotal": 0,
                "observedGeneration": null, "out": null, "waiting": null, "conflicts": null,
                "conditions": null, "rollout": null,
            },
        });
        assert_eq!(body, expected);
    }
}
