//! From a script's text to what it says.

use super::command::{Command, Line, Setup, Wish};
use super::condition;
use super::forms::FORMS;
use super::happening::happening;
use super::setup;
use super::words::{Words, split};

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
            "cluster" | "workload" | "config" | "node" | "host" if started => {
                return Err(bad(format!("{name:?} stands before start")));
            }
            name if !started && setup::NAMES.contains(&name) => {
                setup::setup(&mut script.setup, words).map_err(bad)?;
            }
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
        "expect" if all.first().is_some_and(|word| word == "explain") => return explained(&all),
        "expect" => return Ok(Command::Expect(condition::parse(&all)?)),
        "policy-json" => return policy_json(text),
        "wait" => return wait(&all),
        _ => {}
    }
    let mut words = Words::new(all);
    let command = happening(&name, &mut words)?;
    words.end()?;
    Ok(command)
}

fn explained(words: &[String]) -> Result<Command, String> {
    let [_, node, contains, text] = words else {
        return Err("expect explain NODE contains TEXT is the form".into());
    };
    if contains != "contains" {
        return Err("\"contains\" is missing".into());
    }
    let (node, text) = (node.clone(), text.clone());
    Ok(Command::Explained { node, text })
}

/// What the short words cannot say, or must not: whatever stands after the name.
fn policy_json(text: &str) -> Result<Command, String> {
    let mut parts = text.splitn(3, ' ').skip(1);
    let (name, json) = (parts.next(), parts.next());
    let (Some(name), Some(json)) = (name, json) else {
        return Err("the policy's name or its JSON is missing".into());
    };
    let patch = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let name = name.to_owned();
    Ok(Command::Person(Wish::Policy { name, patch }))
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bad_line_is_named_with_what_could_be_written() {
        let error =
            parse("cluster nodes=2\nstart\n\n# a comment\npartition n1 during 3s\n").unwrap_err();
        assert_eq!(error.number, 5);
        assert_eq!(
            error.to_string(),
            "line 5: \"for\" is missing in \"partition n1 during 3s\"\nwhat can be written:\npartition NODE|CONTROLLER for TIME [coordinator]"
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
