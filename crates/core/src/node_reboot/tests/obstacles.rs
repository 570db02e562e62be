//! What keeps a host from being switched for a while.

use dogwatch_api::annotation::{METAL3_REBOOT, REMEDIATION};

use super::kit::*;
use crate::power::PowerReason;

/// An obstacle, and how it ends.
pub type Obstacle = (&'static str, fn(&mut World), fn(&mut World));

pub const OBSTACLES: &[Obstacle] = &[
    (
        "HostUnreachable",
        |world| world.host.bmc_answers = false,
        |world| world.host.bmc_answers = true,
    ),
    (
        "HostUnreachable",
        |world| world.host.is_known = false,
        |world| world.host.is_known = true,
    ),
    (
        "HostUnreadable",
        |world| world.host.is_readable = false,
        |world| world.host.is_readable = true,
    ),
    (
        "HostNotReady",
        |world| world.host.obstacle = Some((PowerReason::Detached, "it is detached".into())),
        |world| world.host.obstacle = None,
    ),
    (
        "HostUnreachable",
        |world| world.host.obstacle = Some((PowerReason::PowerUnknown, "not read yet".into())),
        |world| world.host.obstacle = None,
    ),
    (
        "HostNotReady",
        |world| world.host.change(|host| host.online = false),
        |world| world.host.change(|host| host.online = true),
    ),
    (
        "HostNotReady",
        |world| {
            let state = Some("deprovisioning".into());
            world.host.change(|host| host.status.provisioning = state);
        },
        |world| {
            let state = Some("provisioned".into());
            world.host.change(|host| host.status.provisioning = state);
        },
    ),
    (
        "HostInUse",
        |world| {
            world.host.change(|host| {
                let key = format!("{METAL3_REBOOT}/disk-swap");
                host.annotations.insert(key, String::new());
            });
        },
        |world| world.host.change(|host| host.annotations.clear()),
    ),
    (
        "HostInUse",
        |world| {
            let record = r#"{"subject":"node/n1","uid":"u","attempt":1,"steps":[]}"#;
            world.host.change(|host| {
                host.annotations.insert(REMEDIATION.into(), record.into());
            });
        },
        |world| world.host.change(|host| host.annotations.clear()),
    ),
    (
        "HostInUse",
        |world| world.change_node(|node| node.being_fenced = true),
        |world| world.change_node(|node| node.being_fenced = false),
    ),
    (
        "HostInUse",
        |world| world.change_node(|node| node.needs_remediation = true),
        |world| world.change_node(|node| node.needs_remediation = false),
    ),
    (
        "HostInUse",
        |world| world.host.change(|host| host.deleting = true),
        |world| world.host.change(|host| host.deleting = false),
    ),
    (
        "HostInUse",
        |world| {
            let at = Some(wall(0));
            world
                .host
                .change(|host| host.status.pending_reboot_since = at);
        },
        |world| {
            world
                .host
                .change(|host| host.status.pending_reboot_since = None);
        },
    ),
];
