//! From a script's text to what it says.

use std::time::Duration;

use dogwatch_core::limit::Limit;
use dogwatch_core::reboot::{Config, OnGateTimeout, OnTimeout};
use serde_json::json;

use super::command::{Command, Line, Setup};
use super::condition;
use super::faults;
use super::words::{Words, split};
use crate::host::RebootCommand;
use crate::seed::Seed;
use crate::world::cluster::{Budget, Workload, WorkloadKind};

/// Every form that a line can have.
const FORMS: &str = "\
each NAME=A,B,C NAME=1..9
cluster nodes=N control-plane=N seed=N boot=TIME ready-after=TIME
workload NAME replicas=N|kind=daemonset stops-after=TIME starts-after=TIME grace=TIME pdb=min:N|max:N [volume] [apart]
config max-unavailable=N|N% drain-timeout=TIME on-drain-timeout=abort|delete|force settle=TIME reboot-timeout=TIME reboot-attempts=N gate-timeout=TIME on-gate-timeout=keep|release volume-detach-timeout=TIME
start
touch NODE PATH [REASON]
remove NODE PATH
break NODE PATH WHY
request NODE [reason=TEXT] [not-before=TIME]
cordon NODE
uncordon NODE
annotate NODE NAME VALUE
label NODE NAME VALUE
delete node NODE
kill NODE [at call N before|after]
hold NODE
resume NODE
power-off NODE
power-on NODE
when CONDITION: COMMAND
after TIME: COMMAND
partition NODE for TIME [coordinator]
api down for TIME
compact
cut-watches NODE
lose|lose-answer|duplicate|delay|delay-answer|refuse next [N] VERB RESOURCE of NODE [by=TIME] [code=N]
clock NODE +TIME|-TIME
reboot-command NODE missing|fails|nothing|hangs|works [after=TIME]
budget NAME min=N|max=N
pod NAME on NODE [stops-after=TIME]
budgets may break
wait until CONDITION at most TIME
run TIME
explain NODE
expect CONDITION";

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {what} in {text:?}\nwhat can be written:\n{forms}")]
pub struct BadLine {
    /// Its number, from 1.
    pub number: usize,
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub what: String,
    forms: String,
}

/// A script that was read.
#[derive(Debug, Clone)]
pub struct Script {
    /// What there is.
    pub setup: Setup,
    /// What happens.
    pub lines: Vec<Line>,
}

/// Reads a script without `each`.
pub fn parse(text: &str) -> Result<Script, BadLine> {
    let mut script = Script {
        setup: Setup::default(),
        lines: Vec::new(),
    };
    let mut started = false;
    for (number, text) in commands(text) {
        let bad = |what: String| bad(number, text, what);
        let words = split(text).map_err(bad)?;
        let name = words.first().map(String::as_str).unwrap_or_default();
        match name {
            "start" => started = true,
            "cluster" | "workload" | "config" if started => {
                return Err(bad(format!("{name:?} stands before start")));
            }
            "cluster" | "workload" | "config" => setup(&mut script.setup, words).map_err(bad)?,
            _ if !started => {
                return Err(bad(format!(
                    "{name:?} stands after start, or is no command"
                )));
            }
            _ => script.lines.push(line(number, text).map_err(bad)?),
        }
    }
    if !started {
        return Err(bad(text.lines().count(), "", "start is missing".into()));
    }
    Ok(script)
}

/// The lines that say something, with their numbers.
pub fn commands(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(at, line)| (at + 1, line))
}

pub(super) fn bad(number: usize, text: &str, what: String) -> BadLine {
    let word = text.split_whitespace().next().unwrap_or_default();
    let near: Vec<&str> = FORMS
        .lines()
        .filter(|form| {
            form.split(' ')
                .next()
                .is_some_and(|names| names.split('|').any(|name| name == word))
        })
        .collect();
    let forms = if near.is_empty() {
        FORMS.to_owned()
    } else {
        near.join("\n")
    };
    BadLine {
        number,
        text: text.to_owned(),
        what,
        forms,
    }
}

