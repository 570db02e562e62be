//! FleetLock: the groups that clients may lock, and the id that Zincati's client sends for its
//! host.
//!
//! The id is systemd's app-specific machine id for Zincati's application id. Dogwatch finds a
//! host's Node by computing it over `status.nodeInfo.machineID`. If a user sets another id on the
//! host, no Node has it. Source: `sd_id128_get_machine_app_specific(3)`, and Zincati's
//! documentation of `identity.node_uuid`.

use std::collections::BTreeSet;
use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::name::GroupName;

/// Stands for every group except groups of Nodes.
const ANY_GROUP: &str = "*";

/// The groups that FleetLock serves (`--fleetlock-groups`). Clients do not authenticate, so an
/// operator must name each group: otherwise a stranger could create Leases that last for ever.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetlockGroups {
    named: BTreeSet<String>,
    any: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupRefusal {
    /// No flag names the group.
    #[error("this lock API does not serve group {0:?}: add it to --fleetlock-groups")]
    Unknown(String),
    /// The holder of this group's lock keeps Nodes from rebooting.
    #[error(
        "group {0:?} is a group of Nodes, and --fleetlock-groups=* does not include groups of \
         Nodes: name the group in --fleetlock-groups"
    )]
    OfNodes(String),
}

impl FleetlockGroups {
    /// `*` means every group that is not a group of Nodes.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let mut named: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        let any = named.remove(ANY_GROUP);
        Self { named, any }
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.any
    }

    /// Whether clients choose the groups.
    pub fn allows_any_group(&self) -> bool {
        self.any
    }

    /// Checks whether this group is served. `policies` are the names of the `RebootPolicy` objects:
    /// each is the group of the Nodes that the policy selects.
    ///
    /// # Errors
    /// The reason why it is not served.
    pub fn check_group_served<'a>(
        &self,
        group: &str,
        policies: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), GroupRefusal> {
        if self.named.contains(group) {
            return Ok(());
        }
        if !self.any {
            return Err(GroupRefusal::Unknown(group.to_owned()));
        }
        let built_in = [GroupName::default_group(), GroupName::control_plane_group()];
        let of_nodes = built_in.iter().any(|name| name.as_str() == group);
        if of_nodes || policies.into_iter().any(|policy| policy == group) {
            return Err(GroupRefusal::OfNodes(group.to_owned()));
        }
        Ok(())
    }
}

const ZINCATI_APPLICATION_ID: u128 = 0xde35_106b_6ec2_4688_b63a_fdda_a156_679b;

/// The `client_params.id` that Zincati sends on the host with this machine id (32 lower-case
/// hexadecimal digits). Ignores dashes in `machine_id`. `None` if that is not a machine id.
pub fn fleetlock_client_id(machine_id: &str) -> Option<String> {
    app_specific_id(parse_machine_id(machine_id)?, ZINCATI_APPLICATION_ID)
}

/// Parses 32 hexadecimal digits, with or without dashes. To systemd, all zeros mean "no machine
/// id".
fn parse_machine_id(machine_id: &str) -> Option<u128> {
    let digits = machine_id.replace('-', "");
    let hexadecimal = digits.len() == 32 && digits.bytes().all(|c| c.is_ascii_hexdigit());
    let id = hexadecimal.then(|| u128::from_str_radix(&digits, 16).ok())??;
    (id != 0).then_some(id)
}

/// The first half of HMAC-SHA256(key: machine id, data: application id), marked as a UUID version
/// 4.
fn app_specific_id(machine: u128, application: u128) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&machine.to_be_bytes()).ok()?;
    mac.update(&application.to_be_bytes());
    let mut id: [u8; 16] = mac.finalize().into_bytes()[..16].try_into().ok()?;
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    Some(id.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_nobody_named_is_not_served() {
        let groups = FleetlockGroups::new(["storage", "default"]);
        assert_eq!(groups.check_group_served("storage", []), Ok(()));
        assert_eq!(groups.check_group_served("default", ["default"]), Ok(()));
        for other in ["Storage", "g1", "control-plane", "*", ""] {
            let refused = groups.check_group_served(other, []);
            assert_eq!(refused, Err(GroupRefusal::Unknown(other.to_owned())));
        }
        let none = FleetlockGroups::default();
        assert!(none.is_empty() && none.check_group_served("default", []).is_err());
    }

    #[test]
    fn any_group_is_none_of_the_nodes_unless_it_is_named_as_well() {
        let any = FleetlockGroups::new(["*", "control-plane"]);
        assert!(any.allows_any_group() && !any.is_empty());
        assert_eq!(any.check_group_served("g1", ["workers"]), Ok(()));
        assert_eq!(any.check_group_served("control-plane", []), Ok(()));
        for nodes in ["default", "workers"] {
            let refused = any.check_group_served(nodes, ["workers", "gpus"]);
            assert_eq!(refused, Err(GroupRefusal::OfNodes(nodes.to_owned())));
        }
    }

    #[test]
    fn a_node_is_known_by_the_id_that_zincati_sends() {
        for machine in [
            "1c09ca98649c4c7abc779cd04c96812e",
            "1c09ca98-649c-4c7a-bc77-9cd04c96812e",
            "1C09CA98649C4C7ABC779CD04C96812E",
        ] {
            let id = fleetlock_client_id(machine);
            assert_eq!(id.as_deref(), Some("978a225b3d7b40e9acd7ce9b62f68444"));
        }
    }

    #[test]
    fn the_computation_is_systemds_for_any_application() {
        let machine = parse_machine_id("2e074e9b299c41a59923c51ae16f279b").unwrap();
        let application = parse_machine_id("033b1b9b264441fcaa173e9e5bf35c5a").unwrap();
        let id = app_specific_id(machine, application);
        assert_eq!(id.as_deref(), Some("4d4a86c9c6644a479560ded5d19a30c5"));
    }

    #[test]
    fn what_is_no_machine_id_has_no_fleetlock_id() {
        let zeros = "0".repeat(32);
        for bad in [
            "",
            "uninitialized",
            "1c09ca98649c4c7abc779cd04c96812",
            "1c09ca98649c4c7abc779cd04c96812eff",
            "+c09ca98649c4c7abc779cd04c96812e",
            &zeros,
        ] {
            assert_eq!(fleetlock_client_id(bad), None, "{bad:?}");
        }
    }
}
