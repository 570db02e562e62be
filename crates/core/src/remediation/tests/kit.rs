//! Machines, hosts, Nodes, and the memory of a remediation, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
pub(super) use crate::explain::testkit::{now, record as reboot_record};
use crate::name::NodeName;
use crate::power::tests::world::World as Power;
use crate::power::{self, CurrentPower, HostConsumer, HostName, HostSnapshot};
use crate::reboot::ObservedNode;

pub(super) const NODE: &str = "dogwatch.dev/node";
pub(super) const UUID: &str = "4d2c7f0e-1111-4222-8333-0123456789ab";

pub(super) fn machine_name(name: &str) -> MachineName {
    MachineName {
        api: MachineApi::OpenShift,
        object: ObjectName::new("machines", name),
    }
}

/// A Machine of OpenShift on host `machines/h-NAME`, with Node `n-NAME`.
pub(super) fn machine(name: &str) -> ObservedMachine {
    ObservedMachine {
        name: machine_name(name),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        deleting: false,
        need: None,
        host: Some(format!("machines/h-{name}")),
        infra: None,
        provider_id: None,
        node: Some(format!("n-{name}")),
        control_plane: false,
        cluster: None,
        paused: false,
        cluster_paused: false,
        conditions: Vec::new(),
    }
}

pub(super) fn marked(name: &str) -> ObservedMachine {
    ObservedMachine {
        need: Some(String::new()),
        ..machine(name)
    }
}

pub(super) fn host_name(name: &str) -> HostName {
    HostName::new("machines", format!("h-{name}"))
}

/// A host that is provisioned, online and without a consumer.
pub(super) fn host(name: &str) -> HostSnapshot {
    let mut host = power::tests::world::host(&[], true);
    host.name = host_name(name);
    host.uid = format!("uid-h-{name}");
    host.status.provisioning = Some("provisioned".into());
    host
}

