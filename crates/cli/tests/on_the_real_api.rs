//! The program and the manifests against the real API server.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

#[path = "on_the_real_api/shown_objects.rs"]
mod shown_objects;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use dogwatch_testbed::{ControlPlane, shared_control_plane};
use serde_json::{Value, json};

const ACCOUNT: &str = "system:serviceaccount:dogwatch:dogwatch-coordinator";

fn dogwatch(control_plane: &ControlPlane, args: &[&str]) -> Output {
    dogwatch_by(control_plane.admin_kubeconfig(), args)
}

fn dogwatch_by(kubeconfig: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dogwatch"))
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .args(args)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Uses the flags only, with the images that the base names.
const MANIFESTS: [&str; 4] = [
    "manifests",
    "--ignore-cluster",
    "--image=dogwatch-coordinator:0.1.0",
    "--controller-image=dogwatch:0.1.0",
];

async fn install(control_plane: &ControlPlane) {
    let words = [&MANIFESTS[..], &["--without-policies"]].concat();
    let manifests = text(&dogwatch(control_plane, &words));
    let kinds = ["rebootpolicies.dogwatch.dev"];
    control_plane
        .install_manifests(&manifests, &kinds)
        .await
        .unwrap();
    let in_force = control_plane.wait_until_rights_are_in_force();
    in_force.await.unwrap();
}

/// What the account may do, according to the API server.
async fn allowed(control_plane: &ControlPlane, calls: &[(&str, &str, &str, &str)]) -> Vec<bool> {
    let review = |(namespace, group, resource, verb): &(&str, &str, &str, &str)| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": ACCOUNT, "resourceAttributes": {
                "namespace": namespace, "group": group, "resource": resource,
                "subresource": subresource, "verb": verb } },
        })
    };
    let items: Vec<Value> = calls.iter().map(review).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
    let answer = control_plane
        .run_kubectl(&["create", "-f", "-", "-o", "json"], &list)
        .await
        .unwrap();
    let answers = serde_json::Deserializer::from_str(&answer).into_iter::<Value>();
    answers
        .map(Result::unwrap)
        .flat_map(|answer| match answer["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![answer],
        })
        .map(|review| review["status"]["allowed"] == true)
        .collect()
}

#[tokio::test]
async fn the_manifests_give_the_coordinator_what_it_calls_and_nothing_beside_it() {
    let control_plane = shared_control_plane().await;
    install(control_plane).await;
    let may = [
        ("", "", "nodes", "get"),
        ("", "", "nodes", "list"),
        ("", "", "nodes", "watch"),
        ("", "", "nodes", "patch"),
        ("", "", "nodes/status", "patch"),
        ("shop", "", "pods", "list"),
        ("shop", "", "pods", "watch"),
        ("shop", "", "pods/eviction", "create"),
        ("shop", "apps", "daemonsets", "get"),
        ("shop", "policy", "poddisruptionbudgets", "get"),
        ("shop", "policy", "poddisruptionbudgets", "list"),
        ("shop", "policy", "poddisruptionbudgets", "watch"),
        ("", "storage.k8s.io", "volumeattachments", "list"),
        ("", "storage.k8s.io", "volumeattachments", "watch"),
        ("", "", "persistentvolumes", "get"),
        ("", "dogwatch.dev", "rebootpolicies", "list"),
        ("", "dogwatch.dev", "rebootpolicies", "watch"),
        ("dogwatch", "coordination.k8s.io", "leases", "get"),
        ("dogwatch", "coordination.k8s.io", "leases", "list"),
        ("dogwatch", "coordination.k8s.io", "leases", "watch"),
        ("dogwatch", "coordination.k8s.io", "leases", "create"),
        ("dogwatch", "coordination.k8s.io", "leases", "patch"),
        ("default", "", "events", "create"),
        ("default", "", "events", "get"),
    ];
    let answers = allowed(control_plane, &may).await;
    let refused: Vec<_> = may.iter().zip(&answers).filter(|(_, yes)| !**yes).collect();
    assert_eq!((answers.len(), refused), (may.len(), Vec::new()));

    let may_not = [
        ("", "", "nodes", "delete"),
        ("", "", "nodes", "update"),
        ("shop", "", "pods", "create"),
        ("shop", "", "pods", "delete"),
        ("shop", "", "pods/exec", "create"),
        ("shop", "", "secrets", "get"),
        ("dogwatch", "", "secrets", "get"),
        ("dogwatch", "coordination.k8s.io", "leases", "delete"),
        ("kube-system", "coordination.k8s.io", "leases", "patch"),
        ("shop", "", "events", "create"),
        ("shop", "policy", "poddisruptionbudgets", "patch"),
        ("", "dogwatch.dev", "rebootpolicies", "patch"),
    ];
    let answers = allowed(control_plane, &may_not).await;
    let granted: Vec<_> = may_not
        .iter()
        .zip(&answers)
        .filter(|(_, yes)| **yes)
        .collect();
    assert_eq!((answers.len(), granted), (may_not.len(), Vec::new()));
}

