//! Parses commands that act on a machine or on the cluster, and disruptions.

use std::collections::BTreeMap;
use std::time::Duration;

use dogwatch_kubesim::api::EvictionPolicy;
use dogwatch_kubesim::world::cluster::WorkloadBudget;
use serde_json::json;

use super::command::{
    ClusterDisruption, HostCommand, PrometheusChange, ScriptCommand, UserCommand,
};
use super::line_words::LineWords;
use super::{
    bare_metal_hosts, controllers, faults, node_facts, node_reboot_objects, perturbation, policy,
    remediation_objects, schedule_objects,
};
use crate::host::{AlertState, RebootCommand};

const NODE_WORD: &str = "the node";
const PATH_WORD: &str = "the path";

/// Parses a line that begins with `name`.
pub(super) fn parse_cluster_command(
    name: &str,
    words: &mut LineWords,
) -> Result<ScriptCommand, String> {
    match name {
        "touch" | "remove" | "break" | "hold" | "resume" | "power-off" | "power-on" | "clock"
        | "reboot-command" => {
            let node = words.next_word(NODE_WORD)?;
            Ok(ScriptCommand::OnHost {
                node,
                deed: parse_host_command(name, words)?,
            })
        }
        "kill" => parse_kill(words),
        "request" | "cordon" | "uncordon" | "annotate" | "unannotate" | "label" | "delete"
        | "budget" | "eviction-policy" | "pod" | "policy" | "policies" | "abort" | "patch"
        | "remediation" | "node-reboot" | "resume-rollout" | "schedule" => {
            Ok(ScriptCommand::User(parse_user_command(name, words)?))
        }
        name if node_facts::NODE_FACT_COMMANDS.contains(&name) => {
            let node = words.next_word(NODE_WORD)?;
            let fact = node_facts::parse_node_fact(name, words)?;
            Ok(ScriptCommand::User(UserCommand::NodeFact { node, fact }))
        }
        name if controllers::CONTROLLER_COMMANDS.contains(&name) => Ok(ScriptCommand::Controller(
            controllers::parse_controller_command(name, words)?,
        )),
        name if bare_metal_hosts::BARE_METAL_COMMANDS.contains(&name) => Ok(
            ScriptCommand::BareMetal(bare_metal_hosts::parse_bare_metal_command(name, words)?),
        ),
        "alert" | "prometheus" => Ok(ScriptCommand::Prometheus(parse_prometheus_change(
            name, words,
        )?)),
        "run" if words.take_if_next("until") => {
            let time = words.next_word("the moment")?;
            Ok(ScriptCommand::RunUntil(
                policy::parse_moment(&time)?.timestamp(),
            ))
        }
        "run" => Ok(ScriptCommand::Run(words.next_duration()?)),
        "explain" => Ok(ScriptCommand::Explain(words.next_word(NODE_WORD)?)),
        "budgets" => {
            words.expect_word("may")?;
            words.expect_word("break")?;
            Ok(ScriptCommand::BudgetsMayBreak)
        }
        _ => Ok(ScriptCommand::Disruption(parse_disruption(name, words)?)),
    }
}

fn parse_host_command(name: &str, words: &mut LineWords) -> Result<HostCommand, String> {
    Ok(match name {
        "touch" => HostCommand::Touch {
            path: words.next_word(PATH_WORD)?,
            reason: words.next_word("").unwrap_or_default(),
        },
        "remove" => HostCommand::Remove {
            path: words.next_word(PATH_WORD)?,
        },
        "break" => HostCommand::Break {
            path: words.next_word(PATH_WORD)?,
            why: words.next_word("why")?,
        },
        "hold" => HostCommand::Hold,
        "resume" => HostCommand::Resume,
        "power-off" => HostCommand::PowerOff,
        "power-on" => HostCommand::PowerOn,
        "clock" => HostCommand::Clock(parse_clock_skew(words)?),
        _ => HostCommand::RebootCommand(parse_reboot_command(words)?),
    })
}

