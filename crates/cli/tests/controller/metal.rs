//! A control plane with hosts, the shipped account of the controller, and a BMC on loopback.

use std::path::PathBuf;

use dogwatch_sim::bmc::{BmcFleet, SimBmc, http_server};
use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::recount::RecountedPlane;
use crate::support::{eventually, installed};

/// Must appear in no log, metric, Event or host.
pub const PASSWORD: &str = "sekret16";
const HOSTS_ROLE: &str = include_str!("../../../../deploy/hosts/rbac.yaml");

/// A control plane with the kind BareMetalHost, policies that deny, and namespace `metal`, whose
/// Secrets the controller may read.
pub async fn metal() -> RecountedPlane {
    let plane = installed(&["--with-policies=deny", "--with-power"]).await;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .args(["crds", "--hosts"])
        .output()
        .unwrap();
    let kind = String::from_utf8(output.stdout).unwrap();
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "metal" } });
    for manifests in [&kind, &namespace.to_string()] {
        apply(&plane, manifests).await;
    }
    let role = ["apply", "-n", "metal", "-f", "-"];
    plane.run_kubectl(&role, HOSTS_ROLE).await.unwrap();
    plane
}

pub async fn apply(plane: &ControlPlane, manifests: &str) {
    let words = ["apply", "--server-side", "-f", "-"];
    plane.run_kubectl(&words, manifests).await.unwrap();
}

/// The kubeconfig of the controller's own account.
pub async fn account(plane: &ControlPlane) -> PathBuf {
    let kubeconfig = plane.kubeconfig_of("dogwatch", "dogwatch-controller");
    kubeconfig.await.unwrap()
}

/// Serves the BMC and returns its address on loopback.
pub async fn served(bmc: &SimBmc) -> String {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let number = listener.local_addr().unwrap().port();
    let park = BmcFleet::default();
    park.add_bmc(bmc.clone());
    let address = park.bmc_address("h0", number).unwrap();
    tokio::spawn(http_server::serve_fleet(listener, park));
    address
}

/// Creates host `h0` with this BMC and `spec.online` true.
pub async fn put_host(plane: &ControlPlane, address: &str) {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "bmc", "namespace": "metal" },
        "stringData": { "username": "admin", "password": PASSWORD } });
    for object in [secret, bare_metal_host("h0", address, "bmc")] {
        put(plane, &object).await;
    }
}

/// With `spec.online` true.
pub fn bare_metal_host(name: &str, address: &str, secret: &str) -> Value {
    json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": name, "namespace": "metal" },
        "spec": { "online": true, "bmc": { "address": address, "credentialsName": secret } } })
}

/// Creates the object as soon as its kind is served.
pub async fn put(plane: &ControlPlane, object: &Value) {
    let object = object.to_string();
    eventually(|| async {
        let applied = plane.run_kubectl(&["apply", "-f", "-"], &object).await;
        applied.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

pub async fn host(plane: &ControlPlane) -> Value {
    crate::support::get(plane, &["bmh", "h0", "-n", "metal"]).await
}
