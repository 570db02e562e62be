//! The objects of the world, as the API server stores them or as a process sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::name::{BootId, NodeName};
use dogwatch_core::power::{
    BmcAddress, HostName, HostSnapshot, HostStatus, PowerDevice, PowerLevel,
};
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{
    HeldRemediationLease, KeyOwner, MachineApi, MachineName, ObjectName, ObservedMachine,
    RemediationSnapshot, StoredBackup, record_on_host,
};

pub const RECORD: &str = "dogwatch.dev/remediation";
/// What somebody put on the Node, and wants to find on the new one.
const LABEL: (&str, &str) = ("example.com/team", "a");
pub const SYSTEM_UUID: &str = "4d2c7f0e-1111-4222-8333-0123456789ab";

#[derive(Debug, Clone, PartialEq)]
pub struct ClusterObjects {
    pub machine: Arc<ObservedMachine>,
    pub host: Arc<HostSnapshot>,
    pub node: Option<Arc<ObservedNode>>,
    /// Who holds `dogwatch-remedy-n0`.
    pub lease: Option<String>,
    pub backup: Option<Arc<StoredBackup>>,
}

impl ClusterObjects {
    /// A marked Machine, whose Node is not Ready.
    pub fn new() -> Self {
        let mut node = register_node(1);
        node.ready = false;
        node.labels = BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())]);
        Self {
            machine: Arc::new(marked_machine()),
            host: Arc::new(free_host()),
            node: Some(Arc::new(node)),
            lease: None,
            backup: None,
        }
    }

    pub fn snapshot(&self) -> RemediationSnapshot {
        let lease = self.lease.as_ref().map(|subject| {
            let lease = HeldRemediationLease {
                subject: Some(subject.clone()),
                resource_version: "1".into(),
                ..HeldRemediationLease::default()
            };
            (node_name(), lease)
        });
        let backups = self.backup.iter();
        let nodes = self.node.iter();
        RemediationSnapshot {
            machines: [(self.machine.name.clone(), self.machine.clone())].into(),
            hosts: [(self.host.name.clone(), self.host.clone())].into(),
            nodes: nodes
                .map(|node| (node.name.clone(), node.clone()))
                .collect(),
            leases: lease.into_iter().collect(),
            backups: backups
                .map(|backup| (backup.host_uid.clone(), backup.clone()))
                .collect(),
            synced: true,
            ..RemediationSnapshot::default()
        }
    }

    pub fn is_keyed(&self) -> bool {
        machine_key().is_on_host(&self.host)
    }

    /// What of the remediation is left, or is missing on the Node.
    pub fn list_leftovers(&self) -> Vec<&'static str> {
        let record = record_on_host(&self.host);
        let node = self.node.as_ref();
        let all = [
            (self.is_keyed(), "the key"),
            (
                record.is_some_and(|record| record.ended_at().is_none()),
                "an open record",
            ),
            (self.machine.need.is_some(), "the mark"),
            (self.lease.is_some(), "the Lease"),
            (self.backup.is_some(), "the backup"),
            (node.is_none_or(|node| !node.ready), "no Node that is Ready"),
            (
                node.is_some_and(|node| node.being_fenced),
                "the Node's fencing annotation",
            ),
            (
                node.is_some_and(|node| !node.labels.contains_key(LABEL.0)),
                "no label of the old Node",
            ),
        ];
        let left = all.into_iter().filter(|(is_left, _)| *is_left);
        left.map(|(_, what)| what).collect()
    }
}

pub fn node_name() -> NodeName {
    NodeName::new("n0").expect("a valid name")
}

pub fn machine_key() -> KeyOwner {
    KeyOwner::Machine("uid-m0".into())
}

pub fn boot_id(boots: u8) -> BootId {
    BootId::new(format!("boot-{boots}")).expect("a valid id")
}

/// The Node that the kubelet of this boot registers.
pub fn register_node(boots: u8) -> ObservedNode {
    ObservedNode {
        system_uuid: Some(SYSTEM_UUID.into()),
        // Newer than every version of a deleted Node.
        resource_version: "100".into(),
        ..ObservedNode::ready_node(node_name(), format!("uid-n0-{boots}"), boot_id(boots))
    }
}

fn marked_machine() -> ObservedMachine {
    ObservedMachine {
        name: MachineName {
            api: MachineApi::OpenShift,
            object: ObjectName::new("machines", "m0"),
        },
        uid: "uid-m0".into(),
        resource_version: "1".into(),
        deleting: false,
        need: Some("mark-1".into()),
        host: Some("machines/h0".into()),
        infra: None,
        provider_id: None,
        cluster: None,
        cluster_paused: false,
        node: Some(node_name().to_string()),
        control_plane: false,
        paused: false,
        conditions: Vec::new(),
    }
}

pub fn free_host() -> HostSnapshot {
    let address = BmcAddress::parse("redfish://192.0.2.1/redfish/v1/Systems/1");
    HostSnapshot {
        name: HostName::new("machines", "h0"),
        uid: "uid-h0".into(),
        created: None,
        resource_version: "1".into(),
        deleting: false,
        annotations: BTreeMap::new(),
        online: true,
        externally_provisioned: None,
        disable_power_off: false,
        consumer: None,
        levels: vec![PowerLevel {
            devices: vec![PowerDevice {
                address,
                credentials: "bmc".into(),
                verify: true,
            }],
        }],
        status: HostStatus {
            provisioning: Some("provisioned".into()),
            ..HostStatus::default()
        },
    }
}
