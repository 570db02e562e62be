//! Forged histories: each broken promise is named, with its lines; honest ones accuse nobody.

use serde_json::{Value, json};

mod unseen;

use super::audit::{AuditLineError, read_audit_line};
use super::trace::{TraceLineError, read_trace_line};
use super::{RecountResult, recount_writes};

fn event(version: u64, resource: &str, object: &Value) -> String {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    let name = object["metadata"]["name"].clone();
    json!({
        "stage": "ResponseComplete", "verb": "patch", "user": {"username": "dogwatch"},
        "objectRef": {"resource": resource, "name": name},
        "responseStatus": {"code": 200}, "responseObject": object,
        "stageTimestamp": format!("2026-11-25T12:00:{version:02}Z"),
    })
    .to_string()
}

fn node(
    version: u64,
    name: &str,
    cordoned: bool,
    record: Option<&Value>,
    last: Option<&Value>,
) -> String {
    let mut annotations = json!({});
    if let Some(record) = record {
        annotations["dogwatch.dev/reboot"] = json!(record.to_string());
    }
    if let Some(last) = last {
        annotations["dogwatch.dev/last-reboot"] = json!(last.to_string());
    }
    let object = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "annotations": annotations},
        "spec": {"unschedulable": cordoned}, "status": {"nodeInfo": {"bootID": "b1"}},
    });
    event(version, "nodes", &object)
}

fn record(phase: &str, cordoned_by_us: bool, attempts: u32) -> Value {
    json!({
        "phase": phase, "run": "coordinator/a", "since": "2026-11-25T12:00:00Z",
        "planned": "2026-11-25T12:00:00Z", "trigger": {"source": "sentinel:/run/r"},
        "lease": "dogwatch-default-0", "bootId": "b1", "cordonedByUs": cordoned_by_us, "attempts": attempts,
        "serves": {"sentinel:/run/r": "1"},
    })
}

fn last_reboot(new_boot: &str) -> Value {
    json!({
        "outcome": "Rebooted", "planned": "2026-11-25T12:00:00Z",
        "finished": "2026-11-25T12:00:00Z", "oldBootId": "b1", "newBootId": new_boot,
        "trigger": {"source": "sentinel:/run/r"}, "fingerprints": {"sentinel:/run/r": "1"},
    })
}

fn slot(version: u64, slot: u32, holder: Option<&str>, max: u32) -> String {
    let record = json!({
        "node": holder, "nodeUid": null, "bootId": null, "group": "default", "max": max,
        "since": "2026-11-25T12:00:00Z", "runs": ["coordinator/a"],
    });
    let mut object = json!({"metadata": {"name": format!("dogwatch-default-{slot}")}, "spec": {}});
    if let Some(holder) = holder {
        object["metadata"]["annotations"] = json!({"dogwatch.dev/holder": record.to_string()});
        object["spec"] = json!({"holderIdentity": format!("node/{holder}")});
    }
    event(version, "leases", &object)
}

fn recount(lines: &[String]) -> RecountResult {
    let read = |(place, line): (usize, &String)| read_audit_line(0, place + 1, line).unwrap();
    recount_writes(lines.iter().enumerate().filter_map(read).collect())
}

fn broken(lines: &[String]) -> Vec<(&'static str, Vec<usize>)> {
    let rules = recount(lines).broken.into_iter();
    let lines = |rule: super::BrokenRule| {
        let numbers = rule.lines.iter().map(|source| source.line).collect();
        (rule.promise, numbers)
    };
    rules.map(lines).collect()
}

/// One node's reboot from wish to return.
fn honest_reboot() -> Vec<String> {
    vec![
        node(1, "n1", false, None, None),
        node(2, "n1", false, Some(&record("waiting", false, 0)), None),
        slot(3, 0, Some("n1"), 1),
        node(4, "n1", true, Some(&record("draining", true, 0)), None),
        node(5, "n1", true, Some(&record("rebooting", true, 1)), None),
        node(6, "n1", true, Some(&record("returning", true, 1)), None),
        node(7, "n1", false, Some(&record("returning", false, 1)), None),
        slot(8, 0, None, 1),
        node(9, "n1", false, None, Some(&last_reboot("b2"))),
    ]
}

#[test]
fn an_honest_reboot_accuses_nobody_and_is_counted() {
    let recount = recount(&honest_reboot());
    assert_eq!(recount.broken, []);
    assert_eq!((recount.begun, recount.rebooted), (1, 1));
    assert_eq!(recount.most_out["default"], 1);
}

#[test]
fn writes_are_judged_in_the_order_of_their_versions_whatever_the_order_of_their_lines() {
    let mut lines = honest_reboot();
    lines.reverse();
    assert_eq!(broken(&lines), []);
}

