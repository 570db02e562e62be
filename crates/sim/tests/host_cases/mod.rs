//! Cases of hosts for every API server.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::{ConditionStatus, ConditionWrite, DesiredCondition};
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::power::{
    HostOwner, HostStatus, KubeletLeases, OwnerRules, PendingCommand, PendingCommandEnd,
    PowerCommand, PowerReason, PowerState,
};
use dogwatch_k8s::host::{BmcSecretError, HostWatchView, HostWriteError};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;

use crate::support::life::Life;
use crate::support::objects::{CAPI, OPENSHIFT};
use world::{World, bmc, writing};

/// Passes every case to a macro that makes a test of it.
macro_rules! every_case {
    ($run:ident) => {
        $run! {
            a_kind_that_comes_is_found_and_one_that_is_taken_out_leaves_no_hosts
            a_host_is_seen_from_its_creation_to_its_end
            a_status_is_written_on_what_was_seen_and_stands
            a_status_for_a_host_that_was_made_anew_is_refused
            what_others_wrote_stays
            an_older_message_of_a_command_does_not_stay
            annotations_are_taken_off_as_they_were_seen_and_no_others
            a_secret_is_read_by_its_name_and_half_a_one_is_said
            the_same_news_about_a_host_is_told_once_where_the_host_is
            of_hosts_with_one_bmc_the_newer_is_told_of_the_older
            a_live_leader_of_metal3_owns_all_hosts_but_paused_ones_and_named_namespaces
            a_lease_that_nobody_renews_is_a_dead_leaders
            a_leader_outside_of_metal3s_namespaces_owns_no_host_and_is_told
            signs_of_life_are_those_of_the_nodes_that_a_host_carries_by_every_link
        }
    };
}
pub(crate) use every_case;

pub async fn a_kind_that_comes_is_found_and_one_that_is_taken_out_leaves_no_hosts(world: &World) {
    world.take_the_kind_out().await;
    let mut sight = world.sight();
    sight.until(|view| view.synced && !view.installed).await;
    assert!(sight.view().hosts.is_empty());
    world
        .install(&dogwatch_api::bare_metal_host::host_crd())
        .await;
    world.host("h", "ipmi://192.0.2.1").await;
    let name = world.name("h");
    let names = sight.until(|view| view.hosts.contains_key(&name)).await;
    assert!(names.contains(&name) && sight.view().installed);
    world.take_the_kind_out().await;
    let names = sight
        .until(|view| !view.installed && view.hosts.is_empty())
        .await;
    assert!(names.contains(&name));
}

pub async fn a_host_is_seen_from_its_creation_to_its_end(world: &World) {
    let mut sight = world.sight();
    sight.until(|view| view.synced).await;
    let made = world.host("h", "redfish://192.0.2.1").await;
    let name = world.name("h");
    sight.until_known(&[&name]).await;
    assert_eq!(*sight.view().hosts[&name], made);
    world
        .change("h", &json!({ "spec": { "online": false } }))
        .await;
    assert_eq!(sight.next().await, [name.clone()].into());
    assert!(!sight.view().hosts[&name].online);
    world.delete("h").await;
    assert_eq!(sight.next().await, [name].into());
    assert!(sight.view().hosts.is_empty());
    assert_eq!(
        world.hosts().read_host(&world.name("h")).await.unwrap(),
        None
    );
}

fn at(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(1_790_000_000_000_000 + microseconds).unwrap()
}

fn command(end: PendingCommandEnd) -> PendingCommand {
    PendingCommand {
        id: "p/1".into(),
        command: PowerCommand::Off,
        level: 0,
        target: "t".into(),
        since: at(1),
        at: at(1),
        attempt: 1,
        before: 0,
        after_unknown: false,
        why: "HeldOff".into(),
        end,
    }
}

fn off(status: &mut HostStatus) {
    status.powered_on = Some(false);
    status.provisioning = Some("externally provisioned".into());
    status.pending_reboot_since = Some(at(7));
    status.last_powered_on = Some(at(3));
    status.power.state = Some(PowerState::Off);
    status.power.observed_at = Some(at(9));
    status.power.off_confirmed_at = Some(at(11));
    status.power.command = Some(command(PendingCommandEnd::Open));
}

