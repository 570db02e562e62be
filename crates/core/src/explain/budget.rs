//! A group's budget as a reader of the whole fleet sees it: the count that a coordinator with a won
//! bid would make.

use dogwatch_api::label::IGNORE;

use super::fleet::FleetSnapshot;
use super::human_format::join_first_names;
use crate::limit::UnavailabilityLimit;
use crate::lock::{self, BudgetReads, GroupMember, HeldLockLease, HolderId, UnavailableMember};
use crate::name::GroupName;
use crate::policy::Policy;
use crate::reboot::ObservedNode;

const MAX_NAMED_NODES: usize = 5;

/// Which other nodes of the group are unavailable, and how many may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLine {
    pub group: GroupName,
    /// Maximum of unavailable nodes: the smallest of the node's own and the other holders' maxima.
    pub max: usize,
    /// The source of the node's own maximum, in words.
    pub max_source: String,
    /// Number of nodes in the group, without ignored ones.
    pub members: u32,
    /// Nodes of the group with label `dogwatch.dev/ignore`.
    pub ignored: Vec<String>,
    /// Unavailable members, without the node itself.
    pub out: Vec<UnavailableMember>,
}

impl BudgetLine {
    /// Whether one more node may become unavailable.
    pub fn has_room(&self) -> bool {
        self.out.len() < self.max
    }

    pub fn to_sentence(&self) -> String {
        let names: Vec<String> = self
            .out
            .iter()
            .map(|node| format!("{} ({})", node.name, node.why))
            .collect();
        let out = match names.len() {
            0 => "no other node is unavailable".to_owned(),
            _ => format!(
                "unavailable now: {}",
                join_first_names(&names, MAX_NAMED_NODES)
            ),
        };
        let ignored = match self.ignored.len() {
            0 => String::new(),
            more => format!(
                ", {more} more {} ignored ({IGNORE}): {}",
                if more == 1 { "is" } else { "are" },
                join_first_names(&self.ignored, MAX_NAMED_NODES)
            ),
        };
        format!(
            "at most {} of {} in group {} may be unavailable ({}){ignored}; {out}",
            self.max, self.members, self.group, self.max_source
        )
    }
}

impl FleetSnapshot {
    /// The count that this node would make now. The coordinator's flags are not on the cluster:
    /// without a policy, their defaults are used, and `max_source` says so.
    pub fn budget_of_node(&self, node: &ObservedNode) -> BudgetLine {
        let group = self.group_of_node(node);
        let members: Vec<&ObservedNode> = self
            .iter_nodes()
            .filter(|node| self.group_of_node(node) == group)
            .collect();
        let rule = self.rule_of_node(node);
        let limit = (rule.config.max_unavailable, rule.policy);
        self.budget_line(group, &members, &HolderId::for_node(&node.name), limit)
    }

    /// The count of the whole group, as somebody outside it would make it. `members` are its nodes.
    pub(crate) fn budget_of_group(
        &self,
        group: &GroupName,
        members: &[&ObservedNode],
    ) -> BudgetLine {
        let limit = match members.first() {
            Some(member) => {
                let rule = self.rule_of_node(member);
                (rule.config.max_unavailable, rule.policy)
            }
            None => self.limit_of_named_policy(group),
        };
        self.budget_line(group.clone(), members, &outside_holder(), limit)
    }

    /// The limit of a group without Nodes, as for hosts of the lock API.
    fn limit_of_named_policy(&self, group: &GroupName) -> (UnavailabilityLimit, Option<&Policy>) {
        let mut policies = self.policies.known_policies().iter();
        let policy = policies.find(|policy| policy.name == *group);
        let flags = UnavailabilityLimit::default();
        let limit = policy.map_or(flags, |policy| policy.limit_nodes_over(flags));
        (limit, policy)
    }

    /// The count that `bidder` would make.
    fn budget_line(
        &self,
        group: GroupName,
        members: &[&ObservedNode],
        bidder: &HolderId,
        (own, policy): (UnavailabilityLimit, Option<&Policy>),
    ) -> BudgetLine {
        let reads = self.budget_reads(&group, members);
        let count = lock::count_unavailable(&reads, bidder);
        let member_count = usize::try_from(count.members).unwrap_or(usize::MAX);
        let maxima = count.maxima.iter();
        let others = maxima.map(|max| usize::try_from(*max).unwrap_or(usize::MAX));
        let ignored = reads.nodes.iter().filter(|node| node.ignored);
        BudgetLine {
            max: others
                .chain([own.allowed_nodes(member_count)])
                .min()
                .unwrap_or(1),
            max_source: describe_limit_source(&group, own, policy),
            members: count.members,
            ignored: ignored.map(|node| node.name.to_string()).collect(),
            out: count.unavailable,
            group,
        }
    }

    fn budget_reads(&self, group: &GroupName, members: &[&ObservedNode]) -> BudgetReads {
        let row = |node: &ObservedNode| GroupMember {
            name: node.name.clone(),
            ready: node.ready,
            unschedulable: node.unschedulable,
            ignored: is_ignored(node),
            control_plane: crate::policy::is_control_plane(&node.labels),
        };
        let held = self.leases.iter().filter_map(|row| {
            let lease = &row.lease;
            let record = lease.record.as_ref();
            Some(HeldLockLease {
                lease: lease.name.clone(),
                resource_version: lease.resource_version.clone(),
                slot: (row.group == *group).then_some(lease.slot),
                holder: lease.holder.clone()?,
                node: lock::holder_node_name(lease).or_else(|| record?.node.clone()),
                max: record.map(|record| record.max),
                remediation: None,
            })
        });
        let policies = self.policies.known_policies();
        let remediations = self.remediation_leases.iter().cloned();
        let remediations = remediations.map(|held| held.without_vanished_group(policies));
        BudgetReads {
            lease: String::new(),
            group: group.clone(),
            nodes: members.iter().map(|node| row(node)).collect(),
            held: held.chain(remediations).collect(),
        }
    }
}

fn describe_limit_source(
    group: &GroupName,
    own: UnavailabilityLimit,
    policy: Option<&Policy>,
) -> String {
    let limiting =
        policy.filter(|policy| policy.limits_nodes() && policy.limit_nodes_over(own) == own);
    match limiting {
        Some(policy) => format!("RebootPolicy {}: {own}", policy.name),
        None if *group == GroupName::control_plane_group() => {
            "the control plane, one at a time".into()
        }
        None => "if --max-unavailable has its default".into(),
    }
}

/// A holder that holds nothing: counts and orders leave out the one who makes them.
pub(super) fn outside_holder() -> HolderId {
    HolderId::new("explain").expect("seven bytes")
}

/// Whether the node has label `dogwatch.dev/ignore`.
pub(super) fn is_ignored(node: &ObservedNode) -> bool {
    node.labels.get(IGNORE).is_some_and(|value| value == "true")
}
