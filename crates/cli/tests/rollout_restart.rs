//! `dogwatch rollout-restart` on a real API server, with the real controllers of Deployments,
//! StatefulSets and DaemonSets; the test writes the kubelet's status.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::process::Output;
use std::time::Duration;

use dogwatch_testbed::{ControlPlane, shared_control_plane};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(2);

/// A namespace of its own on the shared control plane.
struct Shop {
    control_plane: &'static ControlPlane,
    namespace: &'static str,
}

impl Shop {
    async fn open(namespace: &'static str) -> Self {
        let control_plane = shared_control_plane().await;
        let shop = Self {
            control_plane,
            namespace,
        };
        shop.apply(
            &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
        )
        .await;
        shop
    }

    async fn kubectl(&self, args: &[&str]) -> String {
        let args = [&["-n", self.namespace], args].concat();
        self.control_plane.run_kubectl(&args, "").await.unwrap()
    }

    async fn apply(&self, object: &Value) {
        let args = ["apply", "-n", self.namespace, "-f", "-"];
        let text = object.to_string();
        self.control_plane.run_kubectl(&args, &text).await.unwrap();
    }

    async fn get(&self, what: &[&str]) -> Value {
        let args = [&["get"], what, &["-o", "json"]].concat();
        serde_json::from_str(&self.kubectl(&args).await).unwrap()
    }

    fn command(&self, args: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_dogwatch"));
        command
            .env_clear()
            .env("KUBECONFIG", self.control_plane.admin_kubeconfig())
            .args(["rollout-restart", "-n", self.namespace])
            .args(args)
            .kill_on_drop(true);
        command
    }

    async fn restart(&self, args: &[&str]) -> Output {
        self.command(args).output().await.unwrap()
    }

    /// Runs the restart while a kubelet makes every pod ready and ends every deleted one.
    async fn restart_with_a_kubelet(&self, args: &[&str]) -> Output {
        let restart = self.restart(args);
        tokio::select! {
            output = tokio::time::timeout(PATIENCE, restart) => output.unwrap(),
            () = self.kubelet() => unreachable!("a kubelet works for ever"),
        }
    }

