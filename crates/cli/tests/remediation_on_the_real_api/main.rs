//! The commands for remediations against the real API server: with the shipped rights, the shipped
//! admission policies, and the real schemas of Machines.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod stage;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use dogwatch_testbed::ControlPlane;
use serde_json::{Value, json};

use stage::{
    KEY, annotate, annotations, command, dogwatch, fenced, installed, make, power, record, run,
    somebody,
};

const CONFIRMED: &str = "dogwatch.dev/confirmed-off";

/// Waits until admission policies take effect, which is some time after they were created.
async fn until_words_are_judged(plane: &ControlPlane, name: &str) {
    let deadline = Instant::now() + Duration::from_mins(2);
    let forged =
        json!({ "by": "nobody", "at": "2026-01-01T00:00:00Z", "reason": "r", "for": ["k"] });
    loop {
        // A first `by` that names somebody else than the writer.
        let text = format!(
            "{CONFIRMED}={{\"by\":\"nobody\",{}",
            &forged.to_string()[1..]
        );
        match annotate(plane, name, &text).await {
            Err(said) => {
                assert!(said.contains("in the name of who writes it"), "{said}");
                return;
            }
            Ok(_) => assert!(Instant::now() < deadline, "no policy judges it"),
        }
        annotate(plane, name, &format!("{CONFIRMED}-"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_persons_word_is_written_in_their_own_name_and_followed_to_the_release() {
    let plane = installed().await;
    let uid = fenced(plane, "confirmed").await;
    until_words_are_judged(plane, "confirmed").await;
    let ann = somebody(plane, "ann", &["dogwatch-viewer", "dogwatch-confirm-off"]).await;
    let word = [
        "confirm-off",
        "machines/confirmed",
        "--reason",
        "cords pulled",
    ];
    let yes = [&word[..], &["--yes"]].concat();

    is_asked_first(&ann, &word);
    let mut child = command(&ann, &[&yes[..], &["--wait", "--timeout", "5m"]].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let me = "system:serviceaccount:default:ann";
    let written = format!("host/machines/confirmed: {me} has confirmed that it is off");
    assert!(lines.any(|line| line == written));
    stands_on_the_host(plane, me).await;

    let (code, text, errors) = dogwatch(&ann, &yes);
    assert_eq!(code, 0, "{errors}");
    assert!(
        text.contains(&format!("was confirmed off already by {me}")),
        "{text}"
    );

    let released = record("confirmed", &uid, &["OffProved", "Released"]);
    annotate(
        plane,
        "confirmed",
        &format!("dogwatch.dev/remediation={released}"),
    )
    .await
    .unwrap();
    assert!(lines.any(|line| line.ends_with("the workloads are released")));
    assert_eq!(child.wait().unwrap().code(), Some(0));

    is_told_in_an_event(plane, me).await;
}

/// The state is printed, and nothing is written when nobody can be asked.
fn is_asked_first(ann: &Path, word: &[&str]) {
    let (code, text, errors) = dogwatch(ann, word);
    assert_eq!(code, 2, "nobody can be asked: {text}");
    assert!(
        errors.contains("the volumes of Node confirmed will be written"),
        "{errors}"
    );
    for line in [
        "key    reboot.metal3.io/machine-remediation, of machine/machines/confirmed",
        "power  Unknown, last read",
        "node   confirmed, not Ready",
    ] {
        assert!(text.contains(line), "{line}: {text} {errors}");
    }
}

async fn stands_on_the_host(plane: &ControlPlane, me: &str) {
    let annotations = annotations(plane, "confirmed").await;
    let said: Value = serde_json::from_str(annotations[CONFIRMED].as_str().unwrap()).unwrap();
    assert_eq!(
        (&said["by"], &said["reason"]),
        (&json!(me), &json!("cords pulled"))
    );
    let of = said["for"].as_array().unwrap();
    assert_eq!(of.len(), 1, "{said}");
    assert!(
        of[0].as_str().unwrap().starts_with(&format!("{KEY}=")),
        "{said}"
    );
}

async fn is_told_in_an_event(plane: &ControlPlane, me: &str) {
    let events = ["get", "events", "-n", "machines", "-o", "json"];
    let events: Value = serde_json::from_str(&run(plane, &events).await).unwrap();
    let events = events["items"].as_array().unwrap();
    let event = events
        .iter()
        .find(|event| event["reason"] == "ConfirmedOff")
        .unwrap();
    let message = event["message"].as_str().unwrap();
    assert_eq!(
        message,
        format!("{me} confirmed that the host is off: cords pulled")
    );
}

/// The remediator puts no key on a host whose power it cannot read; the person who has checked the
/// host adds it.
#[tokio::test]
async fn a_host_that_died_with_its_bmc_gets_its_key_and_the_word_for_it_in_one_write() {
    let plane = installed().await;
    let uid = fenced(plane, "dark").await;
    annotate(plane, "dark", &format!("{KEY}-")).await.unwrap();
    annotate(plane, "dark", "dogwatch.dev/remediation-")
        .await
        .unwrap();
    let word = ["confirm-off", "machines/dark", "--reason", "r", "--yes"];
    let roles = ["dogwatch-viewer", "dogwatch-confirm-off"];
    let trent = somebody(plane, "trent", &roles).await;
    let (code, _, errors) = dogwatch(&trent, &word);
    assert_eq!(code, 5, "{errors}");
    assert!(errors.contains("baremetalhosts/reboot"), "{errors}");
    let roles = [
        "dogwatch-viewer",
        "dogwatch-confirm-off",
        "dogwatch-operator",
    ];
    let dan = somebody(plane, "dan", &roles).await;
    let (code, text, errors) = dogwatch(&dan, &word);
    assert_eq!(code, 0, "{errors}");
    let shown = format!("key    {KEY}, of machine/machines/dark, which your confirmation adds");
    assert!(text.contains(&shown), "{text}");
    let annotations = annotations(plane, "dark").await;
    let key = format!(r#"{{"mode":"hard","machineUID":"{uid}"}}"#);
    assert_eq!(annotations[KEY], key.as_str());
    let said: Value = serde_json::from_str(annotations[CONFIRMED].as_str().unwrap()).unwrap();
    assert_eq!(said["for"].as_array().unwrap().len(), 1, "{said}");
    assert!(said["for"][0].as_str().unwrap().starts_with(KEY), "{said}");
}

#[tokio::test]
async fn a_host_that_nobody_wants_off_gets_no_key_on_anybodys_word() {
    let plane = installed().await;
    fenced(plane, "well").await;
    annotate(plane, "well", &format!("{KEY}-")).await.unwrap();
    let need = r#"{"metadata":{"annotations":{"host.metal3.io/external-remediation":null}}}"#;
    let machine = ["machines.machine.openshift.io", "well", "-n", "machines"];
    let patch = ["--type=merge", "-p", need];
    run(plane, &[&["patch"], &machine[..], &patch].concat()).await;
    let word = ["confirm-off", "machines/well", "--reason", "r", "--yes"];
    let (code, _, errors) = dogwatch(plane.admin_kubeconfig(), &word);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("does not need to be off"), "{errors}");
}

#[tokio::test]
async fn a_word_is_refused_without_the_right_and_while_the_bmc_says_on() {
    let plane = installed().await;
    fenced(plane, "refused").await;
    let viewer_only = ["dogwatch-viewer", "dogwatch-operator"];
    let bob = somebody(plane, "bob", &viewer_only).await;
    let word = ["confirm-off", "machines/refused", "--reason", "r", "--yes"];
    let (code, _, errors) = dogwatch(&bob, &word);
    assert_eq!(code, 5, "{errors}");
    assert!(
        errors.contains("update on baremetalhosts/confirm-off of metal3.io"),
        "{errors}"
    );
    assert!(
        errors.contains("ClusterRole dogwatch-confirm-off"),
        "{errors}"
    );
    let right = [
        "create",
        "clusterrolebinding",
        "bob-may",
        "--clusterrole=dogwatch-confirm-off",
    ];
    run(
        plane,
        &[&right[..], &["--serviceaccount=default:bob"]].concat(),
    )
    .await;
    plane.wait_until_rights_are_in_force().await.unwrap();
    power(plane, "refused", "On").await;
    let (code, _, errors) = dogwatch(&bob, &word);
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("is On as its BMC reports, read"),
        "{errors}"
    );
    let annotations = annotations(plane, "refused").await;
    assert_eq!(annotations[CONFIRMED], Value::Null);
}

#[tokio::test]
async fn whoever_may_view_sees_remediations_of_machines_and_by_request() {
    let plane = installed().await;
    fenced(plane, "seen").await;
    let request = json!({ "apiVersion": "dogwatch.dev/v1alpha1", "kind": "PowerRemediation",
        "metadata": { "name": "unknown-node", "namespace": "machines" }, "spec": {} });
    make(plane, &request).await;
    let eve = somebody(plane, "eve", &["dogwatch-viewer"]).await;

    let (code, text, errors) = dogwatch(&eve, &["status", "remediations", "-n", "machines"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    let row = text
        .lines()
        .find(|row| row.starts_with("machine/machines/seen "))
        .unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..4], ["seen", "machines/seen", "KeyAdded"], "{text}");
    assert!(row.contains("PowerUnknown: "), "{text}");
    assert!(
        text.contains("powerremediation/machines/unknown-node"),
        "{text}"
    );

    for name in ["machine/machines/seen", "node/seen"] {
        let (code, text, errors) = dogwatch(&eve, &["explain", name]);
        assert_eq!((code, errors.as_str()), (0, ""), "{name}: {text}");
        assert!(
            text.contains("machine/machines/seen: PowerUnknown\n"),
            "{name}: {text}"
        );
        assert!(
            text.contains(
                "→ if you have made sure that the host is off: dogwatch confirm-off machines/seen"
            ),
            "{text}"
        );
    }
    let (code, text, errors) = dogwatch(&eve, &["explain", "remediation/machines/unknown-node"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    assert!(text.contains("none: NoNode: "), "{text}");
    let (code, text, _) = dogwatch(&eve, &["check", "seen"]);
    assert_eq!(code, 6, "{text}");
    assert!(
        text.contains("blocks   remediation: machine/machines/seen is under way"),
        "{text}"
    );
}

/// The host is on, and no remediation is requested.
async fn quiet(plane: &ControlPlane, name: &str) {
    fenced(plane, name).await;
    annotate(plane, name, &format!("{KEY}-")).await.unwrap();
    let record = "dogwatch.dev/remediation-";
    annotate(plane, name, record).await.unwrap();
    let need = r#"{"metadata":{"annotations":{"host.metal3.io/external-remediation":null}}}"#;
    let machine = ["machines.machine.openshift.io", name, "-n", "machines"];
    let patch = ["--type=merge", "-p", need];
    run(plane, &[&["patch"], &machine[..], &patch].concat()).await;
    power(plane, name, "On").await;
}

async fn mark(plane: &ControlPlane, name: &str) -> Value {
    let machine = ["machines.machine.openshift.io", name, "-n", "machines"];
    let get = [&["get"], &machine[..], &["-o", "json"]].concat();
    let machine: Value = serde_json::from_str(&run(plane, &get).await).unwrap();
    machine["metadata"]["annotations"]["host.metal3.io/external-remediation"].clone()
}

#[tokio::test]
async fn a_machine_is_marked_after_a_question_by_whoever_has_the_right_to() {
    let plane = installed().await;
    quiet(plane, "asked").await;
    let uma = somebody(plane, "uma", &["dogwatch-viewer"]).await;
    let (code, _, errors) = dogwatch(&uma, &["remediate", "asked"]);
    assert_eq!(code, 2, "nobody can be asked: {errors}");
    for says in [
        "host machines/asked will be powered off without a shutdown",
        "Cut the power of host machines/asked, and delete Node asked?",
    ] {
        assert!(errors.contains(says), "{says}: {errors}");
    }
    let yes = ["remediate", "asked", "--yes"];
    let (code, _, errors) = dogwatch(&uma, &yes);
    assert_eq!(code, 5, "{errors}");
    assert_eq!(mark(plane, "asked").await, Value::Null);
    let right = [
        "create",
        "clusterrolebinding",
        "uma-may",
        "--clusterrole=dogwatch-remediate",
    ];
    let account = ["--serviceaccount=default:uma"];
    run(plane, &[&right[..], &account].concat()).await;
    plane.wait_until_rights_are_in_force().await.unwrap();
    let (code, text, errors) = dogwatch(&uma, &yes);
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("machine/machines/asked is marked"), "{text}");
    assert_eq!(mark(plane, "asked").await, "");
    let (code, text, errors) = dogwatch(&uma, &yes);
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("is being remediated already"), "{text}");
}
