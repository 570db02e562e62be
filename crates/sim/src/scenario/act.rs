//! Doing what a line says.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_api::reboot_policy::CRD_NAME;
use http::Method;
use serde_json::{Value, json};

use super::command::{Deed, PrometheusChange, Trouble, Wish};
use super::stage::{DEFINITIONS, Host, POLICIES, Stage};
use crate::seed::Seed;
use crate::world::annotation::STOPS_AFTER;
use crate::world::cluster::Budget;

/// Users that are let in again after a time.
pub struct LetIn {
    /// After which time.
    pub time: Duration,
    /// Whom.
    pub users: Vec<String>,
}

/// Something goes wrong; what is to be mended later by itself is returned.
pub fn trouble(stage: &Stage, trouble: &Trouble) -> Result<Option<LetIn>, String> {
    match trouble {
        Trouble::Partition {
            node,
            time,
            coordinator_only,
        } => {
            stage.knows(node)?;
            return Ok(Some(apart(
                stage,
                stage.users_of(node, *coordinator_only),
                *time,
            )));
        }
        Trouble::ApiDown(time) => return Ok(Some(apart(stage, stage.users(), *time))),
        Trouble::LetIn(users) => {
            for user in users {
                stage.server.partition(user, false);
            }
        }
        Trouble::Compact => stage.server.compact(),
        Trouble::CutWatches(name) => {
            for user in stage.users_of(name, true) {
                stage.server.cut_watches(Some(&user));
            }
        }
        Trouble::Fault(rule) => {
            stage.knows(&rule.node)?;
            stage.faults.add(rule.clone());
        }
    }
    Ok(None)
}

fn apart(stage: &Stage, users: Vec<String>, time: Duration) -> LetIn {
    for user in &users {
        stage.server.partition(user, true);
    }
    LetIn { time, users }
}

fn host<'a>(stage: &'a Stage, node: &str) -> Result<&'a Host, String> {
    stage
        .hosts
        .get(node)
        .ok_or_else(|| format!("there is no machine {node:?}"))
}

/// Something happens on a machine.
pub fn on_host(stage: &Stage, node: &str, deed: &Deed) -> Result<(), String> {
    if let Ok(controller) = stage.controller(node) {
        match deed {
            Deed::Kill => controller.kill(),
            Deed::Hold => controller.hold(),
            Deed::Resume => controller.start_again(),
            Deed::Touch { .. }
            | Deed::Remove { .. }
            | Deed::Break { .. }
            | Deed::PowerOff
            | Deed::PowerOn
            | Deed::Clock(_)
            | Deed::RebootCommand(_) => return Err(format!("{node} is a controller")),
        }
        return Ok(());
    }
    let coordinator = &host(stage, node)?.coordinator;
    let kubelet = stage.cluster.kubelet(node).ok_or("there is no machine")?;
    match deed {
        Deed::Touch { path, reason } => coordinator.disk.touch(path, reason),
        Deed::Remove { path } => coordinator.disk.remove(path),
        Deed::Break { path, why } => coordinator.disk.break_file(path, why),
        Deed::Kill => coordinator.kill(),
        Deed::Hold => coordinator.hold(),
        Deed::Resume => coordinator.start_again(),
        Deed::RebootCommand(command) => coordinator.set_reboot_command(*command),
        Deed::Clock(ahead) => stage.set_clock(node, *ahead),
        Deed::PowerOff => kubelet.power_off(),
        Deed::PowerOn => {
            // Nothing else has this revision: no boot id comes twice.
            let revision = stage.server.store().revision();
            kubelet.power_on(Seed(revision).stream(&format!("power-on/{node}")).boot_id());
        }
    }
    Ok(())
}

/// Prometheus says something else from now on.
pub fn prometheus(stage: &Stage, change: &PrometheusChange) {
    match change {
        PrometheusChange::Away(away) => stage.prometheus.set_away(*away),
        PrometheusChange::Alert(name, alert) => stage.prometheus.set_alert(name, *alert),
        PrometheusChange::Found(query, what) => {
            stage.prometheus.set_found(query, what.as_deref());
        }
    }
}

/// Pods that a person makes.
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A person does something to the cluster.
pub fn person(stage: &Stage, wish: &Wish) -> Result<(), String> {
    let node_path = |node: &str| format!("/api/v1/nodes/{node}");
    let done = match wish {
        Wish::PatchNode { node, patch } => stage.person(Method::PATCH, &node_path(node), patch),
        Wish::Request {
            node,
            reason,
            not_before,
        } => {
            let patch = request_for(stage, reason, *not_before);
            stage.person(Method::PATCH, &node_path(node), &patch)
        }
        Wish::PatchHost { host, patch } => {
            let yard = &stage.metal()?.yard;
            return yard.change(host, patch).map_err(|error| error.to_string());
        }
        Wish::DeleteNode(node) => stage.person(Method::DELETE, &node_path(node), &Value::Null),
        Wish::Budget { name, budget } => {
            let path = format!("/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}");
            stage.person(
                Method::PATCH,
                &path,
                &json!({ "spec": budget_spec(budget) }),
            )
        }
        Wish::RefuseEvictions(policy) => {
            stage.server.store().refuse_evictions(policy.clone());
            return Ok(());
        }
        Wish::AdmitEvictions(policy) => {
            stage.server.store().admit_evictions(policy);
            return Ok(());
        }
        Wish::Pod {
            name,
            node,
            stops_after,
            labels,
        } => {
            let pod = pod(name, node, *stops_after, labels);
            stage.person(Method::POST, PODS, &pod)
        }
        Wish::DeletePod(name) => {
            stage.person(Method::DELETE, &format!("{PODS}/{name}"), &Value::Null)
        }
        Wish::Policy { name, patch } => stage.set_policy(name, patch),
        Wish::DeletePolicy(name) => {
            stage.person(Method::DELETE, &format!("{POLICIES}/{name}"), &Value::Null)
        }
        Wish::PoliciesInstalled(true) => stage.define_policies(),
        Wish::PoliciesInstalled(false) => {
            let path = format!("{DEFINITIONS}/{CRD_NAME}");
            stage.person(Method::DELETE, &path, &Value::Null)
        }
        Wish::Abort { node, reason } => {
            let abort = json!({ "requester": "admin", "reason": reason });
            let patch = annotated(dogwatch_api::annotation::ABORT_REQUESTED, &abort);
            stage.person(Method::PATCH, &node_path(node), &patch)
        }
    };
    done.map_err(|error| error.to_string())
}

/// The annotation by which a person requests a reboot.
fn request_for(stage: &Stage, reason: &str, not_before: Option<Duration>) -> Value {
    let mut request = json!({ "reason": reason, "requester": "admin" });
    if let Some(time) = not_before {
        request["notBefore"] = json!(stage.time_in(time).to_string());
    }
    annotated(dogwatch_api::annotation::REBOOT_REQUESTED, &request)
}

fn annotated(name: &str, value: &Value) -> Value {
    json!({ "metadata": { "annotations": { name: value.to_string() } } })
}

fn budget_spec(budget: &Budget) -> Value {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_or_else(|_| json!(text), |number| json!(number))
    };
    match budget {
        Budget::MinAvailable(min) => json!({ "minAvailable": number(min), "maxUnavailable": null }),
        Budget::MaxUnavailable(max) => {
            json!({ "minAvailable": null, "maxUnavailable": number(max) })
        }
    }
}

fn pod(name: &str, node: &str, stops_after: Duration, labels: &BTreeMap<String, String>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": { STOPS_AFTER: dogwatch_core::duration::format(stops_after) },
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "main", "image": "sim" }],
        },
    })
}
