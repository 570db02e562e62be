//! Completions of `kubectl dogwatch`: kubectl asks a program `kubectl_complete-dogwatch`.
//!
//! It is called with the words after `kubectl dogwatch`, the last being the one that is typed, and
//! answers with one word a line (a tab and a description behind it) and a last line `:4`, which keeps
//! the shell from offering files. Source: `kubectl plugin --help`, cobra's `__complete`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};

use crate::command::{RemedyKind, remedy_names};

/// The name under which kubectl looks for it.
const PROGRAM: &str = "kubectl_complete-dogwatch";
/// `ShellCompDirectiveNoFileComp`.
const NO_FILES: &str = ":4";
/// `ShellCompDirectiveDefault`: files, where a value may be one.
const FILES: &str = ":0";

/// Answers, if this process was started under kubectl's name for it.
pub fn as_plugin(words: &[OsString]) -> Option<ExitCode> {
    let program = Path::new(words.first()?).file_stem()?;
    if program != PROGRAM {
        return None;
    }
    let typed: Vec<&str> = words[1..].iter().filter_map(|word| word.to_str()).collect();
    let mut command = crate::args::command(words);
    command.build();
    let answer = match before_name(&command, &typed) {
        Some((prefix, names)) => {
            let names = names.look_up(context(&typed));
            let words = names
                .into_iter()
                .map(|name| (format!("{prefix}{name}"), None));
            lines(words.collect(), typed.last().unwrap_or(&""), NO_FILES)
        }
        None => answer(&command, &typed),
    };
    // Whoever asked and went away needs no answer.
    let _ = std::io::stdout().write_all(answer.as_bytes());
    Some(ExitCode::SUCCESS)
}

/// Whose names are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Hosts,
    Machines,
    Requests,
}

impl Names {
    fn look_up(self, context: Option<&str>) -> Vec<String> {
        match self {
            Names::Hosts => crate::command::host_names(context),
            Names::Machines => remedy_names(context, RemedyKind::Machine),
            Names::Requests => remedy_names(context, RemedyKind::Request),
        }
    }
}

/// What is explained by a name that is looked up, after its kind.
const EXPLAINED: [(&str, Names); 4] = [
    ("host/", Names::Hosts),
    ("machine/", Names::Machines),
    ("remediation/", Names::Requests),
    ("powerremediation/", Names::Requests),
];

/// What stands before a name that is typed now, and of what it is one.
fn before_name(root: &Command, typed: &[&str]) -> Option<(&'static str, Names)> {
    let (last, before) = typed.split_last()?;
    let mut command = root;
    let mut path = Vec::new();
    let mut pending = false;
    for word in before {
        if pending {
            pending = false;
        } else if word.starts_with('-') {
            pending = awaited(command, word).is_some();
        } else if let Some(found) = command.find_subcommand(word) {
            command = found;
            path.push(found.get_name());
        }
    }
    match path[..] {
        _ if pending || last.starts_with('-') => None,
        ["power", _] | ["check", "hosts"] | ["confirm-off"] => Some(("", Names::Hosts)),
        ["explain"] => EXPLAINED
            .into_iter()
            .find(|(kind, _)| last.starts_with(kind)),
        ["remediate"] if last.starts_with("machine/") => Some(("machine/", Names::Machines)),
        _ => None,
    }
}

/// The kubeconfig's context that was typed.
fn context<'a>(typed: &[&'a str]) -> Option<&'a str> {
    let flag = typed.iter().position(|word| *word == "--context")?;
    typed.get(flag + 1).copied()
}

fn answer(root: &Command, typed: &[&str]) -> String {
    let (last, before) = typed.split_last().unwrap_or((&"", &[]));
    let mut command = root;
    let mut pending = None;
    for word in before {
        match pending.take() {
            Some(_) => {}
            None if word.starts_with('-') => pending = awaited(command, word),
            None => command = command.find_subcommand(word).unwrap_or(command),
        }
    }
    if let Some(flag) = pending {
        return values(flag, last);
    }
    let words = if last.starts_with('-') {
        flags(command)
    } else {
        subcommands(command)
    };
    lines(words, last, NO_FILES)
}

/// The flag that this word is, if its value is the next word.
fn awaited<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let takes = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let called = |arg: &&Arg| {
        let long = word
            .strip_prefix("--")
            .is_some_and(|word| arg.get_long() == Some(word));
        long || arg
            .get_short()
            .is_some_and(|short| word == format!("-{short}"))
    };
    command.get_arguments().find(called).filter(takes)
}

