//! Tests `dogwatch status`: which nodes are being fenced, how far each remediation is, and why.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use dogwatch_kubesim::api::ApiVerb;
use serde_json::{Value, json};

use super::{record, under_way};
use crate::hosts::path;
use crate::stage::{ended, in_json, shown};

#[test]
fn status_shows_who_is_fenced_how_far_it_is_and_why() {
    let stage = under_way();
    let text = shown(stage.dogwatch(&["status", "remediations"]));
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows[0].starts_with("REMEDIATION           NODE   HOST"),
        "{text}"
    );
    assert!(
        rows[1].starts_with("machine/machines/m1   n1     metal/m1   KeyAdded"),
        "{text}"
    );
    assert!(
        rows[1].ends_with("PoweringOff: the host goes off"),
        "{text}"
    );
    let (_, wide, _) = ended(stage.dogwatch(&["status", "remediations", "-o", "wide"]));
    assert!(wide.contains("1         KeyAdded 2.0s"), "{wide}");
    let json = in_json(stage.dogwatch(&["status", "remediations", "-o", "json"]));
    let row = &json["remediations"][0];
    assert_eq!(
        row["steps"][1],
        json!({ "step": "KeyAdded", "at": "1970-01-01T00:00:12Z", "afterMs": 2000 })
    );
    assert_eq!(
        (&row["underWay"], &row["reason"]),
        (&json!(true), &json!("PoweringOff"))
    );
    assert_eq!(json["nodes"], json!([]));
    let (_, text, errors) = ended(stage.dogwatch(&["status", "remediations", "-n", "shop"]));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        errors.contains("no remediation is under way in namespace shop"),
        "{errors}"
    );
}

#[test]
fn the_whole_status_shows_remediations_right_below_the_nodes() {
    let stage = under_way();
    let text = shown(stage.dogwatch(&["status"]));
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(place("NODE ") < place("\nREMEDIATION "), "{text}");
    assert!(
        place("\nREMEDIATION ") < place("\nNAMESPACE   HOST"),
        "{text}"
    );
    stage.deny(ApiVerb::List, "machines");
    let (code, text, errors) = ended(stage.dogwatch(&["status"]));
    assert_eq!(code, 0, "{errors}");
    assert!(
        errors.contains("the remediations cannot be shown"),
        "{errors}"
    );
    assert!(text.contains("n1"), "{text}");
}

#[test]
fn each_step_is_shown_while_it_is_watched() {
    let stage = under_way();
    let mut child = stage
        .dogwatch(&["status", "remediations", "--watch", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["remediations"][0]["step"], "KeyAdded");
    let steps = [("Requested", 10), ("KeyAdded", 12), ("Released", 20)];
    let seen = json!({ "metadata": { "annotations": { "dogwatch.dev/remediation": record("u", &steps) } } });
    stage.merge(&path("metal", "m1"), &seen);
    while next()["remediations"][0]["step"] != "Released" {}
    child.kill().unwrap();
    child.wait().unwrap();
}
