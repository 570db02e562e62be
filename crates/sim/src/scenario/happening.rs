//! What happens on a machine, to the cluster, or goes wrong: one line each.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::command::{Command, Deed, PrometheusChange, Trouble, Wish};
use super::words::Words;
use super::{controllers, faults, metal, policy};
use crate::api::EvictionPolicy;
use crate::host::{Alert, RebootCommand};
use crate::world::cluster::Budget;

const NODE: &str = "the node";
const PATH: &str = "the path";

/// What a line says that begins with `name`.
pub(super) fn happening(name: &str, words: &mut Words) -> Result<Command, String> {
    match name {
        "touch" | "remove" | "break" | "hold" | "resume" | "power-off" | "power-on" | "clock"
        | "reboot-command" => {
            let node = words.next(NODE)?;
            Ok(Command::OnHost {
                node,
                deed: deed(name, words)?,
            })
        }
        "kill" => kill(words),
        "request" | "cordon" | "uncordon" | "annotate" | "unannotate" | "label" | "delete"
        | "budget" | "eviction-policy" | "pod" | "policy" | "policies" | "abort" => {
            Ok(Command::Person(wish(name, words)?))
        }
        name if controllers::NAMES.contains(&name) => {
            Ok(Command::Controller(controllers::read(name, words)?))
        }
        name if metal::NAMES.contains(&name) => Ok(Command::Metal(metal::read(name, words)?)),
        "alert" | "prometheus" => Ok(Command::Prometheus(prometheus(name, words)?)),
        "run" if words.is_next("until") => {
            let time = words.next("the moment")?;
            Ok(Command::RunUntil(policy::moment(&time)?.timestamp()))
        }
        "run" => Ok(Command::Run(words.next_duration()?)),
        "explain" => Ok(Command::Explain(words.next(NODE)?)),
        "budgets" => {
            words.expect("may")?;
            words.expect("break")?;
            Ok(Command::BudgetsMayBreak)
        }
        _ => Ok(Command::Trouble(trouble(name, words)?)),
    }
}

fn deed(name: &str, words: &mut Words) -> Result<Deed, String> {
    Ok(match name {
        "touch" => Deed::Touch {
            path: words.next(PATH)?,
            reason: words.next("").unwrap_or_default(),
        },
        "remove" => Deed::Remove {
            path: words.next(PATH)?,
        },
        "break" => Deed::Break {
            path: words.next(PATH)?,
            why: words.next("why")?,
        },
        "hold" => Deed::Hold,
        "resume" => Deed::Resume,
        "power-off" => Deed::PowerOff,
        "power-on" => Deed::PowerOn,
        "clock" => Deed::Clock(clock(words)?),
        _ => Deed::RebootCommand(reboot_command(words)?),
    })
}

fn wish(name: &str, words: &mut Words) -> Result<Wish, String> {
    let cordon = |node, cordoned| Wish::PatchNode {
        node,
        patch: json!({ "spec": { "unschedulable": cordoned } }),
    };
    Ok(match name {
        "request" => Wish::Request {
            node: words.next(NODE)?,
            reason: words.option("reason").unwrap_or_default(),
            not_before: words.duration("not-before")?,
        },
        "cordon" => cordon(words.next(NODE)?, Some(true)),
        "uncordon" => cordon(words.next(NODE)?, None),
        "annotate" => metadata("annotations", words)?,
        "label" => metadata("labels", words)?,
        "unannotate" => {
            let (node, name) = (words.next(NODE)?, words.next("the annotation")?);
            patch(
                &node,
                json!({ "metadata": { "annotations": { name: null } } }),
            )
        }
        "delete" if words.is_next("pod") => Wish::DeletePod(words.next("the pod")?),
        "delete" if words.is_next("policy") => Wish::DeletePolicy(words.next("the policy")?),
        "delete" => {
            words.expect("node")?;
            Wish::DeleteNode(words.next(NODE)?)
        }
        "policy" => {
            let (name, patch) = policy::policy(words)?;
            Wish::Policy { name, patch }
        }
        "policies" if words.is_next("removed") => Wish::PoliciesInstalled(false),
        "policies" => {
            words.expect("installed")?;
            Wish::PoliciesInstalled(true)
        }
        "abort" => Wish::Abort {
            node: words.next(NODE)?,
            reason: words.option("reason").unwrap_or_default(),
        },
        "budget" => Wish::Budget {
            name: words.next("the budget's name")?,
            budget: budget_options(words)?,
        },
        "eviction-policy" => eviction_policy(words)?,
        _ => {
            let name = words.next("the pod's name")?;
            words.expect("on")?;
            let stops_after = words
                .duration("stops-after")?
                .unwrap_or(Duration::from_secs(1));
            Wish::Pod {
                name,
                node: words.next(NODE)?,
                stops_after,
                labels: words.read("labels", labels)?.unwrap_or_default(),
            }
        }
    })
}

