//! The embedded API server, called directly: one request, one answer, no async runtime.
//!
//! The expected answers were first measured on kube-apiserver 1.36.1.

use std::sync::Arc;

use dogwatch_kubesim::api::{
    ApiRequest, ApiResponse, ApiServerOptions, ApiVerb, Denial, ObjectStore,
};
use dogwatch_kubesim::clock::ManualClock;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

struct Cluster(ObjectStore);

impl Cluster {
    fn new() -> Self {
        Self::with_seed(0)
    }

    fn with_seed(seed: u64) -> Self {
        let clock = Arc::new(ManualClock::starting_at(Timestamp::UNIX_EPOCH));
        Self(ObjectStore::new(
            clock,
            ApiServerOptions {
                seed,
                ..ApiServerOptions::default()
            },
        ))
    }

    fn ask(
        &mut self,
        method: Method,
        target: &str,
        body: &Value,
        content_type: &str,
    ) -> ApiResponse {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request =
            ApiRequest::new("tester", method, target, body).with_content_type(content_type);
        self.0
            .handle_request(&request)
            .into_response()
            .expect("no watch was asked for")
    }

    fn get(&mut self, target: &str) -> Value {
        self.ask(Method::GET, target, &Value::Null, "").body_json()
    }

    fn post(&mut self, target: &str, body: &Value) -> ApiResponse {
        self.ask(Method::POST, target, body, "application/json")
    }

    fn merge(&mut self, target: &str, body: &Value) -> ApiResponse {
        self.ask(Method::PATCH, target, body, MERGE)
    }

    fn apply(&mut self, name: &str, manager: &str, lease: &Value) -> ApiResponse {
        let mut body = lease.clone();
        body["apiVersion"] = "coordination.k8s.io/v1".into();
        body["kind"] = "Lease".into();
        self.ask(
            Method::PATCH,
            &format!("{LEASES}/{name}?fieldManager={manager}"),
            &body,
            APPLY,
        )
    }

    fn run(&mut self, name: &str, ready: bool) -> Value {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "x"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        });
        assert_eq!(self.post(PODS, &pod).code, 201);
        let ready = if ready { "True" } else { "False" };
        let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
        self.merge(&format!("{PODS}/{name}/status"), &status)
            .body_json()
    }

    fn budget(&mut self, name: &str, status: &Value) {
        let budget = json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}});
        assert_eq!(self.post(BUDGETS, &budget).code, 201);
        self.merge(
            &format!("{BUDGETS}/{name}/status"),
            &json!({"status": status}),
        );
    }

    fn evict(&mut self, name: &str, options: &Value) -> ApiResponse {
        let body = json!({"metadata": {"name": name}, "deleteOptions": options});
        self.post(&format!("{PODS}/{name}/eviction"), &body)
    }
}

fn holder(name: &str) -> Value {
    json!({"spec": {"holderIdentity": name}})
}

