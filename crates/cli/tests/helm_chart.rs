//! The Helm chart: the real helm renders it, and a real API server takes it.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

#[path = "helm_chart/toggles.rs"]
mod toggles;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dogwatch_testbed::helm::{HelmOutput, run_helm};
use dogwatch_testbed::{ControlPlane, TokenPodRef};
use serde_json::{Value, json};
use tempfile::TempDir;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart");
const IMAGES: [&str; 2] = [
    "--set=coordinatorImage=registry/coordinator:1",
    "--set=controllerImage=registry/dogwatch:1",
];
const KEEP: &str = "helm.sh/resource-policy";

/// helm with files of its own.
struct Helm {
    home: TempDir,
    kubeconfig: PathBuf,
}

impl Helm {
    fn of(kubeconfig: &Path) -> Self {
        Self {
            home: TempDir::new().unwrap(),
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    async fn run(&self, arguments: &[&str]) -> HelmOutput {
        let output = run_helm(arguments, &self.kubeconfig, self.home.path()).await;
        output.unwrap()
    }

    async fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).await;
        assert!(output.is_success, "{arguments:?}: {}", output.stderr);
        output.stdout
    }

    async fn template(&self, namespace: &str, version: &str, values: &[&str]) -> HelmOutput {
        let words = ["template", "dogwatch", CHART, "--namespace", namespace];
        let version = format!("--kube-version={version}");
        self.run(&[&words[..], &[version.as_str()], values].concat())
            .await
    }
}

fn without_cluster() -> Helm {
    Helm::of(Path::new("/nonexistent"))
}

fn dogwatch(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

type Objects = BTreeMap<String, Value>;

/// The objects by kind, namespace and name.
fn objects(yaml: &str) -> Objects {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let all = all.into_iter().filter(|object| !object.is_null());
    let named = all.map(|object| {
        let meta = &object["metadata"];
        let namespace = meta["namespace"].as_str().unwrap_or("-");
        let (kind, name) = (&object["kind"], &meta["name"]);
        let key = format!(
            "{} {namespace}/{}",
            kind.as_str().unwrap(),
            name.as_str().unwrap()
        );
        (key, object)
    });
    let mut objects = Objects::new();
    for (key, object) in named {
        let earlier = objects.insert(key.clone(), object);
        assert!(earlier.is_none(), "{key} is there twice");
    }
    objects
}

/// Removes what only the chart has: the mark of what stays when it is uninstalled.
fn without_keep_marks(mut objects: Objects) -> Objects {
    for (key, object) in &mut objects {
        let meta = object["metadata"].as_object_mut().unwrap();
        let mark = meta
            .get_mut("annotations")
            .and_then(|all| all.as_object_mut().unwrap().remove(KEEP));
        let is_kept = mark == Some(json!("keep"));
        assert_eq!(
            is_kept,
            key.starts_with("CustomResourceDefinition "),
            "{key}"
        );
        if meta.get("annotations") == Some(&json!({})) {
            meta.remove("annotations");
        }
    }
    objects
}

/// What the manifests print beside the Namespace, which helm makes.
fn printed_objects(namespace: &str, args: &[&str]) -> Objects {
    let words = [
        "manifests",
        "--ignore-cluster",
        "--image=registry/coordinator:1",
        "--controller-image=registry/dogwatch:1",
        "--namespace",
        namespace,
    ];
    let mut all = objects(&dogwatch(&[&words, args].concat()));
    all.retain(|key, _| !key.starts_with("Namespace "));
    select_by_name(&mut all, namespace);
    all
}

/// Helm does not label the namespace, so that the chart's policies about locks select it by its name.
fn select_by_name(all: &mut Objects, namespace: &str) {
    let label = json!({ "app.kubernetes.io/part-of": "dogwatch" });
    for policy in ["leases", "locks"] {
        let key = format!("ValidatingAdmissionPolicy -/{policy}.dogwatch.dev");
        if let Some(policy) = all.get_mut(&key) {
            let selector = &mut policy["spec"]["matchConstraints"]["namespaceSelector"];
            assert_eq!(selector["matchLabels"], label, "{key}");
            selector["matchLabels"] = json!({ "kubernetes.io/metadata.name": namespace });
        }
    }
}

fn assert_same(chart: &Objects, printed: &Objects, what: &str) {
    let keys = |objects: &Objects| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(chart), keys(printed), "{what}");
    for (key, object) in chart {
        assert_eq!(object, &printed[key], "{what}: {key}");
    }
}

