//! `dogwatch policy check`, from text to text.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::check::{PolicyReport, make_report, write_report};
use super::policy_files::PolicyFiles;
use crate::paint::TerminalPaint;

fn now() -> Timestamp {
    "2026-12-18T12:00:00Z".parse().unwrap()
}

fn report_on(text: &str) -> PolicyReport {
    let mut files = PolicyFiles::default();
    files.add_text("p.yaml", text);
    make_report(files, Err("no cluster was asked".into()), now())
}

fn printed(report: &PolicyReport) -> String {
    let mut out = Vec::new();
    write_report(&mut out, report, TerminalPaint::without_colours()).unwrap();
    String::from_utf8(out).unwrap()
}

const WORKERS: &str = "\
apiVersion: dogwatch.dev/v1alpha1
kind: RebootPolicy
metadata: { name: workers }
spec:
  nodeSelector: { matchLabels: { pool: workers } }
  maxUnavailable: 10%
  windows:
    - days: [Mon, Tue, Wed, Thu, Fri]
      start: \"22:00\"
      end: \"04:00\"
      timeZone: Europe/Berlin
      excludedDates: [\"12-20..01-06\"]
";

#[test]
fn a_valid_policy_is_told_in_sentences_with_its_next_windows_on_its_own_clock() {
    let report = report_on(WORKERS);
    assert!(report.exit_result().is_ok());
    let text = printed(&report);
    for expected in [
        "RebootPolicy workers (p.yaml:1)",
        "It selects nodes with pool=workers, with priority 0.",
        "At most 10% of its nodes may be unavailable at once.",
        "12-20 to 01-06 of each year",
        "next windows  Fri 2026-12-18 22:00 to Sat 2026-12-19 04:00 CET (6h)",
        "Thu 2027-01-07 22:00 to Fri 2027-01-08 04:00 CET (6h)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_problem_is_named_with_its_line_and_path_and_fails() {
    let text = WORKERS.replace("12-20..01-06", "13-20..01-06");
    let text = format!(
        "---\n{text}---\n{}",
        WORKERS
            .replace("10%", "none")
            .replace("name: workers", "name: b")
    );
    let report = report_on(&text);
    assert!(report.exit_result().is_err());
    let text = printed(&report);
    assert!(
        text.contains("p.yaml:13: spec.windows[0]: excludedDates: \"13-20..01-06\""),
        "{text}"
    );
    assert!(text.contains("p.yaml:20: spec.maxUnavailable: "), "{text}");
    assert!(!text.contains("It selects"), "{text}");
}

#[test]
fn a_field_that_is_not_known_and_a_wrong_version_are_problems() {
    let text = WORKERS
        .replace("maxUnavailable", "maxUnavaliable")
        .replace("v1alpha1", "v9");
    let report = report_on(&text);
    let text = printed(&report);
    assert!(text.contains("maxUnavaliable"), "{text}");
    assert!(
        text.contains("p.yaml:1: apiVersion: \"dogwatch.dev/v9\""),
        "{text}"
    );
    assert!(report.exit_result().is_err());
}

#[test]
fn windows_that_are_too_short_for_a_drain_are_a_problem() {
    let report = report_on(&format!("{WORKERS}  drain: {{ timeout: 7h }}\n"));
    let text = printed(&report);
    assert!(text.contains("no reboot ever begins"), "{text}");
    assert!(report.exit_result().is_err());
}

#[test]
fn text_that_is_no_yaml_is_a_problem_and_a_file_without_policies_fails() {
    let report = report_on("kind: [RebootPolicy\n");
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.exit_result().is_err());
    let report = report_on("kind: ConfigMap\n---\n");
    assert_eq!((report.others, report.problems.len()), (1, 0));
    assert!(report.exit_result().is_err());
    assert!(report_on("").exit_result().is_err());
}

#[test]
fn policies_that_are_in_each_others_way_are_named_and_others_are_not() {
    let named = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: dogwatch.dev/v1alpha1\nkind: RebootPolicy\nmetadata: {{ name: {name} }}\nspec: {spec}\n"
        )
    };
    let conflicts = |policies: &[(&str, &str)]| {
        let text: String = policies
            .iter()
            .map(|(name, spec)| named(name, spec))
            .collect();
        report_on(&text).conflicts
    };
    let pool_a = "{ nodeSelector: { matchLabels: { pool: a } } }";
    let pool_b = "{ nodeSelector: { matchLabels: { pool: b } } }";
    let zone = "{ nodeSelector: { matchLabels: { zone: x } } }";
    assert_eq!(conflicts(&[("a", pool_a), ("b", pool_b)]), [""; 0]);
    assert!(conflicts(&[("a", pool_a), ("z", zone)])[0].contains("may select the same nodes"));
    assert!(conflicts(&[("a", "{}"), ("b", pool_b)])[0].starts_with("b applies to no node"));
    assert_eq!(
        conflicts(&[("a", "{ priority: -1 }"), ("b", pool_b)]),
        [""; 0]
    );
    assert!(conflicts(&[("a", pool_a), ("a", pool_b)])[0].contains("is there twice"));
}

#[test]
fn the_nodes_that_a_policy_would_rule_are_named() {
    let mut files = PolicyFiles::default();
    files.add_text("p.yaml", WORKERS);
    let nodes: Vec<String> = (1..=7).map(|node| format!("n{node}")).collect();
    let ruled = BTreeMap::from([("workers".to_owned(), nodes)]);
    let text = printed(&make_report(files, Ok(ruled), now()));
    assert!(
        text.contains("It would rule 7 nodes of the cluster: n1, n2, n3, n4, n5, and 2 more."),
        "{text}"
    );
}