fn eviction_policy(words: &mut Words) -> Result<Wish, String> {
    let name = words.next("the policy's name")?;
    if words.is_next("removed") {
        return Ok(Wish::AdmitEvictions(name));
    }
    words.expect("refuses")?;
    let pods = words.next("how the pods' names begin")?;
    let message = words.option("message").unwrap_or_else(|| "not yet".into());
    Ok(Wish::RefuseEvictions(EvictionPolicy {
        name,
        pods,
        message,
    }))
}

fn labels(word: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = word.split(',').map(|label| label.split_once('='));
    let pairs = pairs.map(|pair| pair.map(|(key, value)| (key.to_owned(), value.to_owned())));
    pairs
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{word:?} are no labels"))
}

fn prometheus(name: &str, words: &mut Words) -> Result<PrometheusChange, String> {
    if name == "alert" {
        let alert = words.next("the alert")?;
        let state = match words.next("fires, pends or ends")?.as_str() {
            "fires" => Some(Alert::Firing),
            "pends" => Some(Alert::Pending),
            "ends" => None,
            other => return Err(format!("{other:?} is none of fires, pends, ends")),
        };
        return Ok(PrometheusChange::Alert(alert, state));
    }
    match words.next("away, back or finds")?.as_str() {
        "away" => Ok(PrometheusChange::Away(true)),
        "back" => Ok(PrometheusChange::Away(false)),
        "finds" => {
            let (query, what) = (words.next("the query")?, words.next("what")?);
            let what = Some(what).filter(|what| what != "nothing");
            Ok(PrometheusChange::Found(query, what))
        }
        other => Err(format!("{other:?} is none of away, back, finds")),
    }
}

fn trouble(name: &str, words: &mut Words) -> Result<Trouble, String> {
    Ok(match name {
        "partition" => {
            let node = words.next(NODE)?;
            words.expect("for")?;
            Trouble::Partition {
                node,
                time: words.next_duration()?,
                coordinator_only: words.is_next("coordinator"),
            }
        }
        "api" => {
            words.expect("down")?;
            words.expect("for")?;
            Trouble::ApiDown(words.next_duration()?)
        }
        "compact" => Trouble::Compact,
        "cut-watches" => Trouble::CutWatches(words.next(NODE)?),
        _ => Trouble::Fault(faults::parse(name, words)?),
    })
}

fn metadata(field: &str, words: &mut Words) -> Result<Wish, String> {
    let node = words.next(NODE)?;
    let pair = words.rest().join(" ");
    let (name, value) = pair.split_once([' ', '=']).ok_or("a value is missing")?;
    let metadata = json!({ "metadata": { field: { name: value } } });
    Ok(patch(&node, metadata))
}

/// Of a Node, or of `host/NAME`.
fn patch(object: &str, patch: serde_json::Value) -> Wish {
    match object.strip_prefix("host/") {
        Some(host) => Wish::PatchHost {
            host: host.to_owned(),
            patch,
        },
        None => Wish::PatchNode {
            node: object.to_owned(),
            patch,
        },
    }
}

fn kill(words: &mut Words) -> Result<Command, String> {
    let node = words.next(NODE)?;
    if !words.is_next("at") {
        return Ok(Command::OnHost {
            node,
            deed: Deed::Kill,
        });
    }
    words.expect("call")?;
    let call = words.next("the call's number")?;
    let call = call
        .parse()
        .map_err(|_| format!("{call:?} is no call's number"))?;
    let after = words.is_next("after");
    if !after {
        words.expect("before")?;
    }
    Ok(Command::Trouble(Trouble::Fault(faults::Rule::kill(
        node, call, after,
    ))))
}

fn clock(words: &mut Words) -> Result<i64, String> {
    let text = words.next("+TIME or -TIME")?;
    let (sign, time) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(time), _) => (1, time),
        (None, Some(time)) => (-1, time),
        (None, None) => return Err(format!("{text:?} is neither +TIME nor -TIME")),
    };
    let time = dogwatch_core::duration::parse(time).map_err(|error| error.to_string())?;
    let seconds = i64::try_from(time.as_secs()).map_err(|error| error.to_string())?;
    Ok(sign * seconds)
}

fn reboot_command(words: &mut Words) -> Result<RebootCommand, String> {
    let kind = words.next("what it does")?;
    match kind.as_str() {
        "works" => Ok(RebootCommand::Works {
            after: words.duration("after")?.unwrap_or(Duration::from_secs(2)),
        }),
        "missing" => Ok(RebootCommand::Missing),
        "fails" => Ok(RebootCommand::Fails),
        "nothing" => Ok(RebootCommand::DoesNothing),
        "hangs" => Ok(RebootCommand::Hangs),
        other => Err(format!("{other:?} is nothing that a reboot command does")),
    }
}

fn budget_options(words: &mut Words) -> Result<Budget, String> {
    match (words.option("min"), words.option("max")) {
        (Some(min), None) => Ok(Budget::MinAvailable(min)),
        (None, Some(max)) => Ok(Budget::MaxUnavailable(max)),
        (Some(_), Some(_)) | (None, None) => Err("either min=N or max=N".into()),
    }
}
