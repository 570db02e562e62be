//! Tests `dogwatch pause` and `resume`.

use serde_json::json;

use super::rebooting_cluster;
use super::stage::{Stage, ended, in_json};

fn with_policy() -> Stage {
    let stage = rebooting_cluster();
    stage.policies(&[
        (
            "workers",
            json!({ "nodeSelector": {}, "maxUnavailable": 2 }),
        ),
        (
            "spare",
            json!({ "nodeSelector": { "matchLabels": { "spare": "yes" } } }),
        ),
    ]);
    stage
}

#[test]
fn a_pause_says_which_nodes_it_holds_and_who_is_undone() {
    let stage = with_policy();
    let (code, text, errors) = ended(stage.dogwatch(&["pause", "workers", "--reason", "holidays"]));
    assert_eq!(code, 0, "{errors}");
    assert_eq!(
        stage.spec("workers")["paused"],
        json!({ "reason": "holidays" })
    );
    assert_eq!(stage.spec("workers")["maxUnavailable"], 2);
    for line in [
        "rebootpolicy/workers is paused until somebody resumes it",
        "workers: 3 nodes are paused",
        "draining; Dogwatch undoes the drain: n1",
        "waiting; keeps waiting until the pause ends: n2",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(stage.spec("spare")["paused"].is_null());
    let (code, text, _) = ended(stage.dogwatch(&["resume", "workers"]));
    assert_eq!(code, 0);
    assert!(stage.spec("workers")["paused"].is_null());
    assert!(
        text.contains("rebootpolicy/workers is resumed")
            && text.contains("waiting; reboots in turn: n2"),
        "{text}"
    );
}

#[test]
fn without_a_name_every_policy_is_paused_and_a_pause_may_end_by_itself() {
    let stage = with_policy();
    let args = ["pause", "--reason", "r", "--until", "2100-01-01T00:00:00Z"];
    let (code, ..) = ended(stage.dogwatch(&args));
    assert_eq!(code, 0);
    let until = |policy| stage.spec(policy)["paused"]["until"].clone();
    assert_eq!(until("workers"), "2100-01-01T00:00:00Z");
    assert_eq!(until("spare"), "2100-01-01T00:00:00Z");
    // Another person's pause is never shortened, and prolonged only with `--replace`.
    let (code, text, _) =
        ended(stage.dogwatch(&["pause", "spare", "--reason", "x", "--until", "2h"]));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("was paused already: r"), "{text}");
    let (code, _, errors) = ended(stage.dogwatch(&["pause", "spare", "--reason", "x"]));
    assert_eq!(code, 1);
    assert!(
        errors.contains("that pause ends earlier") && errors.contains("--replace"),
        "{errors}"
    );
    assert_eq!(stage.spec("spare")["paused"]["reason"], "r");
    let (code, ..) = ended(stage.dogwatch(&["pause", "spare", "--reason", "x", "--replace"]));
    assert_eq!(code, 0);
    assert_eq!(
        stage.spec("spare")["paused"],
        json!({ "reason": "x" }),
        "no end of the older pause is left"
    );
    let (code, ..) = ended(stage.dogwatch(&["resume", "--all"]));
    assert_eq!(code, 0);
    assert!(stage.spec("workers")["paused"].is_null() && stage.spec("spare")["paused"].is_null());
}

#[test]
fn nodes_that_no_policy_rules_are_paused_with_all_and_freed_again() {
    let stage = rebooting_cluster();
    stage.policies(&[(
        "spare",
        json!({
            "nodeSelector": { "matchLabels": { "spare": "yes" } }, "priority": -5000,
        }),
    )]);
    let (code, text, _) = ended(stage.dogwatch(&["pause", "--reason", "r"]));
    assert_eq!(code, 0);
    assert!(
        text.contains("no policy selects them; --all pauses them too): n1, n2, n3"),
        "{text}"
    );
    assert!(stage.spec("default").is_null());
    let (code, text, errors) = ended(stage.dogwatch(&["pause", "--all", "--reason", "r"]));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("default: 3 nodes are paused"), "{text}");
    assert_eq!(
        stage.spec("default"),
        json!({ "nodeSelector": {}, "priority": -5001, "paused": { "reason": "r" } })
    );
    let groups = in_json(stage.dogwatch(&["status", "-o", "json"]));
    let nodes = groups["nodes"].as_array().unwrap();
    assert!(
        nodes.iter().all(|node| node["group"] == "default"),
        "nobody changed its group"
    );
    let (code, text, _) = ended(stage.dogwatch(&["resume", "--all"]));
    assert_eq!(code, 0);
    assert!(
        text.contains("rebootpolicy/default existed only for the pause and was deleted"),
        "{text}"
    );
    assert!(stage.spec("default").is_null());
}

#[test]
fn what_cannot_be_paused_is_said_with_the_next_step() {
    let stage = rebooting_cluster();
    let (code, _, errors) = ended(stage.dogwatch(&["pause", "--reason", "r"]));
    assert_eq!(code, 3);
    assert!(
        errors.contains("dogwatch crds | kubectl apply --server-side -f -"),
        "{errors}"
    );
    stage.policies(&[]);
    let (code, _, errors) = ended(stage.dogwatch(&["pause", "--reason", "r"]));
    assert_eq!(code, 3);
    assert!(errors.contains("dogwatch pause --all"), "{errors}");
    let stage = with_policy();
    let (code, _, errors) = ended(stage.dogwatch(&["pause", "spare", "worker", "--reason", "r"]));
    assert_eq!(code, 3);
    assert!(errors.contains("did you mean workers?"), "{errors}");
    assert!(
        stage.spec("spare")["paused"].is_null(),
        "nothing is done by halves"
    );
    for args in [
        &["pause", "workers"][..],
        &["resume"],
        &["pause", "--reason", "r", "--until", "1970-01-02T00:00:00Z"],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 2, "{args:?} {errors}");
    }
}