#[tokio::test]
async fn the_chart_installs_the_objects_that_dogwatch_manifests_prints() {
    let helm = without_cluster();
    let everything = [
        "--set=remediation=true,deletePods=true,rollFirst=true,machineDrainRules=true,clusterApi=true,medik8s=true,lock=true,web=true",
        "--set=admissionPolicies=deny",
    ];
    let table: [(&str, &[&str], &[&str]); 6] = [
        ("dogwatch", &[], &["--with-policies=warn"]),
        (
            "nodes",
            &["--set=admissionPolicies=deny"],
            &["--with-policies=deny"],
        ),
        (
            "dogwatch",
            &["--set=admissionPolicies=off"],
            &["--without-policies"],
        ),
        (
            "dogwatch",
            &["--set=admissionPolicies=off,remediation=true"],
            &["--without-policies", "--with-remediation"],
        ),
        ("dogwatch", &["--set=power=true"], &["--with-power"]),
        (
            "nodes",
            &everything,
            &[
                "--with-policies=deny",
                "--with-remediation",
                "--with-delete-pods",
                "--with-roll-first",
                "--with-machine-drain-rules",
                "--with-cluster-api",
                "--with-medik8s",
                "--with-lock",
                "--with-web",
            ],
        ),
    ];
    for (namespace, values, flags) in table {
        let rendered = helm
            .template(namespace, "1.36.1", &[&IMAGES, values].concat())
            .await;
        assert!(rendered.is_success, "{values:?}: {}", rendered.stderr);
        let chart = without_keep_marks(objects(&rendered.stdout));
        let printed = printed_objects(namespace, flags);
        assert_same(&chart, &printed, &format!("{values:?}"));
    }
}

#[tokio::test]
async fn what_manifests_print_only_by_name_is_a_value_of_the_chart() {
    let helm = without_cluster();
    let values = [&IMAGES[..], &["--set=networkPolicies=true,hostCrd=true"]].concat();
    let more = helm.template("dogwatch", "1.36.1", &values).await.stdout;
    let chart = without_keep_marks(objects(&more));
    let mut printed = printed_objects("dogwatch", &["--with-policies=warn"]);
    printed.append(&mut printed_objects(
        "dogwatch",
        &["--only=network-policies"],
    ));
    printed.append(&mut objects(&dogwatch(&["crds", "--hosts"])));
    assert_same(&chart, &printed, "network policies and hosts");

    let values = [&IMAGES[..], &["--set=crds=false,peopleRoles=false"]].concat();
    let less = helm.template("dogwatch", "1.36.1", &values).await.stdout;
    let less = objects(&less);
    assert!(
        !less
            .keys()
            .any(|key| key.contains("CustomResourceDefinition"))
    );
    assert!(!less.contains_key("ClusterRole -/dogwatch-operator"));
}

#[tokio::test]
async fn flags_variables_secrets_and_labels_reach_the_pods() {
    let helm = without_cluster();
    let values = [
        "--set=lock=true,web=true,imagePullPolicy=Always,imagePullSecrets[0].name=mine",
        "--set=coordinatorArgs={--settle=1m},controllerArgs={--max-fenced=2}",
        "--set=webArgs={--web-hosts=dogs.example}",
        "--set=coordinatorEnv[0].name=A,coordinatorEnv[0].value=b",
        "--set=coordinatorNodeSelector.pool=workers",
    ];
    let values = [&IMAGES[..], &values].concat();
    let rendered = helm.template("dogwatch", "1.36.1", &values).await;
    assert!(rendered.is_success, "{}", rendered.stderr);
    let all = objects(&rendered.stdout);
    for (key, image) in [
        (
            "DaemonSet dogwatch/dogwatch-coordinator",
            "registry/coordinator:1",
        ),
        (
            "Deployment dogwatch/dogwatch-controller",
            "registry/dogwatch:1",
        ),
        ("Deployment dogwatch/dogwatch-lock", "registry/dogwatch:1"),
        ("Deployment dogwatch/dogwatch-web", "registry/dogwatch:1"),
    ] {
        let pod = &all[key]["spec"]["template"]["spec"];
        assert_eq!(
            pod["imagePullSecrets"],
            json!([{ "name": "mine" }]),
            "{key}"
        );
        let container = &pod["containers"][0];
        assert_eq!(container["image"], image);
        assert_eq!(container["imagePullPolicy"], "Always");
    }
    let pod_of = |key: &str| all[key]["spec"]["template"]["spec"].clone();
    let coordinator = pod_of("DaemonSet dogwatch/dogwatch-coordinator");
    assert_eq!(coordinator["nodeSelector"], json!({ "pool": "workers" }));
    let container = &coordinator["containers"][0];
    assert_eq!(
        container["args"],
        json!(["--host-root=/host", "--settle=1m"])
    );
    let env = container["env"].as_array().unwrap();
    assert_eq!(env.last(), Some(&json!({ "name": "A", "value": "b" })));
    let controller = pod_of("Deployment dogwatch/dogwatch-controller");
    let args = controller["containers"][0]["args"].as_array().unwrap();
    assert_eq!(args.last(), Some(&json!("--max-fenced=2")));
    let web = pod_of("Deployment dogwatch/dogwatch-web");
    let args = web["containers"][0]["args"].as_array().unwrap();
    assert_eq!(args.last(), Some(&json!("--web-hosts=dogs.example")));
}

