//! Statements of the docs that a reader can check in the first hour.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::CommandFactory as _;
use dogwatch_core::policy::Policy;
use dogwatch_core::policy::window::{WindowOpening, window_opening};
use jiff::Timestamp;

use super::{FLAGS, METRICS};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// The RebootPolicies in a page's examples.
fn policies(page: &str) -> Vec<Policy> {
    let blocks = page.split("```yaml\n").skip(1);
    let texts = blocks.filter_map(|block| block.split("```").next());
    let objects = texts.filter_map(|text| serde_saphyr::from_str::<serde_json::Value>(text).ok());
    let policies = objects.filter(|object| object["kind"] == "RebootPolicy");
    let convert = |object: serde_json::Value| {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        dogwatch_k8s::policy::convert_policy(&name, &object["spec"])
    };
    policies.map(convert).collect()
}

#[test]
fn every_policy_in_the_book_is_understood() {
    for name in [
        "README.md",
        "docs/reboot-policy.md",
        "docs/windows.md",
        "docs/gates.md",
    ] {
        let policies = policies(&page(name));
        assert!(!policies.is_empty(), "{name} has no policy");
        for policy in policies {
            assert_eq!(policy.problems, [""; 0], "{name}");
        }
    }
}

#[test]
fn a_window_in_an_example_opens_when_its_policy_says() {
    for name in ["README.md", "docs/windows.md"] {
        let text = page(name);
        let policy = policies(&text).remove(0);
        let told = text
            .split("the next window that is long enough opens at ")
            .nth(1)
            .unwrap();
        let at: Timestamp = told.split_whitespace().next().unwrap().parse().unwrap();
        let before = at - Duration::from_secs(1);
        let needs = policy.drain.timeout.unwrap();
        let WindowOpening::Shut { opens } = window_opening(&policy.windows, before, needs) else {
            panic!("{name}: a window is open right before {at}");
        };
        assert_eq!(opens, Some(at), "{name}");
    }
}

#[test]
fn help_and_book_name_the_same_order_of_kubeconfigs_which_is_the_codes() {
    // Tests of the order itself: crates/cli/tests/on_a_cluster, `without_a_cluster_…` and
    // `a_kubeconfig_at_home_…`.
    let about = dogwatch_coordinator::args::Args::command()
        .get_long_about()
        .unwrap()
        .to_string();
    for text in [&about, FLAGS] {
        let places = ["KUBECONFIG", "~/.kube/config"].map(|place| text.find(place));
        assert!(places[0].is_some() && places[0] < places[1], "{text}");
    }
}

fn help(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dogwatch"));
    let output = command.args(args).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_command_says_all_that_it_does() {
    for (args, words) in [
        (
            &["controller"][..],
            &[
                "healer",
                "policy status",
                "lock API",
                "host power",
                "remediation",
                "schedules",
            ][..],
        ),
        (
            &["manifests"],
            &["CRDs", "coordinator", "controller", "rights"],
        ),
        (
            &["explain"],
            &["node", "host", "machine", "remediation", "schedule"],
        ),
        (&["simulate"], &["defaults to now with --policy"]),
        (
            &["power", "off"],
            &[
                "also the namespace of hosts, machines, remediations and schedules that are named without one",
            ],
        ),
        (
            &["check"],
            &["JSON; one document per line when changes are followed"],
        ),
    ] {
        let help = help(args);
        for word in words {
            assert!(help.contains(word), "{args:?}: no {word:?} in {help}");
        }
    }
}

#[test]
fn one_key_that_orders_zones_is_told_in_the_same_way_everywhere() {
    let crd = dogwatch_api::reboot_policy::policy_crd().to_string();
    for text in [
        crd,
        page("docs/reboot-policy.md"),
        page("docs/windows.md"),
        page("docs/limits.md"),
    ] {
        let about = text.split("topologyKey").nth(1).unwrap();
        let about: String = about.chars().take(600).collect();
        assert!(
            about.contains("order") && about.contains("barrier"),
            "{about}"
        );
    }
}

#[test]
fn a_host_at_rest_costs_the_same_on_every_page() {
    let measured = page("docs/numbers.md");
    assert!(measured.contains("requests to a BMC each hour | 84 |"));
    let controller = page("docs/controller.md");
    assert!(controller.contains("some 85 requests an hour") && controller.contains(": 84)"));
}

#[test]
fn users_find_a_table_of_sizing_before_any_target() {
    let page = page("docs/numbers.md");
    let sizing = page.find("## Sizing").unwrap();
    let developers = page.find("## For developers").unwrap();
    assert!(sizing < developers);
    let first = &page[sizing..developers];
    for word in ["missed", "open", "kept"] {
        assert!(!first.contains(&format!("| {word}")), "{word}: {first}");
    }
}

#[test]
fn no_page_says_what_the_review_found_untrue() {
    let untrue = [
        ("README.md", "Without a policy one node at a time goes"),
        (
            "README.md",
            "asked for.\n\n```console\n$ dogwatch manifests --with-remediation",
        ),
        ("docs/migrate-from-kured.md", "can be applied as it is"),
        ("docs/controller.md", "80 an hour"),
        ("docs/reboot-policy.md", "one value of it after the other"),
        ("docs/windows.md", "2026-01-09T21:00:00Z"),
        (
            "docs/how-a-reboot-goes.md",
            "anybody else only after a second",
        ),
    ];
    for (name, text) in untrue {
        assert!(!page(name).contains(text), "{name}: {text}");
    }
    assert!(METRICS.contains("no sample while they do"));
}
