//! The commands that keys propose: each is a command line that a person could type.

use dogwatch_core::report::FleetView;

use crate::pane::PaneRow;
use crate::state::TopState;

/// What the program does after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopAction {
    Redraw,
    Quit,
    /// Runs `dogwatch` with these words, and shows what it prints under this title.
    Run {
        title: String,
        words: Vec<String>,
    },
}

/// A command that waits for a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCommand {
    /// The words after the program's name.
    pub words: Vec<String>,
    /// What it does, a sentence.
    pub effect: String,
    /// The node that `dogwatch check` can look at first.
    pub checkable_node: Option<String>,
}

impl ProposedCommand {
    /// The line that a person would type.
    pub fn command_line(&self, state: &TopState) -> String {
        format_command_line(&state.program, &self.words)
    }
}

pub fn format_command_line(program: &str, words: &[String]) -> String {
    let words = words.iter().map(|word| quote_word(word));
    std::iter::once(program.to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn quote_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn command_words(state: &TopState, words: &[&str]) -> Vec<String> {
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain(state.cluster_flags.iter().cloned()).collect()
}

pub fn run_command(state: &TopState, words: &[&str]) -> TopAction {
    let words = command_words(state, words);
    TopAction::Run {
        title: format_command_line(&state.program, &words),
        words,
    }
}

/// A sentence says why there is no command.
pub fn propose_reboot(state: &TopState, row: PaneRow<'_>) -> Result<ProposedCommand, String> {
    let node = row.node_name().ok_or("choose a node first")?;
    let reason = "asked for in dogwatch top";
    Ok(ProposedCommand {
        words: command_words(state, &["reboot", node, "--reason", reason]),
        effect: format!("Requests a reboot of {node}; it waits for its turn, window and budget."),
        checkable_node: Some(node.to_owned()),
    })
}

pub fn propose_abort(
    state: &TopState,
    view: &FleetView,
    row: PaneRow<'_>,
) -> Result<ProposedCommand, String> {
    let node = row.node_name().ok_or("choose a node first")?;
    let out = view.out.iter().find(|out| out.name == node);
    let mut words = vec!["abort", node, "--no-wait"];
    let effect = match out.map(|out| out.phase) {
        Some("rebooting") => {
            words.push("--yes");
            format!(
                "{node} is rebooting. The reboot command may have started already, and an abort cannot stop it. Stops waiting for the reboot, uncordons the node and releases its lock."
            )
        }
        Some(_) => format!("Undoes what was done to {node} for its reboot, and releases its lock."),
        None => format!("Takes back the reboot of {node}; its place in the queue is lost."),
    };
    Ok(ProposedCommand {
        words: command_words(state, &words),
        effect,
        checkable_node: None,
    })
}

/// Pauses the policy of the row's group, or resumes it if it is paused.
pub fn propose_pause(
    state: &TopState,
    view: &FleetView,
    row: PaneRow<'_>,
) -> Result<ProposedCommand, String> {
    let group = row.group_name().ok_or("choose a node or a group first")?;
    let policy = view.policies.iter().find(|policy| policy.name == group);
    let policy = policy.ok_or_else(|| {
        format!(
            "group {group} has no RebootPolicy; {} pause --all pauses every node",
            state.program
        )
    })?;
    let (words, effect) = if policy.paused.is_some() {
        let effect = format!("Lets the nodes of policy {group} reboot again.");
        (vec!["resume", group], effect)
    } else {
        let effect = format!(
            "No reboot of the nodes of policy {group} begins any more, and a drain under way is undone."
        );
        let reason = "paused in dogwatch top";
        (vec!["pause", group, "--reason", reason], effect)
    };
    Ok(ProposedCommand {
        words: command_words(state, &words),
        effect,
        checkable_node: None,
    })
}