#[tokio::test]
async fn a_request_is_written_shown_and_explained() {
    let control_plane = shared_control_plane().await;
    install(control_plane).await;
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "asked" } });
    control_plane
        .run_kubectl(&["create", "-f", "-"], &node.to_string())
        .await
        .unwrap();
    let asked = [
        "reboot",
        "asked",
        "--requester",
        "ann",
        "--reason",
        "kernel",
    ];
    let said = text(&dogwatch(control_plane, &asked));
    let made = said.strip_prefix("node/asked was requested to reboot: ");
    let made = made.expect("a NodeReboot is created").trim();
    let again = text(&dogwatch(control_plane, &asked));
    assert!(
        again.contains("already requested to reboot") && again.contains(made),
        "{again}"
    );
    let explained = text(&dogwatch(control_plane, &["explain", made]));
    assert!(
        explained.contains("method Reboot for node asked by ann: \"kernel\""),
        "{explained}"
    );
    let cancelled = text(&dogwatch(control_plane, &["reboot", "asked", "--cancel"]));
    assert!(cancelled.contains(made), "{cancelled}");

    let by_annotation = [&asked[..], &["--replace"]].concat();
    assert_eq!(
        text(&dogwatch(control_plane, &by_annotation)),
        "node/asked was requested to reboot\n"
    );

    let status = text(&dogwatch(control_plane, &["status", "-o", "json"]));
    let status: Value = serde_json::from_str(&status).unwrap();
    let rows = status["nodes"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "asked").unwrap();
    assert_eq!(row["reason"], "RebootRequested", "{row}");

    let explained = text(&dogwatch(control_plane, &["explain", "node/asked"]));
    assert!(
        explained.contains("request by ann: \"kernel\""),
        "{explained}"
    );
    // The DaemonSet exists, and nobody schedules its pods here.
    assert!(
        explained.contains("no pod of its DaemonSet is on this node"),
        "{explained}"
    );
    assert_eq!(
        dogwatch(control_plane, &["explain", "nobody"])
            .status
            .code(),
        Some(3)
    );
}

#[tokio::test]
async fn kustomize_makes_the_same_of_the_base_as_the_program_prints() {
    let control_plane = shared_control_plane().await;
    let kustomize = async |folder: &str| {
        let path = format!("{}/../../deploy/{folder}", env!("CARGO_MANIFEST_DIR"));
        let words = ["kustomize", &path];
        objects(&control_plane.run_kubectl(&words, "").await.unwrap())
    };
    let printed = |flags: &[&str]| {
        let words = [&MANIFESTS[..], flags].concat();
        objects(&text(&dogwatch(control_plane, &words)))
    };
    let base = kustomize("base").await;
    assert_eq!(base, printed(&["--without-policies"]));
    for (folder, flags) in [
        ("policies", &[][..]),
        ("policies", &["--with-policies"]),
        ("policies", &["--with-policies=warn"]),
        ("policies-deny", &["--with-policies=deny"]),
    ] {
        let mut both = [base.clone(), kustomize(folder).await].concat();
        sort(&mut both);
        assert_eq!(both, printed(flags), "{flags:?}");
    }
    for (folder, part) in [
        ("policies", "policies"),
        ("delete-pods", "delete-pods"),
        ("roll-first", "roll-first"),
        ("machine-drain-rules", "machine-drain-rules"),
        ("power", "power"),
        ("cluster-api", "cluster-api"),
        ("medik8s", "medik8s"),
        ("network-policies", "network-policies"),
        ("lock", "lock"),
        ("web", "web"),
        ("crds", "crds"),
    ] {
        let only = printed(&["--only", part]);
        assert_eq!(kustomize(folder).await, only, "{part}");
    }
    // Remediation comes with the policies that guard it.
    let only = printed(&["--only", "remediation"]);
    let remediation = kustomize("remediation").await;
    assert!(remediation.iter().all(|object| only.contains(object)));
    let policies = kustomize("policies").await;
    let guards = only.iter().filter(|object| !remediation.contains(object));
    let guards: Vec<&Value> = guards.collect();
    assert!(!guards.is_empty() && guards.iter().all(|guard| policies.contains(guard)));

    let mut all = base;
    all.extend(kustomize("power").await);
    all.extend(kustomize("remediation").await);
    all.extend(kustomize("policies").await);
    sort(&mut all);
    let controller = all.iter_mut().find(|object| object["kind"] == "Deployment");
    let container = &mut controller.unwrap()["spec"]["template"]["spec"]["containers"][0];
    let flags = container["args"].as_array_mut().unwrap();
    flags.insert(1, "--components=power,remediation,healer".into());
    assert_eq!(all, printed(&["--with-remediation"]));
}

