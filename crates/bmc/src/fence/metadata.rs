//! Reads an agent's metadata: its options and its actions.
//!
//! Source: ClusterLabs' Fence Agent API, "Agent metadata".

use std::collections::BTreeSet;

use dogwatch_core::power::{BmcFault, FaultClass};
use roxmltree::{Document, Node};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentMetadata {
    options: BTreeSet<String>,
    actions: BTreeSet<String>,
    /// The agent cuts storage or a network, and the node is expected to switch itself on again.
    pub(super) is_fabric: bool,
}

impl AgentMetadata {
    /// Reads the XML that `action=metadata` prints. A document type declaration is refused, and
    /// with it any entities.
    pub(super) fn parse(agent: &str, xml: &str) -> Result<Self, BmcFault> {
        let unreadable = |_| {
            let message = format!("{agent} describes itself in a way that cannot be read");
            BmcFault::without_effect(FaultClass::Contradiction, message)
        };
        let document = Document::parse(xml.trim()).map_err(unreadable)?;
        let root = document.root_element();
        let this = Self {
            options: name_attributes(root, "parameter").collect(),
            actions: name_attributes(root, "action").collect(),
            is_fabric: elements_with_tag(root, "action").any(|action| {
                action.attribute("name") == Some("on") && action.attribute("automatic") == Some("1")
            }),
        };
        if root.has_tag_name("resource-agent") && !this.actions.is_empty() {
            return Ok(this);
        }
        let message = format!("{agent} does not describe itself as a fence agent");
        Err(BmcFault::without_effect(FaultClass::Contradiction, message))
    }

    pub(super) fn has_option(&self, option: &str) -> bool {
        self.options.contains(option)
    }

    pub(super) fn has_action(&self, action: &str) -> bool {
        self.actions.contains(action)
    }

    /// Returns the first of these options that the agent has.
    pub(super) fn first_known_option(&self, options: &[&'static str]) -> Option<&'static str> {
        options
            .iter()
            .copied()
            .find(|option| self.has_option(option))
    }
}

fn elements_with_tag<'a, 'input>(
    root: Node<'a, 'input>,
    tag: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> {
    root.descendants()
        .filter(move |node| node.has_tag_name(tag))
}

fn name_attributes(root: Node<'_, '_>, tag: &'static str) -> impl Iterator<Item = String> {
    elements_with_tag(root, tag).filter_map(|node| node.attribute("name").map(str::to_owned))
}