pub(super) fn consumed(
    mut host: HostSnapshot,
    group: &str,
    kind: &str,
    object: &ObjectName,
) -> HostSnapshot {
    host.consumer = Some(HostConsumer {
        group: group.into(),
        kind: kind.into(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    });
    host
}

pub(super) fn keyed(mut host: HostSnapshot, key: &KeyOwner) -> HostSnapshot {
    host.annotations
        .insert(key.annotation_name(), key.annotation_value());
    host
}

/// The same host, with the record that comes with a key of ours for Machine `machines/a`.
pub(super) fn begun(host: HostSnapshot, key: &KeyOwner) -> HostSnapshot {
    let host = keyed(host, key);
    let stamp = |step| StepStamp {
        step,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let record = RemediationRecord {
        subject: "machine/machines/a".into(),
        uid: "uid-a".into(),
        node: Some("n-a".into()),
        node_uid: None,
        cluster: None,
        cluster_uid: None,
        boot_id: None,
        attempt: 1,
        steps: vec![
            stamp(RemediationStep::Requested),
            stamp(RemediationStep::KeyAdded),
        ],
    };
    with_record(host, &record)
}

pub(super) fn with_record(mut host: HostSnapshot, record: &RemediationRecord) -> HostSnapshot {
    let text = serde_json::to_string(record).unwrap();
    host.annotations
        .insert("dogwatch.dev/remediation".into(), text);
    host
}

/// The host, with the annotation that names its Node.
pub(super) fn carrying(mut host: HostSnapshot, node: &str) -> HostSnapshot {
    host.annotations.insert(NODE.into(), node.into());
    host
}

/// The request `machines/r` that names nothing yet.
pub(super) fn request() -> PowerRequest {
    PowerRequest {
        name: ObjectName::new("machines", "r"),
        uid: "uid-r".into(),
        resource_version: "1".into(),
        generation: 1,
        created: jiff::Timestamp::UNIX_EPOCH,
        deleting: false,
        has_finalizer: true,
        node_name: None,
        machine: None,
        machine_uid: None,
        cluster: None,
        timed_out: false,
        paused: false,
        strategy: Err(String::new()),
        status: RequestStatus::default(),
    }
}

/// Machine `name` with the host and the Node of that name.
pub(super) fn fenced(name: &str, stage: RemediationStage) -> FencedHost {
    FencedHost {
        subject: RemediationSubject::Machine(machine_name(name)),
        host: host_name(name),
        node: Some(node_name(name)),
        cluster: NodeCluster::Management,
        is_cluster_readable: true,
        control_plane: false,
        bmc_answers: true,
        stage,
    }
}

/// The power as it is now, without a proof.
pub(super) fn unproved_power(now: CurrentPower) -> ObservedPower {
    ObservedPower {
        now,
        proof: None,
        bmc_answers: true,
        system_uuid: None,
        off_since: None,
        because: None,
    }
}

pub(super) fn node_name(name: &str) -> NodeName {
    NodeName::new(format!("n-{name}")).unwrap()
}

pub(super) fn node(name: &str) -> ObservedNode {
    ObservedNode {
        system_uuid: Some(UUID.into()),
        ..crate::explain::testkit::node(&format!("n-{name}"))
    }
}

pub(super) fn world(
    machines: impl IntoIterator<Item = ObservedMachine>,
    hosts: impl IntoIterator<Item = HostSnapshot>,
    nodes: impl IntoIterator<Item = ObservedNode>,
) -> RemediationSnapshot {
    let machines = machines.into_iter();
    let hosts = hosts.into_iter();
    let nodes = nodes.into_iter();
    RemediationSnapshot {
        machines: machines.map(|it| (it.name.clone(), Arc::new(it))).collect(),
        hosts: hosts.map(|it| (it.name.clone(), Arc::new(it))).collect(),
        nodes: nodes.map(|it| (it.name.clone(), Arc::new(it))).collect(),
        synced: true,
        ..RemediationSnapshot::default()
    }
}

pub(super) fn case_of(world: &RemediationSnapshot, subject: &str) -> Option<Remediation> {
    let mut cases = discover_remediations(world).into_iter();
    cases.find(|case| case.subject.to_string() == subject)
}

/// A stored backup for this host.
pub(super) fn stored(host: &HostSnapshot, backup: NodeBackup) -> StoredBackup {
    StoredBackup {
        host: host.name.clone(),
        host_uid: host.uid.clone(),
        consumer: host.consumer.clone(),
        backup,
        uid: format!("uid-kept-{}", host.uid),
        resource_version: "1".into(),
    }
}

/// The Lease that Machine `machines/a` holds.
pub(super) fn own_lease() -> HeldRemediationLease {
    HeldRemediationLease {
        subject: Some("machine/machines/a".into()),
        resource_version: "1".into(),
        ..HeldRemediationLease::default()
    }
}

/// Adds a stored backup to the snapshot.
pub(super) fn keeping(mut world: RemediationSnapshot, kept: StoredBackup) -> RemediationSnapshot {
    world.backups.insert(kept.host_uid.clone(), Arc::new(kept));
    world
}

/// The power controller's view, as the remediator gets it.
pub(super) fn power_seen(power: &Power) -> ObservedPower {
    let now = power.now();
    power_at(power, now)
}

/// The same, at another time than that of `power`.
pub(super) fn power_at(power: &Power, now: crate::Now) -> ObservedPower {
    let because = power.last.as_ref().map(|last| &last.cause);
    ObservedPower {
        now: power::current_power(&power.seen, &power.config, now),
        proof: power::find_off_proof(&power.seen, &power.config, now),
        bmc_answers: power::is_bmc_answering(&power.seen, &power.config, now),
        system_uuid: power::bmc_system_uuid(&power.seen).map(str::to_owned),
        off_since: power::off_since(&power.seen, &power.config, now),
        because: because.map(|because| format!("{}: {}", because.reason, because.message)),
    }
}

/// The power controller's state of this host, with its BMC.
pub(super) fn power_of(host: &HostSnapshot, is_on: bool) -> Power {
    let mut power = Power::new(&[], host.online, is_on);
    power.seen.host = Arc::new(host.clone());
    power.about.system_uuid = Some(UUID.into());
    power
}

pub(super) fn beat(node: Option<&Arc<ObservedNode>>, second: i64) -> NodeHeartbeat {
    let at = jiff::Timestamp::from_second(second).ok();
    NodeHeartbeat {
        node_uid: node.map(|node| node.uid.clone()),
        renewed: at,
        posted: at,
        lease_duration: Some(Duration::from_secs(40)),
    }
}

/// Fresh reads of all objects of the snapshot.
pub(super) fn fresh(
    world: &RemediationSnapshot,
    case: &Remediation,
    beat: &NodeHeartbeat,
    taken: Duration,
) -> FreshReads {
    let host = case.host.as_ref().ok();
    let node = case
        .node_name
        .as_ref()
        .and_then(|name| world.nodes_of_cluster(&case.cluster.name)?.get(name));
    let marked = match &case.subject {
        RemediationSubject::Machine(name) => {
            world.machines.get(name).is_some_and(|it| it.need.is_some())
        }
        RemediationSubject::Node(_) => node.is_some_and(|node| node.needs_remediation),
        RemediationSubject::Request(name) => world.requests.contains_key(name),
        RemediationSubject::WorkloadNode(..) | RemediationSubject::Host(_) => false,
    };
    FreshReads {
        asked_at: taken,
        host: host.and_then(|host| world.hosts.get(&host.name)).cloned(),
        node: node.cloned(),
        backup: node.map(|node| NodeBackup {
            cluster: case.cluster.name.record_name(),
            ..NodeBackup::from_node(node, BTreeMap::new(), Vec::new())
        }),
        stored_backup: host.and_then(|host| world.backups.get(&host.uid)).cloned(),
        heartbeat: beat.clone(),
        needs_remediation: marked,
    }
}
