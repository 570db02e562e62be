//! Each value of the chart on the real API server, and the overlays beside kustomize.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CHART, Helm, IMAGES, installed, objects, without_keep_marks};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const NAMESPACE: &str = "nodes";

/// Every value that adds or changes objects, away from its default.
const TOGGLES: [&str; 21] = [
    "imagePullPolicy=Always",
    "hostCrd=true",
    "power=true",
    "remediation=true",
    "deletePods=true",
    "rollFirst=true",
    "machineDrainRules=true",
    "clusterApi=true",
    "medik8s=true",
    "lock=true",
    "web=true",
    "admissionPolicies=deny",
    "admissionPolicies=off",
    "networkPolicies=true",
    "podMonitors=true",
    "prometheusRule=true",
    "dashboards=true",
    "peopleRoles=false",
    "coordinatorUnprivileged=true",
    "coordinatorKubeletIdentity=true",
    "controllerOnControlPlane=true",
];

/// The Prometheus operator's kinds, without what they check.
fn monitoring_kinds() -> String {
    let kinds = [
        ("PodMonitor", "podmonitors"),
        ("PrometheusRule", "prometheusrules"),
    ];
    let definitions = kinds.map(|(kind, plural)| {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.monitoring.coreos.com") },
            "spec": {
                "group": "monitoring.coreos.com", "scope": "Namespaced",
                "names": { "kind": kind, "plural": plural },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
            },
        })
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": definitions }).to_string()
}

async fn add_foreign_objects(plane: &ControlPlane) {
    let apply = ["apply", "--server-side", "-f", "-"];
    plane
        .run_kubectl(&apply, &monitoring_kinds())
        .await
        .unwrap();
    for plural in ["podmonitors", "prometheusrules"] {
        let name = format!("crd/{plural}.monitoring.coreos.com");
        let words = [
            "wait",
            "--for=condition=Established",
            "--timeout=120s",
            &name,
        ];
        plane.run_kubectl(&words, "").await.unwrap();
    }
    for namespace in [NAMESPACE, "medik8s-leases"] {
        let words = ["create", "namespace", namespace];
        plane.run_kubectl(&words, "").await.unwrap();
    }
}

/// The values of the schema that a test sets.
fn named_values() -> Vec<&'static str> {
    TOGGLES
        .iter()
        .map(|toggle| toggle.split('=').next().unwrap())
        .collect()
}

