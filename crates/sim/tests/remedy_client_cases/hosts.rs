//! The remediator's writes to hosts.

use std::collections::BTreeMap;

use dogwatch_core::remediation::{
    KeyOwner, MACHINE_KEY, NodeBackup, RemediationRecord, RemediationStep, StepStamp,
};
use dogwatch_k8s::remediation::RemediationWriteError;
use serde_json::{Value, json};

use super::world::{HOST, World, annotation};
use crate::support::objects;

pub fn record() -> RemediationRecord {
    RemediationRecord {
        subject: "machine/ns/m".into(),
        uid: "mu".into(),
        node: Some("n".into()),
        node_uid: None,
        cluster: None,
        cluster_uid: None,
        boot_id: None,
        attempt: 1,
        steps: vec![StepStamp {
            step: RemediationStep::Requested,
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
        }],
    }
}

pub fn owner() -> KeyOwner {
    KeyOwner::Machine("mu".into())
}

/// Annotations of other operators, also with names that begin like ours.
fn foreign() -> Value {
    json!({
        "reboot.metal3.io": "", "reboot.metal3.io/iha": "{\"mode\":\"soft\"}",
        "reboot.metal3.io/machine-remediation-2": "x", "reboot.metal3.io/power-remediation": "x",
        "reboot.metal3.io/capbm-requested-power-off": "{\"mode\":\"hard\"}",
        "metal3.io/other": "large", "dogwatch.dev/node": "n",
    })
}

async fn foreign_stand(world: &World, host: &str) {
    let object = world.object(HOST, host).await;
    for (name, value) in foreign().as_object().unwrap() {
        assert_eq!(annotation(&object, name), value.as_str(), "{name}");
    }
}

pub async fn a_key_and_its_record_are_put_on_a_host_in_one_write_and_what_others_wrote_stays(
    world: &World,
) {
    let host = world.host("h", foreign()).await;
    let client = world.client();
    let answer = client.add_key(&host, &owner(), &record()).await.unwrap();
    assert_eq!(answer, world.host_now("h").await);
    let object = world.object(HOST, "h").await;
    let value = r#"{"mode":"hard","machineUID":"mu"}"#;
    assert_eq!(annotation(&object, MACHINE_KEY), Some(value));
    let written = annotation(&object, "dogwatch.dev/remediation").unwrap();
    assert_eq!(
        serde_json::from_str::<RemediationRecord>(written).unwrap(),
        record()
    );
    foreign_stand(world, "h").await;
    // A second call writes nothing.
    let again = client.add_key(&answer, &owner(), &record()).await.unwrap();
    assert_eq!(again, answer);
    let request = KeyOwner::Request("ru".into());
    let both = client.add_key(&again, &request, &record()).await.unwrap();
    assert!(
        both.annotations
            .contains_key("reboot.metal3.io/power-remediation-ru")
    );
    assert!(both.annotations.contains_key(MACHINE_KEY));
    foreign_stand(world, "h").await;
}

pub async fn a_word_that_was_said_before_a_key_goes_when_the_key_is_added(world: &World) {
    let host = world.host("h", foreign()).await;
    let client = world.client();
    let word = json!({ "dogwatch.dev/confirmed-off": "{}" });
    world.annotate(HOST, "h", word.clone()).await;
    let host_then = world.host_now("h").await;
    let stale = client.add_key(&host, &owner(), &record()).await;
    assert!(stale.is_err(), "the word came after this reading");
    let keyed = client.add_key(&host_then, &owner(), &record()).await;
    let keyed = keyed.unwrap();
    assert!(keyed.annotations.contains_key(MACHINE_KEY));
    assert!(!keyed.annotations.contains_key("dogwatch.dev/confirmed-off"));
    foreign_stand(world, "h").await;
    // If the key exists already, the write changes nothing and leaves the person's confirmation.
    world.annotate(HOST, "h", word).await;
    let said = world.host_now("h").await;
    let again = client.add_key(&said, &owner(), &record()).await.unwrap();
    assert!(again.annotations.contains_key("dogwatch.dev/confirmed-off"));
}