fn message(response: &ApiResponse) -> String {
    response.body_json()["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn the_same_seed_and_the_same_requests_give_the_same_bytes() {
    let run = |seed| {
        let mut cluster = Cluster::with_seed(seed);
        cluster.run("a", true);
        cluster.post(
            PODS,
            &json!({"metadata": {"generateName": "b-"}, "spec": {"containers": [{"name": "c"}]}}),
        );
        cluster.evict("a", &json!({}));
        cluster.ask(Method::GET, PODS, &Value::Null, "").body
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn only_one_bidder_of_those_who_saw_the_lease_free_wins() {
    let mut cluster = Cluster::new();
    cluster.post(LEASES, &json!({"metadata": {"name": "slot"}}));
    let free = cluster.get(&format!("{LEASES}/slot"));
    let bid = |holder: &str| {
        json!({
            "metadata": {"uid": free["metadata"]["uid"], "resourceVersion": free["metadata"]["resourceVersion"]},
            "spec": {"holderIdentity": holder},
        })
    };
    assert_eq!(cluster.apply("slot", "one", &bid("one")).code, 200);
    let second = cluster.apply("slot", "two", &bid("two"));
    assert_eq!(second.code, 409);
    // A late duplicate of the winner's request, after the release, has no effect either.
    assert_eq!(cluster.apply("slot", "one", &json!({})).code, 200);
    assert_eq!(cluster.apply("slot", "one", &bid("one")).code, 409);
}

#[test]
fn an_apply_with_a_uid_does_not_make_a_lease_anew_and_one_without_does() {
    let mut cluster = Cluster::new();
    let with_uid = json!({"metadata": {"uid": "u", "resourceVersion": "3"}, "spec": {"holderIdentity": "one"}});
    let refused = cluster.apply("slot", "one", &with_uid);
    assert_eq!(refused.code, 409);
    assert!(
        message(&refused).contains("uid mismatch"),
        "{}",
        message(&refused)
    );
    let without = json!({"metadata": {"resourceVersion": "3"}, "spec": {"holderIdentity": "one"}});
    assert_eq!(cluster.apply("slot", "one", &without).code, 201);
}

#[test]
fn two_managers_of_the_same_value_own_it_together() {
    let mut cluster = Cluster::new();
    cluster.apply("slot", "one", &holder("same"));
    assert_eq!(cluster.apply("slot", "two", &holder("same")).code, 200);
    cluster.apply("slot", "one", &json!({}));
    let left = cluster.get(&format!("{LEASES}/slot"));
    assert_eq!(
        left["spec"]["holderIdentity"], "same",
        "the other one still owns it"
    );
    cluster.apply("slot", "two", &json!({}));
    let left = cluster.get(&format!("{LEASES}/slot"));
    assert_eq!(left["spec"], json!({}));
}

#[test]
fn a_release_by_merge_patch_leaves_nothing_that_refuses_the_next_bidder() {
    let mut cluster = Cluster::new();
    let bid =
        json!({"metadata": {"annotations": {"record": "one"}}, "spec": {"holderIdentity": "one"}});
    cluster.apply("slot", "one", &bid);
    let release = json!({"metadata": {"annotations": {"record": null, "hint": "two"}}, "spec": {"holderIdentity": null}});
    cluster.merge(&format!("{LEASES}/slot?fieldManager=one"), &release);
    let next =
        json!({"metadata": {"annotations": {"record": "two"}}, "spec": {"holderIdentity": "two"}});
    assert_eq!(cluster.apply("slot", "two", &next).code, 200);
}

#[test]
fn a_record_that_is_left_behind_refuses_every_later_bidder() {
    let mut cluster = Cluster::new();
    let bid = |name: &str| json!({"metadata": {"annotations": {"record": name}}, "spec": {"holderIdentity": name}});
    cluster.apply("slot", "one", &bid("one"));
    cluster.merge(
        &format!("{LEASES}/slot"),
        &json!({"spec": {"holderIdentity": null}}),
    );
    let refused = cluster.apply("slot", "two", &bid("two"));
    assert_eq!(refused.code, 409);
    assert_eq!(
        message(&refused),
        "Apply failed with 1 conflict: conflict with \"one\": .metadata.annotations.record"
    );
}

#[test]
fn an_apply_of_the_same_again_moves_nothing() {
    let mut cluster = Cluster::new();
    let first = cluster.apply("slot", "one", &holder("one")).body_json();
    let again = cluster.apply("slot", "one", &holder("one")).body_json();
    assert_eq!(first, again);
}

#[test]
fn a_forced_apply_takes_the_field_and_its_ownership() {
    let mut cluster = Cluster::new();
    cluster.apply("slot", "one", &holder("one"));
    assert_eq!(
        cluster.apply("slot", "two&force=true", &holder("two")).code,
        200
    );
    assert_eq!(cluster.apply("slot", "one", &holder("one")).code, 409);
}

#[test]
fn a_manager_must_be_named_and_short_enough() {
    let mut cluster = Cluster::new();
    let long = "x".repeat(129);
    assert_eq!(cluster.apply("slot", &long, &holder("one")).code, 422);
    assert_eq!(cluster.apply("slot", "", &holder("one")).code, 422);
    assert_eq!(cluster.apply("Slot", "one", &holder("one")).code, 422);
}

#[test]
fn a_spent_budget_refuses_before_preconditions_are_looked_at() {
    let mut cluster = Cluster::new();
    cluster.run("a", true);
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1});
    cluster.budget("b", &status);
    let refused = cluster.evict("a", &json!({"preconditions": {"uid": "wrong"}}));
    assert_eq!((refused.code, refused.retry_after), (429, None));
    let cause = &refused.body_json()["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    assert_eq!(
        cause["message"],
        "The disruption budget b needs 1 healthy pods and has 1 currently"
    );
}

#[test]
fn a_budget_is_spent_even_when_the_uid_turns_out_wrong() {
    let mut cluster = Cluster::new();
    cluster.run("a", true);
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1});
    cluster.budget("b", &status);
    assert_eq!(
        cluster
            .evict("a", &json!({"preconditions": {"uid": "wrong"}}))
            .code,
        409
    );
    let budget = cluster.get(&format!("{BUDGETS}/b"));
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["a"].is_string());
    let pod = cluster.get(&format!("{PODS}/a"));
    let right = json!({"preconditions": {"uid": pod["metadata"]["uid"]}});
    assert_eq!(cluster.evict("a", &right).code, 429);
}

