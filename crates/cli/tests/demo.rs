//! Runs `dogwatch demo` as a person would, with the real kubectl.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use dogwatch_testbed::{ControlPlaneBinaries, ControlPlaneProgram};

fn demo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
    command.arg("demo").args(args);
    command
}

#[test]
fn the_demo_reboots_every_node_once_and_says_what_it_checked() {
    let output = demo(&["--speed", "8", "--nodes", "3", "--seed", "5"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    for promise in [
        "ok      every node that needed a reboot was rebooted: 4 of 4",
        "ok      at most one node of each group was out of service at a time: control-plane: 1, default: 1",
        "ok      each node had exactly one new boot: cp1: 1, n1: 1, n2: 1, n3: 1",
        "ok      every PodDisruptionBudget always had enough healthy pods: web and db",
        "ok      all pods are running again: web: 7 of 7, db: 2 of 2",
        "ok      Dogwatch did not remove the admin's cordon: n3 is still cordoned",
        "ok      Dogwatch left nothing behind: no lock, no record",
        "ok      every annotated host was rebooted or kept off, every failed host is back, and all hosts are on again: h1, h2 and s1",
        "ok      each host had exactly one power-off: h1: 1, h2: 1",
        "ok      the host with the key stayed off until the key was removed: h2: off for",
        "ok      off was proved by two readings before each power-on: h1: ",
    ] {
        assert!(text.contains(promise), "{promise}\nis not in\n{text}");
    }
    assert!(
        text.contains("is blocked by PodDisruptionBudget default/db"),
        "{text}"
    );
    for story in [
        "cp1 and n1 to n3 are nodes",
        "h1 and h2 are bare-metal hosts",
        "s1 and s2 are storage nodes",
    ] {
        assert!(text.contains(story), "{story}: {text}");
    }
    let stamps = text
        .lines()
        .filter_map(|line| line.trim_start().split_once("s  "));
    let times: Vec<f64> = stamps.filter_map(|(stamp, _)| stamp.parse().ok()).collect();
    assert!(
        times.len() > 20 && times.is_sorted(),
        "times run backwards: {text}"
    );
    assert!(
        !text.contains('\u{1b}'),
        "escape sequences, and no terminal: {text}"
    );
}

#[test]
fn two_nodes_are_enough() {
    let output = demo(&["--speed", "10", "--nodes", "2"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn what_cannot_be_shown_is_refused() {
    for args in [
        &["--nodes", "1"][..],
        &["--speed", "0"],
        &["--serve", "0.0.0.0:8001"],
    ] {
        let output = demo(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}

/// A serving demo, and its output up to a line.
struct Serving {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    kubeconfig: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // SIGTERM makes it remove its folder. It may have ended already.
        let _ = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        let mut child = demo(&["--serve"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut serving = Self {
            child,
            lines,
            kubeconfig: String::new(),
        };
        let line = serving.until("export KUBECONFIG=");
        line.split_once('=')
            .unwrap()
            .1
            .clone_into(&mut serving.kubeconfig);
        serving
    }

    /// Reads up to the first line that contains this text.
    fn until(&mut self, text: &str) -> String {
        let found = self
            .lines
            .by_ref()
            .map(Result::unwrap)
            .find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("the demo ended and never said {text:?}"))
    }

    /// The path of this node's sentinel file.
    fn sentinel(&mut self, node: &str) -> String {
        let line = self.until(&format!("  {node}  "));
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn kubectl(&self, args: &[&str]) -> Command {
        let binaries = ControlPlaneBinaries::find_or_build().unwrap();
        let mut command = Command::new(binaries.program_path(ControlPlaneProgram::Kubectl));
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env(
                "KUBECACHEDIR",
                std::path::Path::new(&self.kubeconfig).with_file_name("kubectl"),
            )
            .args(args);
        command
    }

    fn said(&self, args: &[&str]) -> String {
        let output: Output = self.kubectl(args).output().unwrap();
        assert!(output.status.success(), "kubectl {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn a_sentinel_touched_while_the_demo_serves_reboots_its_node_again_and_kubectl_sees_it_and_drains()
{
    let mut demo = Serving::start(&["--speed", "8", "--nodes", "2"]);
    let sentinel = demo.sentinel("n1");
    demo.until("the cluster keeps running");
    let mut watch = demo
        .kubectl(&["get", "nodes", "-w"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut watched = BufReader::new(watch.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    // The node is cordoned by the time of kubectl's first list; how long kubectl takes for that is
    // not the demo's concern.
    let listed = watched.find(|line| line.starts_with("n1"));
    assert!(listed.is_some(), "kubectl get nodes -w never showed n1");
    std::fs::write(&sentinel, "once more").unwrap();
    let cordoned =
        watched.find(|line| line.starts_with("n1") && line.contains("SchedulingDisabled"));
    assert!(
        cordoned.is_some(),
        "kubectl get nodes -w never showed n1 cordoned"
    );
    watch.kill().unwrap();
    watch.wait().unwrap();

    demo.until("done: Rebooted, boot n1#2 → boot n1#3");
    let nodes = demo.said(&["get", "nodes"]);
    assert!(nodes.starts_with("NAME"), "{nodes}");
    // One control-plane node, two workers, and the two nodes of the volume.
    assert_eq!(nodes.lines().count(), 1 + 5, "{nodes}");
    let described = demo.said(&["describe", "node", "n1"]);
    assert!(described.contains("MaintenancePlanned"), "{described}");
    assert!(described.contains("Rebooted"), "{described}");
    the_commands_that_the_demo_names_work(&demo);
    // Two nodes and web's PodDisruptionBudget: its pods are evicted two at a time.
    let drain = [
        "drain",
        "n1",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--timeout=180s",
    ];
    let drained = demo.said(&drain);
    assert!(drained.contains("node/n1 drained"), "{drained}");
    demo.said(&["uncordon", "n1"]);
    demo.said(&["wait", "--for=condition=Ready", "node/n1", "--timeout=180s"]);
}

/// Runs the commands that the demo suggests: they must show no false blocker and no false alarm
/// about power control.
fn the_commands_that_the_demo_names_work(demo: &Serving) {
    let dogwatch = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
        let command = command.env("KUBECONFIG", &demo.kubeconfig).args(args);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, text) = dogwatch(&["check", "n1"]);
    let clear = text.contains("nothing blocks a reboot now");
    assert!(code == Some(0) && clear, "{text}");
    let (code, text) = dogwatch(&["check", "hosts", "--from-status"]);
    assert_eq!(code, Some(0), "{text}");
    let (_, text) = dogwatch(&["check", "hosts", "--bmc-timeout", "1s"]);
    assert!(!text.contains("does not work now"), "{text}");
    let (code, text) = dogwatch(&["reboot", "n1", "--not-before", "2h"]);
    assert!(code == Some(0) && !text.contains("no DaemonSet"), "{text}");
    let (code, text) = dogwatch(&["abort", "n1", "--reason", "only a try"]);
    assert_eq!(code, Some(0), "{text}");
}
