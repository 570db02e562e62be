//! Machines, hosts, Nodes, and what is known of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::*;
pub(super) use crate::explain::testkit::{now, record as reboot_record};
use crate::name::NodeName;
use crate::power::tests::world::World as Power;
use crate::power::{self, Consumer, Host, HostName};
use crate::reboot::NodeSeen;

pub(super) const NODE: &str = "dogwatch.dev/node";
pub(super) const UUID: &str = "4d2c7f0e-1111-4222-8333-0123456789ab";

pub(super) fn machine_name(name: &str) -> MachineName {
    MachineName {
        api: MachineApi::OpenShift,
        object: ObjectName::new("machines", name),
    }
}

/// A Machine of OpenShift on host `machines/h-NAME`, with Node `n-NAME`.
pub(super) fn machine(name: &str) -> Machine {
    Machine {
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
        paused: false,
        conditions: Vec::new(),
    }
}

pub(super) fn marked(name: &str) -> Machine {
    Machine {
        need: Some(String::new()),
        ..machine(name)
    }
}

pub(super) fn host_name(name: &str) -> HostName {
    HostName::new("machines", format!("h-{name}"))
}

/// Provisioned, online, and nobody's.
pub(super) fn host(name: &str) -> Host {
    let mut host = power::tests::world::host(&[], true);
    host.name = host_name(name);
    host.uid = format!("uid-h-{name}");
    host.status.provisioning = Some("provisioned".into());
    host
}

pub(super) fn consumed(mut host: Host, group: &str, kind: &str, object: &ObjectName) -> Host {
    host.consumer = Some(Consumer {
        group: group.into(),
        kind: kind.into(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    });
    host
}

pub(super) fn keyed(mut host: Host, key: &KeyOwner) -> Host {
    host.annotations.insert(key.key(), key.value());
    host
}

/// The same, with the record that comes with a key of ours for Machine `machines/a`.
pub(super) fn begun(host: Host, key: &KeyOwner) -> Host {
    let mut host = keyed(host, key);
    let stamp = |step| Stamp {
        step,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let record = Record {
        subject: "machine/machines/a".into(),
        uid: "uid-a".into(),
        node: Some("n-a".into()),
        node_uid: None,
        boot_id: None,
        attempt: 1,
        steps: vec![stamp(Step::Requested), stamp(Step::KeyAdded)],
    };
    let text = serde_json::to_string(&record).unwrap();
    host.annotations
        .insert("dogwatch.dev/remediation".into(), text);
    host
}

pub(super) fn node_name(name: &str) -> NodeName {
    NodeName::new(format!("n-{name}")).unwrap()
}

pub(super) fn node(name: &str) -> NodeSeen {
    NodeSeen {
        system_uuid: Some(UUID.into()),
        ..crate::explain::testkit::node(&format!("n-{name}"))
    }
}

/// A world of these.
pub(super) fn world(
    machines: impl IntoIterator<Item = Machine>,
    hosts: impl IntoIterator<Item = Host>,
    nodes: impl IntoIterator<Item = NodeSeen>,
) -> World {
    let machines = machines.into_iter();
    let hosts = hosts.into_iter();
    let nodes = nodes.into_iter();
    World {
        machines: machines.map(|it| (it.name.clone(), Arc::new(it))).collect(),
        hosts: hosts.map(|it| (it.name.clone(), Arc::new(it))).collect(),
        nodes: nodes.map(|it| (it.name.clone(), Arc::new(it))).collect(),
        synced: true,
        ..World::default()
    }
}

pub(super) fn case_of(world: &World, subject: &str) -> Option<Case> {
    let mut cases = cases(world).into_iter();
    cases.find(|case| case.subject.to_string() == subject)
}

/// What is kept for this host.
pub(super) fn stored(host: &Host, backup: Backup) -> KeptBackup {
    KeptBackup {
        host: host.name.clone(),
        host_uid: host.uid.clone(),
        consumer: host.consumer.clone(),
        backup,
        uid: format!("uid-kept-{}", host.uid),
        resource_version: "1".into(),
    }
}

/// The same world, in which this is kept.
pub(super) fn keeping(mut world: World, kept: KeptBackup) -> World {
    world.backups.insert(kept.host_uid.clone(), Arc::new(kept));
    world
}

/// What the power side tells the remediator.
pub(super) fn power_seen(power: &Power) -> PowerSeen {
    let now = power.now();
    power_at(power, now)
}

/// The same, at another time than the world's.
pub(super) fn power_at(power: &Power, now: crate::Now) -> PowerSeen {
    let because = power.last.as_ref().map(|last| &last.because);
    PowerSeen {
        now: power::now(&power.seen, &power.config, now),
        proof: power::proof(&power.seen, &power.config, now),
        answers: power::answers(&power.seen, &power.config, now),
        system_uuid: power::system_uuid(&power.seen).map(str::to_owned),
        off_since: power::off_since(&power.seen, &power.config, now),
        because: because.map(|because| (because.reason, because.message.clone())),
    }
}

/// The power side of this host, with its BMC.
pub(super) fn power_of(host: &Host, is_on: bool) -> Power {
    let mut power = Power::new(&[], host.online, is_on);
    power.seen.host = Arc::new(host.clone());
    power.about.system_uuid = Some(UUID.into());
    power
}

pub(super) fn beat(node: Option<&Arc<NodeSeen>>, second: i64) -> Beat {
    let at = jiff::Timestamp::from_second(second).ok();
    Beat {
        node_uid: node.map(|node| node.uid.clone()),
        renewed: at,
        posted: at,
        lease_lasts: Some(Duration::from_secs(40)),
    }
}

/// What a GET of all this would say.
pub(super) fn fresh(world: &World, case: &Case, beat: &Beat, taken: Duration) -> Fresh {
    let host = case.host.as_ref().ok();
    let node = case
        .node_name
        .as_ref()
        .and_then(|name| world.nodes.get(name));
    let marked = match &case.subject {
        Subject::Machine(name) => world.machines.get(name).is_some_and(|it| it.need.is_some()),
        Subject::Node(_) => node.is_some_and(|node| node.needs_remediation),
        Subject::Request(name) => world.requests.contains_key(name),
        Subject::Host(_) => false,
    };
    Fresh {
        taken,
        host: host.and_then(|host| world.hosts.get(&host.name)).cloned(),
        node: node.cloned(),
        backup: node.map(|node| Backup::of(node, BTreeMap::new(), Vec::new())),
        beat: beat.clone(),
        needs: marked,
    }
}