#[test]
fn evictions_are_decided_as_the_real_server_does() {
    let observed = |allowed: i64, healthy: i64| json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": 1});
    // Columns: ready, the budgets' status, the status code, Retry-After.
    let cases = [
        (true, vec![], 201, None),
        (true, vec![observed(1, 2)], 201, None),
        (true, vec![observed(0, 2)], 429, None),
        (
            true,
            vec![json!({"observedGeneration": 0, "disruptionsAllowed": 1})],
            429,
            Some(10),
        ),
        (true, vec![observed(-1, 1)], 403, None),
        (false, vec![observed(0, 1)], 201, None),
        (false, vec![observed(0, 0)], 429, None),
        (true, vec![observed(1, 2), observed(1, 2)], 500, None),
    ];
    for (ready, budgets, code, retry_after) in cases {
        let mut cluster = Cluster::new();
        cluster.run("a", ready);
        for (index, status) in budgets.iter().enumerate() {
            cluster.budget(&format!("b{index}"), status);
        }
        let answer = cluster.evict("a", &json!({}));
        assert_eq!(
            (answer.code, answer.retry_after),
            (code, retry_after),
            "ready {ready}, {budgets:?}"
        );
    }
}

#[test]
fn a_pod_that_does_not_run_is_evicted_whatever_its_budget_says() {
    for phase in ["Pending", "Succeeded", "Failed"] {
        let mut cluster = Cluster::new();
        cluster.run("a", true);
        cluster.merge(
            &format!("{PODS}/a/status"),
            &json!({"status": {"phase": phase}}),
        );
        cluster.budget(
            "b",
            &json!({"observedGeneration": 1, "disruptionsAllowed": 0}),
        );
        assert_eq!(cluster.evict("a", &json!({})).code, 201, "{phase}");
    }
}

#[test]
fn nothing_is_evicted_in_a_namespace_that_goes() {
    let mut cluster = Cluster::new();
    cluster.post(
        "/api/v1/namespaces",
        &json!({"metadata": {"name": "going"}}),
    );
    let pods = "/api/v1/namespaces/going/pods";
    cluster.post(pods, &json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{"name": "c"}]}}));
    cluster.ask(Method::DELETE, "/api/v1/namespaces/going", &Value::Null, "");
    let refused = cluster.post(
        &format!("{pods}/a/eviction"),
        &json!({"metadata": {"name": "a"}}),
    );
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.body_json()["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    assert_eq!(cluster.evict("nobody", &json!({})).code, 404);
}

#[test]
fn a_deletion_under_way_can_only_become_shorter() {
    let mut cluster = Cluster::new();
    cluster.run("a", true);
    let pod = format!("{PODS}/a");
    let mut grace = |seconds: i64| {
        let options = json!({"gracePeriodSeconds": seconds});
        let answer = cluster
            .ask(Method::DELETE, &pod, &options, "application/json")
            .body_json();
        answer["metadata"]["deletionGracePeriodSeconds"].as_i64()
    };
    assert_eq!(grace(20), Some(20));
    assert_eq!(grace(25), Some(20));
    assert_eq!(grace(5), Some(5));
    assert_eq!(grace(0), Some(0));
    assert_eq!(cluster.get(&pod)["code"], 404);
}

#[test]
fn the_object_and_its_status_are_written_apart() {
    let mut cluster = Cluster::new();
    cluster.run("a", true);
    let pod = cluster
        .merge(
            &format!("{PODS}/a"),
            &json!({"metadata": {"labels": {"l": "v"}}, "status": {"phase": "Failed"}}),
        )
        .body_json();
    assert_eq!(
        (&pod["status"]["phase"], &pod["metadata"]["labels"]["l"]),
        (&json!("Running"), &json!("v"))
    );
    let pod = cluster
        .merge(
            &format!("{PODS}/a/status"),
            &json!({"spec": {"nodeName": "other"}, "status": {"phase": "Failed"}}),
        )
        .body_json();
    assert_eq!(
        (&pod["status"]["phase"], &pod["spec"]["nodeName"]),
        (&json!("Failed"), &json!("n"))
    );
}