#[tokio::test]
async fn wrong_values_are_refused_with_their_path_before_anything_is_applied() {
    let helm = without_cluster();
    let table: [(&str, &[&str], &str); 13] = [
        (
            "1.36.1",
            &["--namespace=kube-system"],
            "a namespace of its own",
        ),
        ("1.36.1", &["--namespace=default"], "a namespace of its own"),
        (
            "1.36.1",
            &["--namespace=kube-system"],
            "set allowSharedNamespace to true",
        ),
        ("1.36.1", &["--set=remediation=maybe"], "/remediation"),
        (
            "1.36.1",
            &["--set=admissionPolicies=strict"],
            "/admissionPolicies",
        ),
        ("1.36.1", &["--set=remediatoin=true"], "remediatoin"),
        (
            "1.36.1",
            &["--set=coordinatorArgs={settle=1m}"],
            "/coordinatorArgs/0",
        ),
        ("1.36.1", &["--set=coordinatorImage="], "/coordinatorImage"),
        (
            "1.36.1",
            &["--set=coordinatorUnprivileged=true,coordinatorKubeletIdentity=true"],
            "exclude each other",
        ),
        (
            "1.36.1",
            &["--set=web=true,peopleRoles=false"],
            "web needs peopleRoles",
        ),
        (
            "1.31.4",
            &[],
            "admissionPolicies need Kubernetes 1.32 or later",
        ),
        (
            "1.29.3",
            &["--set=admissionPolicies=off,remediation=true"],
            "remediation needs Kubernetes 1.30 or later",
        ),
        ("1.28.9", &["--set=admissionPolicies=off"], "1.29.0"),
    ];
    for (version, values, expected) in table {
        let values = [&IMAGES[..], values].concat();
        let refused = helm.template("dogwatch", version, &values).await;
        assert!(!refused.is_success, "{values:?}");
        let text = refused.stderr.replace('\'', "").replace('.', "/");
        let expected = expected.replace('.', "/");
        assert!(text.contains(&expected), "{values:?}: {}", refused.stderr);
    }
    let values = [&IMAGES[..], &["--set=admissionPolicies=off"]].concat();
    let older = helm.template("dogwatch", "1.31.4", &values).await;
    assert!(older.is_success, "{}", older.stderr);
    // To `helm template`, and so to Argo CD, an upgrade is an installation.
    let shared = ["--namespace=kube-system", "--set=allowSharedNamespace=true"];
    let values = [&IMAGES[..], &shared].concat();
    let shared = helm.template("dogwatch", "1.36.1", &values).await;
    assert!(shared.is_success, "{}", shared.stderr);
}

/// All objects of Dogwatch that are on the cluster, except those that kinds make of others.
async fn installed(plane: &ControlPlane) -> Vec<String> {
    let kinds = "crd,clusterrole,clusterrolebinding,role,rolebinding,serviceaccount,daemonset,\
                 deployment,pdb,resourcequota,validatingadmissionpolicy,\
                 validatingadmissionpolicybinding";
    let label = "-lapp.kubernetes.io/part-of=dogwatch";
    let words = ["get", kinds, "--all-namespaces", label, "-o", "name"];
    let names = plane.run_kubectl(&words, "").await.unwrap();
    names.lines().map(str::to_owned).collect()
}

