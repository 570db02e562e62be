//! Hosts on a real API server, with the rights that are shipped: the cases, and what only it has.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[allow(dead_code, reason = "each test binary uses its part")]
mod host_cases;

use std::path::Path;

use dogwatch_core::power::reason;
use dogwatch_k8s::host::{SecretTrouble, WriteError};
use dogwatch_testbed::{ControlPlane, shared};
use host_cases::world::{World, writing};
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

const NAMESPACE: &str = include_str!("../../../deploy/base/namespace.yaml");
const ROLES: &str = include_str!("../../../deploy/base/controller-rbac.yaml");
const HOSTS_ROLE: &str = include_str!("../../../deploy/hosts/rbac.yaml");

/// The kind is one for the whole server: one test at a time.
static TURN: Mutex<()> = Mutex::const_new(());

async fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().await
}

/// A namespace in which the controller may do what `deploy/base` and `deploy/hosts` let it do.
async fn world() -> World {
    let world = without_role().await;
    let namespace = format!("--namespace={}", world.namespace);
    let apply = ["apply", "-f", "-", namespace.as_str()];
    let plane = shared().await;
    plane.run_kubectl(&apply, HOSTS_ROLE).await.unwrap();
    plane.wait_until_rights_are_in_force().await.unwrap();
    world
}

async fn without_role() -> World {
    static RIGHTS: OnceCell<()> = OnceCell::const_new();
    let plane = shared().await;
    RIGHTS.get_or_init(|| rights(plane)).await;
    let token = plane.service_account_token("dogwatch", "dogwatch-controller", None);
    let controller = plane.kubeconfig_for(&token.await.unwrap()).unwrap();
    World::on(client(plane.kubeconfig()).await, client(&controller).await).await
}

async fn rights(plane: &ControlPlane) {
    let apply = ["apply", "-f", "-"];
    for manifests in [NAMESPACE, ROLES] {
        plane.run_kubectl(&apply, manifests).await.unwrap();
    }
    plane.wait_until_rights_are_in_force().await.unwrap();
}

async fn client(file: &Path) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::read_from(file).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
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
    let answer = world.hosts().secret(&world.namespace, "bmc").await;
    let Err(SecretTrouble::Missing { reason, message }) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(reason, reason::SECRET_FORBIDDEN);
    assert!(
        message.contains("deploy/hosts") && message.contains(&world.namespace),
        "{message}"
    );
}

/// As metal3's own is: structural, with neither the two times nor `power`, and with its required fields.
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
    let mut crd = dogwatch_api::bare_metal_host::crd();
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
    let Err(WriteError::Pruned(dropped)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(
        dropped,
        ["provisioning.pendingRebootSince", "power.obeyedIn"]
    );
    world.take_the_kind_out().await;
}