fn held() -> [ConditionWrite; 1] {
    [ConditionWrite {
        observation: DesiredCondition {
            kind: "HeldOff",
            status: ConditionStatus::True,
            reason: "HeldOff".into(),
            message: "by k".into(),
            heartbeat: false,
            shows_reason: false,
        },
        last_transition: at(0),
    }]
}

pub async fn a_status_is_written_on_what_was_seen_and_stands(world: &World) {
    let seen = world.host("h", "ipmi://192.0.2.1").await;
    let write = writing(&seen, off);
    let hosts = world.hosts();
    let written = hosts.write_status(&seen, &write, &held()).await.unwrap();
    let expected = HostStatus {
        // metal3's kind requires this field; we write it if nobody has.
        operational: Some("OK".to_owned()),
        conditions: written.status.conditions.clone(),
        ..write.status
    };
    assert_eq!(written.status, expected);
    let condition = &written.status.conditions[0];
    assert_eq!(condition.reason, "HeldOff");
    assert!(
        condition.last_heartbeat.is_some(),
        "when it was last written is known"
    );
    assert_eq!(hosts.read_host(&seen.name).await.unwrap().unwrap(), written);
    // The status has the field that metal3 requires.
    assert_eq!(world.object("h").await.status["operationalStatus"], "OK");
    // A late write changes nothing, whether the host had a status before or not.
    let late = writing(&seen, |status| status.powered_on = Some(true));
    let answer = hosts.write_status(&seen, &late, &[]).await;
    assert!(
        matches!(answer, Err(HostWriteError::Changed { .. })),
        "{answer:?}"
    );
    world
        .change("h", &json!({ "spec": { "online": false } }))
        .await;
    let late = writing(&written, |status| status.powered_on = Some(true));
    let answer = hosts.write_status(&written, &late, &[]).await;
    assert!(
        matches!(answer, Err(HostWriteError::Changed { .. })),
        "{answer:?}"
    );
    let now = hosts.read_host(&seen.name).await.unwrap().unwrap();
    assert_eq!(now.status.powered_on, Some(false));
}

pub async fn a_status_for_a_host_that_was_made_anew_is_refused(world: &World) {
    let seen = world.host("h", "ipmi://192.0.2.1").await;
    world.delete("h").await;
    let new = world.host("h", "ipmi://192.0.2.1").await;
    assert_ne!(seen.uid, new.uid);
    let mut seen = seen;
    for powered_on in [None, Some(true)] {
        seen.status.powered_on = powered_on;
        let answer = world
            .hosts()
            .write_status(&seen, &writing(&seen, off), &[])
            .await;
        assert!(
            matches!(answer, Err(HostWriteError::Changed { .. })),
            "{answer:?}"
        );
    }
    assert!(world.object("h").await.status.is_null());
}

