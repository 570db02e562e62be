//! Converts a NodeReboot. Whatever cannot be understood becomes a problem that names its field.

use std::time::Duration;

use dogwatch_api::node_reboot::{
    DEFAULT_TTL_AFTER_FINISHED, DEFAULT_WITHIN, FINALIZER, NodeRebootSpec, SuccessSpec,
};
use dogwatch_core::duration::parse_duration;
use dogwatch_core::name::NodeName;
use dogwatch_core::node_reboot::{
    NodeRebootPlan, NodeRebootState, ObservedNodeReboot, SuccessPlan,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use super::NodeRebootObject;
use super::status::parse_status;

pub fn convert_node_reboot(object: &NodeRebootObject) -> ObservedNodeReboot {
    let meta = &object.metadata;
    let (status, status_problem) = match parse_status(&object.status) {
        Ok(status) => (status, None),
        Err(problem) => (NodeRebootState::default(), Some(problem)),
    };
    let (ours, others): (Vec<String>, Vec<String>) = object
        .finalizers()
        .iter()
        .cloned()
        .partition(|finalizer| finalizer == FINALIZER);
    ObservedNodeReboot {
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        generation: meta.generation,
        created: meta
            .creation_timestamp
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleting: meta.deletion_timestamp.is_some(),
        has_finalizer: !ours.is_empty(),
        other_finalizers: others,
        plan: parse_plan(&object.spec),
        status,
        status_problem,
    }
}

fn parse_plan(spec: &Value) -> Result<NodeRebootPlan, Vec<String>> {
    let spec: NodeRebootSpec =
        serde_json::from_value(spec.clone()).map_err(|error| vec![format!("spec: {error}")])?;
    let mut problems = Vec::new();
    let node = NodeName::new(spec.node_name);
    let node = keep_problem(
        &mut problems,
        node.map_err(|bad| format!("spec.nodeName: {bad}")),
    );
    let ttl = spec.ttl_after_finished.as_deref();
    let ttl = ttl.unwrap_or(DEFAULT_TTL_AFTER_FINISHED);
    let ttl = parse_duration(ttl).map_err(|bad| format!("spec.ttlAfterFinished: {bad}"));
    let ttl = keep_problem(&mut problems, ttl);
    let success = spec.success.map(parse_success).transpose();
    let success = keep_problem(&mut problems, success);
    let (Some(node), Some(ttl), Some(success)) = (node, ttl, success) else {
        return Err(problems);
    };
    Ok(NodeRebootPlan {
        node,
        node_uid: spec.node_uid,
        method: spec.method.unwrap_or_default(),
        reason: spec.reason.unwrap_or_default(),
        requester: spec.requester,
        not_before: spec.not_before,
        deadline: spec.deadline,
        success,
        escalation: spec.escalation.unwrap_or_default(),
        cancel: spec.cancel.unwrap_or(false),
        ttl,
    })
}

fn parse_success(spec: SuccessSpec) -> Result<SuccessPlan, String> {
    let within = spec.within.as_deref().unwrap_or(DEFAULT_WITHIN);
    let within: Duration =
        parse_duration(within).map_err(|bad| format!("spec.success.within: {bad}"))?;
    Ok(SuccessPlan {
        conditions: spec.conditions,
        within,
    })
}

fn keep_problem<T>(problems: &mut Vec<String>, parsed: Result<T, String>) -> Option<T> {
    parsed.map_err(|problem| problems.push(problem)).ok()
}
