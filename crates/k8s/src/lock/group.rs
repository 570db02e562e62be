//! Selects the nodes of a group. Counterpart of `dogwatch_core::policy::group_of_labels`.

use dogwatch_api::label;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::ClusterPolicies;

/// A label selector that matches every node of the group. With policies it may match other nodes
/// too: the caller then checks each one with `dogwatch_core::policy::group_of_labels`.
pub fn group_selector(group: &GroupName, policies: &ClusterPolicies) -> String {
    let mut known = policies.known_policies().iter();
    if let Some(policy) = known.find(|policy| policy.name == *group) {
        // The group `default` also has the nodes that no policy selects, and so may
        // `control-plane`.
        let alone =
            *group != GroupName::default_group() && *group != GroupName::control_plane_group();
        return if alone {
            policy.selector.to_query_string()
        } else {
            String::new()
        };
    }
    if *group == GroupName::control_plane_group() {
        label::CONTROL_PLANE.to_owned()
    } else {
        format!("!{}", label::CONTROL_PLANE)
    }
}

/// Whether the selector matches no node of another group.
pub(super) fn is_selector_exact(policies: &ClusterPolicies) -> bool {
    policies.known_policies().is_empty()
}
