//! The API server itself enforces the rules of the lock. Source: specification §2.2, §6; promises
//! S1, S3.

mod junk;
mod marks;
mod steal;
mod take;
mod whose;

use serde_json::{Value, json};

use super::{Call, Expected, Stage, Who};
use crate::support::api::{APPLY, JSON, MERGE};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases";
const SLOT: &str = "dogwatch-default-0";
const TIME: &str = "2026-11-21T04:00:00.000000Z";

const HELD: &str = "held by node/first: a lock goes from its holder to nobody";
const NOT_ITS: &str = "only node/first itself writes this";
const TOGETHER: &str = "are freed together";
const LABEL: &str = "is the group in the Lease's name";

/// The Lease before the attempt.
#[derive(Clone, Copy)]
enum Before {
    Missing,
    /// Free, with the next in line named by the last holder.
    Free,
    /// Held by Node `first`.
    Held,
    /// Free, with a record that an incomplete release left behind.
    Leftover,
    /// Free, without its label.
    Unlabelled,
}

impl Before {
    async fn stand(self, stage: &Stage) {
        let api = &stage.cluster.api;
        api.delete(LEASES).await;
        let labels = json!({ "dogwatch.dev/group": "default" });
        let next = json!({ "dogwatch.dev/next": "node/second" });
        let (labels, annotations, spec) = match self {
            Self::Missing => return,
            Self::Free => (labels, next, json!({})),
            Self::Held => (labels, json!({}), json!({})),
            Self::Leftover => (
                labels,
                json!({ "dogwatch.dev/holder": "record", "dogwatch.dev/next": "node/second" }),
                json!({ "acquireTime": TIME }),
            ),
            Self::Unlabelled => (json!({}), next, json!({})),
        };
        let metadata = json!({ "name": SLOT, "labels": labels, "annotations": annotations });
        api.create(LEASES, &json!({ "metadata": metadata, "spec": spec }))
            .await;
        if matches!(self, Self::Held) {
            let call = bid("node/first");
            let held = api.attempt(call.verb, &call.path, call.kind, &call.body);
            held.await.expect("the administrator may");
        }
    }
}

fn lease(name: &str, holder: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "annotations": { "dogwatch.dev/holder": format!("record of {holder}") } },
        "spec": { "holderIdentity": holder, "acquireTime": TIME },
    })
}

fn apply(holder: &str, parameters: &str) -> Call {
    let path = format!("{LEASES}/{SLOT}?{parameters}");
    Call::new("PATCH", path, APPLY, lease(SLOT, holder))
}

/// A bid as the code writes it.
fn bid(holder: &str) -> Call {
    apply(holder, &format!("fieldManager={holder}"))
}

fn merge(body: Value) -> Call {
    let path = format!("{LEASES}/{SLOT}?fieldManager=node/first");
    Call::new("PATCH", path, MERGE, body)
}

/// A release as the code writes it, with these additional annotations.
fn free(annotations: &Value) -> Call {
    let mut all = json!({ "dogwatch.dev/holder": null });
    let more = annotations.as_object().expect("annotations").clone();
    all.as_object_mut().expect("annotations").extend(more);
    merge(json!({
        "metadata": { "annotations": all },
        "spec": { "holderIdentity": null, "acquireTime": null },
    }))
}

fn metadata(metadata: &Value) -> Call {
    merge(json!({ "metadata": metadata }))
}

fn delete(name: &str) -> Call {
    Call::new("DELETE", format!("{LEASES}/{name}"), JSON, json!({}))
}

fn create(name: &str, group: Option<&str>) -> Call {
    let body = json!({ "metadata": { "name": name, "labels": { "dogwatch.dev/group": group } } });
    Call::new("POST", LEASES, JSON, body)
}

type Row = (&'static str, Before, Who, Call, Expected);

async fn each(rows: Vec<Row>) {
    let stage = Stage::set().await;
    for (what, before, who, call, expected) in rows {
        before.stand(&stage).await;
        stage.attempt(what, who, &call, expected).await;
    }
}
