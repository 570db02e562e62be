//! Hosts for table tests.

use std::collections::BTreeMap;

use super::{HostReportInput, ObservedController, POWER_AS_WANTED, POWER_CONTROL_READY};
use crate::condition::CurrentCondition;
use crate::explain::testkit::at;
use crate::power::{
    BmcAddress, HostName, HostOwner, HostSnapshot, HostStatus, PendingCommand, PendingCommandEnd,
    PowerCommand, PowerDevice, PowerLevel, PowerState, PowerStatus,
};

/// A host with one BMC, on since second 10, last read in second 60.
pub(crate) fn host(name: &str) -> HostSnapshot {
    HostSnapshot {
        name: HostName::new("metal", name),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        deleting: false,
        annotations: BTreeMap::new(),
        online: true,
        externally_provisioned: None,
        disable_power_off: false,
        created: None,
        consumer: None,
        levels: vec![level("redfish://192.0.2.1/redfish/v1/Systems/1")],
        status: HostStatus {
            powered_on: Some(true),
            operational: None,
            provisioning: Some("provisioned".into()),
            last_powered_on: Some(at(10)),
            pending_reboot_since: None,
            power: PowerStatus {
                state: Some(PowerState::On),
                observed_at: Some(at(60)),
                ..PowerStatus::default()
            },
            conditions: vec![
                said(
                    POWER_AS_WANTED,
                    "True",
                    "AsWanted",
                    "on, as spec.online says",
                ),
                said(POWER_CONTROL_READY, "True", "Checked", "it answers"),
            ],
        },
    }
}

pub(in crate::explain) fn level(address: &str) -> PowerLevel {
    PowerLevel {
        devices: vec![PowerDevice {
            address: BmcAddress::parse(address),
            credentials: "bmc".into(),
            verify: true,
        }],
    }
}

pub(in crate::explain) fn said(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> CurrentCondition {
    CurrentCondition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        last_transition: Some(at(40)),
        last_heartbeat: None,
    }
}

/// The same host, with these annotations.
pub(super) fn annotated(mut host: HostSnapshot, annotations: &[(&str, &str)]) -> HostSnapshot {
    let pairs = annotations.iter();
    host.annotations = pairs
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect();
    host
}

/// The host has a soft power-off under way.
pub(super) fn going_off(mut host: HostSnapshot) -> HostSnapshot {
    host.status.pending_reboot_since = Some(at(30));
    host.status.power.state = Some(PowerState::PoweringOff);
    host.status.power.command = Some(PendingCommand {
        id: "p/1".into(),
        command: PowerCommand::SoftOff,
        level: 0,
        target: "t".into(),
        since: at(30),
        at: at(30),
        attempt: 1,
        before: 0,
        after_unknown: false,
        why: "RebootRequested".into(),
        end: PendingCommandEnd::Answered { at: at(31) },
    });
    host.status.conditions[0] = said(
        POWER_AS_WANTED,
        "False",
        "SoftPowerOff",
        "asked to shut down; the power is cut in 2m50s",
    );
    host
}

pub(super) fn view(host: HostSnapshot) -> HostReportInput {
    HostReportInput {
        host,
        owner: HostOwner::Ours,
        shared_with: Vec::new(),
        node: None,
        controller: ObservedController::Leads {
            holder: "c-1".into(),
            renewed: Some(at(98)),
        },
    }
}