#[test]
fn every_value_that_is_on_or_off_is_among_the_toggles() {
    let schema = fs::read_to_string(Path::new(CHART).join("values.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let named = named_values();
    for (name, value) in schema["properties"].as_object().unwrap() {
        let is_switch = value["type"] == "boolean" || value["enum"].is_array();
        // Without the kinds, the API server would refuse nothing; a shared namespace makes no other
        // object. Other tests set these values.
        let is_set_elsewhere = ["crds", "allowSharedNamespace"].contains(&name.as_str());
        assert!(
            !is_switch || is_set_elsewhere || named.contains(&name.as_str()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_api_server_takes_what_each_value_makes() {
    let plane = ControlPlane::start().await.unwrap();
    add_foreign_objects(&plane).await;
    let helm = Helm::of(plane.admin_kubeconfig());
    let plain = helm.template(NAMESPACE, "1.36.1", &IMAGES).await;
    let plain = objects(&plain.stdout);
    for toggle in TOGGLES {
        let value = format!("--set={toggle}");
        let values = [&IMAGES[..], &[value.as_str()]].concat();
        let rendered = helm.template(NAMESPACE, "1.36.1", &values).await;
        assert!(rendered.is_success, "{toggle}: {}", rendered.stderr);
        assert_ne!(objects(&rendered.stdout), plain, "{toggle} changes nothing");
        let words = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
        let applied = plane.run_kubectl(&words, &rendered.stdout).await;
        applied.unwrap_or_else(|error| panic!("{toggle}: {error}"));
    }
    the_overlays_are_what_kustomize_makes(&plane, &helm).await;
    an_older_release_is_upgraded_with_its_values_and_rolled_back(&plane, &helm).await;
}

/// What kustomize makes of the base with a component, without the Namespace and with the images of the test.
async fn built_by_kustomize(plane: &ControlPlane, component: &str) -> BTreeMap<String, Value> {
    let folder = TempDir::new().unwrap();
    // Kustomize takes no absolute paths.
    let deploy = Path::new(DEPLOY).canonicalize().unwrap();
    std::os::unix::fs::symlink(deploy, folder.path().join("deploy")).unwrap();
    let text = format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [deploy/base]\ncomponents: [deploy/{component}]\n\
         images:\n- {{ name: dogwatch-coordinator, newName: registry/coordinator, newTag: '1' }}\n\
         - {{ name: dogwatch, newName: registry/dogwatch, newTag: '1' }}\n"
    );
    fs::write(folder.path().join("kustomization.yaml"), text).unwrap();
    let path = folder.path().to_str().unwrap();
    let words = ["kustomize", "--load-restrictor=LoadRestrictionsNone", path];
    let mut all = objects(&plane.run_kubectl(&words, "").await.unwrap());
    all.retain(|key, _| !key.starts_with("Namespace "));
    all
}

async fn the_overlays_are_what_kustomize_makes(plane: &ControlPlane, helm: &Helm) {
    for (component, value) in [
        ("unprivileged", "coordinatorUnprivileged=true"),
        ("kubelet-identity", "coordinatorKubeletIdentity=true"),
        ("control-plane", "controllerOnControlPlane=true"),
    ] {
        let set = format!("--set=admissionPolicies=off,crds=false,{value}");
        let values = [&IMAGES[..], &[set.as_str()]].concat();
        let rendered = helm.template("dogwatch", "1.36.1", &values).await;
        let chart = without_keep_marks(objects(&rendered.stdout));
        let kustomized = built_by_kustomize(plane, component).await;
        for (key, object) in &kustomized {
            if !key.starts_with("CustomResourceDefinition ") {
                assert_eq!(chart.get(key), Some(object), "{component}: {key}");
            }
        }
        for key in chart.keys() {
            assert!(kustomized.contains_key(key), "{component} has no {key}");
        }
    }
}

/// The chart as it was before it had dashboards.
fn older_chart() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let chart = folder.path().join("dogwatch");
    fs::create_dir_all(chart.join("templates")).unwrap();
    for entry in fs::read_dir(Path::new(CHART).join("templates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with("dashboard-") {
            fs::copy(&path, chart.join("templates").join(name)).unwrap();
        }
    }
    let read = |name: &str| fs::read_to_string(Path::new(CHART).join(name)).unwrap();
    let about = read("Chart.yaml").replace("ersion: 0.1.0", "ersion: 0.0.9");
    fs::write(chart.join("Chart.yaml"), about).unwrap();
    let values: Vec<String> = read("values.yaml").lines().map(str::to_owned).collect();
    let kept: Vec<String> = values
        .into_iter()
        .filter(|line| !line.starts_with("dashboards:"))
        .collect();
    fs::write(chart.join("values.yaml"), kept.join("\n")).unwrap();
    let mut schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    schema["properties"]
        .as_object_mut()
        .unwrap()
        .remove("dashboards")
        .unwrap();
    fs::write(chart.join("values.schema.json"), schema.to_string()).unwrap();
    (folder, chart)
}

async fn an_older_release_is_upgraded_with_its_values_and_rolled_back(
    plane: &ControlPlane,
    helm: &Helm,
) {
    let (_folder, chart) = older_chart();
    let older = chart.to_str().unwrap();
    let place = ["--namespace", NAMESPACE];
    let values = ["--set=deletePods=true,coordinatorArgs={--settle=1m}"];
    helm.succeed(
        &[
            &["install", "dogwatch", older],
            &place[..],
            &IMAGES,
            &values,
        ]
        .concat(),
    )
    .await;
    let first = installed(plane).await;
    let more = ["--reset-then-reuse-values", "--set=dashboards=true"];
    helm.succeed(&[&["upgrade", "dogwatch", CHART], &place[..], &more].concat())
        .await;
    let path = "-ojsonpath={.spec.template.spec.containers[0].args}";
    let words = [
        "get",
        "daemonset",
        "dogwatch-coordinator",
        "-n",
        NAMESPACE,
        path,
    ];
    let args = plane.run_kubectl(&words, "").await.unwrap();
    assert!(
        args.contains("--settle=1m"),
        "the release's values stay: {args}"
    );
    let words = [
        "get",
        "configmap",
        "-n",
        NAMESPACE,
        "-l",
        "grafana_dashboard=1",
        "-o",
        "name",
    ];
    assert_eq!(
        plane.run_kubectl(&words, "").await.unwrap().lines().count(),
        3
    );
    assert_eq!(installed(plane).await, first, "nothing else is new");
    helm.succeed(&["rollback", "dogwatch", "1", "--namespace", NAMESPACE])
        .await;
    assert_eq!(plane.run_kubectl(&words, "").await.unwrap(), "");
    helm.succeed(&["uninstall", "dogwatch", "--namespace", NAMESPACE])
        .await;
    let left = installed(plane).await;
    assert!(
        left.iter()
            .all(|name| name.starts_with("customresourcedefinition")),
        "{left:?}"
    );
}
