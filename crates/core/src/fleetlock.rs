//! FleetLock: whose lock its clients may ask for, and the id by which Zincati's client calls its host.
//!
//! The id is systemd's app-specific machine id for Zincati's application id, so a Node is found by computing it over
//! `status.nodeInfo.machineID`. A user may set another id on the host; then no Node has it.
//! Source: `sd_id128_get_machine_app_specific(3)`, and Zincati's documentation of `identity.node_uuid`.

use std::collections::BTreeSet;
use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::name::GroupName;

/// The word for any group.
const ANY: &str = "*";

/// The groups that FleetLock serves (`--fleetlock-groups`). Its clients cannot say who they are, so that each
/// group is one that somebody chose: a group that nobody named would be a Lease for ever, made by a stranger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetlockGroups {
    named: BTreeSet<String>,
    any: bool,
}

/// Why a group is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupRefused {
    /// Nobody named it.
    #[error("group {0:?} is not served here: --fleetlock-groups names the groups that are")]
    Unknown(String),
    /// Who holds its lock keeps Nodes from rebooting.
    #[error(
        "group {0:?} is one of Nodes: it is served only where --fleetlock-groups names it, which * does not"
    )]
    OfNodes(String),
}

impl FleetlockGroups {
    /// Of these names; `*` is any that is not a group of Nodes.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let mut named: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        let any = named.remove(ANY);
        Self { named, any }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.any
    }

    /// Whether strangers choose the groups.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// Whether this group is served. `policies` are the names of the `RebootPolicy` objects: each is the
    /// group of the Nodes that it rules.
    ///
    /// # Errors
    /// Why not.
    pub fn serves<'a>(
        &self,
        group: &str,
        policies: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), GroupRefused> {
        if self.named.contains(group) {
            return Ok(());
        }
        if !self.any {
            return Err(GroupRefused::Unknown(group.to_owned()));
        }
        let built_in = [GroupName::default_group(), GroupName::control_plane()];
        let of_nodes = built_in.iter().any(|name| name.as_str() == group);
        if of_nodes || policies.into_iter().any(|policy| policy == group) {
            return Err(GroupRefused::OfNodes(group.to_owned()));
        }
        Ok(())
    }
}

/// Zincati's application id.
const ZINCATI: u128 = 0xde35_106b_6ec2_4688_b63a_fdda_a156_679b;

/// What Zincati on the host with this machine id sends as `client_params.id` (32 lower-case hexadecimal digits).
/// Dashes in `machine_id` are ignored; nothing for what is no machine id.
pub fn fleetlock_id(machine_id: &str) -> Option<String> {
    app_specific(parse(machine_id)?, ZINCATI)
}

/// 128 bits of 32 hexadecimal digits, dashed or not. All zeros is "no machine id" to systemd.
fn parse(machine_id: &str) -> Option<u128> {
    let digits = machine_id.replace('-', "");
    let hexadecimal = digits.len() == 32 && digits.bytes().all(|c| c.is_ascii_hexdigit());
    let id = hexadecimal.then(|| u128::from_str_radix(&digits, 16).ok())??;
    (id != 0).then_some(id)
}

/// HMAC-SHA256 of the application id with the machine id as key, its first half, marked as a UUID of version 4.
fn app_specific(machine: u128, application: u128) -> Option<String> {
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
        assert_eq!(groups.serves("storage", []), Ok(()));
        assert_eq!(groups.serves("default", ["default"]), Ok(()));
        for other in ["Storage", "g1", "control-plane", "*", ""] {
            let refused = groups.serves(other, []);
            assert_eq!(refused, Err(GroupRefused::Unknown(other.to_owned())));
        }
        let none = FleetlockGroups::default();
        assert!(none.is_empty() && none.serves("default", []).is_err());
    }

    #[test]
    fn any_group_is_none_of_the_nodes_unless_it_is_named_as_well() {
        let any = FleetlockGroups::new(["*", "control-plane"]);
        assert!(any.is_any() && !any.is_empty());
        assert_eq!(any.serves("g1", ["workers"]), Ok(()));
        assert_eq!(any.serves("control-plane", []), Ok(()));
        for nodes in ["default", "workers"] {
            let refused = any.serves(nodes, ["workers", "gpus"]);
            assert_eq!(refused, Err(GroupRefused::OfNodes(nodes.to_owned())));
        }
    }

    #[test]
    fn a_node_is_known_by_the_id_that_zincati_sends() {
        for machine in [
            "1c09ca98649c4c7abc779cd04c96812e",
            "1c09ca98-649c-4c7a-bc77-9cd04c96812e",
            "1C09CA98649C4C7ABC779CD04C96812E",
        ] {
            let id = fleetlock_id(machine);
            assert_eq!(id.as_deref(), Some("978a225b3d7b40e9acd7ce9b62f68444"));
        }
    }

    #[test]
    fn the_computation_is_systemds_for_any_application() {
        let machine = parse("2e074e9b299c41a59923c51ae16f279b").unwrap();
        let application = parse("033b1b9b264441fcaa173e9e5bf35c5a").unwrap();
        let id = app_specific(machine, application);
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
            assert_eq!(fleetlock_id(bad), None, "{bad:?}");
        }
    }
}
