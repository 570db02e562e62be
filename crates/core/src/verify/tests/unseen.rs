//! What a log does not show: the cordon in an answer that has the metadata alone, and writes whose
//! line is missing or whose end is not known.

use serde_json::{Value, json};

use super::{broken, deletion, event, honest_reboot, last_reboot, node, record, recount, slot};

/// The line with other fields at its top.
fn with(line: &str, over: &Value) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap();
    for (key, value) in over.as_object().unwrap() {
        line[key] = value.clone();
    }
    line.to_string()
}

/// The line as of a request that relied on this version.
fn on(relies_on: u64, line: &str) -> String {
    let version = relies_on.to_string();
    let request = json!({ "metadata": { "resourceVersion": version } });
    with(line, &json!({ "requestObject": request }))
}

/// The line of a request that the API server did not answer in time.
fn unanswered(line: &str) -> String {
    let status = json!({ "code": 504 });
    with(
        line,
        &json!({ "responseStatus": status, "responseObject": null }),
    )
}

fn api_slot(version: u64, number: u32, host: Option<&str>, max: u32) -> String {
    let line = slot(version, number, host, max);
    line.replace("\"node/", "\"api/")
}

/// A patch of a Node of which the answer had the metadata alone.
fn patched_metadata(version: u64, name: &str, annotations: &Value, request: &Value) -> String {
    let object = json!({
        "kind": "PartialObjectMetadata",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "annotations": annotations},
    });
    let line = event(version, "nodes", &object);
    with(&line, &json!({ "requestObject": request }))
}

/// The lock API cordons the Node as it was after the version `relies_on`.
fn api_cordon((relies_on, version): (u64, u64), name: &str, lease: &str) -> String {
    let lock = json!({
        "lease": lease, "cordonedByUs": true, "since": "2026-11-25T12:00:00Z", "run": "api/p/1",
    });
    let annotations = json!({ "dogwatch.dev/api-lock": lock.to_string() });
    let request = json!({
        "metadata": { "resourceVersion": relies_on.to_string(), "annotations": annotations },
        "spec": { "unschedulable": true },
    });
    patched_metadata(version, name, &annotations, &request)
}

fn api_uncordon((relies_on, version): (u64, u64), name: &str) -> String {
    let request = json!({
        "metadata": {
            "resourceVersion": relies_on.to_string(),
            "annotations": { "dogwatch.dev/api-lock": null },
        },
        "spec": { "unschedulable": null },
    });
    patched_metadata(version, name, &json!({}), &request)
}

/// The controller writes an annotation that no rule reads.
fn estimate(version: u64, name: &str, annotations: &Value) -> String {
    let mut annotations = annotations.clone();
    annotations["dogwatch.dev/estimated-start"] = json!("2026-11-25T13:00:00Z");
    let request = json!({ "metadata": { "annotations": annotations } });
    patched_metadata(version, name, &annotations, &request)
}

fn promises(lines: &[String]) -> Vec<&'static str> {
    broken(lines).into_iter().map(|(it, _)| it).collect()
}

fn two_nodes() -> Vec<String> {
    vec![
        node(1, "n1", false, None, None),
        node(2, "n2", false, None, None),
    ]
}

#[test]
fn two_hosts_of_the_lock_api_over_the_maximum_are_named() {
    let lines = |max| {
        let mut lines = two_nodes();
        lines.extend([
            api_slot(3, 0, Some("n1"), max),
            api_cordon((1, 4), "n1", "dogwatch-default-0"),
            api_slot(5, 1, Some("n2"), max),
            api_cordon((2, 6), "n2", "dogwatch-default-1"),
        ]);
        lines
    };
    assert_eq!(broken(&lines(1)), [("S1", vec![4, 5, 6])]);
    let recount = recount(&lines(2));
    assert_eq!(recount.broken, []);
    assert_eq!((recount.begun, recount.most_out["default"]), (2, 2));
}

#[test]
fn a_node_that_drains_beside_a_host_of_the_lock_api_is_named_and_after_its_unlock_it_is_not() {
    let mut lines = two_nodes();
    lines.extend([
        api_slot(3, 0, Some("n1"), 1),
        api_cordon((1, 4), "n1", "dogwatch-default-0"),
        api_uncordon((4, 5), "n1"),
        api_slot(6, 0, None, 1),
        node(7, "n2", false, Some(&record("waiting", false, 0)), None),
        slot(8, 1, Some("n2"), 1),
        node(9, "n2", true, Some(&record("draining", true, 0)), None),
    ]);
    assert_eq!(broken(&lines), []);
    lines.remove(4);
    assert_eq!(promises(&lines), ["S1"]);
}