fn deletion(second: u64, name: &str, over: &Value) -> String {
    let mut line = json!({
        "stage": "ResponseComplete", "verb": "delete", "user": {"username": "ann"},
        "requestURI": format!("/api/v1/nodes/{name}"),
        "objectRef": {"resource": "nodes", "name": name},
        "responseStatus": {"code": 200}, "responseObject": {"kind": "Status"},
        "stageTimestamp": format!("2026-11-25T12:00:{second:02}.500000Z"),
    });
    for (key, value) in over.as_object().unwrap() {
        line[key] = value.clone();
    }
    line.to_string()
}

/// n1 drains and is deleted, its lock is broken, and n2 takes it and drains. `deleted` is the line of
/// the deletion, after version 3.
fn deleted_while_it_drains(deleted: &[String]) -> Vec<String> {
    let begin = [
        slot(1, 0, Some("n1"), 1),
        node(2, "n1", false, Some(&record("waiting", false, 0)), None),
        node(3, "n1", true, Some(&record("draining", true, 0)), None),
    ];
    let end = [
        slot(4, 0, None, 1),
        node(5, "n2", false, Some(&record("waiting", false, 0)), None),
        slot(6, 0, Some("n2"), 1),
        node(7, "n2", true, Some(&record("draining", true, 0)), None),
    ];
    [&begin[..], deleted, &end[..]].concat()
}

#[test]
fn a_deletion_in_the_log_of_one_api_server_is_judged_in_its_place_among_those_of_another() {
    let writes = deleted_while_it_drains(&[]);
    let one = [&writes[..], &[node(50, "n9", false, None, None)]].concat();
    let other = vec![deletion(3, "n1", &json!({}))];
    for files in [[&one, &other], [&other, &one]] {
        let mut all = Vec::new();
        for (file, lines) in files.into_iter().enumerate() {
            let read =
                |(place, line): (usize, &String)| read_audit_line(file, place + 1, line).unwrap();
            all.extend(lines.iter().enumerate().filter_map(read));
        }
        let recount = recount_writes(all);
        assert_eq!(recount.broken, []);
        assert_eq!(recount.begun, 2);
    }
    let whole = deleted_while_it_drains(&[deletion(3, "n1", &json!({}))]);
    assert_eq!(broken(&whole), []);
    let promises: Vec<_> = broken(&writes).into_iter().map(|(it, _)| it).collect();
    assert_eq!(promises, ["S1"], "without the deletion n1 is still out");
}

#[test]
fn a_deletion_whose_time_cannot_be_read_keeps_its_place_in_its_file() {
    let timeless = deletion(3, "n1", &json!({"stageTimestamp": "soon"}));
    assert_eq!(broken(&deleted_while_it_drains(&[timeless])), []);
}

#[test]
fn a_dry_run_writes_nothing() {
    for over in [
        json!({"requestURI": "/api/v1/nodes/n1?dryRun=All"}),
        json!({"requestURI": "/api/v1/nodes/n1?timeout=5s&dryRun=All"}),
        json!({"requestObject": {"kind": "DeleteOptions", "dryRun": ["All"]}}),
    ] {
        let lines = deleted_while_it_drains(&[deletion(3, "n1", &over)]);
        let promises: Vec<_> = broken(&lines).into_iter().map(|(it, _)| it).collect();
        assert_eq!(promises, ["S1"], "{over}");
    }
    let options = json!({"requestObject": {"kind": "DeleteOptions", "dryRun": []}});
    let lines = deleted_while_it_drains(&[deletion(3, "n1", &options)]);
    assert_eq!(broken(&lines), []);
    let mut drain: Value = serde_json::from_str(&node(2, "n1", true, None, None)).unwrap();
    drain["requestURI"] = json!("/api/v1/nodes/n1?dryRun=All&fieldManager=kubectl-drain");
    assert_eq!(read_audit_line(0, 1, &drain.to_string()), Ok(None));
}

#[test]
fn two_holders_at_once_are_named() {
    let lines = [slot(1, 0, Some("n1"), 1), slot(2, 0, Some("n2"), 1)];
    assert_eq!(broken(&lines), [("S1", vec![1, 2])]);
}

#[test]
fn a_node_that_goes_out_beside_another_over_the_smallest_maximum_is_named() {
    let begins = |version: u64, name: &str| {
        [
            node(
                version,
                name,
                false,
                Some(&record("waiting", false, 0)),
                None,
            ),
            node(
                version + 10,
                name,
                true,
                Some(&record("draining", true, 0)),
                None,
            ),
        ]
    };
    let [n1_waits, n1_out] = begins(1, "n1");
    let [n2_waits, n2_out] = begins(2, "n2");
    let locks = |max| [slot(5, 0, Some("n1"), max), slot(6, 1, Some("n2"), 2)];
    let [first, second] = locks(1);
    let over = [
        n1_waits.clone(),
        n2_waits.clone(),
        first,
        second,
        n1_out.clone(),
        n2_out.clone(),
    ];
    assert_eq!(broken(&over), [("S1", vec![5, 4, 6])]);
    let [first, second] = locks(2);
    assert_eq!(
        broken(&[n1_waits, n2_waits, first, second, n1_out, n2_out]),
        []
    );
}

