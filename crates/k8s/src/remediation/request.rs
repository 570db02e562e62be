//! Converts a PowerRemediation.

use std::time::Duration;

use dogwatch_api::annotation::{NHC_NODE_NAME, NHC_TIMED_OUT};
use dogwatch_api::power_remediation::{self as api, FINALIZER, PowerRemediationSpec};
use dogwatch_core::duration;
use dogwatch_core::remediation::{
    MachineApi, MachineName, ObjectName, PowerRequest, RemediationStrategy, StrategyType,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::api::DynamicObject;

use super::machine::{PAUSED_ANNOTATION, object_name};
use super::status;
use crate::workload_cluster::CLUSTER_NAME_LABEL;

/// A request with an unreadable part has no strategy and says why, so that nothing is begun.
pub(super) fn parse_request(object: &DynamicObject) -> PowerRequest {
    let name = object_name(object);
    let annotation = |key: &str| object.annotations().get(key).cloned();
    let created = object.metadata.creation_timestamp.as_ref();
    let (machine, machine_uid) = owner_machine(object, &name.namespace).unzip();
    let status = status::parse_status(&object.data["status"]);
    let strategy = parse_strategy(object).and_then(|strategy| match &status {
        Ok(_) => Ok(strategy),
        Err(problem) => Err(problem.clone()),
    });
    PowerRequest {
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        generation: object.metadata.generation.unwrap_or_default(),
        created: created.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        deleting: object.metadata.deletion_timestamp.is_some(),
        has_finalizer: object.finalizers().iter().any(|it| it == FINALIZER),
        node_name: annotation(NHC_NODE_NAME),
        machine,
        machine_uid,
        cluster: object.labels().get(CLUSTER_NAME_LABEL).cloned(),
        timed_out: annotation(NHC_TIMED_OUT).is_some(),
        paused: annotation(PAUSED_ANNOTATION).is_some(),
        strategy,
        status: status.unwrap_or_default(),
        name,
    }
}

/// The first Machine among its owners. Owners are in the request's own namespace.
fn owner_machine(object: &DynamicObject, namespace: &str) -> Option<(MachineName, String)> {
    let mut owners = object.owner_references().iter();
    owners.find_map(|owner| {
        let object = ObjectName::new(namespace, &owner.name);
        let api = machine_api(owner)?;
        Some((MachineName { api, object }, owner.uid.clone()))
    })
}

fn machine_api(owner: &OwnerReference) -> Option<MachineApi> {
    let (group, _) = owner.api_version.split_once('/')?;
    let apis = [MachineApi::OpenShift, MachineApi::ClusterApi];
    let mut apis = apis.into_iter().filter(|_| owner.kind == "Machine");
    apis.find(|api| api.group() == group)
}

fn parse_strategy(object: &DynamicObject) -> Result<RemediationStrategy, String> {
    let spec = &object.data["spec"];
    let spec = if spec.is_null() {
        PowerRemediationSpec::default()
    } else {
        serde_json::from_value(spec.clone()).map_err(|error| format!("spec: {error}"))?
    };
    let strategy = spec.strategy.unwrap_or_default();
    let retry_limit = strategy.retry_limit.unwrap_or(api::DEFAULT_RETRY_LIMIT);
    if retry_limit > api::MAX_RETRY_LIMIT {
        let most = api::MAX_RETRY_LIMIT;
        return Err(format!(
            "spec.strategy.retryLimit is {retry_limit}: at most {most}"
        ));
    }
    Ok(RemediationStrategy {
        kind: strategy.kind.unwrap_or(StrategyType::DeleteNode),
        retry_limit,
        timeout: parse_timeout(strategy.timeout.as_deref().unwrap_or(api::DEFAULT_TIMEOUT))?,
    })
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    /// Switching a host off, proving it, and switching it on takes longer than this.
    const MIN_TIMEOUT: Duration = Duration::from_mins(1);
    let timeout = duration::parse_duration(text)
        .map_err(|error| format!("spec.strategy.timeout: {error}"))?;
    if timeout < MIN_TIMEOUT {
        return Err(format!("spec.strategy.timeout is {text}: at least 1m"));
    }
    Ok(timeout)
}
