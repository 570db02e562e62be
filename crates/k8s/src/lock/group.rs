//! Which nodes a group has.

use dogwatch_api::label;
use dogwatch_core::name::GroupName;

/// The label selector of a group's nodes, while no policy makes groups: the control plane, and
/// everybody else. The other side of `node::group_of`.
pub fn group_selector(group: &GroupName) -> String {
    if *group == GroupName::control_plane() {
        label::CONTROL_PLANE.to_owned()
    } else {
        format!("!{}", label::CONTROL_PLANE)
    }
}