pub async fn a_key_goes_with_the_word_that_was_given_for_it_and_no_other_key_goes(world: &World) {
    let host = world.host("h", foreign()).await;
    let client = world.client();
    let host = client.add_key(&host, &owner(), &record()).await.unwrap();
    let request = KeyOwner::Request("ru".into());
    client.add_key(&host, &request, &record()).await.unwrap();
    let word = json!({ "dogwatch.dev/confirmed-off": "{}" });
    world.annotate(HOST, "h", word).await;
    let host = world.host_now("h").await;
    let mut ended = record();
    ended.steps.push(StepStamp {
        step: RemediationStep::KeyRemoved,
        at: "2026-01-01T00:01:00Z".parse().unwrap(),
    });
    let answer = client.remove_key(&host, MACHINE_KEY, Some(&ended)).await;
    let answer = answer.unwrap();
    assert_eq!(answer, world.host_now("h").await);
    assert!(!answer.annotations.contains_key(MACHINE_KEY));
    assert!(
        !answer
            .annotations
            .contains_key("dogwatch.dev/confirmed-off")
    );
    assert!(
        answer
            .annotations
            .contains_key("reboot.metal3.io/power-remediation-ru")
    );
    let object = world.object(HOST, "h").await;
    let written = annotation(&object, "dogwatch.dev/remediation").unwrap();
    assert_eq!(
        serde_json::from_str::<RemediationRecord>(written).unwrap(),
        ended
    );
    foreign_stand(world, "h").await;
    // The key is gone: there is nothing to do.
    let again = client.remove_key(&answer, MACHINE_KEY, None).await.unwrap();
    assert_eq!(again, answer);
}

pub async fn a_key_of_somebody_else_is_neither_written_over_nor_removed(world: &World) {
    let mut annotations = foreign();
    annotations[MACHINE_KEY] = json!("somebody's");
    let host = world.host("h", annotations).await;
    let client = world.client();
    let before = world.object(HOST, "h").await;
    let answer = client.add_key(&host, &owner(), &record()).await;
    assert!(
        matches!(answer, Err(RemediationWriteError::Foreign(_))),
        "{answer:?}"
    );
    let answer = client.add_key(&host, &KeyOwner::Foreign, &record()).await;
    assert!(
        matches!(answer, Err(RemediationWriteError::Foreign(_))),
        "{answer:?}"
    );
    for key in [
        "reboot.metal3.io",
        "reboot.metal3.io/iha",
        "reboot.metal3.io/machine-remediation-2",
        "reboot.metal3.io/power-remediation",
        "dogwatch.dev/node",
    ] {
        let answer = client.remove_key(&host, key, None).await;
        assert!(
            matches!(answer, Err(RemediationWriteError::Foreign(_))),
            "{key}: {answer:?}"
        );
    }
    assert_eq!(world.object(HOST, "h").await, before);
}

pub fn backup() -> NodeBackup {
    NodeBackup {
        node: "n".into(),
        uid: "nu".into(),
        labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        cordoned: true,
        ..NodeBackup::default()
    }
}

