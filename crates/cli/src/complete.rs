//! Completes `kubectl dogwatch`: kubectl calls a program `kubectl_complete-dogwatch`.
//!
//! Its arguments are the words after `kubectl dogwatch`; the last one is being typed. It answers
//! with one word a line (with a tab and a description) and a last line `:4`, which keeps the shell
//! from offering files. Source: `kubectl plugin --help`, cobra's `__complete`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, Command};
use dogwatch_k8s::fleet::NodeRebootsFound;

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::resource::{ObjectKind, is_node_prefix, is_node_reboot_prefix, list_object_names};

/// The name under which kubectl looks for the completer.
const PLUGIN_COMPLETER_NAME: &str = "kubectl_complete-dogwatch";
/// How long a person who pressed Tab has to wait at most.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(2);
/// `ShellCompDirectiveNoFileComp`.
const NO_FILES_DIRECTIVE: &str = ":4";
/// `ShellCompDirectiveDefault`: offers files where a value may be one.
const FILES_DIRECTIVE: &str = ":0";

/// What a name that is being typed belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedKind {
    Node,
    NodeReboot,
    Object(ObjectKind),
}

/// Prints completions if this process was started under `PLUGIN_COMPLETER_NAME`.
pub fn complete_as_plugin(words: &[OsString]) -> Option<ExitCode> {
    let program = Path::new(words.first()?).file_stem()?;
    if program != PLUGIN_COMPLETER_NAME {
        return None;
    }
    let typed: Vec<&str> = words[1..].iter().filter_map(|word| word.to_str()).collect();
    let mut command = crate::args::build_clap_command(words);
    command.build();
    let answer = match find_name_prefix(&command, &typed) {
        Some((prefix, kind)) => {
            let names = look_up_names(kind, find_context(&typed)).into_iter();
            let words = names.map(|name| (format!("{prefix}{name}"), None));
            format_completions(
                words.collect(),
                typed.last().unwrap_or(&""),
                NO_FILES_DIRECTIVE,
            )
        }
        None => complete_words(&command, &typed),
    };
    // A write error means that the shell no longer waits for the answer.
    let _ = std::io::stdout().write_all(answer.as_bytes());
    Some(ExitCode::SUCCESS)
}

/// The names of all objects of the kind; empty when they cannot be read within
/// `COMPLETION_TIMEOUT`.
fn look_up_names(kind: NamedKind, context: Option<&str>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let cluster = ClusterArgs {
        namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
        namespace_given: false,
        context: context.map(str::to_owned),
        given_connection: None,
    };
    let look = async {
        match ConnectedCluster::connect_to(&cluster).await {
            Ok(connected) => list_names(&connected, kind).await,
            Err(_) => Vec::new(),
        }
    };
    let found = runtime.block_on(async { tokio::time::timeout(COMPLETION_TIMEOUT, look).await });
    found.unwrap_or_default()
}

async fn list_names(connected: &ConnectedCluster, kind: NamedKind) -> Vec<String> {
    let fleet = &connected.fleet;
    match kind {
        NamedKind::Object(kind) => list_object_names(connected, kind).await,
        NamedKind::Node => {
            let names = fleet.list_node_names(None).await.unwrap_or_default();
            names.iter().map(ToString::to_string).collect()
        }
        NamedKind::NodeReboot => match fleet.list_node_reboots().await {
            Ok(NodeRebootsFound::There(all)) => all.into_iter().map(|one| one.name).collect(),
            Ok(NodeRebootsFound::NoKind) | Err(_) => Vec::new(),
        },
    }
}

/// The prefix before the name that is being typed, and the kind of that name. The value name of a
/// positional argument tells which kinds it takes.
fn find_name_prefix<'a>(root: &Command, typed: &[&'a str]) -> Option<(&'a str, NamedKind)> {
    let (last, before) = typed.split_last()?;
    let (command, pending) = find_command(root, before);
    if pending.is_some() || last.starts_with('-') {
        return None;
    }
    let positional = command.get_positionals().next()?;
    let mut forms = positional.get_value_names()?.first()?.split('|');
    forms.find_map(|form| prefix_in_form(form, last))
}

/// The same for one of the forms that the argument has.
fn prefix_in_form<'a>(form: &str, typed: &'a str) -> Option<(&'a str, NamedKind)> {
    let slash = typed.find('/').map_or(0, |at| at + 1);
    let prefix = &typed[..slash];
    match form {
        "NODE" | "node/NAME" => {
            let is_node = prefix.is_empty() || is_node_prefix(prefix);
            return is_node.then_some((prefix, NamedKind::Node));
        }
        "nodereboot/NAME" => {
            let is_reboot = is_node_reboot_prefix(prefix);
            return is_reboot.then_some((prefix, NamedKind::NodeReboot));
        }
        _ => {}
    }
    let object = || ObjectKind::split_prefix(typed).map(|(kind, _)| (prefix, kind));
    let found = match form.strip_suffix("NAMESPACE/NAME")? {
        "" => Some(("", ObjectKind::Host)),
        "KIND/" => object(),
        word => object().filter(|(prefix, _)| *prefix == word),
    };
    found.map(|(prefix, kind)| (prefix, NamedKind::Object(kind)))
}

