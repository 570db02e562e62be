//! The remediator's writes to Machines.

use dogwatch_core::condition::{ConditionStatus, ConditionWrite, DesiredCondition};
use dogwatch_k8s::remediation::RemediationWriteError;
use dogwatch_testbed::fixtures;
use serde_json::{Value, json};

use super::world::{CAPI, CAPI_OLD, Kind, OPENSHIFT, World, annotation, capi_spec};

const NEED: &str = "host.metal3.io/external-remediation";

pub async fn a_need_that_is_served_goes_and_one_that_is_marked_again_stays(world: &World) {
    for kind in [OPENSHIFT, CAPI] {
        let annotations = json!({ NEED: "", "metal3.io/BareMetalHost": "site/h",
            "host.metal3.io/external-remediation-2": "theirs" });
        let more = json!({ "metadata": { "annotations": annotations }, "spec": spec(kind) });
        let machine = world.machine(kind, "m", more).await;
        let client = world.client();
        // A health check marks it again, which is a new request.
        world.annotate(kind, "m", json!({ NEED: "again" })).await;
        let answer = client.remove_machine_need(&machine).await;
        assert!(
            matches!(answer, Err(RemediationWriteError::Changed(_))),
            "{answer:?}"
        );
        assert_eq!(
            annotation(&world.object(kind, "m").await, NEED),
            Some("again")
        );
        let machine = world.machine_now(kind, "m").await;
        let answer = client.remove_machine_need(&machine).await.unwrap();
        assert_eq!(answer.need, None);
        assert_eq!(answer, world.machine_now(kind, "m").await);
        let object = world.object(kind, "m").await;
        assert_eq!(annotation(&object, NEED), None);
        assert_eq!(
            annotation(&object, "metal3.io/BareMetalHost"),
            Some("site/h")
        );
        let like_ours = annotation(&object, "host.metal3.io/external-remediation-2");
        assert_eq!(like_ours, Some("theirs"));
    }
}

fn spec(kind: Kind) -> Value {
    if kind == OPENSHIFT {
        json!({})
    } else {
        capi_spec(kind)
    }
}

pub fn write(kind: &'static str, status: ConditionStatus, message: &str) -> ConditionWrite {
    ConditionWrite {
        observation: DesiredCondition {
            kind,
            status,
            reason: "PoweringOff".into(),
            message: message.into(),
            heartbeat: false,
            shows_reason: false,
        },
        last_transition: "2026-01-01T00:00:00Z".parse().unwrap(),
    }
}

/// A condition of another controller, in the shape of this kind's version.
fn theirs() -> Value {
    json!({ "type": "Ready", "status": "False", "reason": "X", "message": "y",
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

async fn conditions(world: &World, kind: Kind, name: &str) -> Vec<Value> {
    let object = world.object(kind, name).await;
    object.data["status"]["conditions"]
        .as_array()
        .unwrap()
        .clone()
}

pub async fn a_condition_is_written_in_the_form_of_its_version_and_others_stay(world: &World) {
    only_old(world, false).await;
    form(world, OPENSHIFT, true).await;
    form(world, CAPI, false).await;
    only_old(world, true).await;
    form(world, CAPI_OLD, true).await;
    only_old(world, false).await;
}

/// Serves Cluster API's kinds in the older version only, or in both.
async fn only_old(world: &World, is_old: bool) {
    let whole = fixtures::cluster_api_machines();
    world.take_out(CAPI).await;
    if is_old {
        world
            .install(&fixtures::only_version(whole, "v1beta1"))
            .await;
    } else {
        world.install(&whole).await;
    }
}

async fn form(world: &World, kind: Kind, has_severity: bool) {
    let more = json!({ "spec": spec(kind), "status": { "conditions": [theirs()] } });
    let machine = world.machine(kind, "m", more).await;
    let client = world.client();
    let under_way = write("Remediation", ConditionStatus::True, "goes off");
    // Its controllers write to it all the time: the version that was seen may be old.
    world.annotate(kind, "m", json!({ "x": "y" })).await;
    let answer = client
        .write_machine_conditions(&machine, &[under_way])
        .await;
    let answer = answer.unwrap();
    assert_eq!(answer, world.machine_now(kind, "m").await);
    assert_eq!(answer.conditions[0].reason, "PoweringOff");
    assert!(
        answer.conditions[0].last_heartbeat.is_some(),
        "when we wrote it"
    );
    let there = conditions(world, kind, "m").await;
    assert_eq!((there.len(), &there[0]), (2, &theirs()));
    assert_eq!(there[1].get("severity"), None);
    // A condition without a message.
    let at_rest = write("Remediation", ConditionStatus::False, "");
    let machine = world.machine_now(kind, "m").await;
    let client = client.write_machine_conditions(&machine, &[at_rest]).await;
    client.unwrap();
    let there = conditions(world, kind, "m").await;
    assert_eq!((there.len(), &there[0]), (2, &theirs()));
    assert_eq!(there[1]["status"], "False");
    let severity = has_severity.then(|| json!("Info"));
    assert_eq!(there[1].get("severity"), severity.as_ref());
    world.delete(kind, "m").await;
}

pub async fn a_machine_is_handed_back_in_the_lists_of_both_versions(world: &World) {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let list = |value: &Value| {
        let all = value.as_array().into_iter().flatten();
        let of_it = all.filter(|it| it["type"] == "OwnerRemediated" && it["status"] == "False");
        of_it.cloned().collect::<Vec<_>>()
    };
    let client = world.client();
    let machine = world.machine(CAPI, "m", json!({})).await;
    let answer = client
        .hand_back_machine(&machine, "given up", now)
        .await
        .unwrap();
    assert_eq!(answer.conditions[0].kind, "OwnerRemediated");
    let status = world.object(CAPI, "m").await.data["status"].clone();
    let here = list(&status["conditions"]);
    assert_eq!(
        (&here[0]["reason"], here[0].get("severity")),
        (&json!("WaitingForRemediation"), None)
    );
    let there = list(&status["deprecated"]["v1beta1"]["conditions"]);
    assert_eq!(there[0]["severity"], "Warning");
    only_old(world, true).await;
    let machine = world.machine(CAPI_OLD, "m", json!({})).await;
    // The API version that the client knew is not served any more; the client discovers the new
    // one.
    let first = client.hand_back_machine(&machine, "given up", now).await;
    if first.is_err() {
        client
            .hand_back_machine(&machine, "given up", now)
            .await
            .unwrap();
    }
    let status = world.object(CAPI_OLD, "m").await.data["status"].clone();
    assert_eq!(list(&status["conditions"])[0]["severity"], "Warning");
    let there = list(&status["v1beta2"]["conditions"]);
    assert_eq!(there[0]["message"], "given up");
    only_old(world, false).await;
}
