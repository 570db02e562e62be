use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::*;
use crate::world::cache::Cache;

/// A journal as an observer writes it, one change after the other.
#[derive(Default)]
struct Story {
    cache: Cache,
    journal: Journal,
    version: u64,
}

impl Story {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(i64::try_from(self.version).unwrap()).unwrap()
    }

    fn node(&mut self, name: &str, phase: Option<&str>, cordoned: bool, boot: &str) {
        self.version += 1;
        let record = phase.map(|phase| {
            let time = "2026-01-01T00:00:00Z";
            json!({ "phase": phase, "run": "coordinator/r", "since": time, "planned": time, "trigger": { "source": "request" }, "bootId": "b", "cordonedByUs": true }).to_string()
        });
        let node = json!({
            "metadata": { "name": name, "uid": name, "resourceVersion": self.version.to_string(), "annotations": { "dogwatch.dev/reboot": record } },
            "spec": { "unschedulable": cordoned },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }], "nodeInfo": info(boot) },
        });
        let mut node: Value = node;
        if phase.is_none() {
            node["metadata"]["annotations"] = json!({});
        }
        let change = self
            .cache
            .seen::<Node>(serde_json::from_value(node).unwrap())
            .unwrap();
        self.journal.write(&change, self.now());
    }

    fn pod(&mut self, name: &str, node: &str, owner: &str, deleting: bool) {
        self.version += 1;
        let mut pod = json!({
            "metadata": { "name": name, "namespace": "n", "uid": name, "resourceVersion": self.version.to_string(),
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": true }] },
            "spec": { "nodeName": node, "containers": [] },
            "status": { "phase": "Running" },
        });
        if deleting {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let change = self
            .cache
            .seen::<Pod>(serde_json::from_value(pod).unwrap())
            .unwrap();
        self.journal.write(&change, self.now());
    }

    fn report(&self) -> Report {
        judge(&self.journal, &Limits::new())
    }
}

fn info(boot: &str) -> Value {
    let fields = [
        "architecture",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    let mut info: serde_json::Map<String, Value> = fields
        .iter()
        .map(|field| ((*field).to_owned(), json!("")))
        .collect();
    info.insert("bootID".into(), json!(boot));
    Value::Object(info)
}

#[test]
fn two_nodes_out_where_one_may_be_are_a_violation_and_one_after_the_other_is_none() {
    let mut story = Story::default();
    for name in ["a", "b"] {
        story.node(name, Some("draining"), true, "1");
        story.node(name, None, false, "2");
    }
    let report = story.report();
    assert_eq!(report.violations, []);
    assert_eq!(report.most_out["default"], 1);
    let expected = NodeReport {
        boots: 1,
        outs: 1,
        out_for: Duration::from_secs(1),
    };
    assert_eq!(report.nodes["a"], expected);

    story.node("a", Some("draining"), true, "2");
    story.node("b", Some("waiting"), false, "2");
    assert_eq!(story.report().violations, []);
    story.node("b", Some("draining"), true, "2");
    let report = story.report();
    assert!(
        matches!(&report.violations[..], [Violation::TooManyOut { nodes, .. }] if nodes.len() == 2),
        "{report:?}"
    );
}

#[test]
fn somebody_elses_cordon_is_not_on_our_account() {
    let mut story = Story::default();
    story.node("a", Some("draining"), true, "1");
    story.node("b", None, true, "1");
    assert_eq!(story.report().violations, []);
}

#[test]
fn a_reboot_under_a_pod_that_had_to_leave_is_a_violation() {
    let mut story = Story::default();
    story.node("a", None, false, "1");
    story.pod("web", "a", "ReplicaSet", false);
    story.pod("logs", "a", "DaemonSet", false);
    story.node("a", Some("draining"), true, "1");
    story.node("a", Some("rebooting"), true, "1");
    let report = story.report();
    assert!(
        matches!(&report.violations[..], [Violation::RebootedUnder { pod, .. }] if pod == "n/web"),
        "{report:?}"
    );
}

#[test]
fn pods_may_be_deleted_where_a_drain_is_and_nowhere_else() {
    let mut story = Story::default();
    for node in ["a", "b"] {
        story.node(node, None, false, "1");
        story.pod(&format!("web-{node}"), node, "ReplicaSet", false);
        story.pod(&format!("logs-{node}"), node, "DaemonSet", false);
    }
    story.node("a", Some("draining"), true, "1");
    story.pod("web-a", "a", "ReplicaSet", true);
    assert_eq!(story.report().violations, []);
    assert_eq!(story.report().pods_moved, 1);
    story.pod("web-b", "b", "ReplicaSet", true);
    story.pod("logs-a", "a", "DaemonSet", true);
    let kinds: Vec<_> = story
        .report()
        .violations
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(kinds[0].contains("n/web-b was deleted from b"), "{kinds:?}");
    assert!(kinds[1].contains("n/logs-a on a was deleted"), "{kinds:?}");
}

#[test]
fn it_does_not_matter_which_watch_was_told_first() {
    let mut story = Story::default();
    story.node("a", None, false, "1");
    story.pod("web", "a", "ReplicaSet", false);
    story.version = 9;
    story.pod("web", "a", "ReplicaSet", true);
    story.version = 7;
    story.node("a", Some("draining"), true, "1");
    let report = story.report();
    assert_eq!((report.violations.len(), report.pods_moved), (0, 1));
}
