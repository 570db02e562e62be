//! Hosts on a real API server, with the rights that are shipped: the cases, and tests of what only
//! it has.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod host_cases;
#[allow(dead_code, reason = "each test binary uses its part")]
mod support;

use dogwatch_core::power::PowerReason;
use dogwatch_k8s::host::{BmcSecretError, HostWriteError};
use dogwatch_testbed::shared_control_plane;
use host_cases::world::{World, writing};
use serde_json::json;
use support::real::{
    NAMESPACE, ROLES, apply, client_that_asks_once, controller_that_asks_once, let_read_secrets,
};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The kind belongs to the whole server: one test at a time.
static TURN: Mutex<()> = Mutex::const_new(());

async fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().await
}

/// A namespace in which the controller has the rights of `deploy/base` and `deploy/hosts`.
async fn world() -> World {
    let world = without_role().await;
    let_read_secrets(&world.namespace).await;
    world
}

async fn without_role() -> World {
    static RIGHTS: OnceCell<()> = OnceCell::const_new();
    RIGHTS.get_or_init(rights).await;
    let people = client_that_asks_once(shared_control_plane().await.admin_kubeconfig()).await;
    World::on(people, controller_that_asks_once("dogwatch").await).await
}

async fn rights() {
    for manifests in [NAMESPACE, ROLES] {
        apply(manifests).await;
    }
}

macro_rules! on_real {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let _turn = turn().await;
            host_cases::$name(&world().await).await;
        }
    )* };
}

host_cases::every_case!(on_real);

#[tokio::test]
async fn a_secret_that_may_not_be_read_is_said_with_the_role_that_lacks() {
    let _turn = turn().await;
    let world = without_role().await;
    let answer = world.hosts().read_secret(&world.namespace, "bmc").await;
    let Err(BmcSecretError::Missing { reason, message }) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(reason, PowerReason::SecretForbidden);
    assert!(
        message.contains("deploy/hosts") && message.contains(&world.namespace),
        "{message}"
    );
}

/// Like metal3's own definition: structural, with neither the two times nor `power`, and with its
/// required fields.
fn metal3s_own() -> serde_json::Value {
    let text = json!({ "type": "string" });
    let status = json!({
        "type": "object",
        "required": ["errorCount", "errorMessage", "operationalStatus", "poweredOn", "provisioning"],
        "properties": {
            "errorCount": { "type": "integer" }, "errorMessage": text, "operationalStatus": text,
            "poweredOn": { "type": "boolean" },
            "provisioning": { "type": "object", "required": ["ID", "state"],
                "properties": { "ID": text, "state": text } },
        },
    });
    let spec = json!({ "type": "object", "required": ["online"], "properties": {
        "online": { "type": "boolean" },
        "bmc": { "type": "object", "properties": { "address": text, "credentialsName": text } } } });
    let mut crd = dogwatch_api::bare_metal_host::host_crd();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "properties": { "spec": spec, "status": status } });
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
    crd
}

#[tokio::test]
async fn where_metal3s_own_definition_drops_what_is_ours_that_is_said_and_not_taken_for_written() {
    let _turn = turn().await;
    let world = world().await;
    world.take_the_kind_out().await;
    world.install(&metal3s_own()).await;
    let host = world.host("h", "ipmi://192.0.2.1").await;
    let write = writing(&host, |status| {
        status.powered_on = Some(true);
        status.pending_reboot_since = Some("2026-01-01T00:00:00.000001Z".parse().unwrap());
        status.power.obeyed_in = Some("provisioned".into());
    });
    let answer = world.hosts().write_status(&host, &write, &[]).await;
    let Err(HostWriteError::Pruned(dropped)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(
        dropped,
        ["provisioning.pendingRebootSince", "power.obeyedIn"]
    );
    world.take_the_kind_out().await;
}
