//! From a script's text to what it says.

use std::time::Duration;

use serde_json::json;

use super::command::{Command, Deed, Line, Setup, Trouble, Wish};
use super::condition;
use super::faults;
use super::setup::setup;
use super::words::{Words, split};
use crate::host::RebootCommand;
use crate::world::cluster::Budget;

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

const NODE: &str = "the node";
const PATH: &str = "the path";

fn happening(name: &str, words: &mut Words) -> Result<Command, String> {
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
        "request" | "cordon" | "uncordon" | "annotate" | "label" | "delete" | "budget" | "pod" => {
            Ok(Command::Person(wish(name, words)?))
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
        "delete" => {
            words.expect("node")?;
            Wish::DeleteNode(words.next(NODE)?)
        }
        "budget" => Wish::Budget {
            name: words.next("the budget's name")?,
            budget: budget_options(words)?,
        },
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
            }
        }
    })
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
    Ok(Wish::PatchNode {
        node,
        patch: json!({ "metadata": { field: { name: value } } }),
    })
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
