//! What an agent says of itself: its options and its actions.
//!
//! Source: ClusterLabs' Fence Agent API, "Agent metadata".

use std::collections::BTreeSet;

use dogwatch_core::power::{Class, Fault};
use roxmltree::{Document, Node};

/// An agent's metadata, as far as we need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metadata {
    options: BTreeSet<String>,
    actions: BTreeSet<String>,
    /// It cuts storage or a network, and a node is to switch itself on again.
    pub(super) is_fabric: bool,
}

impl Metadata {
    /// Reads the XML that `action=metadata` prints. A document type is refused with all it could define.
    pub(super) fn parse(agent: &str, xml: &str) -> Result<Self, Fault> {
        let unreadable = |_| {
            let message = format!("{agent} describes itself in a way that cannot be read");
            Fault::harmless(Class::Contradiction, message)
        };
        let document = Document::parse(xml.trim()).map_err(unreadable)?;
        let root = document.root_element();
        let this = Self {
            options: names(root, "parameter").collect(),
            actions: names(root, "action").collect(),
            is_fabric: elements(root, "action").any(|action| {
                action.attribute("name") == Some("on") && action.attribute("automatic") == Some("1")
            }),
        };
        if root.has_tag_name("resource-agent") && !this.actions.is_empty() {
            return Ok(this);
        }
        let message = format!("{agent} does not describe itself as a fence agent");
        Err(Fault::harmless(Class::Contradiction, message))
    }

    /// Whether it has the option.
    pub(super) fn has(&self, option: &str) -> bool {
        self.options.contains(option)
    }

    /// Whether it has the action.
    pub(super) fn can(&self, action: &str) -> bool {
        self.actions.contains(action)
    }

    /// The first of these options that it has.
    pub(super) fn first_of(&self, options: &[&'static str]) -> Option<&'static str> {
        options.iter().copied().find(|option| self.has(option))
    }
}

fn elements<'a, 'input>(
    root: Node<'a, 'input>,
    tag: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    root.descendants()
        .filter(move |node| node.has_tag_name(tag))
}

fn names(root: Node<'_, '_>, tag: &'static str) -> impl Iterator<Item = String> {
    elements(root, tag).filter_map(|node| node.attribute("name").map(str::to_owned))
}
