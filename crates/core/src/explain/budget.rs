//! A group's budget as a reader of the whole fleet sees it: the count that a winner would make.

use super::fleet::Fleet;
use super::words::some;
use crate::lock::{self, HeldSeen, HolderId, NodeRow, Reads, Unavailable};
use crate::name::GroupName;
use crate::reboot::NodeSeen;

/// How many names are told.
const NAMED: usize = 5;
/// Takes a Node out of every budget. Source: specification §2.2.
const IGNORE: &str = "dogwatch.dev/ignore";

/// Who of a node's group is out beside it, and how many may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLine {
    /// The group.
    pub group: GroupName,
    /// How many may be out: the least of what the node and the other holders go by.
    pub max: usize,
    /// Where the node's own maximum comes from.
    pub said_by: String,
    /// How many members the group has, without those that are ignored.
    pub members: u32,
    /// Nodes of the group that a person has taken out of the count, by label.
    pub ignored: Vec<String>,
    /// Who is out, beside the node itself.
    pub out: Vec<Unavailable>,
}

impl BudgetLine {
    /// Whether one more may go.
    pub fn has_room(&self) -> bool {
        self.out.len() < self.max
    }

    /// One sentence with the numbers.
    pub fn in_words(&self) -> String {
        let names: Vec<String> = self
            .out
            .iter()
            .map(|node| format!("{} ({})", node.name, node.why))
            .collect();
        let out = match names.len() {
            0 => "nobody else is out".to_owned(),
            _ => format!("out now: {}", some(&names, NAMED)),
        };
        let ignored = match self.ignored.len() {
            0 => String::new(),
            more => format!(
                ", {more} more {} ignored ({IGNORE}): {}",
                if more == 1 { "is" } else { "are" },
                some(&self.ignored, NAMED)
            ),
        };
        format!(
            "at most {} of {} in group {} may be out ({}){ignored}; {out}",
            self.max, self.members, self.group, self.said_by
        )
    }
}

impl Fleet {
    /// What a count for this node would find now. The coordinator's flags do not stand on the
    /// cluster: where no policy speaks, their default is taken, and said to be.
    pub fn budget(&self, node: &NodeSeen) -> BudgetLine {
        let group = self.group(node);
        let reads = self.reads(&group);
        let count = lock::count(&reads, &HolderId::node(&node.name));
        let rule = self.rule(node);
        let members = usize::try_from(count.members).unwrap_or(usize::MAX);
        let own = rule.config.max_unavailable;
        let of_policy = rule
            .policy
            .filter(|policy| policy.max_unavailable == Some(own));
        let said_by = match of_policy {
            Some(policy) => format!("RebootPolicy {}: {own}", policy.name),
            None if group == GroupName::control_plane() => {
                "the control plane, one at a time".into()
            }
            None => "if --max-unavailable has its default".into(),
        };
        let others = count
            .maxima
            .iter()
            .map(|max| usize::try_from(*max).unwrap_or(usize::MAX));
        BudgetLine {
            max: others.chain([own.of(members)]).min().unwrap_or(1),
            group,
            said_by,
            members: count.members,
            ignored: reads
                .nodes
                .iter()
                .filter(|node| node.ignored)
                .map(|node| node.name.to_string())
                .collect(),
            out: count.unavailable,
        }
    }

    fn reads(&self, group: &GroupName) -> Reads {
        let row = |node: &NodeSeen| NodeRow {
            name: node.name.clone(),
            ready: node.ready,
            unschedulable: node.unschedulable,
            ignored: is_ignored(node),
            control_plane: crate::policy::is_control_plane(&node.labels),
        };
        let held = self.leases.iter().filter_map(|row| {
            let lease = &row.lease;
            let record = lease.record.as_ref();
            Some(HeldSeen {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                slot: (row.group == *group).then_some(lease.slot),
                holder: lease.holder.clone()?,
                node: lock::holder_node_name(lease).or_else(|| record?.node.clone()),
                max: record.map(|record| record.max),
                remediation: None,
            })
        });
        let policies = self.policies.known();
        let remediations = self.remedies.iter().cloned();
        let remediations = remediations.map(|held| held.without_vanished_group(policies));
        Reads {
            lease: String::new(),
            group: group.clone(),
            nodes: self
                .nodes
                .iter()
                .filter(|node| self.group(node) == *group)
                .map(row)
                .collect(),
            held: held.chain(remediations).collect(),
        }
    }
}

/// Whether a person has taken this node out of every count.
pub(super) fn is_ignored(node: &NodeSeen) -> bool {
    node.labels.get(IGNORE).is_some_and(|value| value == "true")
}