fn line(number: usize, text: &str) -> Result<Line, String> {
    Ok(Line {
        number,
        text: text.to_owned(),
        command: command(number, text)?,
    })
}

/// `when CONDITION: COMMAND` and `after TIME: COMMAND`.
fn prefixed(number: usize, text: &str) -> Result<(String, Box<Line>), String> {
    let (first, then) = text
        .split_once(": ")
        .ok_or("a colon and a command are missing")?;
    Ok((first.to_owned(), Box::new(line(number, then.trim())?)))
}

fn command(number: usize, text: &str) -> Result<Command, String> {
    let mut all = split(text)?;
    let name = if all.is_empty() {
        String::new()
    } else {
        all.remove(0)
    };
    match name.as_str() {
        "when" => {
            let (first, then) = prefixed(number, text)?;
            return Ok(Command::When(condition::parse(&split(&first)?[1..])?, then));
        }
        "after" => {
            let (first, then) = prefixed(number, text)?;
            return Ok(Command::After(
                Words::new(split(&first)?[1..].to_vec()).next_duration()?,
                then,
            ));
        }
        "expect" => return Ok(Command::Expect(condition::parse(&all)?)),
        "wait" => return wait(&all),
        _ => {}
    }
    let mut words = Words::new(all);
    let command = happening(&name, &mut words)?;
    words.end()?;
    Ok(command)
}

fn wait(words: &[String]) -> Result<Command, String> {
    let form = "wait until CONDITION at most TIME is the form";
    let [until, condition @ .., at, most, time] = words else {
        return Err(form.into());
    };
    if until != "until" || at != "at" || most != "most" {
        return Err(form.into());
    }
    let at_most = dogwatch_core::duration::parse(time).map_err(|error| error.to_string())?;
    Ok(Command::WaitUntil {
        condition: condition::parse(condition)?,
        at_most,
    })
}

fn happening(name: &str, words: &mut Words) -> Result<Command, String> {
    const NODE: &str = "the node";
    Ok(match name {
        "touch" => Command::Touch {
            node: words.next(NODE)?,
            path: words.next("the path")?,
            reason: words.next("").unwrap_or_default(),
        },
        "remove" => Command::Remove {
            node: words.next(NODE)?,
            path: words.next("the path")?,
        },
        "break" => Command::Break {
            node: words.next(NODE)?,
            path: words.next("the path")?,
            why: words.next("why")?,
        },
        "request" => Command::Request {
            node: words.next(NODE)?,
            reason: words.option("reason").unwrap_or_default(),
            not_before: words.duration("not-before")?,
        },
        "cordon" => Command::PatchNode {
            node: words.next(NODE)?,
            patch: json!({ "spec": { "unschedulable": true } }),
        },
        "uncordon" => Command::PatchNode {
            node: words.next(NODE)?,
            patch: json!({ "spec": { "unschedulable": null } }),
        },
        "annotate" => metadata("annotations", words)?,
        "label" => metadata("labels", words)?,
        "delete" => {
            words.expect("node")?;
            Command::DeleteNode(words.next(NODE)?)
        }
        "kill" => kill(words)?,
        "hold" => Command::Hold(words.next(NODE)?),
        "resume" => Command::Resume(words.next(NODE)?),
        "power-off" => Command::PowerOff(words.next(NODE)?),
        "power-on" => Command::PowerOn(words.next(NODE)?),
        "compact" => Command::Compact,
        "cut-watches" => Command::CutWatches(words.next(NODE)?),
        "clock" => clock(words)?,
        "reboot-command" => Command::RebootCommand {
            node: words.next(NODE)?,
            command: reboot_command(words)?,
        },
        "run" => Command::Run(words.next_duration()?),
        "explain" => Command::Explain(words.next(NODE)?),
        _ => return trouble(name, words),
    })
}

