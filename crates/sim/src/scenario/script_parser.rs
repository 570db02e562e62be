//! Parses a script.

use super::command::{ScenarioSetup, ScriptCommand, ScriptLine, UserCommand, ViewCommand};
use super::command_parser::parse_cluster_command;
use super::condition_parser;
use super::line_forms::LINE_FORMS;
use super::line_words::{LineWords, split_words};
use super::setup;

/// A line that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {what} in {text:?}\nthe commands are:\n{forms}")]
pub struct ScriptError {
    /// Line number, from 1.
    pub number: usize,
    pub text: String,
    pub what: String,
    forms: String,
}

#[derive(Debug, Clone)]
pub struct ParsedScript {
    pub setup: ScenarioSetup,
    pub lines: Vec<ScriptLine>,
}

/// Parses a script without `each`.
pub fn parse_script(text: &str) -> Result<ParsedScript, ScriptError> {
    let mut script = ParsedScript {
        setup: ScenarioSetup::default(),
        lines: Vec::new(),
    };
    let mut started = false;
    for (number, text) in command_lines(text) {
        let bad = |what: String| line_error(number, text, what);
        let words = split_words(text).map_err(bad)?;
        let name = words.first().map(String::as_str).unwrap_or_default();
        match name {
            "start" => started = true,
            "cluster" | "workload" | "config" | "node" | "host" | "machine" | "remediations"
            | "node-reboots" | "schedules"
                if started =>
            {
                return Err(bad(format!("{name:?} must come before start")));
            }
            name if !started && setup::SETUP_COMMANDS.contains(&name) => {
                setup::parse_setup_line(&mut script.setup, words).map_err(bad)?;
            }
            _ if !started => {
                return Err(bad(format!(
                    "{name:?} is not a command, or must come after start"
                )));
            }
            _ => script.lines.push(parse_line(number, text).map_err(bad)?),
        }
    }
    if !started {
        return Err(line_error(
            text.lines().count(),
            "",
            "start is missing".into(),
        ));
    }
    Ok(script)
}

/// The lines that are neither empty nor comments, with their numbers.
pub fn command_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(at, line)| (at + 1, line))
}

pub(super) fn line_error(number: usize, text: &str, what: String) -> ScriptError {
    let word = text.split_whitespace().next().unwrap_or_default();
    let near: Vec<&str> = LINE_FORMS
        .lines()
        .filter(|form| {
            form.split(' ')
                .next()
                .is_some_and(|names| names.split('|').any(|name| name == word))
        })
        .collect();
    let forms = if near.is_empty() {
        LINE_FORMS.to_owned()
    } else {
        near.join("\n")
    };
    ScriptError {
        number,
        text: text.to_owned(),
        what,
        forms,
    }
}

fn parse_line(number: usize, text: &str) -> Result<ScriptLine, String> {
    Ok(ScriptLine {
        number,
        text: text.to_owned(),
        command: parse_command(number, text)?,
    })
}

/// `when CONDITION: COMMAND`, `after TIME: COMMAND` and `unless CONDITION: COMMAND`.
fn parse_prefixed(number: usize, text: &str) -> Result<(String, Box<ScriptLine>), String> {
    let (first, then) = text
        .split_once(": ")
        .ok_or("a colon and a command are missing")?;
    Ok((first.to_owned(), Box::new(parse_line(number, then.trim())?)))
}

fn parse_command(number: usize, text: &str) -> Result<ScriptCommand, String> {
    let mut all = split_words(text)?;
    let name = if all.is_empty() {
        String::new()
    } else {
        all.remove(0)
    };
    match name.as_str() {
        "when" | "unless" => {
            let (first, then) = parse_prefixed(number, text)?;
            let condition = condition_parser::parse_condition(&split_words(&first)?[1..])?;
            let command = match name.as_str() {
                "when" => ScriptCommand::When,
                _ => ScriptCommand::Unless,
            };
            return Ok(command(condition, then));
        }
        "after" => {
            let (first, then) = parse_prefixed(number, text)?;
            return Ok(ScriptCommand::After(
                LineWords::new(split_words(&first)?[1..].to_vec()).next_duration()?,
                then,
            ));
        }
        "expect" if all.first().is_some_and(|word| word == "explain") => {
            return parse_expected_explanation(&all);
        }
        "expect"
            if all
                .first()
                .is_some_and(|word| word == "view" || word == "estimate") =>
        {
            return parse_expected_view(&all).map(ScriptCommand::View);
        }
        "note" if all == ["estimate"] => {
            return Ok(ScriptCommand::View(ViewCommand::NoteEstimate));
        }
        "view" if all.is_empty() => return Ok(ScriptCommand::View(ViewCommand::Show)),
        "expect" => {
            return Ok(ScriptCommand::Expect(condition_parser::parse_condition(
                &all,
            )?));
        }
        "policy-json" => return parse_policy_json(text),
        "wait" => return parse_wait(&all),
        "run" if all.get(1).is_some_and(|word| word == "or") => return parse_run_or_until(&all),
        _ => {}
    }
    let mut words = LineWords::new(all);
    let command = parse_cluster_command(&name, &mut words)?;
    words.expect_end()?;
    Ok(command)
}

