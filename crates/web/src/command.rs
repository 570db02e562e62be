//! The command lines that the page runs.

use std::fmt;

use futures::future::BoxFuture;
use serde::Serialize;

/// What the page asks for. Each is one command line of `dogwatch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DashboardCommand {
    /// `dogwatch explain KIND/NAME` or `KIND/NAMESPACE/NAME`.
    Explain {
        subject: String,
    },
    /// `dogwatch check node/NAME`.
    Check {
        node: String,
    },
    Reboot {
        node: String,
        reason: String,
    },
    Hold {
        node: String,
        reason: String,
    },
    Release {
        node: String,
    },
    /// `although_rebooting`: the viewer knows that the machine may be going down already.
    Abort {
        node: String,
        reason: String,
        although_rebooting: bool,
    },
    Pause {
        policy: String,
        reason: String,
    },
    Resume {
        policy: String,
    },
}

impl DashboardCommand {
    /// The words after `dogwatch`. No value can be taken for a flag: names begin with a letter or
    /// digit, and texts are part of their flag's word.
    pub fn to_words(&self) -> Vec<String> {
        let node = |name: &str| format!("node/{name}");
        let mut words: Vec<String> = match self {
            DashboardCommand::Explain { subject } => vec!["explain".into(), subject.clone()],
            DashboardCommand::Check { node: name } => vec!["check".into(), node(name)],
            DashboardCommand::Reboot { node: name, .. } => vec!["reboot".into(), node(name)],
            DashboardCommand::Hold { node: name, .. } => vec!["hold".into(), node(name)],
            DashboardCommand::Release { node: name } => vec!["release".into(), node(name)],
            DashboardCommand::Abort { node: name, .. } => {
                vec!["abort".into(), node(name), "--no-wait".into()]
            }
            DashboardCommand::Pause { policy, .. } => vec!["pause".into(), policy.clone()],
            DashboardCommand::Resume { policy } => vec!["resume".into(), policy.clone()],
        };
        if let Some(reason) = self.reason() {
            words.push(format!("--reason={reason}"));
        }
        if let DashboardCommand::Abort {
            although_rebooting: true,
            ..
        } = self
        {
            words.push("--yes".into());
        }
        words
    }

    fn reason(&self) -> Option<&str> {
        match self {
            DashboardCommand::Reboot { reason, .. }
            | DashboardCommand::Hold { reason, .. }
            | DashboardCommand::Abort { reason, .. } => {
                Some(reason.as_str()).filter(|reason| !reason.is_empty())
            }
            // `dogwatch pause` requires one, and says so.
            DashboardCommand::Pause { reason, .. } => Some(reason),
            DashboardCommand::Explain { .. }
            | DashboardCommand::Check { .. }
            | DashboardCommand::Release { .. }
            | DashboardCommand::Resume { .. } => None,
        }
    }
}

/// Quotes words for a POSIX shell.
pub(crate) fn join_shell_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(quote_shell_word).collect();
    quoted.join(" ")
}

fn quote_shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A viewer's token. It is in no log: its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ViewerToken(String);

impl ViewerToken {
    pub(crate) fn new(token: &str) -> Self {
        Self(token.to_owned())
    }

    pub fn reveal_secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ViewerToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ViewerToken(hidden)")
    }
}

/// With whose rights a command calls the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandRights {
    /// Those of this process: the kubeconfig's, or the pod's.
    Process,
    /// The viewer's, for this command alone.
    Viewer(ViewerToken),
}

/// How a command ended, as its exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandOutcome {
    Succeeded,
    Failed,
    NotFound,
    Unreachable,
    Forbidden,
    /// `check` found something that blocks.
    Blocked,
}

/// What a command printed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandOutput {
    pub outcome: CommandOutcome,
    pub text: String,
}

/// Runs command lines of `dogwatch`.
pub trait CommandRunner: Send + Sync + 'static {
    fn run_command(
        &self,
        command: DashboardCommand,
        rights: CommandRights,
    ) -> BoxFuture<'static, CommandOutput>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_part_of_its_flag_and_never_a_flag() {
        let command = DashboardCommand::Reboot {
            node: "n1".into(),
            reason: "--yes --all; rm -rf '/'".into(),
        };
        let words = command.to_words();
        assert_eq!(
            words,
            ["reboot", "node/n1", "--reason=--yes --all; rm -rf '/'"]
        );
        assert_eq!(
            join_shell_words(words.iter().map(String::as_str)),
            r"reboot node/n1 '--reason=--yes --all; rm -rf '\''/'\'''"
        );
    }

    #[test]
    fn an_abort_says_yes_only_if_the_viewer_did() {
        let abort = |although_rebooting| DashboardCommand::Abort {
            node: "n1".into(),
            reason: String::new(),
            although_rebooting,
        };
        assert_eq!(abort(false).to_words(), ["abort", "node/n1", "--no-wait"]);
        assert_eq!(
            abort(true).to_words(),
            ["abort", "node/n1", "--no-wait", "--yes"]
        );
    }

    #[test]
    fn a_token_is_not_printed() {
        let rights = CommandRights::Viewer(ViewerToken::new("sesame"));
        assert!(!format!("{rights:?}").contains("sesame"));
    }
}
