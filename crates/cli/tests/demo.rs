//! Runs `dogwatch demo` as a person would, with the real kubectl.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod demo_serving;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

use demo_serving::{ServingDemo, demo_command as demo, kubectl_program};

/// A serving demo and its kubectl.
struct Serving(ServingDemo);

#[test]
fn the_demo_reboots_every_node_once_and_says_what_it_checked() {
    let output = demo(&["--speed", "8", "--nodes", "3", "--seed", "5"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    // Long lines are wrapped.
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
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
        let promise = promise.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(&promise), "{promise}\nis not in\n{text}");
    }
    assert!(
        unwrapped.contains("is blocked by PodDisruptionBudget default/db"),
        "{text}"
    );
    the_stories_come_one_after_the_other(&text);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest < Some(80), "a line of {widest:?} columns: {text}");
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

/// Each story has an introduction, and then only its own subjects act.
fn the_stories_come_one_after_the_other(text: &str) {
    let [before, nodes, hosts, failed] =
        ["1 of 3: cp1 and n1 to n3", "2 of 3: h1 and h2", "3 of 3:"]
            .iter()
            .fold(vec![text], |mut parts, title| {
                let rest = parts.pop().unwrap();
                let (before, after) = rest.split_once(&format!("Story {title}")).unwrap();
                parts.extend([before, after]);
                parts
            })[..]
    else {
        panic!("three stories");
    };
    assert!(!before.contains("draining"), "{before}");
    for (part, subject, others) in [
        (nodes, "n3  ", ["h1  ", "s1  "]),
        (hosts, "h2  ", ["n1  ", "s1  "]),
        (
            failed.split("These promises").next().unwrap(),
            "s1  ",
            ["n1  ", "h1  "],
        ),
    ] {
        let acts = |subject: &str| {
            part.lines()
                .any(|line| line.contains(&format!("s  {subject}")))
        };
        assert!(acts(subject), "{subject}: {part}");
        for other in others {
            assert!(!acts(other), "{other}: {part}");
        }
    }
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

impl Serving {
    fn start(args: &[&str]) -> Self {
        Self(ServingDemo::start_demo(args))
    }

    /// The path of this node's sentinel file.
    fn sentinel(&mut self, node: &str) -> String {
        let line = self.0.read_until(&format!("  {node}  "));
        line.split_whitespace().nth(1).unwrap().to_owned()
    }

    fn kubectl(&self, args: &[&str]) -> Command {
        let mut command = Command::new(kubectl_program());
        command
            .env("KUBECONFIG", &self.0.kubeconfig)
            .env("KUBECACHEDIR", self.0.kubectl_cache())
            .args(args);
        command
    }

    fn said(&self, args: &[&str]) -> String {
        let output: Output = self.kubectl(args).output().unwrap();
        assert!(output.status.success(), "kubectl {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What kubectl says when it refuses.
    fn refused(&self, args: &[&str]) -> String {
        let output: Output = self.kubectl(args).output().unwrap();
        assert!(!output.status.success(), "kubectl {args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn a_sentinel_touched_while_the_demo_serves_reboots_its_node_again_and_kubectl_sees_it_and_drains()
{
    let mut demo = Serving::start(&["--speed", "8", "--nodes", "2"]);
    let sentinel = demo.sentinel("n1");
    demo.0.read_until("the cluster keeps running");
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

    demo.0.read_until("done: Rebooted, boot n1#2 → boot n1#3");
    let nodes = demo.said(&["get", "nodes"]);
    assert!(nodes.starts_with("NAME"), "{nodes}");
    // One control-plane node, two workers, and the two nodes of the volume.
    assert_eq!(nodes.lines().count(), 1 + 5, "{nodes}");
    let described = demo.said(&["describe", "node", "n1"]);
    assert!(described.contains("MaintenancePlanned"), "{described}");
    assert!(described.contains("Rebooted"), "{described}");
    the_commands_that_the_demo_names_work(&demo);
    the_demos_api_is_like_a_clusters(&demo);
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
        let command = command.env("KUBECONFIG", &demo.0.kubeconfig).args(args);
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
    let (code, text) = dogwatch(&["reboot", "n1", "--cancel"]);
    assert_eq!(code, Some(0), "{text}");
}

/// The API explains, validates and answers reviews.
fn the_demos_api_is_like_a_clusters(demo: &Serving) {
    let explained = demo.said(&["explain", "rebootpolicy.spec.windows.start"]);
    assert!(explained.contains("FIELD: start <string>"), "{explained}");
    let explained = demo.said(&["explain", "pod.spec.nodeName"]);
    assert!(
        explained.contains("FIELD: nodeName <string>"),
        "{explained}"
    );
    assert_eq!(demo.said(&["auth", "can-i", "delete", "nodes"]), "yes\n");
    let identity = demo.said(&["auth", "whoami"]);
    assert!(identity.contains("system:admin"), "{identity}");

    let folder = std::path::Path::new(&demo.0.kubeconfig).with_file_name("policies");
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, spec: &str| {
        let path = folder.join(name);
        let head =
            "apiVersion: dogwatch.dev/v1alpha1\nkind: RebootPolicy\nmetadata: {name: workers}\n";
        std::fs::write(&path, format!("{head}spec: {spec}\n")).unwrap();
        path.display().to_string()
    };
    let typo = file("typo.yaml", "{maxUnavailabel: 2}");
    let text = demo.refused(&["apply", "-f", &typo]);
    assert!(
        text.contains("unknown field \"spec.maxUnavailabel\""),
        "{text}"
    );
    let wrong = file(
        "wrong.yaml",
        "{windows: [{days: [Sun], start: \"03:00\", end: 3d}]}",
    );
    let text = demo.refused(&["apply", "-f", &wrong]);
    assert!(
        text.contains("spec.windows[0].end: Invalid value: \"3d\": write a time of day like 04:00"),
        "{text}"
    );
    let sound = file("sound.yaml", "{maxUnavailable: 2, priority: 5}");
    demo.said(&["apply", "--dry-run=server", "-f", &sound]);
    demo.refused(&["get", "rebootpolicy", "workers"]);
    demo.said(&["apply", "-f", &sound]);
    demo.said(&["apply", "--server-side", "--force-conflicts", "-f", &sound]);
    // The controller keeps the policy's status.
    let ready = [
        "wait",
        "rebootpolicy/workers",
        "--timeout=180s",
        "--for=jsonpath={.status.observedGeneration}=1",
    ];
    demo.said(&ready);
    demo.said(&["delete", "-f", &sound]);
    let set = demo.said(&["get", "daemonset", "-n", "dogwatch", "dogwatch-coordinator"]);
    assert!(set.contains("dogwatch-coordinator"), "{set}");
}