#[test]
fn a_cordon_by_the_lock_api_without_a_lock_is_named() {
    let mut lines = two_nodes();
    lines.extend([
        api_slot(3, 0, None, 1),
        api_cordon((1, 4), "n1", "dogwatch-default-0"),
    ]);
    assert_eq!(broken(&lines), [("S1", vec![3, 4])]);
    lines[2] = slot(3, 0, Some("n1"), 1);
    assert_eq!(promises(&lines), ["S1"], "its coordinator holds it");
    lines[2] = api_slot(3, 0, Some("n2"), 1);
    assert_eq!(promises(&lines), ["S1"], "another host holds it");
    lines.remove(2);
    assert_eq!(broken(&lines), [], "it may have been taken before");
}

#[test]
fn a_node_that_was_cordoned_before_the_lock_api_took_it_is_not_judged() {
    let mut lines = two_nodes();
    lines[0] = node(1, "n1", true, None, None);
    lines.push(api_slot(3, 0, None, 1));
    lines.push(
        api_cordon((1, 4), "n1", "dogwatch-default-0")
            .replace("cordonedByUs\\\":true", "cordonedByUs\\\":false"),
    );
    assert_eq!(recount(&lines).begun, 0);
    assert_eq!(broken(&lines), []);
}

#[test]
fn an_answer_with_the_metadata_alone_does_not_hide_a_foreign_cordon() {
    let waits = record("waiting", false, 0);
    let annotations = json!({ "dogwatch.dev/reboot": waits.to_string() });
    let claims = [
        slot(1, 0, Some("n1"), 1),
        node(2, "n1", true, Some(&waits), None),
        estimate(3, "n1", &annotations),
        node(4, "n1", true, Some(&record("draining", true, 0)), None),
    ];
    assert_eq!(broken(&claims), [("S3", vec![3, 4])]);
    let returns = record("returning", false, 1);
    let annotations = json!({ "dogwatch.dev/reboot": returns.to_string() });
    let removes = [
        node(1, "n1", true, Some(&returns), None),
        estimate(2, "n1", &annotations),
        node(3, "n1", false, None, Some(&last_reboot("b2"))),
    ];
    assert_eq!(broken(&removes), [("S3", vec![2, 3])]);
}

#[test]
fn an_answer_with_the_metadata_alone_does_not_take_a_node_for_returned() {
    let returns = record("returning", true, 1);
    let annotations = json!({ "dogwatch.dev/reboot": returns.to_string() });
    let mut lines = honest_reboot();
    lines.truncate(6);
    lines.extend([
        estimate(7, "n1", &annotations),
        node(8, "n2", false, Some(&record("waiting", false, 0)), None),
        slot(9, 1, Some("n2"), 1),
        node(10, "n2", true, Some(&record("draining", true, 0)), None),
    ]);
    assert_eq!(promises(&lines), ["S1"]);
}

/// Dogwatch's uncordon is missing, and then somebody's answer has the metadata alone.
#[test]
fn a_cordon_that_an_unseen_write_may_have_removed_accuses_nobody() {
    let annotations = json!({ "dogwatch.dev/reboot": record("returning", false, 1).to_string() });
    for (conditional, estimate) in [
        (true, on(6, &estimate(7, "n1", &annotations))),
        (false, estimate(7, "n1", &annotations)),
    ] {
        let lines = [
            node(5, "n1", true, Some(&record("returning", true, 1)), None),
            estimate,
            node(9, "n1", false, None, Some(&last_reboot("b2"))),
        ];
        assert_eq!(broken(&lines), [], "{conditional}");
    }
}

#[test]
fn a_metadata_answer_without_its_request_leaves_the_cordon_unknown() {
    let waits = record("waiting", false, 0);
    let annotations = json!({ "dogwatch.dev/reboot": waits.to_string() });
    for request in [
        Value::Null,
        json!([{ "op": "remove", "path": "/spec/unschedulable" }]),
    ] {
        let lines = [
            slot(1, 0, Some("n1"), 1),
            node(2, "n1", true, Some(&waits), None),
            patched_metadata(3, "n1", &annotations, &request),
            node(4, "n1", true, Some(&record("draining", true, 0)), None),
        ];
        assert_eq!(broken(&lines), [], "{request}");
    }
}