fn objects(yaml: &str) -> Vec<Value> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    sort(&mut objects);
    objects
}

fn sort(objects: &mut [Value]) {
    objects.sort_by_key(|object| format!("{} {}", object["kind"], object["metadata"]));
}

/// A person with these shipped roles: `ClusterRole`s, and `Role`s of namespace dogwatch.
async fn person(control_plane: &ControlPlane, name: &str, roles: &[&str]) -> PathBuf {
    let account = format!("--serviceaccount=default:{name}");
    let run = async |words: &[&str]| {
        control_plane.run_kubectl(words, "").await.unwrap();
    };
    run(&["create", "serviceaccount", name]).await;
    for role in roles {
        let binding = format!("{name}-{role}");
        let named = format!("--clusterrole={role}");
        run(&["create", "clusterrolebinding", &binding, &named, &account]).await;
        let named = format!("--role={role}");
        let words = ["create", "rolebinding", &binding, &named, &account];
        run(&[&words[..], &["--namespace=dogwatch"]].concat()).await;
    }
    control_plane.kubeconfig_of("default", name).await.unwrap()
}

/// The right to patch Nodes, without the right to request reboots.
async fn grant_patching(control_plane: &ControlPlane) {
    let patches = [
        "create",
        "clusterrole",
        "patches-nodes",
        "--verb=get,patch",
        "--resource=nodes",
    ];
    control_plane.run_kubectl(&patches, "").await.unwrap();
    let same = [
        "create",
        "role",
        "patches-nodes",
        "--verb=get",
        "--resource=pods",
        "--namespace=dogwatch",
    ];
    control_plane.run_kubectl(&same, "").await.unwrap();
}

/// Creates a schedule as this person.
async fn schedules(
    control_plane: &ControlPlane,
    who: &str,
) -> Result<String, dogwatch_testbed::Error> {
    let schedule = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "RebootSchedule",
        "metadata": { "name": "s1", "namespace": "dogwatch" },
        "spec": { "at": "2099-01-01T03:00:00Z", "nodes": { "selector": {} }, "hosts": { "selector": {} } } });
    let account = format!("--as=system:serviceaccount:default:{who}");
    // Without the right to list kinds, kubectl cannot validate a manifest's fields.
    let create = ["create", "--validate=false", "-f", "-", &account];
    control_plane
        .run_kubectl(&create, &schedule.to_string())
        .await
}

#[tokio::test]
async fn a_viewer_sees_an_operator_acts_and_who_only_patches_nodes_may_not_ask_for_a_reboot() {
    let control_plane = ControlPlane::builder().with_controllers([]).start();
    let control_plane = control_plane.await.unwrap();
    install(&control_plane).await;
    let words = [&MANIFESTS[..], &["--with-policies=deny"]].concat();
    let manifests = text(&dogwatch(&control_plane, &words));
    let apply = ["apply", "--server-side", "--validate=strict", "-f", "-"];
    control_plane.run_kubectl(&apply, &manifests).await.unwrap();
    grant_patching(&control_plane).await;
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } });
    let create = ["create", "-f", "-"];
    control_plane
        .run_kubectl(&create, &node.to_string())
        .await
        .unwrap();

    let viewer = person(&control_plane, "viewer", &["dogwatch-viewer"]).await;
    assert!(text(&dogwatch_by(&viewer, &["status"])).contains("n1"));
    assert!(text(&dogwatch_by(&viewer, &["explain", "node/n1"])).contains("n1"));
    let refused = dogwatch_by(&viewer, &["reboot", "n1"]);
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");

    let patcher = person(&control_plane, "patcher", &["patches-nodes"]).await;
    let deadline = Instant::now() + Duration::from_mins(2);
    let refused = loop {
        let asked = dogwatch_by(&patcher, &["reboot", "n1", "--replace", "--requester", "p"]);
        if !asked.status.success() {
            break asked;
        }
        // Repeats until the policy is in force, which no status shows.
        assert!(Instant::now() < deadline, "not refused");
        let gone = ["annotate", "node", "n1", "dogwatch.dev/reboot-requested-"];
        control_plane.run_kubectl(&gone, "").await.unwrap();
    };
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("nodes/reboot"), "{words}");

    let roles = ["dogwatch-viewer", "dogwatch-operator"];
    let operator = person(&control_plane, "operator", &roles).await;
    let asked = dogwatch_by(&operator, &["reboot", "n1"]);
    let said = text(&asked);
    assert!(
        said.starts_with("node/n1 was requested to reboot: nodereboot/reboot-n1-"),
        "{said}"
    );
    schedules(&control_plane, "viewer").await.unwrap_err();
    schedules(&control_plane, "operator").await.unwrap();
    let seen = text(&dogwatch_by(&viewer, &["status", "schedules"]));
    assert!(seen.contains("s1"), "{seen}");
    for who in ["viewer", "operator"] {
        let account = format!("--as=system:serviceaccount:default:{who}");
        let asked = ["auth", "can-i", "get", "secrets", "-A", &account];
        control_plane.run_kubectl(&asked, "").await.unwrap_err();
    }
}