pub async fn what_is_kept_for_a_node_is_kept_in_dogwatchs_namespace_until_it_is_dropped(
    world: &World,
) {
    let consumer = json!({ "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "namespace": "machines", "name": "m" });
    let more = json!({ "metadata": { "annotations": foreign() },
        "spec": { "online": true, "consumerRef": consumer } });
    world.make(HOST, "h", more).await;
    let host = world.host_now("h").await;
    let client = world.client();
    let kept = client.write_backup(&host, &backup(), None).await.unwrap();
    assert_eq!(world.kept(&host).await.as_deref(), Some(&kept));
    assert_eq!((&kept.backup, &kept.consumer), (&backup(), &host.consumer));
    assert_eq!(world.host_now("h").await, host, "nothing is on the host");
    let object = world
        .backups()
        .get(&format!("node-backup-{}", host.uid))
        .await;
    assert_eq!(object.unwrap().metadata.uid.as_ref(), Some(&kept.uid));
    // The backup of another Node of that host is replaced only in the version that was seen.
    let again = client.write_backup(&host, &backup(), None).await;
    assert!(
        matches!(again, Err(RemediationWriteError::Changed(_))),
        "{again:?}"
    );
    let next = NodeBackup {
        uid: "nu2".into(),
        ..backup()
    };
    let newer = client
        .write_backup(&host, &next, Some(&kept))
        .await
        .unwrap();
    assert_eq!(newer.backup, next);
    for late in [
        client
            .write_backup(&host, &backup(), Some(&kept))
            .await
            .map(|_| ()),
        client.delete_backup(&kept).await,
    ] {
        assert!(
            matches!(late, Err(RemediationWriteError::Changed(_))),
            "{late:?}"
        );
    }
    // The same content makes a new version too, so that a late deletion of the older one fails.
    let again = client
        .write_backup(&host, &next, Some(&newer))
        .await
        .unwrap();
    assert_eq!(again.backup, next);
    let late = client.delete_backup(&newer).await;
    assert!(
        matches!(late, Err(RemediationWriteError::Changed(_))),
        "{late:?}"
    );
    client.delete_backup(&again).await.unwrap();
    client.delete_backup(&again).await.unwrap();
    assert_eq!(world.kept(&host).await, None);
}

pub async fn what_is_kept_and_cannot_be_read_is_written_over(world: &World) {
    let host = world.host("h", json!({})).await;
    let name = format!("node-backup-{}", host.uid);
    let labels = json!({ "dogwatch.dev/node-backup": "true" });
    let broken = json!({ "metadata": { "name": name, "labels": labels },
        "data": { "host": "{", "node": "x" } });
    objects::create(&world.backups(), broken).await;
    assert_eq!(world.kept(&host).await, None);
    let client = world.client();
    let kept = client.write_backup(&host, &backup(), None).await.unwrap();
    assert_eq!(world.kept(&host).await.as_deref(), Some(&kept));
    client.delete_backup(&kept).await.unwrap();
}

pub async fn what_an_older_version_kept_on_a_host_goes_and_nothing_else(world: &World) {
    let mut annotations = foreign();
    annotations["dogwatch.dev/node-backup"] = json!("{}");
    let host = world.host("h", annotations).await;
    let client = world.client();
    let host = client.write_record(&host, &record()).await.unwrap();
    let host = client.remove_old_backup(&host).await.unwrap();
    assert_eq!(host, world.host_now("h").await);
    assert!(!host.annotations.contains_key("dogwatch.dev/node-backup"));
    assert!(host.annotations.contains_key("dogwatch.dev/remediation"));
    foreign_stand(world, "h").await;
}

pub async fn keys_are_put_on_metal3s_own_hosts_and_taken_off(world: &World) {
    world
        .install(&dogwatch_testbed::fixtures::metal3_hosts())
        .await;
    let host = world.host("h", foreign()).await;
    let status = json!({ "poweredOn": true, "errorCount": 0, "errorMessage": "", "operationalStatus": "OK",
        "provisioning": { "ID": "", "state": "provisioned" } });
    world.change_status(HOST, "h", &status).await;
    let client = world.client();
    let stale = client.add_key(&host, &owner(), &record()).await;
    assert!(
        matches!(stale, Err(RemediationWriteError::Changed(_))),
        "{stale:?}"
    );
    let host = world.host_now("h").await;
    let host = client.add_key(&host, &owner(), &record()).await.unwrap();
    assert_eq!(host.annotations[MACHINE_KEY], owner().annotation_value());
    let host = client.remove_key(&host, MACHINE_KEY, None).await.unwrap();
    assert!(!host.annotations.contains_key(MACHINE_KEY));
    foreign_stand(world, "h").await;
    assert_eq!(world.object(HOST, "h").await.data["status"], status);
    world
        .install(&dogwatch_api::bare_metal_host::host_crd())
        .await;
}
