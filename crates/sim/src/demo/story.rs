//! The stories of the demo, told one after the other.

use super::failed_node::{FAILED_NODE, SECOND_NODE};
use super::hosts::{HELD_HOST, REBOOTED_HOST};

/// What the demo shows now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DemoStory {
    /// The cluster is there, and nothing has happened yet.
    Opening,
    RebootNodes,
    SwitchHosts,
    RecoverNode,
    Finished,
}

impl DemoStory {
    /// The story after this one.
    pub(super) fn next_story(self) -> Self {
        match self {
            Self::Opening => Self::RebootNodes,
            Self::RebootNodes => Self::SwitchHosts,
            Self::SwitchHosts => Self::RecoverNode,
            Self::RecoverNode | Self::Finished => Self::Finished,
        }
    }

    /// What a reader should know before the story; empty for what is no story.
    pub(super) fn introduction(self, nodes: u32) -> String {
        match self {
            Self::Opening | Self::Finished => String::new(),
            Self::RebootNodes => format!(
                "Story 1 of 3: cp1 and n1 to n{nodes} need a reboot. They reboot in turn, while web and db stay available."
            ),
            Self::SwitchHosts => format!(
                "Story 2 of 3: {REBOOTED_HOST} and {HELD_HOST} are bare-metal hosts without a Node. {REBOOTED_HOST} is rebooted, {HELD_HOST} is kept off for a disk swap."
            ),
            Self::RecoverNode => format!(
                "Story 3 of 3: the storage node {FAILED_NODE} fails. Dogwatch proves it off before its database starts on {SECOND_NODE}."
            ),
        }
    }
}