/// The command that these words name, and the flag that still waits for its value.
fn find_command<'a>(root: &'a Command, words: &[&str]) -> (&'a Command, Option<&'a Arg>) {
    let mut command = root;
    let mut pending = None;
    for word in words {
        match pending.take() {
            Some(_) => {}
            None if word.starts_with('-') => pending = flag_awaiting_value(command, word),
            None => command = command.find_subcommand(word).unwrap_or(command),
        }
    }
    (command, pending)
}

/// The value of `--context` on the typed command line.
fn find_context<'a>(typed: &[&'a str]) -> Option<&'a str> {
    let flag = typed.iter().position(|word| *word == "--context")?;
    typed.get(flag + 1).copied()
}

fn complete_words(root: &Command, typed: &[&str]) -> String {
    let (last, before) = typed.split_last().unwrap_or((&"", &[]));
    let (command, pending) = find_command(root, before);
    if let Some(flag) = pending {
        return complete_values(flag, last);
    }
    let words = if last.starts_with('-') {
        list_flags(command)
    } else {
        list_subcommands(command)
    };
    format_completions(words, last, NO_FILES_DIRECTIVE)
}

/// The flag that this word names, if its value is the next word.
fn flag_awaiting_value<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
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

fn complete_values(flag: &Arg, typed: &str) -> String {
    let values = flag.get_possible_values();
    if values.is_empty() {
        return format_completions(Vec::new(), typed, FILES_DIRECTIVE);
    }
    let words = values.iter().map(|value| {
        (
            value.get_name().to_owned(),
            value.get_help().map(ToString::to_string),
        )
    });
    format_completions(words.collect(), typed, NO_FILES_DIRECTIVE)
}

type CompletionWord = (String, Option<String>);

fn list_flags(command: &Command) -> Vec<CompletionWord> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown
        .filter_map(|arg| {
            let help = arg.get_help().map(ToString::to_string);
            Some((format!("--{}", arg.get_long()?), help))
        })
        .collect()
}

/// Subcommands, and the fixed values of positional arguments.
fn list_subcommands(command: &Command) -> Vec<CompletionWord> {
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

fn format_completions(words: Vec<CompletionWord>, typed: &str, directive: &str) -> String {
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
        let answer = complete_words(&command, typed);
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
    fn where_a_name_is_typed_it_is_looked_up_and_nowhere_else() {
        let host = Some(("", NamedKind::Object(ObjectKind::Host)));
        let mut command = crate::args::Args::command();
        command.build();
        for (typed, prefix) in [
            (&["power", "off", ""][..], host),
            (&["power", "hold", "--key", "k", "me"], host),
            (&["check", "hosts", "a/b", ""], host),
            (&["confirm-off", "me"], host),
            (&["confirm-off", "--reason", ""], None),
            (
                &["explain", "schedule/m"],
                Some(("schedule/", NamedKind::Object(ObjectKind::Schedule))),
            ),
            (
                &["--context", "x", "explain", "host/"],
                Some(("host/", NamedKind::Object(ObjectKind::Host))),
            ),
            (
                &["explain", "machine/a"],
                Some(("machine/", NamedKind::Object(ObjectKind::Machine))),
            ),
            (
                &["explain", "remediation/"],
                Some(("remediation/", NamedKind::Object(ObjectKind::Remediation))),
            ),
            (
                &["remediate", "machine/"],
                Some(("machine/", NamedKind::Object(ObjectKind::Machine))),
            ),
            (&["remediate", ""], Some(("", NamedKind::Node))),
            (&["reboot", "n"], Some(("", NamedKind::Node))),
            (&["abort", "node/"], Some(("node/", NamedKind::Node))),
            (&["explain", "nr/a"], Some(("nr/", NamedKind::NodeReboot))),
            (&["abort", "nr/a"], None),
            (&["power", ""], None),
            (&["power", "hold", "--key", ""], None),
            (&["power", "off", "--"], None),
            (&["explain", "node/"], Some(("node/", NamedKind::Node))),
            (&["explain", "pod/"], None),
            (&["status", ""], None),
        ] {
            assert_eq!(find_name_prefix(&command, typed), prefix, "{typed:?}");
        }
        assert_eq!(find_context(&["--context", "x", "power"]), Some("x"));
    }
}
