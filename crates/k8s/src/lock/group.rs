//! Which nodes a group has. The other side of `dogwatch_core::policy::group`.

use dogwatch_api::label;
use dogwatch_core::name::GroupName;
use dogwatch_core::policy::Policies;

/// A label selector that every node of the group satisfies. Where policies make groups, others may
/// satisfy it as well: whoever lists by it asks `dogwatch_core::policy::group` of each.
pub fn group_selector(group: &GroupName, policies: &Policies) -> String {
    let mut known = policies.known().iter();
    if let Some(policy) = known.find(|policy| policy.name == *group) {
        // The group `default` has nodes that no policy rules; so may the control plane's.
        let alone = *group != GroupName::default_group() && *group != GroupName::control_plane();
        return if alone {
            policy.selector.query()
        } else {
            String::new()
        };
    }
    if *group == GroupName::control_plane() {
        label::CONTROL_PLANE.to_owned()
    } else {
        format!("!{}", label::CONTROL_PLANE)
    }
}

/// Whether the selector alone tells the group's nodes from all others.
pub(super) fn is_exact(policies: &Policies) -> bool {
    policies.known().is_empty()
}
