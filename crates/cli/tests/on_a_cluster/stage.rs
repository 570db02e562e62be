//! An embedded cluster on a port, with the objects of a test, and the program connected to it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use dogwatch_kubesim::api::{ApiReply, ApiRequest, ApiServer, ApiServerOptions, ApiVerb, Denial};
use dogwatch_kubesim::clock::TokioClock;
use dogwatch_testbed::ClosedPort;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

const TESTER: &str = "tester";
const POLICIES: &str = "/apis/dogwatch.dev/v1alpha1/rebootpolicies";

/// A cluster that lives until this is dropped.
pub struct Stage {
    server: ApiServer,
    home: TempDir,
    port: u16,
    _kept: Kept,
}

/// Values that must live as long as the cluster.
enum Kept {
    /// Stops the server on drop.
    Stop(
        #[expect(dead_code, reason = "it is there to be dropped")] tokio::sync::oneshot::Sender<()>,
    ),
    /// Nobody serves on this port.
    Closed(#[expect(dead_code, reason = "it is there to be kept")] ClosedPort),
}

impl Stage {
    /// An empty cluster with Dogwatch's namespace.
    pub fn new() -> Self {
        let (told, tells) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            runtime().block_on(async {
                let server = server();
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let port = listener.local_addr().unwrap().port();
                told.send((server.clone(), port)).unwrap();
                tokio::select! {
                    () = server.serve_http(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        let (server, port) = tells.recv().unwrap();
        let stage = Self {
            server,
            home: tempfile::tempdir().unwrap(),
            port,
            _kept: Kept::Stop(stop),
        };
        for name in ["dogwatch", "shop"] {
            stage.post(
                "/api/v1/namespaces",
                &json!({ "metadata": { "name": name } }),
            );
        }
        stage
    }

    /// An address at which nobody listens.
    pub fn away() -> Self {
        let server = runtime().block_on(async { server() });
        let closed = ClosedPort::new().unwrap();
        let port = closed.port_number().unwrap();
        Self {
            server,
            home: tempfile::tempdir().unwrap(),
            port,
            _kept: Kept::Closed(closed),
        }
    }

    /// The program, with a kubeconfig of this cluster and nothing else in its environment.
    pub fn dogwatch(&self, args: &[&str]) -> Command {
        let kubeconfig = self.home.path().join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "stage",
            "clusters": [{ "name": "stage", "cluster": { "server": format!("http://127.0.0.1:{}", self.port) } }],
            "contexts": [{ "name": "stage", "context": { "cluster": "stage", "user": "tester" } }],
            "users": [{ "name": "tester", "user": { "token": TESTER } }],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let mut command = alone(self.home.path());
        command.env("KUBECONFIG", kubeconfig).args(args);
        command
    }

    /// A Ready node, in a phase since this second of 1970, or in none.
    pub fn node(&self, name: &str, phase: Option<&str>, since: i64) {
        let mut annotations = json!({});
        let mut conditions = vec![json!({ "type": "Ready", "status": "True" })];
        if let Some(phase) = phase {
            let since = Timestamp::from_second(since).unwrap();
            let record = json!({
                "phase": phase, "run": "coordinator/x", "since": since, "planned": since,
                "trigger": { "source": "sentinel:/run/reboot-needed", "reason": "kernel 6.18" },
                "bootId": "boot-1", "cordonedByUs": phase != "waiting",
            });
            annotations["dogwatch.dev/reboot"] = record.to_string().into();
            let (kind, reason, message) = match phase {
                "waiting" => (
                    "MaintenancePlanned",
                    "LockHeldByOther",
                    "waits for the lock",
                ),
                "draining" => ("DrainInProgress", "Draining", "3 pods gone, 1 to go"),
                _ => (
                    "MaintenanceInProgress",
                    "AwaitingReboot",
                    "waiting for a new boot",
                ),
            };
            let status = if phase == "waiting" { "False" } else { "True" };
            conditions.push(
                json!({ "type": kind, "status": status, "reason": reason, "message": message }),
            );
        }
        let cordoned = phase.is_some_and(|phase| phase != "waiting");
        let status = json!({ "conditions": conditions, "nodeInfo": { "bootID": "boot-1" } });
        self.post(
            "/api/v1/nodes",
            &json!({
                "metadata": { "name": name, "annotations": annotations },
                "spec": { "unschedulable": cordoned },
                "status": status,
            }),
        );
    }

    /// A slot of group `default`, held by a node or free.
    pub fn lease(&self, name: &str, holder: Option<&str>) {
        let mut lease =
            json!({ "metadata": { "name": name, "labels": { "dogwatch.dev/group": "default" } } });
        if let Some(node) = holder {
            let record = json!({
                "node": node, "nodeUid": "u", "bootId": null, "group": "default", "max": 1,
                "since": "1970-01-01T00:00:20Z", "runs": ["coordinator/x"],
            });
            lease["metadata"]["annotations"] = json!({ "dogwatch.dev/holder": record.to_string() });
            lease["spec"] = json!({ "holderIdentity": format!("node/{node}") });
        }
        self.post(
            "/apis/coordination.k8s.io/v1/namespaces/dogwatch/leases",
            &lease,
        );
    }

    /// A pod on the node, under a PodDisruptionBudget that allows no eviction.
    pub fn blocked_pod(&self, node: &str) {
        let labels = json!({ "app": "db" });
        self.post(
            "/api/v1/namespaces/shop/pods",
            &json!({
                "metadata": { "name": "db-0", "labels": labels },
                "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] },
            }),
        );
        let budgets = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets";
        self.post(
            budgets,
            &json!({
                "metadata": { "name": "db" },
                "spec": { "minAvailable": 1, "selector": { "matchLabels": labels } },
            }),
        );
        let status = json!({ "status": {
            "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
        } });
        let patch = request(Method::PATCH, &format!("{budgets}/db/status"), &status);
        self.send(&patch.with_content_type("application/merge-patch+json"));
    }

    /// Withholds a right from everybody.
    pub fn deny(&self, verb: ApiVerb, resource: &str) {
        let denial = Denial {
            user: None,
            verb: Some(verb),
            resource: Some(resource.into()),
        };
        self.server.set_denials(vec![denial]);
    }

    /// Cuts everybody off, watches included, or reconnects them.
    pub fn cut_off(&self, apart: bool) {
        self.server.set_partitioned(TESTER, apart);
    }

    /// The request on a Node.
    pub fn request(&self, node: &str) -> Value {
        let node = self.send(&request(
            Method::GET,
            &format!("/api/v1/nodes/{node}"),
            &Value::Null,
        ));
        let text = node["metadata"]["annotations"]["dogwatch.dev/reboot-requested"].as_str();
        serde_json::from_str(text.expect("the node carries a request")).unwrap()
    }

    /// Installs the kind RebootPolicy, and these policies by name and `spec`.
    pub fn policies(&self, policies: &[(&str, Value)]) {
        let kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.post(kinds, &dogwatch_api::reboot_policy::policy_crd());
        for (name, spec) in policies {
            let policy = json!({
                "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
                "metadata": { "name": name }, "spec": spec,
            });
            self.post(POLICIES, &policy);
        }
    }

    /// A DaemonSet of coordinators, and a ready pod of it on each of these nodes.
    pub fn coordinators(&self, nodes: &[&str]) {
        let labels = json!({ "app.kubernetes.io/name": "dogwatch-coordinator" });
        let template = json!({
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "c", "image": "i" }] },
        });
        self.post(
            "/apis/apps/v1/namespaces/dogwatch/daemonsets",
            &json!({
                "metadata": { "name": "dogwatch-coordinator" },
                "spec": { "selector": { "matchLabels": labels }, "template": template },
            }),
        );
        for node in nodes {
            let owner = json!({
                "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "dogwatch-coordinator",
                "uid": "d", "controller": true,
            });
            let pods = "/api/v1/namespaces/dogwatch/pods";
            let name = format!("coordinator-{node}");
            self.post(
                pods,
                &json!({
                    "metadata": { "name": name, "labels": labels, "ownerReferences": [owner] },
                    "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "i" }] },
                }),
            );
            let ready = json!({ "status": { "phase": "Running",
                "conditions": [{ "type": "Ready", "status": "True" }] } });
            self.merge(&format!("{pods}/{name}/status"), &ready);
        }
    }

    /// Returns null if the object does not exist.
    pub fn get(&self, path: &str) -> Value {
        let ApiReply::Response(response) =
            self.server
                .handle_request(&request(Method::GET, path, &Value::Null))
        else {
            panic!("{path} is no watch");
        };
        if response.code == 404 {
            return Value::Null;
        }
        serde_json::from_slice(&response.body).unwrap()
    }

    pub fn merge(&self, path: &str, body: &Value) {
        let patch = request(Method::PATCH, path, body);
        self.send(&patch.with_content_type("application/merge-patch+json"));
    }

    /// One policy's `spec`; null if the policy does not exist.
    pub fn spec(&self, policy: &str) -> Value {
        self.get(&format!("{POLICIES}/{policy}"))["spec"].clone()
    }

    pub fn post(&self, path: &str, object: &Value) {
        self.send(&request(Method::POST, path, object));
    }

    /// Deletes an object at once.
    pub fn delete(&self, path: &str) {
        let at_once = json!({ "gracePeriodSeconds": 0 });
        self.send(&request(Method::DELETE, path, &at_once));
    }

    fn send(&self, request: &ApiRequest) -> Value {
        let ApiReply::Response(response) = self.server.handle_request(request) else {
            panic!("{} is no watch", request.path);
        };
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert!(
            response.code < 300,
            "{} {}: {text}",
            request.method,
            request.path
        );
        serde_json::from_str(&text).unwrap()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn server() -> ApiServer {
    let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
    ApiServer::new(Arc::new(clock), ApiServerOptions::default())
}

fn request(method: Method, path: &str, body: &Value) -> ApiRequest {
    ApiRequest::new(TESTER, method, path, body.to_string())
}

/// The program, without a cluster.
pub fn alone(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
    command.env_clear().env("HOME", home);
    command
}

/// Runs the command to its end: exit code, standard output, standard error.
pub fn ended(mut command: impl std::borrow::BorrowMut<Command>) -> (i32, String, String) {
    let output = command.borrow_mut().output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().expect("it was not killed"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// The output of a command that succeeds without a warning.
pub fn shown(command: impl std::borrow::BorrowMut<Command>) -> String {
    let (code, text, errors) = ended(command);
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    text
}

/// The output, parsed as JSON.
pub fn in_json(command: impl std::borrow::BorrowMut<Command>) -> Value {
    let (_, json, errors) = ended(command);
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json} {errors}"))
}