pub async fn what_others_wrote_stays(world: &World) {
    let image = json!({ "url": "http://192.0.2.9/image", "checksum": "auto" });
    let spec = json!({ "online": true, "image": image, "bmc": world::bmc("ipmi://192.0.2.1") });
    world.host_of("h", &spec).await;
    let manageable = json!({ "type": "Manageable", "status": "True", "reason": "Manageable", "message": "m",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let theirs = json!({ "operationalStatus": "error", "errorCount": 3, "errorMessage": "x",
        "hardware": { "cpu": { "arch": "x86_64" } }, "poweredOn": true,
        "provisioning": { "ID": "1", "state": "provisioned", "image": image },
        "conditions": [manageable] });
    world.change_status("h", &theirs).await;
    let hosts = world.hosts();
    let seen = hosts.read_host(&world.name("h")).await.unwrap().unwrap();
    let off = |status: &mut HostStatus| {
        off(status);
        status.provisioning = Some("provisioned".into());
    };
    let written = hosts
        .write_status(&seen, &writing(&seen, off), &held())
        .await
        .unwrap();
    let mut again = held();
    again[0].observation.kind = "PowerAsWanted";
    hosts
        .write_status(&written, &writing(&written, |_| {}), &again)
        .await
        .unwrap();
    let object = world.object("h").await;
    assert_eq!(object.spec["image"], image);
    let status = &object.status;
    for name in [
        "operationalStatus",
        "errorCount",
        "errorMessage",
        "hardware",
    ] {
        assert_eq!(status[name], theirs[name], "{name}");
    }
    assert_eq!(status["provisioning"]["image"], image);
    assert_eq!(status["provisioning"]["ID"], "1");
    let conditions = status["conditions"].as_array().unwrap();
    let kinds: Vec<_> = conditions
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Manageable", "HeldOff", "PowerAsWanted"]);
    assert_eq!(conditions[0], manageable);
}

pub async fn an_older_message_of_a_command_does_not_stay(world: &World) {
    let seen = world.host("h", "ipmi://192.0.2.1").await;
    let hosts = world.hosts();
    let failed = PendingCommandEnd::Failed {
        at: at(5),
        message: "no way".into(),
    };
    let write = writing(&seen, |status| status.power.command = Some(command(failed)));
    let seen = hosts.write_status(&seen, &write, &[]).await.unwrap();
    let write = writing(&seen, |status| {
        status.power.command = Some(command(PendingCommandEnd::Open));
    });
    let seen = hosts.write_status(&seen, &write, &[]).await.unwrap();
    assert_eq!(
        seen.status.power.command,
        Some(command(PendingCommandEnd::Open))
    );
    let write = writing(&seen, |status| status.power.command = None);
    let seen = hosts.write_status(&seen, &write, &[]).await.unwrap();
    assert_eq!(seen.status.power.command, None);
    let power = &world.object("h").await.status["power"];
    assert!(power["command"].is_null(), "{power}");
}

pub async fn annotations_are_taken_off_as_they_were_seen_and_no_others(world: &World) {
    world.host("h", "ipmi://192.0.2.1").await;
    let three = json!({ "reboot.metal3.io": "", "reboot.metal3.io/k": "{}", "other": "x" });
    world
        .change("h", &json!({ "metadata": { "annotations": three } }))
        .await;
    let hosts = world.hosts();
    let seen = hosts.read_host(&world.name("h")).await.unwrap().unwrap();
    let base = ["reboot.metal3.io".to_owned()];
    let now = hosts.remove_annotations(&seen, &base).await.unwrap();
    let names: Vec<&String> = now.annotations.keys().collect();
    assert_eq!(names, ["reboot.metal3.io/k"]);
    // Another reboot is requested meanwhile: removing the served request must not remove this one.
    let asked =
        json!({ "metadata": { "annotations": { "reboot.metal3.io": "{\"mode\":\"hard\"}" } } });
    world.change("h", &asked).await;
    let answer = hosts.remove_annotations(&now, &base).await;
    assert!(
        matches!(answer, Err(HostWriteError::Changed { .. })),
        "{answer:?}"
    );
    let object = world.object("h").await;
    assert!(object.annotations().contains_key("reboot.metal3.io"));
    assert!(object.annotations().contains_key("other"));
}

pub async fn a_secret_is_read_by_its_name_and_half_a_one_is_said(world: &World) {
    let hosts = world.hosts();
    let trouble = async |name: &str| match hosts.read_secret(&world.namespace, name).await {
        Err(BmcSecretError::Missing { reason, message }) => {
            assert!(!message.contains("hunter2"), "{message}");
            reason
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(trouble("bmc").await, PowerReason::SecretNotFound);
    assert_eq!(
        trouble("../../default/secrets/bmc").await,
        PowerReason::SecretNotFound
    );
    assert_eq!(trouble("").await, PowerReason::SecretNotFound);
    world
        .secret("bmc", &json!({ "password": "aHVudGVyMgo=" }))
        .await;
    assert_eq!(trouble("bmc").await, PowerReason::SecretIncomplete);
    let whole = json!({ "username": "YWRtaW4=", "password": "aHVudGVyMgo=", "ca.crt": "UEVN" });
    world.secret("bmc", &whole).await;
    let secret = hosts.read_secret(&world.namespace, "bmc").await.unwrap();
    assert_eq!((&*secret.username, &*secret.password), ("admin", "hunter2"));
    assert_eq!(secret.ca.as_deref(), Some("PEM".as_bytes()));
    assert_eq!(
        hosts.read_secret(&world.namespace, "bmc").await.unwrap(),
        secret
    );
    world
        .secret(
            "bmc",
            &json!({ "username": "cm9vdA==", "password": "aHVudGVyMgo=" }),
        )
        .await;
    let changed = hosts.read_secret(&world.namespace, "bmc").await.unwrap();
    assert_ne!(changed.version, secret.version);
}

pub async fn the_same_news_about_a_host_is_told_once_where_the_host_is(world: &World) {
    let host = world.host("h", "ipmi://192.0.2.1").await;
    let event = |message: &str| DecisionEvent {
        severity: EventSeverity::Warning,
        reason: PowerReason::FoundOn.as_str(),
        message: message.into(),
    };
    let now = Now {
        wall: at(0),
        mono: std::time::Duration::ZERO,
    };
    for message in ["one", "one", "two"] {
        world
            .hosts()
            .write_event(&host, &event(message), now)
            .await
            .unwrap();
    }
    // Another reboot gets another Event.
    let mut next = host.clone();
    next.status.pending_reboot_since = Some(at(1));
    world
        .hosts()
        .write_event(&next, &event("one"), now)
        .await
        .unwrap();
    let mut events = world.events().await;
    events.retain(|it| it.reason.as_deref() == Some(PowerReason::FoundOn.as_str()));
    assert_eq!(events.len(), 3);
    let about = &events[0].involved_object;
    assert_eq!(about.kind.as_deref(), Some("BareMetalHost"));
    assert_eq!(about.uid.as_ref(), Some(&host.uid));
}

pub async fn of_hosts_with_one_bmc_the_newer_is_told_of_the_older(world: &World) {
    world
        .host("a", "redfish://192.0.2.1/redfish/v1/Systems/1")
        .await;
    // Creation times have whole seconds.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    world.host("b", "ipmi://192.0.2.2").await;
    let mut sight = world.sight();
    let (a, b) = (world.name("a"), world.name("b"));
    sight.until_known(&[&a, &b]).await;
    assert_eq!(sight.view().hosts_sharing_bmc(&a), []);
    let same = json!({ "spec": { "bmc": { "address": "ipmi://192.0.2.1" } } });
    world.change("b", &same).await;
    assert_eq!(sight.next().await, [a.clone(), b.clone()].into());
    assert_eq!(sight.view().hosts_sharing_bmc(&a), [], "it had it first");
    assert_eq!(sight.view().hosts_sharing_bmc(&b), vec![world.name("a")]);
    world.delete("a").await;
    assert_eq!(sight.next().await, [a, b.clone()].into());
    assert_eq!(sight.view().hosts_sharing_bmc(&b), []);
}

pub async fn a_live_leader_of_metal3_owns_all_hosts_but_paused_ones_and_named_namespaces(
    world: &World,
) {
    let host = world.host("h", "ipmi://192.0.2.1").await;
    world
        .operator_lease("bmo-1", "2026-01-01T00:00:00.000000Z")
        .await;
    let mut sight = world.sight();
    sight.until(|view| !view.hosts.is_empty()).await;
    let theirs = HostOwner::Metal3 {
        leader: "bmo-1".into(),
    };
    let until_theirs = sight.until(|view| view.owner_of(&host) == theirs);
    let names = world.while_renewed("bmo-1", until_theirs).await;
    assert!(names.contains(&host.name), "it has another owner now");
    let mut paused = host.clone();
    let key = "baremetalhost.metal3.io/paused".to_owned();
    paused.annotations.insert(key, String::new());
    assert_eq!(sight.view().owner_of(&paused), HostOwner::Ours);
    let mut named = world.sight_with(&[&world.namespace]);
    named.until(|view| !view.hosts.is_empty()).await;
    assert_eq!(named.view().owner_of(&host), HostOwner::Ours);
    // The holder releases its Lease.
    world
        .operator_lease("", "2026-01-01T01:00:00.000000Z")
        .await;
    let names = sight
        .until(|view| view.owner_of(&host) == HostOwner::Ours)
        .await;
    assert!(names.contains(&host.name));
}

pub async fn a_lease_that_nobody_renews_is_a_dead_leaders(world: &World) {
    let host = world.host("h", "ipmi://192.0.2.1").await;
    world
        .operator_lease("bmo-1", "2026-01-01T00:00:00.000000Z")
        .await;
    let began = tokio::time::Instant::now();
    let mut sight = world.sight();
    let (mut names, mut was_seen) = (BTreeSet::new(), false);
    while sight.view().owner_of(&host) != HostOwner::Ours {
        assert_eq!(sight.view().owner_of(&host), HostOwner::NotYetKnown);
        was_seen = sight.view().hosts.contains_key(&host.name);
        names = sight.next().await;
    }
    // One second of the Lease, and five for answers that may be under way.
    assert!(began.elapsed().as_secs() >= 6, "{:?}", began.elapsed());
    assert!(!was_seen || names.contains(&host.name));
}

/// Otherwise anybody who may write Leases in one namespace could switch off all power control.
pub async fn a_leader_outside_of_metal3s_namespaces_owns_no_host_and_is_told(world: &World) {
    let host = world.host("h", "ipmi://192.0.2.1").await;
    let spec = json!({ "leaseDurationSeconds": i32::MAX });
    world
        .operator_lease("me", "2026-01-01T00:00:00.000000Z")
        .await;
    world.change_operator_lease(&json!({ "spec": spec })).await;
    let mut sight = world.sight_by(OwnerRules::default());
    let is_told = |view: &HostWatchView| {
        let told = view.untrusted_leaders();
        told.get(&world.namespace).is_some_and(|who| who == "me")
    };
    let seen = sight.until(|view| view.owner_of(&host) == HostOwner::Ours && is_told(view));
    world.while_renewed("me", seen).await;
    assert_eq!(sight.view().owner_of(&host), HostOwner::Ours);
    world
        .operator_lease("", "2026-01-01T01:00:00.000000Z")
        .await;
    sight.until(|view| !is_told(view)).await;
}

pub async fn signs_of_life_are_those_of_the_nodes_that_a_host_carries_by_every_link(world: &World) {
    let renewed = "2026-01-01T00:00:00.000000Z";
    let signs = async |host: &str| {
        let host = world.hosts().read_host(&world.name(host)).await.unwrap();
        let host = Arc::new(host.unwrap());
        world.hosts().read_signs_of_life(&host).await.unwrap()
    };
    let named = |signs: &KubeletLeases| {
        let leases = signs.leases.iter();
        let renewed = leases.map(|(node, lease)| (node.to_string(), lease.renewed));
        renewed.collect::<Vec<_>>()
    };
    let life = Life::of(&world.people, &world.namespace).await;
    let nodes = ["by-name", "by-machine", "by-infra", "by-openshift"];
    for node in nodes {
        life.renew(node, renewed).await;
    }
    world.host("none", "ipmi://192.0.2.1").await;
    assert_eq!(signs("none").await, KubeletLeases::default());
    world.host("h", "ipmi://192.0.2.2").await;
    let annotation = json!({ "dogwatch.dev/node": life.node("by-name") });
    world
        .change("h", &json!({ "metadata": { "annotations": annotation } }))
        .await;
    world.host("m", "ipmi://192.0.2.3").await;
    life.machine(CAPI, "by-machine", "m", json!({})).await;
    world.host("i", "ipmi://192.0.2.4").await;
    life.metal3_machine("i").await;
    let infra = json!({ "spec": { "infrastructureRef": {
        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": "i" } } });
    life.machine(CAPI, "by-infra", "", infra).await;
    let consumer = json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "namespace": world.namespace, "name": "by-openshift" });
    let spec = json!({ "online": true, "bmc": bmc("ipmi://192.0.2.5"), "consumerRef": consumer });
    world.host_of("o", &spec).await;
    life.machine(OPENSHIFT, "by-openshift", "o", json!({}))
        .await;
    let at = Some(renewed.parse().unwrap());
    for (host, node) in [
        ("h", "by-name"),
        ("m", "by-machine"),
        ("i", "by-infra"),
        ("o", "by-openshift"),
    ] {
        assert_eq!(named(&signs(host).await), [(life.node(node), at)], "{host}");
    }
    life.clear(&nodes).await;
}