fn parse_user_command(name: &str, words: &mut LineWords) -> Result<UserCommand, String> {
    let cordon = |node, cordoned| UserCommand::PatchNode {
        node,
        patch: json!({ "spec": { "unschedulable": cordoned } }),
    };
    Ok(match name {
        "request" => UserCommand::Request {
            node: words.next_word(NODE_WORD)?,
            reason: words.take_option("reason").unwrap_or_default(),
            not_before: words.duration_option("not-before")?,
            method: words.take_option("method"),
        },
        "cordon" => cordon(words.next_word(NODE_WORD)?, Some(true)),
        "uncordon" => cordon(words.next_word(NODE_WORD)?, None),
        "annotate" => parse_metadata_patch("annotations", words)?,
        "label" => parse_metadata_patch("labels", words)?,
        "unannotate" => {
            let (node, name) = (
                words.next_word(NODE_WORD)?,
                words.next_word("the annotation")?,
            );
            patch_command(
                &node,
                json!({ "metadata": { "annotations": { name: null } } }),
            )
        }
        "delete" => parse_deletion(words)?,
        "patch" => {
            let object = words.next_word(NODE_WORD)?;
            let patch = words.next_word("the JSON")?;
            let patch = serde_json::from_str(&patch).map_err(|error| error.to_string())?;
            patch_command(&object, patch)
        }
        "remediation" => remediation_objects::parse_remediation(words)?,
        "node-reboot" => node_reboot_objects::parse_node_reboot(words)?,
        "schedule" => schedule_objects::parse_schedule(words)?,
        "policy" => {
            let (name, patch) = policy::parse_policy(words)?;
            UserCommand::Policy { name, patch }
        }
        "resume-rollout" => UserCommand::ResumeRollout(words.next_word("the policy's name")?),
        "policies" if words.take_if_next("removed") => UserCommand::PoliciesInstalled(false),
        "policies" => {
            words.expect_word("installed")?;
            UserCommand::PoliciesInstalled(true)
        }
        "abort" => UserCommand::Abort {
            node: words.next_word(NODE_WORD)?,
            reason: words.take_option("reason").unwrap_or_default(),
        },
        "budget" => UserCommand::Budget {
            name: words.next_word("the budget's name")?,
            budget: parse_budget_options(words)?,
        },
        "eviction-policy" => parse_eviction_policy(words)?,
        _ => parse_pod(words)?,
    })
}

fn parse_pod(words: &mut LineWords) -> Result<UserCommand, String> {
    let name = words.next_word("the pod's name")?;
    if words.take_if_next("ends") {
        return Ok(UserCommand::EndPod(name));
    }
    words.expect_word("on")?;
    let stops_after = words
        .duration_option("stops-after")?
        .unwrap_or(Duration::from_secs(1));
    Ok(UserCommand::Pod {
        name,
        node: words.next_word(NODE_WORD)?,
        stops_after,
        labels: words
            .read_option("labels", parse_labels)?
            .unwrap_or_default(),
        annotations: words
            .read_option("annotations", parse_labels)?
            .unwrap_or_default(),
    })
}

fn parse_deletion(words: &mut LineWords) -> Result<UserCommand, String> {
    if words.take_if_next("pod") {
        return Ok(UserCommand::DeletePod(words.next_word("the pod")?));
    }
    if words.take_if_next("policy") {
        return Ok(UserCommand::DeletePolicy(words.next_word("the policy")?));
    }
    for kind in ["host", "machine", "remediation", "node-reboot", "schedule"] {
        if words.take_if_next(kind) {
            return delete_command(kind, words);
        }
    }
    words.expect_word("node")?;
    Ok(UserCommand::DeleteNode(words.next_word(NODE_WORD)?))
}

fn parse_eviction_policy(words: &mut LineWords) -> Result<UserCommand, String> {
    let name = words.next_word("the policy's name")?;
    if words.take_if_next("removed") {
        return Ok(UserCommand::AdmitEvictions(name));
    }
    words.expect_word("refuses")?;
    let pods = words.next_word("how the pods' names begin")?;
    let message = words
        .take_option("message")
        .unwrap_or_else(|| "not yet".into());
    Ok(UserCommand::RefuseEvictions(EvictionPolicy {
        name,
        pods,
        message,
    }))
}

pub(super) fn parse_labels(word: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = word.split(',').map(|label| label.split_once('='));
    let pairs = pairs.map(|pair| pair.map(|(key, value)| (key.to_owned(), value.to_owned())));
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{word:?} are not labels"))
}

fn parse_prometheus_change(name: &str, words: &mut LineWords) -> Result<PrometheusChange, String> {
    if name == "alert" {
        let alert = words.next_word("the alert")?;
        let state = match words.next_word("fires, pends or ends")?.as_str() {
            "fires" => Some(AlertState::Firing),
            "pends" => Some(AlertState::Pending),
            "ends" => None,
            other => {
                return Err(format!(
                    "{other:?} is not known: write fires, pends or ends"
                ));
            }
        };
        return Ok(PrometheusChange::Alert(alert, state));
    }
    match words.next_word("away, back or finds")?.as_str() {
        "away" => Ok(PrometheusChange::Away(true)),
        "back" => Ok(PrometheusChange::Away(false)),
        "finds" => {
            let (query, what) = (words.next_word("the query")?, words.next_word("what")?);
            let what = Some(what).filter(|what| what != "nothing");
            Ok(PrometheusChange::Found(query, what))
        }
        other => Err(format!("{other:?} is not known: write away, back or finds")),
    }
}