/// n1 frees the Lease, the line of that is missing, and n2 takes it.
#[test]
fn a_release_whose_line_is_missing_accuses_nobody() {
    let take = |relies_on| on(relies_on, &slot(11, 0, Some("n2"), 1));
    let whole = honest_reboot();
    let missing = [&whole[..7], &[take(8)]].concat();
    assert_eq!(broken(&missing), []);
    assert_eq!(recount(&missing).unseen, 1);
    let stolen = [&whole[..7], &[take(3)]].concat();
    assert_eq!(broken(&stolen), [("S1", vec![3, 8])]);
    let unanswered = [
        &whole[..7],
        &[unanswered(&whole[7])],
        &[slot(11, 0, Some("n2"), 1)],
    ]
    .concat();
    assert_eq!(broken(&unanswered), []);
    assert_eq!(recount(&unanswered).unseen, 1);
}

#[test]
fn a_log_that_is_given_twice_has_no_gaps() {
    let mut lines = honest_reboot();
    for (place, version) in [(2, 1), (7, 3)] {
        lines[place] = on(version, &lines[place]);
    }
    lines.insert(0, slot(1, 0, None, 1));
    let twice = [&lines[..], &lines[..]].concat();
    let recount = recount(&twice);
    assert_eq!((recount.broken, recount.unseen), (vec![], 0));
}

#[test]
fn a_refused_write_that_was_not_stored_does_not_hide_a_theft() {
    let whole = honest_reboot();
    let take = on(3, &slot(11, 0, Some("n2"), 1));
    let lines = [&whole[..7], &[unanswered(&whole[7]), take]].concat();
    assert_eq!(broken(&lines), [("S1", vec![3, 9])]);
}

#[test]
fn a_taking_whose_line_is_missing_accuses_nobody() {
    let free = slot(1, 0, None, 1);
    let taken = honest_reboot().remove(2);
    let mut lines = honest_reboot();
    lines[0] = free;
    lines[2] = unanswered(&taken);
    assert_eq!(broken(&lines), []);
    lines.remove(2);
    lines[6] = on(3, &lines[6]);
    assert_eq!(broken(&lines), [], "the release relies on it");
    lines[6] = on(1, &lines[6]);
    assert_eq!(promises(&lines), ["S1"], "the Lease was free all the time");
}

/// The patch that cordons n1 is missing; n2 begins beside it.
#[test]
fn a_node_whose_beginning_is_missing_counts_for_those_that_begin_later() {
    for is_missing in [true, false] {
        let mut lines = honest_reboot();
        lines.truncate(5);
        lines[4] = on(4, &lines[4]);
        if is_missing {
            lines.remove(3);
        } else {
            lines[3] = unanswered(&lines[3]);
        }
        lines.extend([
            node(8, "n2", false, Some(&record("waiting", false, 0)), None),
            slot(9, 1, Some("n2"), 1),
            node(10, "n2", true, Some(&record("draining", true, 0)), None),
        ]);
        let recount = recount(&lines);
        let broken: Vec<_> = recount.broken.iter().map(|it| it.promise).collect();
        assert_eq!((broken, recount.begun), (vec!["S1"], 2), "{is_missing}");
    }
}

#[test]
fn a_return_whose_line_is_missing_accuses_nobody_who_begins_after_it() {
    let mut lines = honest_reboot();
    lines[8] = on(7, &node(20, "n1", false, None, Some(&last_reboot("b2"))));
    lines.remove(6);
    lines.extend([
        node(9, "n2", false, Some(&record("waiting", false, 0)), None),
        slot(10, 0, Some("n2"), 1),
        node(11, "n2", true, Some(&record("draining", true, 0)), None),
    ]);
    assert_eq!(broken(&lines), []);
}

#[test]
fn a_lease_that_was_seen_again_after_a_gap_was_taken_when_it_was_taken() {
    let remedy = json!({
        "node": "n9", "subject": "node/n9", "controlPlane": false, "group": "default",
        "since": "2026-11-25T12:00:00Z",
    });
    let held = json!({
        "metadata": {"name": "dogwatch-remedy-n9",
            "annotations": {"dogwatch.dev/holder": remedy.to_string()}},
        "spec": {"holderIdentity": "remedy"},
    });
    let lines = [
        slot(1, 0, Some("n1"), 1),
        node(2, "n1", false, Some(&record("waiting", false, 0)), None),
        event(3, "leases", &held),
        on(4, &slot(5, 0, Some("n1"), 1)),
        node(6, "n1", true, Some(&record("draining", true, 0)), None),
    ];
    assert_eq!(
        broken(&lines),
        [],
        "the lock was taken before the remediation"
    );
}

#[test]
fn a_deletion_that_was_not_answered_is_none() {
    let line = unanswered(&deletion(3, "n1", &json!({})));
    let mut lines = honest_reboot();
    lines.insert(3, line);
    assert_eq!(broken(&lines), []);
}