fn trouble(name: &str, words: &mut Words) -> Result<Command, String> {
    Ok(match name {
        "partition" => {
            let node = words.next("the node")?;
            words.expect("for")?;
            Command::Partition {
                node,
                time: words.next_duration()?,
                coordinator_only: words.is_next("coordinator"),
            }
        }
        "api" => {
            words.expect("down")?;
            words.expect("for")?;
            Command::ApiDown(words.next_duration()?)
        }
        "budget" => Command::Budget {
            name: words.next("the budget's name")?,
            budget: budget_options(words)?,
        },
        "budgets" => {
            words.expect("may")?;
            words.expect("break")?;
            Command::BudgetsMayBreak
        }
        "pod" => {
            let pod = words.next("the pod's name")?;
            words.expect("on")?;
            let stops_after = words
                .duration("stops-after")?
                .unwrap_or(Duration::from_secs(1));
            Command::Pod {
                name: pod,
                node: words.next("the node")?,
                stops_after,
            }
        }
        _ => Command::Fault(faults::parse(name, words)?),
    })
}

fn metadata(field: &str, words: &mut Words) -> Result<Command, String> {
    let node = words.next("the node")?;
    let pair = words.rest().join(" ");
    let (name, value) = pair.split_once([' ', '=']).ok_or("a value is missing")?;
    Ok(Command::PatchNode {
        node,
        patch: json!({ "metadata": { field: { name: value } } }),
    })
}

fn kill(words: &mut Words) -> Result<Command, String> {
    let node = words.next("the node")?;
    if !words.is_next("at") {
        return Ok(Command::Kill(node));
    }
    words.expect("call")?;
    let call = words
        .next("the call's number")?
        .parse()
        .map_err(|_| "the call's number is none")?;
    let after = words.is_next("after");
    if !after {
        words.expect("before")?;
    }
    Ok(Command::Fault(faults::Rule::kill(node, call, after)))
}

fn clock(words: &mut Words) -> Result<Command, String> {
    let node = words.next("the node")?;
    let text = words.next("+TIME or -TIME")?;
    let (sign, time) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(time), _) => (1, time),
        (None, Some(time)) => (-1, time),
        (None, None) => return Err(format!("{text:?} is neither +TIME nor -TIME")),
    };
    let time = dogwatch_core::duration::parse(time).map_err(|error| error.to_string())?;
    let seconds = i64::try_from(time.as_secs()).map_err(|error| error.to_string())?;
    Ok(Command::Clock {
        node,
        ahead: sign * seconds,
    })
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

fn setup(setup: &mut Setup, mut all: Vec<String>) -> Result<(), String> {
    let name = all.remove(0);
    let mut words = Words::new(all);
    match name.as_str() {
        "cluster" => cluster(setup, &mut words)?,
        "workload" => setup.cluster.workloads.push(workload(&mut words)?),
        _ => config(setup, &mut words)?,
    }
    words.end()
}

fn cluster(setup: &mut Setup, words: &mut Words) -> Result<(), String> {
    let spec = &mut setup.cluster;
    spec.nodes = words.number("nodes")?.unwrap_or(spec.nodes);
    spec.control_plane = words.number("control-plane")?.unwrap_or(spec.control_plane);
    spec.seed = words
        .read("seed", str::parse::<u64>)?
        .map_or(spec.seed, Seed);
    spec.reboot_takes = words.duration("boot")?.unwrap_or(spec.reboot_takes);
    spec.ready_after = words.duration("ready-after")?.unwrap_or(spec.ready_after);
    Ok(())
}