fn parse_disruption(name: &str, words: &mut LineWords) -> Result<ClusterDisruption, String> {
    Ok(match name {
        "partition" => {
            let node = words.next_word(NODE_WORD)?;
            words.expect_word("for")?;
            ClusterDisruption::Partition {
                node,
                time: words.next_duration()?,
                coordinator_only: words.take_if_next("coordinator"),
            }
        }
        "api" => {
            words.expect_word("down")?;
            words.expect_word("for")?;
            ClusterDisruption::ApiDown(words.next_duration()?)
        }
        "compact" => ClusterDisruption::Compact,
        "perturb" => ClusterDisruption::Perturb(perturbation::parse_perturbation(words)?),
        "cut-watches" => ClusterDisruption::CutWatches(words.next_word(NODE_WORD)?),
        _ => ClusterDisruption::Fault(faults::parse_fault_rule(name, words)?),
    })
}

fn parse_metadata_patch(field: &str, words: &mut LineWords) -> Result<UserCommand, String> {
    let node = words.next_word(NODE_WORD)?;
    let pair = words.take_rest().join(" ");
    let (name, value) = pair.split_once([' ', '=']).ok_or("a value is missing")?;
    let metadata = json!({ "metadata": { field: { name: value } } });
    Ok(patch_command(&node, metadata))
}

/// Patches a Node, or `host/NAME`, `machine/NAME`, `remediation/NAME`.
fn patch_command(object: &str, patch: serde_json::Value) -> UserCommand {
    if object.contains('/') {
        let path = remediation_objects::object_path(object);
        return UserCommand::PatchObject { path, patch };
    }
    UserCommand::PatchNode {
        node: object.to_owned(),
        patch,
    }
}

fn delete_command(kind: &str, words: &mut LineWords) -> Result<UserCommand, String> {
    let name = words.next_word("its name")?;
    let path = remediation_objects::object_path(&format!("{kind}/{name}"));
    Ok(UserCommand::DeleteObject(path))
}

fn parse_kill(words: &mut LineWords) -> Result<ScriptCommand, String> {
    let node = words.next_word(NODE_WORD)?;
    if !words.take_if_next("at") {
        return Ok(ScriptCommand::OnHost {
            node,
            deed: HostCommand::Kill,
        });
    }
    words.expect_word("call")?;
    let call = words.next_word("the call's number")?;
    let call = call
        .parse()
        .map_err(|_| format!("{call:?} is not the number of a call"))?;
    let after = words.take_if_next("after");
    if !after {
        words.expect_word("before")?;
    }
    Ok(ScriptCommand::Disruption(ClusterDisruption::Fault(
        faults::ScriptedFaultRule::kill_at_call(node, call, after),
    )))
}

fn parse_clock_skew(words: &mut LineWords) -> Result<i64, String> {
    let text = words.next_word("+TIME or -TIME")?;
    let (sign, time) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(time), _) => (1, time),
        (None, Some(time)) => (-1, time),
        (None, None) => return Err(format!("{text:?} is not a time: write +TIME or -TIME")),
    };
    let time = dogwatch_core::duration::parse_duration(time).map_err(|error| error.to_string())?;
    let seconds = i64::try_from(time.as_secs()).map_err(|error| error.to_string())?;
    Ok(sign * seconds)
}

fn parse_reboot_command(words: &mut LineWords) -> Result<RebootCommand, String> {
    let kind = words.next_word("what it does")?;
    match kind.as_str() {
        "works" => Ok(RebootCommand::Works {
            after: words
                .duration_option("after")?
                .unwrap_or(Duration::from_secs(2)),
        }),
        "missing" => Ok(RebootCommand::Missing),
        "fails" => Ok(RebootCommand::Fails),
        "nothing" => Ok(RebootCommand::DoesNothing),
        "hangs" => Ok(RebootCommand::Hangs),
        "soft-reboots" => Ok(RebootCommand::SoftReboots),
        other => Err(format!("{other:?} is not a behaviour of a reboot command")),
    }
}

fn parse_budget_options(words: &mut LineWords) -> Result<WorkloadBudget, String> {
    match (words.take_option("min"), words.take_option("max")) {
        (Some(min), None) => Ok(WorkloadBudget::MinAvailable(min)),
        (None, Some(max)) => Ok(WorkloadBudget::MaxUnavailable(max)),
        (Some(_), Some(_)) | (None, None) => Err("min=N or max=N (only one of them)".into()),
    }
}