fn parse_expected_explanation(words: &[String]) -> Result<ScriptCommand, String> {
    let [_, node, contains, text] = words else {
        return Err("write: expect explain NODE contains TEXT".into());
    };
    if contains != "contains" {
        return Err("\"contains\" is missing".into());
    }
    let (node, text) = (node.clone(), text.clone());
    Ok(ScriptCommand::ExpectExplanation { node, text })
}

fn parse_expected_view(words: &[String]) -> Result<ViewCommand, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["view", "contains", text] => Ok(ViewCommand::Expect((*text).to_owned())),
        ["estimate", "within", percent] => {
            let number = percent.strip_suffix('%').and_then(|it| it.parse().ok());
            let number = number.ok_or_else(|| format!("{percent:?} is not a percentage"))?;
            Ok(ViewCommand::ExpectEstimate(number))
        }
        _ => Err("write: expect view contains TEXT, or expect estimate within N%".into()),
    }
}

/// The JSON form of a policy, for fields and errors that the short form cannot express: all text
/// after the name.
fn parse_policy_json(text: &str) -> Result<ScriptCommand, String> {
    let mut parts = text.splitn(3, ' ').skip(1);
    let (name, json) = (parts.next(), parts.next());
    let (Some(name), Some(json)) = (name, json) else {
        return Err("the policy's name or its JSON is missing".into());
    };
    let patch = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let name = name.to_owned();
    Ok(ScriptCommand::User(UserCommand::Policy { name, patch }))
}

fn parse_wait(words: &[String]) -> Result<ScriptCommand, String> {
    let form = "write: wait until CONDITION at most TIME";
    let [until, condition @ .., at, most, time] = words else {
        return Err(form.into());
    };
    if until != "until" || at != "at" || most != "most" {
        return Err(form.into());
    }
    let at_most =
        dogwatch_core::duration::parse_duration(time).map_err(|error| error.to_string())?;
    Ok(ScriptCommand::WaitUntil {
        condition: condition_parser::parse_condition(condition)?,
        at_most,
    })
}

fn parse_run_or_until(words: &[String]) -> Result<ScriptCommand, String> {
    let form = "write: run TIME or until CONDITION";
    let [time, or, until, condition @ ..] = words else {
        return Err(form.into());
    };
    if or != "or" || until != "until" {
        return Err(form.into());
    }
    let time = dogwatch_core::duration::parse_duration(time).map_err(|error| error.to_string())?;
    let condition = condition_parser::parse_condition(condition)?;
    Ok(ScriptCommand::RunOrUntil(time, condition))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::condition::ScenarioCondition;
    use super::*;

    #[test]
    fn a_bad_line_is_named_with_what_could_be_written() {
        let error = parse_script("cluster nodes=2\nstart\n\n# a comment\npartition n1 during 3s\n")
            .unwrap_err();
        assert_eq!(error.number, 5);
        assert_eq!(
            error.to_string(),
            "line 5: \"for\" is missing in \"partition n1 during 3s\"\nthe commands are:\npartition NODE|CONTROLLER for TIME [coordinator]"
        );
    }

    #[test]
    fn an_unknown_command_is_answered_with_all_of_them() {
        let error = parse_script("start\nreebot n1\n").unwrap_err();
        assert!(
            error.to_string().contains("reboot-command NODE missing"),
            "{error}"
        );
    }

    #[test]
    fn every_form_that_is_offered_begins_with_a_command() {
        for form in LINE_FORMS.lines() {
            assert!(
                form.split(' ').next().is_some_and(|word| !word.is_empty()),
                "{form}"
            );
        }
    }

    #[test]
    fn a_command_that_waits_for_a_condition_is_read_whole() {
        let script =
            parse_script("start\nwhen n1 phase=draining: kill n1\nwait until clean at most 30m\nrun 5m or until clean\nunless clean: kill n1\n")
                .unwrap();
        assert!(matches!(script.lines[0].command, ScriptCommand::When(..)));
        assert!(
            matches!(script.lines[1].command, ScriptCommand::WaitUntil { at_most, .. } if at_most == Duration::from_mins(30))
        );
        assert!(
            matches!(&script.lines[2].command, ScriptCommand::RunOrUntil(time, ScenarioCondition::Clean) if *time == Duration::from_mins(5))
        );
        assert!(
            matches!(&script.lines[3].command, ScriptCommand::Unless(ScenarioCondition::Clean, then) if then.text == "kill n1")
        );
    }
}
