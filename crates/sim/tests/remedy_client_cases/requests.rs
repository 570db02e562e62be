//! The remediator's writes to requests, and its Events.

use std::time::Duration;

use dogwatch_core::Now;
use dogwatch_core::condition::ConditionStatus;
use dogwatch_core::decision::{DecisionEvent, EventSeverity};
use dogwatch_core::power::HostName;
use dogwatch_core::remediation::{
    ProofNote, RemediationAttempt, RemediationStep, RequestStatus, StepStamp,
};
use dogwatch_k8s::remediation::RemediationEventSubject;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;

use super::machines::write;
use super::world::{OPENSHIFT, REQUEST, World};

fn at(microseconds: i64) -> Timestamp {
    Timestamp::from_microsecond(1_790_000_000_000_000 + microseconds).unwrap()
}

pub fn status() -> RequestStatus {
    RequestStatus {
        observed_generation: Some(1),
        started_at: Some(at(1)),
        attempt: Some(RemediationAttempt {
            number: 1,
            started_at: at(2),
            key_at: Some(at(3)),
            off_at: Some(at(4)),
            released_at: None,
            key_removed_at: None,
        }),
        host: Some((HostName::new("site", "h"), "hu".into())),
        node: Some("n".into()),
        node_uid: Some("nu".into()),
        boot_id: Some("b".into()),
        tainted_at: Some(at(0)),
        proof: Some(ProofNote {
            source: "OurCommand".into(),
            confirmed_at: at(5),
            by: None,
            reason: None,
        }),
        timeline: vec![StepStamp {
            step: RemediationStep::Requested,
            at: at(6),
        }],
        ..RequestStatus::default()
    }
}

pub async fn a_status_of_a_request_is_written_and_read_back(world: &World) {
    let request = world.request("r", json!({ "spec": {} })).await;
    let client = world.client();
    let writes = [write("Processing", ConditionStatus::True, "goes off")];
    let answer = client
        .write_request_status(&request, &status(), &writes)
        .await;
    let answer = answer.unwrap();
    assert_eq!(answer, world.request_now("r").await);
    let mut wanted = status();
    wanted.conditions.clone_from(&answer.status.conditions);
    assert_eq!(answer.status, wanted);
    let object = world.object(REQUEST, "r").await;
    assert_eq!(object.data["status"]["phase"], "Releasing");
    assert_eq!(
        object.data["status"]["conditions"][0]["observedGeneration"],
        1
    );
    // Fields that are no longer set are removed; a condition that is not written stays.
    let none = RequestStatus::default();
    let writes = [write("Succeeded", ConditionStatus::False, "given up")];
    let answer = client
        .write_request_status(&answer, &none, &writes)
        .await
        .unwrap();
    let kinds: Vec<_> = answer
        .status
        .conditions
        .iter()
        .map(|it| &*it.kind)
        .collect();
    assert_eq!(kinds, ["Processing", "Succeeded"]);
    assert_eq!(answer.status.attempt, None);
    assert_eq!(answer.status.host, None);
    assert_eq!(answer.status.timeline, []);
    let object = world.object(REQUEST, "r").await;
    assert_eq!(object.data["status"]["phase"], "Failed");
}

pub async fn our_finalizer_comes_and_goes_and_those_of_others_stay(world: &World) {
    let metadata = json!({ "finalizers": ["example.com/theirs"] });
    let more = json!({ "metadata": metadata, "spec": {} });
    let request = world.request("r", more).await;
    let client = world.client();
    let request = client.add_finalizer(&request).await.unwrap();
    assert!(request.has_finalizer);
    assert_eq!(client.add_finalizer(&request).await.unwrap(), request);
    let ours = "dogwatch.dev/power-remediation";
    let object = world.object(REQUEST, "r").await;
    assert_eq!(object.finalizers(), ["example.com/theirs", ours]);
    world.delete(REQUEST, "r").await;
    let request = world.request_now("r").await;
    assert!(request.deleting);
    let request = client.remove_finalizer(&request).await.unwrap().unwrap();
    assert!(!request.has_finalizer);
    let object = world.object(REQUEST, "r").await;
    assert_eq!(object.finalizers(), ["example.com/theirs"]);
    let none = json!({ "metadata": { "finalizers": null } });
    world.change(REQUEST, "r", &none).await;
    // Our finalizer is the last one, so removing it deletes the request.
    let request = world.request("alone", json!({ "spec": {} })).await;
    let request = client.add_finalizer(&request).await.unwrap();
    world.delete(REQUEST, "alone").await;
    let deleting = world.request_now("alone").await;
    assert_eq!(deleting.uid, request.uid);
    assert_eq!(client.remove_finalizer(&deleting).await.unwrap(), None);
    assert!(world.no_objects(REQUEST).await);
}

pub async fn the_same_news_of_one_episode_is_told_once_where_its_object_is(world: &World) {
    let machine = world.machine(OPENSHIFT, "m", json!({ "spec": {} })).await;
    let host = world.host("h", json!({})).await;
    let request = world.request("r", json!({ "spec": {} })).await;
    let node = world.node("n", json!({})).await;
    let client = world.client();
    let now = Now {
        wall: at(0),
        mono: Duration::ZERO,
    };
    let event = DecisionEvent {
        severity: EventSeverity::Warning,
        reason: "PoweringOff",
        message: "the host goes off".into(),
    };
    let abouts = [
        RemediationEventSubject::Machine(&machine),
        RemediationEventSubject::Host(&host),
        RemediationEventSubject::Request(&request),
        RemediationEventSubject::Node(&node),
    ];
    for about in abouts {
        for episode in ["1", "1", "2"] {
            client
                .write_event(about, episode, &event, now)
                .await
                .unwrap();
        }
    }
    let here = format!("/api/v1/namespaces/{}/events", world.namespace);
    let events = world.list(&here).await;
    let about = |kind: &str, uid: &str| {
        let of_it = events
            .iter()
            .filter(|it| it["involvedObject"]["kind"] == kind);
        let of_it = of_it.filter(|it| it["involvedObject"]["uid"] == uid);
        of_it.filter(|it| it["reason"] == "PoweringOff").count()
    };
    assert_eq!(about("Machine", &machine.uid), 2);
    assert_eq!(about("BareMetalHost", &host.uid), 2);
    assert_eq!(about("PowerRemediation", &request.uid), 2);
    let events = world.list("/api/v1/namespaces/default/events").await;
    let of_node = events
        .iter()
        .filter(|it| it["involvedObject"]["uid"] == *node.uid);
    assert_eq!(
        of_node.filter(|it| it["reason"] == "PoweringOff").count(),
        2
    );
}