fn workload(words: &mut Words) -> Result<Workload, String> {
    let name = words.next("the workload's name")?;
    let replicas = words.number("replicas")?.unwrap_or(1);
    let kind = match words.option("kind").as_deref() {
        Some("daemonset") => WorkloadKind::DaemonSet,
        Some("deployment") => WorkloadKind::Deployment { replicas },
        None | Some("replicaset") => WorkloadKind::ReplicaSet { replicas },
        Some(other) => return Err(format!("{other:?} is no kind of workload here")),
    };
    let mut workload = Workload::new(kind, &name);
    workload.tolerates_all = kind == WorkloadKind::DaemonSet;
    workload.stops_after = words.duration("stops-after")?;
    workload.starts_after = words.duration("starts-after")?;
    workload.grace = words.duration("grace")?.unwrap_or(workload.grace);
    workload.budget = match words.option("pdb").as_deref().and_then(|pdb| {
        pdb.split_once(':')
            .map(|(rule, value)| (rule.to_owned(), value.to_owned()))
    }) {
        None => None,
        Some((rule, value)) if rule == "min" => Some(Budget::MinAvailable(value)),
        Some((rule, value)) if rule == "max" => Some(Budget::MaxUnavailable(value)),
        Some((rule, _)) => return Err(format!("pdb={rule}:… is neither min nor max")),
    };
    workload.volume = words.is_next("volume");
    workload.apart = words.is_next("apart");
    Ok(workload)
}

fn config(setup: &mut Setup, words: &mut Words) -> Result<(), String> {
    let config: &mut Config = &mut setup.config;
    if let Some(limit) = words.read("max-unavailable", str::parse::<Limit>)? {
        config.max_unavailable = limit;
        setup.max_out = limit.of(usize::try_from(setup.cluster.nodes).unwrap_or(usize::MAX));
    }
    let mut set = |name: &str, value: &mut Duration| -> Result<(), String> {
        *value = words.duration(name)?.unwrap_or(*value);
        Ok(())
    };
    set("drain-timeout", &mut config.drain_timeout)?;
    set("settle", &mut config.settle)?;
    set("reboot-timeout", &mut config.reboot_timeout)?;
    set("gate-timeout", &mut config.gate_timeout)?;
    set("volume-detach-timeout", &mut config.volume_detach_timeout)?;
    config.reboot_attempts = words
        .number("reboot-attempts")?
        .unwrap_or(config.reboot_attempts);
    config.on_drain_timeout = match words.option("on-drain-timeout").as_deref() {
        None => config.on_drain_timeout,
        Some("abort") => OnTimeout::Abort,
        Some("delete") => OnTimeout::Delete,
        Some("force") => OnTimeout::Force,
        Some(other) => {
            return Err(format!(
                "on-drain-timeout={other} is none of abort, delete, force"
            ));
        }
    };
    config.on_gate_timeout = match words.option("on-gate-timeout").as_deref() {
        None => config.on_gate_timeout,
        Some("keep") => OnGateTimeout::Keep,
        Some("release") => OnGateTimeout::Release,
        Some(other) => {
            return Err(format!(
                "on-gate-timeout={other} is neither keep nor release"
            ));
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_named_with_what_could_be_written() {
        let error =
            parse("cluster nodes=2\nstart\n\n# a comment\npartition n1 during 3s\n").unwrap_err();
        assert_eq!(error.number, 5);
        assert_eq!(
            error.to_string(),
            "line 5: \"for\" is missing in \"partition n1 during 3s\"\nwhat can be written:\npartition NODE for TIME [coordinator]"
        );
    }

    #[test]
    fn an_unknown_command_is_answered_with_all_of_them() {
        let error = parse("start\nreebot n1\n").unwrap_err();
        assert!(
            error.to_string().contains("reboot-command NODE missing"),
            "{error}"
        );
    }

    #[test]
    fn every_form_that_is_offered_begins_with_a_command() {
        for form in FORMS.lines() {
            assert!(
                form.split(' ').next().is_some_and(|word| !word.is_empty()),
                "{form}"
            );
        }
    }

    #[test]
    fn a_command_that_waits_for_a_condition_is_read_whole() {
        let script =
            parse("start\nwhen n1 phase=draining: kill n1\nwait until clean at most 30m\n")
                .unwrap();
        assert!(matches!(script.lines[0].command, Command::When(..)));
        assert!(
            matches!(script.lines[1].command, Command::WaitUntil { at_most, .. } if at_most == Duration::from_mins(30))
        );
    }
}