/// Everything that must not change by itself: each object without the fields that the API server
/// counts up.
async fn everything(control_plane: &ControlPlane) -> Vec<Value> {
    let kinds = "deployments,daemonsets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,\
                 validatingadmissionpolicies,validatingadmissionpolicybindings,poddisruptionbudgets,namespaces,crds";
    let ours = [
        "--selector=app.kubernetes.io/part-of=dogwatch",
        "--all-namespaces",
    ];
    let words = [&["get", kinds, "-o", "json"][..], &ours].concat();
    let list = control_plane.run_kubectl(&words, "").await.unwrap();
    let mut list: Value = serde_json::from_str(&list).unwrap();
    let mut items = list["items"].as_array_mut().map(std::mem::take).unwrap();
    for item in &mut items {
        item["metadata"]["resourceVersion"].take();
        item["status"].take();
    }
    items
}

/// Applies the manifests as the docs say.
async fn apply(control_plane: &ControlPlane, flags: &[&str]) -> String {
    let output = dogwatch(control_plane, &[&["manifests"][..], flags].concat());
    let manifests = text(&output);
    let apply = ["apply", "--server-side", "-f", "-"];
    control_plane.run_kubectl(&apply, &manifests).await.unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn the_documented_command_run_again_changes_nothing_but_what_was_asked_for() {
    let control_plane = ControlPlane::builder().with_controllers([]).start();
    let control_plane = control_plane.await.unwrap();
    let refused = dogwatch(&control_plane, &["manifests"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(refused.stdout, [0; 0], "nothing that could be applied");
    let images = ["--image=here/c:1", "--controller-image=here/d:1"];
    apply(
        &control_plane,
        &[&images[..], &["--with-remediation", "--with-policies=deny"]].concat(),
    )
    .await;
    // A flag of the operator's own, written by the field manager that applied the manifests.
    let sentinel = r#"[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--sentinel=/run/x"}]"#;
    let patch = [
        "patch",
        "daemonset",
        "dogwatch-coordinator",
        "-n",
        "dogwatch",
        "--type=json",
        "-p",
        sentinel,
    ];
    let by_the_same = [&patch[..], &["--field-manager=kubectl"]].concat();
    control_plane.run_kubectl(&by_the_same, "").await.unwrap();
    let before = everything(&control_plane).await;
    assert!(before.len() > 50, "{}", before.len());

    let told = apply(&control_plane, &[]).await;
    assert!(
        told.contains("keeps here/c:1") && told.contains("keeps here/d:1"),
        "{told}"
    );
    assert_eq!(everything(&control_plane).await, before);

    apply(&control_plane, &["--image=here/c:2"]).await;
    let after = everything(&control_plane).await;
    let changed: Vec<&Value> = after.iter().filter(|it| !before.contains(it)).collect();
    let [set] = changed[..] else {
        panic!("{changed:#?}");
    };
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&set["kind"], &container["image"]),
        (&json!("DaemonSet"), &json!("here/c:2"))
    );
    assert_eq!(
        container["args"],
        json!(["--host-root=/host", "--sentinel=/run/x"])
    );
    let elsewhere = dogwatch(&control_plane, &["manifests", "-n", "kube-dogs"]);
    let words = String::from_utf8(elsewhere.stderr).unwrap();
    assert!(words.contains("--namespace dogwatch"), "{words}");
}