/// The kubeconfig of a coordinator whose token names its pod and node.
async fn coordinator_kubeconfig(plane: &ControlPlane, namespace: &str) -> PathBuf {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "thief", "namespace": namespace },
        "spec": { "nodeName": "second", "serviceAccountName": "dogwatch-coordinator",
            "automountServiceAccountToken": false,
            "containers": [{ "name": "c", "image": "none" }] } });
    let create = ["create", "-f", "-"];
    plane.run_kubectl(&create, &pod.to_string()).await.unwrap();
    let pod = TokenPodRef {
        name: "thief",
        uid: None,
    };
    let token = plane.service_account_token(namespace, "dogwatch-coordinator", Some(pod));
    plane.kubeconfig_for(&token.await.unwrap()).unwrap()
}

/// The policies about locks apply in the namespace of the release, which has no label.
async fn no_coordinator_steals_a_lock(plane: &ControlPlane, namespace: &str) {
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "dogwatch-default-0", "namespace": namespace,
            "labels": { "dogwatch.dev/group": "default" } },
        "spec": { "holderIdentity": "node/first" } });
    let create = ["create", "-f", "-"];
    plane
        .run_kubectl(&create, &lease.to_string())
        .await
        .unwrap();
    let kubeconfig = coordinator_kubeconfig(plane, namespace).await;
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        // A policy is in force some seconds after it was written.
        let stolen = Command::new(plane.kubectl_path())
            .args([
                "patch",
                "lease",
                "dogwatch-default-0",
                "--namespace",
                namespace,
            ])
            .args(["--dry-run=server", "--type=merge", "--patch"])
            .arg(r#"{"spec": {"holderIdentity": "node/second"}}"#)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .output()
            .unwrap();
        let words = String::from_utf8(stolen.stderr).unwrap();
        if words.contains("held by node/first") {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "not refused by the policy: {words}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn the_chart_is_installed_upgraded_rolled_back_and_uninstalled_and_its_objects_stay() {
    let plane = ControlPlane::start().await.unwrap();
    let helm = Helm::of(plane.admin_kubeconfig());
    let release = ["dogwatch", CHART, "--namespace", "nodes"];
    let begun = Instant::now();
    let install = [&["install"], &release[..], &["--create-namespace"], &IMAGES].concat();
    let notes = helm.succeed(&install).await;
    println!("helm install took {:?}", begun.elapsed());
    assert!(
        notes.contains("dogwatch --namespace nodes status"),
        "{notes}"
    );
    let first = installed(&plane).await;
    assert!(
        first
            .iter()
            .any(|name| name.contains("validatingadmissionpolicy"))
    );

    no_coordinator_steals_a_lock(&plane, "nodes").await;

    let more = ["--set=remediation=true,lock=true,admissionPolicies=deny"];
    let upgrade = [&["upgrade"], &release[..], &IMAGES, &more].concat();
    helm.succeed(&upgrade).await;
    let upgraded = installed(&plane).await;
    assert!(upgraded.len() > first.len(), "{upgraded:?}");
    let components = "{.spec.template.spec.containers[0].args}";
    let path = format!("-ojsonpath={components}");
    let words = ["get", "deployment", "dogwatch-controller", "-nnodes", &path];
    let args = plane.run_kubectl(&words, "").await.unwrap();
    assert!(args.contains("remediation"), "{args}");

    helm.succeed(&["rollback", "dogwatch", "1", "--namespace", "nodes"])
        .await;
    assert_eq!(installed(&plane).await, first);

    let policy = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootPolicy",
        "metadata": { "name": "mine" }, "spec": {} });
    let create = ["create", "-f", "-"];
    plane
        .run_kubectl(&create, &policy.to_string())
        .await
        .unwrap();
    helm.succeed(&["uninstall", "dogwatch", "--namespace", "nodes"])
        .await;
    let left = installed(&plane).await;
    assert!(
        left.iter()
            .all(|name| name.starts_with("customresourcedefinition"))
            && left.len() == 5,
        "{left:?}"
    );
    let words = ["get", "rebootpolicy", "mine"];
    plane.run_kubectl(&words, "").await.unwrap();
}