    async fn kubelet(&self) {
        loop {
            for pod in self.get(&["pods"]).await["items"].as_array().unwrap() {
                self.play(pod).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn play(&self, pod: &Value) {
        let name = pod["metadata"]["name"].as_str().unwrap();
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            let gone = [
                "delete",
                "pod",
                name,
                "--grace-period=0",
                "--force",
                "--ignore-not-found",
            ];
            self.kubectl(&gone).await;
        } else if pod["status"]["phase"] == "Pending" {
            self.status(name, &ready()).await;
        }
    }

    async fn status(&self, pod: &str, status: &Value) {
        let patch = json!({ "status": status }).to_string();
        let args = [
            "-n",
            self.namespace,
            "patch",
            "pod",
            pod,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        // The pod may be gone already.
        let _ = self.control_plane.run_kubectl(&args, "").await;
    }

    async fn workload(&self, kind: &str, name: &str, more: &Value) {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": "example.com/web:1" }] },
                },
            },
        });
        if kind == "DaemonSet" {
            object["spec"].as_object_mut().unwrap().remove("replicas");
        }
        let spec = object["spec"].as_object_mut().unwrap();
        spec.extend(more.as_object().cloned().unwrap_or_default());
        self.apply(&object).await;
    }

    /// Waits until every wanted pod exists and is ready.
    async fn settle(&self, what: &str) {
        let wait = async {
            let timeout = format!("--timeout={}s", PATIENCE.as_secs());
            self.kubectl(&["rollout", "status", what, &timeout]).await
        };
        tokio::select! {
            _ = wait => {}
            () = self.kubelet() => unreachable!("a kubelet works for ever"),
        }
    }

    async fn stamps(&self, app: &str) -> Vec<Value> {
        let pods = self.get(&["pods", "-l", &format!("app={app}")]).await;
        let pods = pods["items"].as_array().unwrap().clone();
        let alive = pods
            .into_iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        alive
            .map(|pod| pod["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].clone())
            .collect()
    }
}

fn ready() -> Value {
    json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

#[tokio::test]
async fn new_pods_of_every_kind_are_waited_for_until_they_are_ready() {
    let shop = Shop::open("restarts").await;
    shop.workload("Deployment", "web", &json!({})).await;
    shop.workload("StatefulSet", "db", &json!({ "serviceName": "db" }))
        .await;
    shop.settle("deployment/web").await;
    shop.settle("statefulset/db").await;

    let output = shop
        .restart_with_a_kubelet(&["deploy/web", "StatefulSet/db", "deployment.apps/web"])
        .await;
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("deployment/web: restarted: 2 pods are ready"),
        "{text}"
    );
    assert!(
        text.contains("statefulset/db: restarted: 2 pods are ready"),
        "{text}"
    );
    assert!(text.contains(" of 2 updated, "), "{text}");
    for app in ["web", "db"] {
        let stamps = shop.stamps(app).await;
        assert_eq!(stamps.len(), 2, "{app}");
        assert!(stamps.iter().all(Value::is_string), "{app}: {stamps:?}");
    }
    // `kubectl rollout status` agrees about the same object.
    shop.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"])
        .await;
}

#[tokio::test]
async fn a_restart_that_does_not_get_there_ends_with_the_last_reason() {
    let shop = Shop::open("stuck").await;
    shop.workload(
        "Deployment",
        "web",
        &json!({ "progressDeadlineSeconds": 600 }),
    )
    .await;
    shop.settle("deployment/web").await;
    let stuck = async {
        loop {
            for pod in shop.get(&["pods"]).await["items"].as_array().unwrap() {
                let name = pod["metadata"]["name"].as_str().unwrap();
                if pod["status"]["phase"] == "Pending" {
                    let waiting = json!({ "reason": "ImagePullBackOff", "message": "Back-off pulling image \"example.com/web:1\"" });
                    let container = json!({ "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": { "waiting": waiting } });
                    shop.status(name, &json!({ "containerStatuses": [container] }))
                        .await;
                }
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let output = tokio::select! {
        output = shop.restart(&["deployment/web", "--timeout", "8s", "-o", "json"]) => output,
        () = stuck => unreachable!("it plays for ever"),
    };
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(ended[0]["reason"], "TimedOut", "{ended}");
    let message = ended[0]["message"].as_str().unwrap();
    assert!(
        message.contains("ImagePullBackOff: Back-off pulling image"),
        "{message}"
    );
}

#[tokio::test]
async fn a_quota_is_named_and_so_is_a_progress_deadline() {
    let shop = Shop::open("short").await;
    shop.workload(
        "StatefulSet",
        "db",
        &json!({ "serviceName": "db", "replicas": 1 }),
    )
    .await;
    shop.workload(
        "Deployment",
        "web",
        &json!({ "progressDeadlineSeconds": 3 }),
    )
    .await;
    shop.settle("statefulset/db").await;
    shop.settle("deployment/web").await;

    let late = shop.restart(&["deployment/web"]).await;
    assert_eq!(late.status.code(), Some(1));
    assert!(
        said(&late).contains("made no progress for its progressDeadlineSeconds"),
        "{}",
        said(&late)
    );

    shop.apply(
        &json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "least" },
        "spec": { "limits": [{ "type": "Pod", "min": { "cpu": "8" } }] } }),
    )
    .await;
    let refused = shop
        .restart_with_a_kubelet(&["sts/db", "--timeout", "20s"])
        .await;
    assert_eq!(refused.status.code(), Some(1));
    let text = said(&refused);
    assert!(
        text.contains("FailedCreate") && text.contains("cpu"),
        "{text}"
    );
}

#[tokio::test]
async fn what_would_not_roll_is_refused_and_nothing_is_written() {
    let shop = Shop::open("refused").await;
    shop.workload("Deployment", "web", &json!({})).await;
    shop.workload("Deployment", "still", &json!({ "paused": true }))
        .await;
    shop.workload(
        "DaemonSet",
        "logs",
        &json!({ "updateStrategy": { "type": "OnDelete" } }),
    )
    .await;
    shop.workload(
        "StatefulSet",
        "none",
        &json!({ "serviceName": "n", "replicas": 0 }),
    )
    .await;
    shop.settle("deployment/web").await;
    let pods = shop.get(&["pods", "-l", "app=web"]).await;
    let pod = format!(
        "pod/{}",
        pods["items"][0]["metadata"]["name"].as_str().unwrap()
    );
    let sets = shop.get(&["replicasets", "-l", "app=web"]).await;
    let set = format!(
        "rs/{}",
        sets["items"][0]["metadata"]["name"].as_str().unwrap()
    );

    let table = [
        ("deployment/still", 1, "kubectl rollout resume"),
        ("ds/logs", 1, "OnDelete"),
        (pod.as_str(), 1, "restart its owner: deployment/web"),
        (set.as_str(), 1, "restart its owner: deployment/web"),
        (
            "deployment/nobody",
            3,
            "there is no deployment/nobody in namespace refused",
        ),
        ("frobs/x", 3, "does not know kind"),
        ("lease.coordination.k8s.io/x", 3, "there is no lease/x"),
    ];
    for (target, code, says) in table {
        // A restartable workload is named beside it, and is not restarted.
        let output = shop.restart(&["deployment/web", target]).await;
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{target}: {text}");
        assert!(text.contains(says), "{target}: {text}");
    }
    let dry = shop.restart(&["deployment/web", "--dry-run"]).await;
    assert!(
        said(&dry).contains("deployment/web: would be restarted (dry run)"),
        "{}",
        said(&dry)
    );
    assert!(shop.stamps("web").await.iter().all(Value::is_null));

    let none = shop
        .restart(&["statefulset/none", "--timeout", "60s"])
        .await;
    assert!(none.status.success(), "{}", said(&none));
    assert!(said(&none).contains("it wants no pods"), "{}", said(&none));
    assert_eq!(shop.restart(&["web"]).await.status.code(), Some(2));
}

#[tokio::test]
async fn any_kind_with_a_pod_template_is_restarted_and_judged_by_its_pods() {
    let shop = Shop::open("any-kind").await;
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    shop.apply(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "rolls.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "rolls", "singular": "roll", "kind": "Roll", "shortNames": ["rl"] },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": anything, "status": anything } } } }] },
    }))
    .await;
    shop.kubectl(&[
        "wait",
        "--for=condition=established",
        "--timeout=180s",
        "crd/rolls.example.com",
    ])
    .await;
    shop.kubectl(&["get", "rolls"]).await;
    let pod = json!({ "containers": [{ "name": "main", "image": "example.com/roll:1" }] });
    shop.apply(
        &json!({ "apiVersion": "example.com/v1", "kind": "Roll", "metadata": { "name": "api" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "api" } },
            "template": { "metadata": { "labels": { "app": "api" } }, "spec": pod } } }),
    )
    .await;
    shop.kubectl(&["create", "sa", "default", "--dry-run=client", "-o", "name"])
        .await;

    // The test acts as the controller: it creates the pod of the new template once that exists.
    let controller = async {
        loop {
            let roll = shop.get(&["rolls", "api"]).await;
            let annotations = roll["spec"]["template"]["metadata"]["annotations"].clone();
            if annotations.is_object() {
                shop.apply(&json!({ "apiVersion": "v1", "kind": "Pod",
                    "metadata": { "name": "api-new", "labels": { "app": "api" }, "annotations": annotations }, "spec": pod }))
                    .await;
                shop.status("api-new", &ready()).await;
                return std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let output = tokio::select! {
        output = shop.restart(&["rl/api", "--timeout", "60s"]) => output,
        () = controller => unreachable!("it works for ever"),
    };
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("roll/api: restarted: 1 pods are ready"),
        "{}",
        said(&output)
    );
}

#[tokio::test]
async fn who_may_not_patch_is_told_so_and_ends_with_5() {
    let control_plane = ControlPlane::builder()
        .with_controllers([])
        .with_user("reader-token", "reader", &[])
        .start()
        .await
        .unwrap();
    let input = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "reads" },
          "rules": [{ "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"] }] },
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "reads" },
          "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads" },
          "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "reader" }] },
        { "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "default" },
          "spec": { "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "m", "image": "i" }] } } } },
    ] });
    control_plane
        .run_kubectl(&["apply", "-f", "-"], &input.to_string())
        .await
        .unwrap();
    let kubeconfig = control_plane.kubeconfig_for("reader-token").unwrap();
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .args(["rollout-restart", "deployment/web"])
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(
        said(&output).contains("not allowed to restart deployment/web"),
        "{}",
        said(&output)
    );
}
