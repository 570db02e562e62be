//! metal3's baremetal-operator with its fixture provisioner: what it takes with many hosts, and how
//! soon a host that is to be off says so.
//!
//! The fixture asks no BMC: it answers at once, from one state for all hosts. What is measured is the
//! operator alone, with its own defaults: 20 calls of the API server a second. `poweredOn: false` is
//! what it was told; nothing proves that a machine is off.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use dogwatch_api::bare_metal_host::{API_VERSION, KIND};
use dogwatch_k8s::connect::connect_by_kubeconfig;
use dogwatch_testbed::ControlPlane;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::process::{Child, Command};

use super::controller::kibibytes;
use super::stage::{
    NAMESPACE, PATIENCE, annotate_host, create_hosts, create_namespace, host_api, name,
    wait_for_host_kind,
};
use super::table::{in_words, note, spread};

const FENCES: usize = 100;
const FENCE: &str = "reboot.metal3.io/bench";
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// It counts as at rest when no host has changed for so long.
const QUIET_FOR: Duration = Duration::from_secs(20);
/// A thousand hosts at 20 calls a second take long.
const REGISTERED_WITHIN: Duration = Duration::from_mins(40);

pub async fn measure(count: usize) {
    let given = ["BMO", "BMO_CRDS"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let [Some(program), Some(crds)] = given else {
        return eprintln!(
            "baremetal-operator is not measured: build it by `go build -o PATH .` in a clone of its \
             repository, and give --bmo PATH --bmo-crds CLONE/config/base/crds/bases"
        );
    };
    let plane = ControlPlane::builder().with_controllers([]).start().await;
    let plane = plane.expect("the control plane starts");
    let crds = crds.display().to_string();
    let apply = ["apply", "--server-side", "-f", &crds];
    plane.run_kubectl(&apply, "").await.expect("its CRDs");
    wait_for_host_kind(&plane).await;
    create_namespace(&plane).await;
    let client = connect_by_kubeconfig(plane.admin_kubeconfig()).await;
    let hosts = host_api(client.expect("a kubeconfig"));
    let operator = start_operator(&program, &plane);
    let objects: Vec<_> = (0..count).map(host_object).collect();
    let begun = Instant::now();
    create_hosts(&hosts, &objects).await;
    wait_until_registered(&hosts, count).await;
    let registered = begun.elapsed();
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", operator.id().expect("it runs")));
    let status = status.expect("a process of ours");
    note(
        &format!("baremetal-operator, {count} hosts: memory"),
        &format!(
            "{:.0} MiB, most {:.0} MiB; all registered after {:.0} s",
            kibibytes(&status, "VmRSS:") / 1024.0,
            kibibytes(&status, "VmHWM:") / 1024.0,
            registered.as_secs_f64(),
        ),
    );
    let one = power_off(&hosts, 0..1).await;
    note(
        "baremetal-operator: one annotated host -> its status says off",
        &in_words(one),
    );
    let fences = FENCES.min(count - 1);
    let many = power_off(&hosts, 1..fences + 1).await;
    note(
        &format!("baremetal-operator: {fences} annotated hosts at once -> their status says off"),
        &in_words(many),
    );
}

/// It is killed on drop.
fn start_operator(program: &PathBuf, plane: &ControlPlane) -> Child {
    let log = plane.folder().join("baremetal-operator.log");
    let log = std::fs::File::create(log).expect("a file");
    Command::new(program)
        .env_clear()
        .env("KUBECONFIG", plane.admin_kubeconfig())
        .env("POD_NAMESPACE", NAMESPACE)
        .args(["--provisioner=fixture", "--webhook-port=0"])
        .args(["--health-addr=127.0.0.1:0", "--metrics-addr=127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file"))
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .expect("the given program starts")
}

/// It has an operating system already: only its power is to be controlled.
fn host_object(number: usize) -> DynamicObject {
    let address = format!("redfish+http://127.0.0.1:1/redfish/v1/Systems/{number}");
    let mac = format!("02:00:00:00:{:02x}:{:02x}", number / 256, number % 256);
    let object = json!({
        "apiVersion": API_VERSION, "kind": KIND, "metadata": { "name": name(number).name },
        "spec": {
            "online": true, "externallyProvisioned": true, "bootMACAddress": mac,
            "bmc": { "address": address, "credentialsName": "bmc" },
        },
    });
    serde_json::from_value(object).expect("an object")
}

/// Until all hosts are registered and on, and none changes any more.
async fn wait_until_registered(hosts: &Api<DynamicObject>, count: usize) {
    let begun = Instant::now();
    let (mut seen, mut since) = (String::new(), Instant::now());
    while since.elapsed() < QUIET_FOR {
        assert!(
            begun.elapsed() < REGISTERED_WITHIN,
            "they never were: {seen}"
        );
        let listed = hosts.list(&ListParams::default()).await.expect("a list");
        let registered = listed.items.iter().filter(|host| {
            host.data["status"]["provisioning"]["state"] == "externally provisioned"
                && host.data["status"]["poweredOn"] == true
        });
        let now = format!("{} of {count}", registered.count());
        if now != seen || !now.starts_with(&format!("{count} ")) {
            (seen, since) = (now, Instant::now());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// From the answered annotation until the watch shows that the status says off.
async fn power_off(hosts: &Api<DynamicObject>, numbers: std::ops::Range<usize>) -> [Duration; 3] {
    let version = hosts.list(&ListParams::default()).await.expect("a list");
    let version = version.metadata.resource_version.expect("a version");
    let watch = WatchParams::default().timeout(290);
    let mut changes = hosts
        .watch(&watch, &version)
        .await
        .expect("a watch")
        .boxed();
    let mut off: BTreeMap<String, Instant> = BTreeMap::new();
    let asks = numbers.clone().map(|number| async move {
        annotate_host(hosts, number, FENCE, Some(r#"{"mode":"hard"}"#)).await;
        (name(number).name, Instant::now())
    });
    let wanted: Vec<String> = numbers.map(|number| name(number).name).collect();
    let sees = async {
        while off.len() < wanted.len() {
            let change = changes.try_next().await.expect("a change");
            let Some(WatchEvent::Modified(host)) = change else {
                continue;
            };
            let name = host.metadata.name.clone().unwrap_or_default();
            if wanted.contains(&name) && host.data["status"]["poweredOn"] == false {
                off.entry(name).or_insert_with(Instant::now);
            }
        }
    };
    let both = async { tokio::join!(futures::future::join_all(asks), sees) };
    let (asked, ()) = tokio::time::timeout(PATIENCE, both)
        .await
        .expect("all say off");
    let taken = asked
        .iter()
        .map(|(name, at)| off[name].saturating_duration_since(*at));
    spread(taken.collect())
}