#[test]
fn a_cordon_without_a_lock_is_named() {
    let mut lines = honest_reboot();
    lines[2] = slot(3, 0, None, 1);
    assert_eq!(broken(&lines)[0], ("S1", vec![3, 4]));
    lines.remove(2);
    lines.remove(6);
    let begins_in_the_middle = "the Lease may have been taken before";
    assert_eq!(broken(&lines), [], "{begins_in_the_middle}");
}

#[test]
fn a_remediation_whose_lease_was_taken_first_counts_although_its_node_is_deleted() {
    let remedy = json!({
        "node": "n9", "subject": "node/n9", "controlPlane": false, "group": "default",
        "since": "2026-11-25T12:00:00Z",
    });
    let held = |version| {
        let object = json!({
            "metadata": {"name": "dogwatch-remedy-n9",
                "annotations": {"dogwatch.dev/holder": remedy.to_string()}},
            "spec": {"holderIdentity": "remedy"},
        });
        event(version, "leases", &object)
    };
    let mut lines = honest_reboot();
    lines.insert(0, held(1));
    lines[1] = node(2, "n1", false, Some(&record("waiting", false, 0)), None);
    assert_eq!(broken(&lines), [("S1", vec![1, 4, 5])]);
    let mut lines = honest_reboot();
    lines[0] = node(1, "n1", false, Some(&record("waiting", false, 0)), None);
    lines[1] = slot(2, 0, Some("n1"), 1);
    lines[2] = held(3);
    assert_eq!(
        broken(&lines),
        [],
        "it waits for nobody, and came after the lock"
    );
}

#[test]
fn an_uncordon_of_a_foreign_cordon_is_named() {
    let lines = [
        node(1, "n1", true, Some(&record("returning", false, 1)), None),
        node(2, "n1", false, None, Some(&last_reboot("b2"))),
    ];
    assert_eq!(broken(&lines), [("S3", vec![1, 2])]);
    let by_a_person = [
        node(1, "n1", true, Some(&record("waiting", false, 0)), None),
        node(2, "n1", false, Some(&record("waiting", false, 0)), None),
    ];
    assert_eq!(broken(&by_a_person), []);
}

#[test]
fn a_record_that_claims_a_foreign_cordon_is_named() {
    let lines = [
        slot(1, 0, Some("n1"), 1),
        node(2, "n1", true, Some(&record("waiting", false, 0)), None),
        node(3, "n1", true, Some(&record("draining", true, 0)), None),
    ];
    assert_eq!(broken(&lines), [("S3", vec![2, 3])]);
}

#[test]
fn a_reboot_that_ends_in_the_same_boot_is_named() {
    let mut lines = honest_reboot();
    lines[8] = node(9, "n1", false, None, Some(&last_reboot("b1")));
    assert_eq!(broken(&lines), [("S4", vec![7, 9])]);
}

#[test]
fn a_second_reboot_of_one_request_is_named() {
    let last = last_reboot("b2");
    let mut lines = honest_reboot();
    lines.extend([
        node(
            10,
            "n1",
            false,
            Some(&record("waiting", false, 0)),
            Some(&last),
        ),
        slot(11, 0, Some("n1"), 1),
        node(
            12,
            "n1",
            true,
            Some(&record("draining", true, 0)),
            Some(&last),
        ),
        node(
            13,
            "n1",
            true,
            Some(&record("rebooting", true, 1)),
            Some(&last),
        ),
    ]);
    assert_eq!(broken(&lines), [("S5", vec![9, 13])]);
}

#[test]
fn hostile_lines_get_an_error_that_names_the_line() {
    for text in ["{", "[]", "nonsense", "{\"stage\": 1}", "\u{0}"] {
        let error = read_audit_line(0, 7, text).unwrap_err();
        assert!(error.to_string().starts_with("line 7 "), "{error}");
        let error = read_trace_line(7, text).unwrap_err();
        assert!(error.to_string().starts_with("line 7 "), "{error}");
    }
    let long = "x".repeat(super::audit::MAX_LINE_BYTES + 1);
    assert_eq!(
        read_audit_line(0, 3, &long),
        Err(AuditLineError::TooLong { line: 3 })
    );
    let newer = read_trace_line(2, r#"{"v": 9}"#);
    assert_eq!(
        newer,
        Err(TraceLineError::NewerFormat {
            line: 2,
            version: 9
        })
    );
}

#[test]
fn a_log_without_bodies_says_which_level_is_needed() {
    let mut line: Value = serde_json::from_str(&slot(1, 0, None, 1)).unwrap();
    line["responseObject"].take();
    let error = read_audit_line(0, 4, &line.to_string())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("RequestResponse") && error.contains("line 4"),
        "{error}"
    );
}