fn values(flag: &Arg, typed: &str) -> String {
    let values = flag.get_possible_values();
    if values.is_empty() {
        return lines(Vec::new(), typed, FILES);
    }
    let words = values.iter().map(|value| {
        (
            value.get_name().to_owned(),
            value.get_help().map(ToString::to_string),
        )
    });
    lines(words.collect(), typed, NO_FILES)
}

type Word = (String, Option<String>);

fn flags(command: &Command) -> Vec<Word> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown
        .filter_map(|arg| {
            let help = arg.get_help().map(ToString::to_string);
            Some((format!("--{}", arg.get_long()?), help))
        })
        .collect()
}

/// Subcommands, and the values of an argument that has a fixed list of them.
fn subcommands(command: &Command) -> Vec<Word> {
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let names = shown.map(|one| {
        let about = one.get_about().map(ToString::to_string);
        (one.get_name().to_owned(), about)
    });
    let values = command.get_positionals().flat_map(Arg::get_possible_values);
    let values = values.map(|value| {
        let help = value.get_help().map(ToString::to_string);
        (value.get_name().to_owned(), help)
    });
    names.chain(values).collect()
}

fn lines(words: Vec<Word>, typed: &str, directive: &str) -> String {
    let matching = words
        .into_iter()
        .filter(|(word, _)| word.starts_with(typed));
    let mut text: String = matching
        .map(|(word, help)| match help {
            Some(help) => format!("{word}\t{}\n", help.lines().next().unwrap_or_default()),
            None => format!("{word}\n"),
        })
        .collect();
    text.push_str(directive);
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn complete(typed: &[&str]) -> Vec<String> {
        let mut command = crate::args::Args::command();
        command.build();
        let answer = answer(&command, typed);
        let first = |line: &str| line.split('\t').next().unwrap().to_owned();
        answer.lines().map(first).collect()
    }

    #[test]
    fn commands_flags_and_their_values_are_completed() {
        assert!(complete(&["roll"]).contains(&"rollout-restart".to_owned()));
        assert!(complete(&["rollout-restart", "--ti"]).contains(&"--timeout".to_owned()));
        assert_eq!(complete(&["status", "sch"]), ["schedules", ":4"]);
        assert_eq!(complete(&["status", "-o", "y"]), ["yaml", ":4"]);
        assert_eq!(complete(&["status", "--output", "js"]), ["json", ":4"]);
        assert_eq!(complete(&["--context", "x", "expl"]), ["explain", ":4"]);
        assert_eq!(complete(&["completions", "z"]), ["zsh", ":4"]);
        assert_eq!(complete(&["migrate", "kured", "-f", ""]), [":0"]);
        assert!(complete(&[]).contains(&"status".to_owned()));
        assert!(complete(&["power", ""]).contains(&"hold".to_owned()));
    }

    #[test]
    fn where_a_host_or_a_remediation_is_typed_its_name_is_looked_up_and_nowhere_else() {
        let mut command = crate::args::Args::command();
        command.build();
        for (typed, prefix) in [
            (&["power", "off", ""][..], Some(("", Names::Hosts))),
            (
                &["power", "hold", "--key", "k", "me"],
                Some(("", Names::Hosts)),
            ),
            (&["check", "hosts", "a/b", ""], Some(("", Names::Hosts))),
            (&["confirm-off", "me"], Some(("", Names::Hosts))),
            (&["confirm-off", "--reason", ""], None),
            (
                &["--context", "x", "explain", "host/"],
                Some(("host/", Names::Hosts)),
            ),
            (
                &["explain", "machine/a"],
                Some(("machine/", Names::Machines)),
            ),
            (
                &["explain", "remediation/"],
                Some(("remediation/", Names::Requests)),
            ),
            (
                &["remediate", "machine/"],
                Some(("machine/", Names::Machines)),
            ),
            (&["remediate", ""], None),
            (&["power", ""], None),
            (&["power", "hold", "--key", ""], None),
            (&["power", "off", "--"], None),
            (&["explain", "node/"], None),
            (&["status", ""], None),
        ] {
            assert_eq!(before_name(&command, typed), prefix, "{typed:?}");
        }
        assert_eq!(context(&["--context", "x", "power"]), Some("x"));
    }
}
