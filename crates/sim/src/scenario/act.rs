//! Doing what a line says.

use http::Method;
use serde_json::{Value, json};

use super::command::Command;
use super::stage::{Host, Stage};
use crate::seed::Seed;
use crate::world::annotation::STOPS_AFTER;
use crate::world::cluster::Budget;

/// What a command leaves for later.
pub enum Later {
    /// Nothing.
    Nothing,
    /// These are let in again after this time.
    LetIn(std::time::Duration, Vec<String>),
}

/// Does something that takes no time. Commands that wait, look or plan are the runner's.
pub fn act(stage: &mut Stage, command: &Command) -> Result<Later, String> {
    match command {
        Command::Partition {
            node,
            time,
            coordinator_only,
        } => {
            host(stage, node)?;
            return Ok(apart(stage, stage.users_of(node, *coordinator_only), *time));
        }
        Command::ApiDown(time) => return Ok(apart(stage, stage.users(), *time)),
        Command::LetIn(users) => users
            .iter()
            .for_each(|user| stage.server.partition(user, false)),
        Command::Compact => stage.server.compact(),
        Command::CutWatches(node) => {
            let users = stage.users_of(node, true);
            users
                .iter()
                .for_each(|user| stage.server.cut_watches(Some(user)));
        }
        Command::Fault(rule) => {
            host(stage, &rule.node)?;
            stage.faults.add(rule.clone());
        }
        Command::BudgetsMayBreak => stage.checks.budgets_may_break = true,
        Command::Touch { .. }
        | Command::Remove { .. }
        | Command::Break { .. }
        | Command::Kill(_)
        | Command::Hold(_)
        | Command::Resume(_)
        | Command::PowerOff(_)
        | Command::PowerOn(_)
        | Command::Clock { .. }
        | Command::RebootCommand { .. } => on_host(stage, command)?,
        Command::PatchNode { .. }
        | Command::Request { .. }
        | Command::DeleteNode(_)
        | Command::Budget { .. }
        | Command::Pod { .. } => person(stage, command)?,
        Command::When(..)
        | Command::After(..)
        | Command::WaitUntil { .. }
        | Command::Run(_)
        | Command::Explain(_)
        | Command::Expect(_) => return Err("this cannot be done here".into()),
    }
    Ok(Later::Nothing)
}

fn apart(stage: &Stage, users: Vec<String>, time: std::time::Duration) -> Later {
    users
        .iter()
        .for_each(|user| stage.server.partition(user, true));
    Later::LetIn(time, users)
}

fn host<'a>(stage: &'a Stage, node: &str) -> Result<&'a Host, String> {
    stage
        .hosts
        .get(node)
        .ok_or_else(|| format!("there is no machine {node:?}"))
}

fn on_host(stage: &Stage, command: &Command) -> Result<(), String> {
    let coordinator = |node: &str| host(stage, node).map(|host| &host.coordinator);
    match command {
        Command::Touch { node, path, reason } => coordinator(node)?.disk.touch(path, reason),
        Command::Remove { node, path } => coordinator(node)?.disk.remove(path),
        Command::Break { node, path, why } => coordinator(node)?.disk.break_file(path, why),
        Command::Kill(node) => coordinator(node)?.kill(),
        Command::Hold(node) => coordinator(node)?.hold(),
        Command::Resume(node) => coordinator(node)?.start_again(),
        Command::RebootCommand { node, command } => coordinator(node)?.set_reboot_command(*command),
        Command::Clock { node, ahead } => stage.set_clock(node, *ahead),
        Command::PowerOff(node) => {
            coordinator(node)?;
            stage
                .cluster
                .kubelet(node)
                .ok_or("there is no machine")?
                .power_off();
        }
        Command::PowerOn(node) => {
            coordinator(node)?;
            // Nothing else has this revision: no boot id comes twice.
            let revision = stage.server.store().revision();
            let boot = Seed(revision).stream(&format!("power-on/{node}")).boot_id();
            stage
                .cluster
                .kubelet(node)
                .ok_or("there is no machine")?
                .power_on(boot);
        }
        _ => return Err("this is not done on a machine".into()),
    }
    Ok(())
}

fn person(stage: &Stage, command: &Command) -> Result<(), String> {
    let node_path = |node: &str| format!("/api/v1/nodes/{node}");
    let done = match command {
        Command::PatchNode { node, patch } => stage.person(Method::PATCH, &node_path(node), patch),
        Command::Request {
            node,
            reason,
            not_before,
        } => {
            let mut request = json!({ "reason": reason, "requester": "admin" });
            if let Some(time) = not_before {
                request["notBefore"] = json!(stage.time_in(*time).to_string());
            }
            let name = dogwatch_api::annotation::REBOOT_REQUESTED;
            let patch = json!({ "metadata": { "annotations": { name: request.to_string() } } });
            stage.person(Method::PATCH, &node_path(node), &patch)
        }
        Command::DeleteNode(node) => stage.person(Method::DELETE, &node_path(node), &Value::Null),
        Command::Budget { name, budget } => {
            let path = format!("/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}");
            stage.person(
                Method::PATCH,
                &path,
                &json!({ "spec": budget_spec(budget) }),
            )
        }
        Command::Pod {
            name,
            node,
            stops_after,
        } => {
            let pod = pod(name, node, *stops_after);
            stage.person(Method::POST, "/api/v1/namespaces/default/pods", &pod)
        }
        _ => return Err("this is not done by a person".into()),
    };
    done.map_err(|error| error.to_string())
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

fn pod(name: &str, node: &str, stops_after: std::time::Duration) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": { STOPS_AFTER: dogwatch_core::duration::format(stops_after) },
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "main", "image": "sim" }],
        },
    })
}
