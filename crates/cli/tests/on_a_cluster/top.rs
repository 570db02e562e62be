//! Tests `dogwatch top` in a terminal: its keys, and what they change on the cluster.

use serde_json::{Value, json};

use super::pseudo_terminal::PseudoTerminal;
use super::rebooting_cluster;
use super::stage::{Stage, alone, ended};

const ESCAPE: &str = "\x1b";
const BACK_TAB: &str = "\x1b[Z";
const HOME: &str = "\x1b[H";
const END: &str = "\x1b[F";

/// n1 drains, n2 waits, and policy `workers` has both and n3.
fn cluster_with_policy() -> Stage {
    let stage = rebooting_cluster();
    stage.policies(&[("workers", json!({ "nodeSelector": {} }))]);
    stage
}

/// Shows the pane of all nodes, with the cursor on n1.
fn open_nodes(stage: &Stage, size: (u16, u16)) -> PseudoTerminal {
    let mut top = PseudoTerminal::start(&stage.dogwatch(&["top"]), size);
    top.see("[Out 1]");
    // Before the first pane is the last one.
    top.press_and_see(BACK_TAB, "[Nodes");
    top.see("> n1");
    top
}

/// A drain of 1970 would need somebody, above the panes.
fn begin_drain_now(stage: &Stage) {
    let now = jiff::Timestamp::now();
    let record = json!({
        "phase": "draining", "run": "coordinator/x", "since": now, "planned": now,
        "trigger": { "source": "sentinel:/run/reboot-needed", "reason": "kernel 6.18" },
        "bootId": "boot-1", "cordonedByUs": true,
    });
    let annotations = json!({ "dogwatch.dev/reboot": record.to_string() });
    let patch = json!({ "metadata": { "annotations": annotations } });
    stage.merge("/api/v1/nodes/n1", &patch);
}

fn annotation(stage: &Stage, node: &str, name: &str) -> Value {
    let node = stage.get(&format!("/api/v1/nodes/{node}"));
    node["metadata"]["annotations"][format!("dogwatch.dev/{name}")].clone()
}

#[test]
fn keys_move_filter_and_help_and_q_gives_the_terminal_back() {
    let stage = rebooting_cluster();
    begin_drain_now(&stage);
    let mut top = open_nodes(&stage, (100, 30));
    let shown = top.see("1 out");
    assert!(shown.starts_with("0 of 2 done, 1 out, 1 waits."), "{shown}");
    top.press_and_see("j", "> n2");
    top.press_and_see(END, "> n3");
    top.press_and_see("k", "> n2");
    top.press_and_see(HOME, "> n1");
    top.press_and_see("?", "Keys and symbols");
    top.press_and_miss(ESCAPE, "Keys and symbols");
    top.press_and_see("/n3\r", "> n3");
    let shown = top.press_and_miss("", "\n  n2");
    assert!(!shown.contains("\n  n1"), "{shown}");
    top.press_and_see(ESCAPE, "\n  n2");
    top.press_and_see("\t", "[Out 1]");
    top.press("q");
    assert_eq!(top.wait_for_end(), 0);
}

#[test]
fn enter_explains_the_row_as_the_command_does() {
    let stage = rebooting_cluster();
    stage.blocked_pod("n1");
    begin_drain_now(&stage);
    let mut top = open_nodes(&stage, (160, 40));
    top.press_and_see("\r", "dogwatch explain node/n1");
    top.see("PodDisruptionBudget shop/db allows no disruption");
    top.press_and_miss(ESCAPE, "dogwatch explain node/n1");
    top.press("\x03");
    assert_eq!(top.wait_for_end(), 0);
}

#[test]
fn a_reboot_is_requested_after_yes_and_not_after_no() {
    let stage = rebooting_cluster();
    let mut top = open_nodes(&stage, (100, 30));
    top.press_and_see(END, "> n3");
    let line = "dogwatch reboot n3 --reason 'asked for in dogwatch top'";
    top.press_and_see("r", line);
    top.press_and_see("n", "nothing was done");
    assert_eq!(annotation(&stage, "n3", "reboot-requested"), Value::Null);
    top.press_and_see("r", line);
    top.press_and_see("y", "node/n3 was requested to reboot");
    assert_eq!(stage.request("n3")["reason"], "asked for in dogwatch top");
    top.press_and_miss(ESCAPE, "was requested");
    top.press("q");
    assert_eq!(top.wait_for_end(), 0);
}

#[test]
fn an_abort_and_a_pause_are_written_after_yes() {
    let stage = cluster_with_policy();
    let mut top = open_nodes(&stage, (100, 30));
    top.press_and_see("a", "dogwatch abort n1 --no-wait");
    assert_eq!(annotation(&stage, "n1", "abort-requested"), Value::Null);
    top.press_and_see("y", "node/n1: the abort was requested");
    assert!(annotation(&stage, "n1", "abort-requested").is_string());
    top.press_and_miss(ESCAPE, "was requested");
    top.press_and_see("p", "pause workers --reason 'paused in dogwatch top'");
    assert_eq!(stage.spec("workers")["paused"], Value::Null);
    top.press_and_see("y", "rebootpolicy/workers is paused");
    let paused = json!({ "reason": "paused in dogwatch top" });
    assert_eq!(stage.spec("workers")["paused"], paused);
    top.press_and_miss(ESCAPE, "is paused until");
    top.press("q");
    assert_eq!(top.wait_for_end(), 0);
}

#[test]
fn a_resized_terminal_is_filled_and_never_overflows() {
    let stage = rebooting_cluster();
    let mut top = open_nodes(&stage, (100, 30));
    for (columns, rows) in [(40, 12), (160, 50), (40, 24)] {
        top.resize(columns, rows);
        let shown = top.see_size(columns, rows);
        assert!(shown.contains("> n1"), "{shown}");
    }
    top.press("q");
    assert_eq!(top.wait_for_end(), 0);
}

#[test]
fn what_changes_on_the_cluster_appears_without_a_key() {
    let stage = rebooting_cluster();
    let mut top = open_nodes(&stage, (100, 30));
    stage.node("n4", Some("rebooting"), 40);
    top.see("\n  n4");
    top.press_and_see("\t", "[Out 2]");
    top.press("q");
    assert_eq!(top.wait_for_end(), 0);
}

#[test]
fn without_a_terminal_it_ends_with_2_and_names_what_works_there() {
    let home = tempfile::tempdir().unwrap();
    let (code, text, errors) = ended(alone(home.path()).arg("top"));
    assert_eq!((code, text.as_str()), (2, ""), "{errors}");
    assert!(
        errors.contains("needs a terminal") && errors.contains("dogwatch status --watch"),
        "{errors}"
    );
}
