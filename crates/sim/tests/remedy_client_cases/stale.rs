//! Writes that were decided on outdated objects.

use std::pin::Pin;

use dogwatch_core::power::HostSnapshot;
use dogwatch_core::reboot::ObservedNode;
use dogwatch_core::remediation::{ObservedMachine, PowerRequest};
use dogwatch_k8s::remediation::{RemediationClient, RemediationWriteError};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::hosts::{backup, owner, record};
use super::machines::write;
use super::nodes::subject;
use super::requests::status;
use super::world::{CAPI, HOST, Kind, NODE, OPENSHIFT, REQUEST, World, capi_spec};

type Tried<'a> = Pin<Box<dyn Future<Output = Result<(), RemediationWriteError>> + Send + 'a>>;

/// A write, by its name, and whether it accepts any version of the object and checks only the UID.
struct Try<'a>(&'static str, bool, Tried<'a>);

fn attempt<'a, T: Send + 'a>(
    name: &'static str,
    any_version: bool,
    call: impl Future<Output = Result<T, RemediationWriteError>> + Send + 'a,
) -> Try<'a> {
    let call = async move { call.await.map(|_| ()) };
    Try(name, any_version, Box::pin(call))
}

fn on_host<'a>(client: &'a RemediationClient, host: &'a HostSnapshot) -> Vec<Try<'a>> {
    const KEY: &str = "reboot.metal3.io/machine-remediation";
    vec![
        attempt("add_key", false, async {
            client.add_key(host, &owner(), &record()).await
        }),
        attempt("remove_key", false, async {
            client.remove_key(host, KEY, Some(&record())).await
        }),
        attempt("write_record", false, async {
            client.write_record(host, &record()).await
        }),
        attempt("remove_old_backup", false, client.remove_old_backup(host)),
    ]
}

fn on_machine<'a>(client: &'a RemediationClient, machine: &'a ObservedMachine) -> Vec<Try<'a>> {
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    vec![
        attempt(
            "remove_machine_need",
            false,
            client.remove_machine_need(machine),
        ),
        attempt(
            "hand_back",
            true,
            client.hand_back_machine(machine, "given up", at),
        ),
        attempt("write_machine_conditions", true, async {
            let status = dogwatch_core::condition::ConditionStatus::True;
            let writes = [write("Remediation", status, "goes off")];
            client.write_machine_conditions(machine, &writes).await
        }),
    ]
}

fn on_node<'a>(
    world: &'a World,
    client: &'a RemediationClient,
    node: &'a ObservedNode,
) -> Vec<Try<'a>> {
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    vec![
        attempt("mark_node", true, async move {
            client.mark_node_fencing(node, &subject(world), at).await
        }),
        attempt("unmark_node", false, client.unmark_node_fencing(node)),
        attempt("remove_node_need", false, client.remove_node_need(node)),
        attempt("restore", true, async {
            client.restore_node(node, &backup()).await
        }),
        attempt("untaint", false, client.untaint_node(node, at)),
    ]
}

fn on_request<'a>(client: &'a RemediationClient, request: &'a PowerRequest) -> Vec<Try<'a>> {
    vec![
        attempt("write_status", false, async {
            client.write_request_status(request, &status(), &[]).await
        }),
        attempt("remove_finalizer", false, client.remove_finalizer(request)),
    ]
}

async fn all_fail(world: &World, kind: Kind, name: &str, is_another: bool, tries: Vec<Try<'_>>) {
    let before = world.object(kind, name).await;
    for Try(what, any_version, call) in tries {
        if any_version && !is_another {
            continue;
        }
        let answer = call.await;
        assert!(
            matches!(answer, Err(RemediationWriteError::Changed(_))),
            "{what}: {answer:?}"
        );
        assert_eq!(world.object(kind, name).await, before, "{what}");
    }
}

/// Deletes the object and creates another one of its name.
async fn anew(world: &World, kind: Kind, name: &str, more: &Value) -> DynamicObject {
    let none = json!({ "metadata": { "finalizers": null } });
    world.change(kind, name, &none).await;
    world.delete(kind, name).await;
    world.make(kind, name, more.clone()).await
}

pub async fn no_write_is_done_on_what_has_changed_since_or_was_made_anew(world: &World) {
    let client = world.client();
    let touch = json!({ "touched": "by somebody else" });
    let key = json!({ "reboot.metal3.io/machine-remediation": owner().annotation_value(),
        "dogwatch.dev/node-backup": "{}" });
    let host = world.host("h", key.clone()).await;
    world.annotate(HOST, "h", touch.clone()).await;
    all_fail(world, HOST, "h", false, on_host(&client, &host)).await;
    let more = json!({ "metadata": { "annotations": key }, "spec": { "online": true } });
    anew(world, HOST, "h", &more).await;
    all_fail(world, HOST, "h", true, on_host(&client, &host)).await;

    let need = json!({ "host.metal3.io/external-remediation": "" });
    for kind in [OPENSHIFT, CAPI] {
        let spec = if kind == CAPI {
            capi_spec(CAPI)
        } else {
            json!({})
        };
        let more = json!({ "metadata": { "annotations": need }, "spec": spec });
        let machine = world.machine(kind, "m", more.clone()).await;
        world.annotate(kind, "m", touch.clone()).await;
        all_fail(world, kind, "m", false, on_machine(&client, &machine)).await;
        anew(world, kind, "m", &more).await;
        all_fail(world, kind, "m", true, on_machine(&client, &machine)).await;
    }

    let mut annotations = need.clone();
    annotations["dogwatch.dev/fencing"] = json!("{}");
    let taint = json!({ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
        "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z" });
    let more = json!({ "metadata": { "annotations": annotations }, "spec": { "taints": [taint] } });
    let node = world.node("n", more.clone()).await;
    let name = node.name.as_str();
    world.annotate(NODE, name, touch.clone()).await;
    all_fail(world, NODE, name, false, on_node(world, &client, &node)).await;
    anew(world, NODE, name, &more).await;
    all_fail(world, NODE, name, true, on_node(world, &client, &node)).await;

    let finalizers = json!(["dogwatch.dev/power-remediation"]);
    let more = json!({ "metadata": { "finalizers": finalizers }, "spec": {} });
    let request = world.request("r", more.clone()).await;
    world.annotate(REQUEST, "r", touch).await;
    all_fail(world, REQUEST, "r", false, on_request(&client, &request)).await;
    anew(world, REQUEST, "r", &more).await;
    all_fail(world, REQUEST, "r", true, on_request(&client, &request)).await;
    let mut without = request.clone();
    without.has_finalizer = false;
    let add = attempt("add_finalizer", false, client.add_finalizer(&without));
    all_fail(world, REQUEST, "r", true, vec![add]).await;
}
