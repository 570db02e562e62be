//! Performs the commands of a script.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_api::annotation::ROLLOUT_RESUMED;
use dogwatch_api::reboot_policy::CRD_NAME;
use dogwatch_kubesim::seed::SimulationSeed;
use dogwatch_kubesim::world::annotation::STOPS_AFTER;
use dogwatch_kubesim::world::cluster::WorkloadBudget;
use http::Method;
use serde_json::{Value, json};

use super::command::{ClusterDisruption, HostCommand, PrometheusChange, UserCommand};
use super::scenario_cluster::{
    DEFINITIONS_PATH, POLICIES_PATH, ScenarioCluster, ScenarioHost, UserRequestError,
};

/// Users whose partition ends after a time.
pub struct PartitionEnd {
    pub time: Duration,
    pub users: Vec<String>,
}

/// Begins or ends a disruption; returns the end of a partition that must be scheduled.
pub fn apply_disruption(
    stage: &ScenarioCluster,
    trouble: &ClusterDisruption,
) -> Result<Option<PartitionEnd>, String> {
    match trouble {
        ClusterDisruption::Partition {
            node,
            time,
            coordinator_only,
        } => {
            stage.check_name_exists(node)?;
            return Ok(Some(partition_users(
                stage,
                stage.users_of_node(node, *coordinator_only),
                *time,
            )));
        }
        ClusterDisruption::ApiDown(time) => {
            return Ok(Some(partition_users(stage, stage.all_users(), *time)));
        }
        ClusterDisruption::EndPartition(users) => {
            for user in users {
                stage.server.set_partitioned(user, false);
            }
        }
        ClusterDisruption::Compact => stage.server.compact_history(),
        ClusterDisruption::CutWatches(name) => {
            for user in stage.users_of_node(name, true) {
                stage.server.cut_watches(Some(&user));
            }
        }
        ClusterDisruption::Perturb(perturbation) => {
            stage.faults.add_perturbation(perturbation.clone());
        }
        ClusterDisruption::Fault(rule) => {
            stage.check_name_exists(&rule.node)?;
            stage.faults.add_rule(rule.clone());
        }
    }
    Ok(None)
}

fn partition_users(stage: &ScenarioCluster, users: Vec<String>, time: Duration) -> PartitionEnd {
    for user in &users {
        stage.server.set_partitioned(user, true);
    }
    PartitionEnd { time, users }
}

fn find_host<'a>(stage: &'a ScenarioCluster, node: &str) -> Result<&'a ScenarioHost, String> {
    stage
        .hosts
        .get(node)
        .ok_or_else(|| format!("there is no machine {node:?}"))
}

pub fn apply_host_command(
    stage: &ScenarioCluster,
    node: &str,
    deed: &HostCommand,
) -> Result<(), String> {
    if let Ok(controller) = stage.find_controller(node) {
        match deed {
            HostCommand::Kill => controller.kill_process(),
            HostCommand::Hold => controller.hold_process(),
            HostCommand::Resume => controller.restart_process(),
            HostCommand::Touch { .. }
            | HostCommand::Remove { .. }
            | HostCommand::Break { .. }
            | HostCommand::PowerOff
            | HostCommand::PowerOn
            | HostCommand::Clock(_)
            | HostCommand::RebootCommand(_) => {
                return Err(format!("{node} is a controller, not a node"));
            }
        }
        return Ok(());
    }
    let coordinator = &find_host(stage, node)?.coordinator;
    let kubelet = stage
        .cluster
        .find_kubelet(node)
        .ok_or("there is no machine")?;
    match deed {
        HostCommand::Touch { path, reason } => coordinator.disk.touch_file(path, reason),
        HostCommand::Remove { path } => coordinator.disk.remove_file(path),
        HostCommand::Break { path, why } => coordinator.disk.break_file(path, why),
        HostCommand::Kill => coordinator.kill_process(),
        HostCommand::Hold => coordinator.hold_process(),
        HostCommand::Resume => coordinator.restart_process(),
        HostCommand::RebootCommand(command) => coordinator.set_reboot_command(*command),
        HostCommand::Clock(ahead) => stage.set_clock_skew(node, *ahead),
        HostCommand::PowerOff => kubelet.power_off(),
        HostCommand::PowerOn => {
            // Nothing else has this revision, so no boot id occurs twice.
            let revision = stage.server.lock_store().revision();
            kubelet.power_on(
                SimulationSeed(revision)
                    .stream_for_actor(&format!("power-on/{node}"))
                    .next_boot_id(),
            );
        }
    }
    Ok(())
}

pub fn apply_prometheus_change(stage: &ScenarioCluster, change: &PrometheusChange) {
    match change {
        PrometheusChange::Away(away) => stage.prometheus.set_unreachable(*away),
        PrometheusChange::Alert(name, alert) => stage.prometheus.set_alert(name, *alert),
        PrometheusChange::Found(query, what) => {
            stage.prometheus.set_query_result(query, what.as_deref());
        }
    }
}

/// The path of pods that a person creates.
const PODS_PATH: &str = "/api/v1/namespaces/default/pods";