#[test]
fn a_definition_serves_its_kind_at_once_and_takes_it_away_again() {
    let mut cluster = Cluster::new();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {
        "group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
    }});
    assert_eq!(cluster.post(definitions, &definition).code, 201);
    let things = "/apis/example.com/v1/things";
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}});
    assert_eq!(
        cluster.post(things, &thing).body_json()["metadata"]["generation"],
        1
    );
    let changed = cluster
        .merge(&format!("{things}/t"), &json!({"spec": {"a": 2}}))
        .body_json();
    assert_eq!(changed["metadata"]["generation"], 2);
    cluster.ask(
        Method::DELETE,
        &format!("{definitions}/things.example.com"),
        &Value::Null,
        "",
    );
    assert_eq!(cluster.ask(Method::GET, things, &Value::Null, "").code, 404);
}

#[test]
fn a_withheld_right_is_refused_in_the_real_words() {
    let mut cluster = Cluster::new();
    let denial = Denial {
        user: None,
        verb: Some(ApiVerb::Create),
        resource: Some("pods/eviction".into()),
    };
    let store = &mut cluster.0;
    store.set_denials(vec![denial]);
    let refused = cluster.evict("a", &json!({}));
    assert_eq!(refused.code, 403);
    assert_eq!(
        message(&refused),
        "pods \"a\" is forbidden: User \"tester\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"default\""
    );
}

#[test]
fn a_table_shows_a_node_as_kubectl_does_without_its_object() {
    let mut cluster = Cluster::new();
    let node = json!({"metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.post("/api/v1/nodes", &node);
    let request = ApiRequest::new(
        "tester",
        Method::GET,
        "/api/v1/nodes?includeObject=None",
        "",
    )
    .with_accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = cluster
        .0
        .handle_request(&request)
        .into_response()
        .expect("no watch")
        .body_json();
    let row = &table["rows"][0];
    assert_eq!(row["object"], Value::Null);
    let cells: Vec<&str> = row["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .take(4)
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        cells,
        ["n", "Ready,SchedulingDisabled", "control-plane", "0s"]
    );
}

#[test]
fn a_first_apply_finds_what_was_there_before_owned() {
    let mut cluster = Cluster::new();
    // A create without any field to own, so that no manager owns anything.
    cluster.post(LEASES, &json!({"metadata": {"name": "slot"}}));
    cluster.merge(&format!("{LEASES}/slot"), &holder("person"));
    let refused = cluster.apply("slot", "one", &holder("one"));
    assert_eq!(refused.code, 409);
    let expected = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using coordination.k8s.io/v1: .spec.holderIdentity";
    assert_eq!(message(&refused), expected);
}

#[test]
fn a_name_that_is_going_is_taken_still_and_says_so() {
    let mut cluster = Cluster::new();
    let held = json!({"metadata": {"name": "slot", "finalizers": ["example.com/hold"]}});
    cluster.post(LEASES, &held);
    cluster.ask(Method::DELETE, &format!("{LEASES}/slot"), &Value::Null, "");
    let refused = cluster.post(LEASES, &held);
    assert_eq!(
        message(&refused),
        "object is being deleted: leases.coordination.k8s.io \"slot\" already exists"
    );
}

#[test]
fn a_strategic_patch_puts_new_conditions_where_the_real_server_puts_them() {
    let mut cluster = Cluster::new();
    let condition = |name: &str| json!({"type": name, "status": "True"});
    let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [condition("A"), condition("B"), condition("C")]}});
    cluster.post("/api/v1/nodes", &node);
    let patch = json!({"status": {"conditions": [condition("C"), condition("New")]}});
    let strategic = "application/strategic-merge-patch+json";
    let node = cluster
        .ask(Method::PATCH, "/api/v1/nodes/n/status", &patch, strategic)
        .body_json();
    let conditions = node["status"]["conditions"].as_array().expect("conditions");
    let types: Vec<&str> = conditions
        .iter()
        .filter_map(|condition| condition["type"].as_str())
        .collect();
    assert_eq!(types, ["A", "B", "C", "New"]);
}
