//! Wrong input and missing prerequisites: one clear sentence and the next step.

use dogwatch_kubesim::api::ApiVerb;

use super::rebooting_cluster;
use super::stage::{Stage, ended};

#[test]
fn every_command_names_an_unknown_node_and_those_that_are_near() {
    let stage = Stage::new();
    stage.node("worker-1", None, 0);
    for command in ["explain", "reboot", "abort", "check"] {
        let (code, _, errors) = ended(stage.dogwatch(&[command, "wroker-1"]));
        assert_eq!(code, 3, "{command}: {errors}");
        assert!(
            errors.contains("there is no Node wroker-1 in this cluster")
                && errors.contains("did you mean worker-1?"),
            "{command}: {errors}"
        );
        let (_, _, errors) = ended(stage.dogwatch(&[command, "database"]));
        assert!(
            errors.contains("`dogwatch status` lists them"),
            "{command}: {errors}"
        );
    }
}

#[test]
fn top_without_a_terminal_ends_with_the_command_that_needs_none() {
    let stage = Stage::new();
    for args in [&["top"][..], &["demo", "--top"]] {
        let (code, printed, errors) = ended(stage.dogwatch(args));
        assert_eq!((code, printed.as_str()), (2, ""), "{args:?}: {errors}");
        assert!(
            errors.contains("dogwatch status --watch"),
            "{args:?}: {errors}"
        );
    }
}

#[test]
fn a_policy_is_checked_against_the_nodes_of_the_cluster() {
    let stage = Stage::new();
    stage.node("w1", None, 0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.yaml");
    let policy = "apiVersion: dogwatch.dev/v1alpha1\nkind: RebootPolicy\nmetadata: { name: all }\n";
    std::fs::write(&file, policy).unwrap();
    let file = file.to_str().unwrap();
    let (code, printed, errors) = ended(stage.dogwatch(&["policy", "check", file]));
    assert_eq!(code, 0, "{errors}");
    assert!(
        printed.contains("It would rule 1 node of the cluster: w1."),
        "{printed}"
    );
    std::fs::write(
        file,
        format!("{policy}spec: {{ windows: [{{ days: [Mo] }}] }}\n"),
    )
    .unwrap();
    let (code, printed, _) = ended(stage.dogwatch(&["policy", "check", file, "--no-cluster"]));
    assert_eq!(code, 1, "{printed}");
    assert!(
        printed.contains("policy.yaml:4: spec.windows[0]: days: "),
        "{printed}"
    );
    let (code, _, errors) = ended(stage.dogwatch(&["policy", "check", "/no/such/file"]));
    assert_eq!(code, 2, "{errors}");
}

#[test]
fn a_right_that_is_missing_is_named_by_verb_and_kind() {
    let table: [(&[&str], ApiVerb, &str); 5] = [
        (&["reboot", "n3"], ApiVerb::Patch, "nodes"),
        (&["abort", "n1"], ApiVerb::Patch, "nodes"),
        (&["unlock", "n1"], ApiVerb::List, "leases"),
        (&["check", "n1"], ApiVerb::List, "nodes"),
        (&["pause", "--reason", "r"], ApiVerb::List, "rebootpolicies"),
    ];
    for (args, verb, kind) in table {
        let stage = rebooting_cluster();
        stage.policies(&[]);
        stage.deny(verb, kind);
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 5, "{args:?}: {errors}");
        let verb = format!("{verb:?}").to_lowercase();
        assert!(
            errors.contains(&format!("cannot {verb} resource \"{kind}\""))
                && errors.contains("--context"),
            "{args:?}: {errors}"
        );
    }
}

#[test]
fn a_cluster_that_is_away_ends_every_command_with_4() {
    let stage = Stage::away();
    for args in [
        &["reboot", "n1", "--wait"][..],
        &["abort", "n1"],
        &["pause", "--reason", "r"],
        &["resume", "--all"],
        &["unlock", "n1"],
        &["check", "n1"],
    ] {
        let (code, _, errors) = ended(stage.dogwatch(args));
        assert_eq!(code, 4, "{args:?}: {errors}");
        assert!(
            errors.contains("check that the cluster is running"),
            "{args:?}: {errors}"
        );
    }
}

#[test]
fn a_cluster_without_dogwatch_says_what_to_run() {
    let stage = Stage::new();
    stage.node("n1", None, 0);
    let (code, text, errors) = ended(stage.dogwatch(&["reboot", "n1"]));
    assert_eq!(
        (code, text.as_str()),
        (0, "node/n1 was requested to reboot\n")
    );
    assert!(
        errors.contains("no coordinator on node n1 has accepted the request within 5s")
            && errors.contains("no DaemonSet dogwatch-coordinator is in namespace dogwatch")
            && errors.contains("→ dogwatch check n1"),
        "{errors}"
    );
    let later = ["reboot", "n1", "--replace", "--not-before", "2h"];
    let (_, _, errors_later) = ended(stage.dogwatch(&later));
    assert!(
        errors_later.contains("no Node carries annotations of a coordinator"),
        "{errors_later}"
    );
    let (code, text, _) = ended(stage.dogwatch(&["check", "n1"]));
    assert_eq!(code, 6);
    assert!(
        text.contains("→ install the coordinators as docs/install.md describes"),
        "{text}"
    );
    for hint in [errors, text] {
        assert!(
            !hint.contains("kubectl apply"),
            "a command that may harm: {hint}"
        );
    }
}

#[test]
fn manifests_that_would_replace_what_runs_are_not_printed() {
    let stage = Stage::new();
    let (code, text, errors) = ended(stage.dogwatch(&["manifests"]));
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(errors.contains("add --image "), "{errors}");
    let images = ["--image=here/c:1", "--controller-image=here/d:1"];
    let words = [&["manifests"][..], &images].concat();
    let (code, text, errors) = ended(stage.dogwatch(&words));
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("image: here/c:1"), "{text}");
    let away = Stage::away();
    let (code, text, errors) = ended(away.dogwatch(&words));
    assert_eq!((code, text.as_str()), (4, ""), "{errors}");
    assert!(errors.contains("--ignore-cluster"), "{errors}");
}