pub fn apply_user_command(stage: &ScenarioCluster, wish: &UserCommand) -> Result<(), String> {
    let node_path = |node: &str| format!("/api/v1/nodes/{node}");
    let delete = |path: &str| stage.send_user_request(Method::DELETE, path, &Value::Null);
    let done = match wish {
        UserCommand::PatchNode { node, patch } => {
            stage.send_user_request(Method::PATCH, &node_path(node), patch)
        }
        UserCommand::NodeFact { node, fact } => {
            return super::node_facts::write_node_fact(stage, node, fact);
        }
        UserCommand::Request {
            node,
            reason,
            not_before,
            method,
        } => {
            let patch = reboot_request_patch(stage, reason, *not_before, method.as_deref());
            stage.send_user_request(Method::PATCH, &node_path(node), &patch)
        }
        UserCommand::PatchObject { path, patch } => {
            stage.send_user_request(Method::PATCH, path, patch)
        }
        UserCommand::NodeReboot(asked) => stage.create_node_reboot(asked),
        UserCommand::Schedule(asked) => stage.create_schedule(asked),
        UserCommand::CreateObject { path, object } => {
            stage.send_user_request(Method::POST, path, object)
        }
        UserCommand::DeleteObject(path) => delete(path),
        UserCommand::DeleteNode(node) => delete(&node_path(node)),
        UserCommand::Budget { name, budget } => change_budget(stage, name, budget),
        UserCommand::RefuseEvictions(policy) => {
            stage.server.lock_store().refuse_evictions(policy.clone());
            return Ok(());
        }
        UserCommand::AdmitEvictions(policy) => {
            stage.server.lock_store().admit_evictions(policy);
            return Ok(());
        }
        UserCommand::Pod {
            name,
            node,
            stops_after,
            labels,
            annotations,
        } => {
            let pod = pod_manifest(name, node, *stops_after, labels, annotations);
            stage.send_user_request(Method::POST, PODS_PATH, &pod)
        }
        UserCommand::EndPod(name) => end_pod(stage, name),
        UserCommand::DeletePod(name) => delete(&format!("{PODS_PATH}/{name}")),
        UserCommand::Policy { name, patch } => stage.set_policy(name, patch),
        UserCommand::DeletePolicy(name) => delete(&format!("{POLICIES_PATH}/{name}")),
        UserCommand::ResumeRollout(name) => resume_rollout(stage, name),
        UserCommand::PoliciesInstalled(true) => stage.install_policy_crd(),
        UserCommand::PoliciesInstalled(false) => delete(&format!("{DEFINITIONS_PATH}/{CRD_NAME}")),
        UserCommand::Abort { node, reason } => {
            let abort = json!({ "requester": "admin", "reason": reason });
            let patch = annotation_patch(dogwatch_api::annotation::ABORT_REQUESTED, &abort);
            stage.send_user_request(Method::PATCH, &node_path(node), &patch)
        }
    };
    done.map_err(|error| error.to_string())
}

type UserRequestEnd = Result<(), UserRequestError>;

fn change_budget(stage: &ScenarioCluster, name: &str, budget: &WorkloadBudget) -> UserRequestEnd {
    let path = format!("/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}");
    let patch = json!({ "spec": budget_spec(budget) });
    stage.send_user_request(Method::PATCH, &path, &patch)
}

fn end_pod(stage: &ScenarioCluster, name: &str) -> UserRequestEnd {
    let path = format!("{PODS_PATH}/{name}/status");
    let ended = json!({ "status": { "phase": "Succeeded" } });
    stage.send_user_request(Method::PATCH, &path, &ended)
}

/// As `dogwatch resume` does.
fn resume_rollout(stage: &ScenarioCluster, name: &str) -> UserRequestEnd {
    let since = stage.rollout_halted_since(name).unwrap_or_default();
    let annotations = json!({ ROLLOUT_RESUMED: since });
    let patch = json!({ "metadata": { "annotations": annotations } });
    stage.send_user_request(Method::PATCH, &format!("{POLICIES_PATH}/{name}"), &patch)
}

/// The annotation with which a person requests a reboot.
fn reboot_request_patch(
    stage: &ScenarioCluster,
    reason: &str,
    not_before: Option<Duration>,
    method: Option<&str>,
) -> Value {
    let mut request = json!({ "reason": reason, "requester": "admin" });
    if let Some(time) = not_before {
        request["notBefore"] = json!(stage.time_after(time).to_string());
    }
    if let Some(method) = method {
        request["method"] = json!(method);
    }
    annotation_patch(dogwatch_api::annotation::REBOOT_REQUESTED, &request)
}

fn annotation_patch(name: &str, value: &Value) -> Value {
    json!({ "metadata": { "annotations": { name: value.to_string() } } })
}

fn budget_spec(budget: &WorkloadBudget) -> Value {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_or_else(|_| json!(text), |number| json!(number))
    };
    match budget {
        WorkloadBudget::MinAvailable(min) => {
            json!({ "minAvailable": number(min), "maxUnavailable": null })
        }
        WorkloadBudget::MaxUnavailable(max) => {
            json!({ "minAvailable": null, "maxUnavailable": number(max) })
        }
    }
}

fn pod_manifest(
    name: &str,
    node: &str,
    stops_after: Duration,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Value {
    let mut annotations = annotations.clone();
    let stops_after = dogwatch_core::duration::format_duration(stops_after);
    annotations.insert(STOPS_AFTER.to_owned(), stops_after);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "main", "image": "sim" }],
        },
    })
}
