//! The book matches the code: every name that a user can meet is documented.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

#[path = "docs/alerts.rs"]
mod alerts;
#[path = "docs/architecture.rs"]
mod architecture;
#[path = "docs/book.rs"]
mod book;
#[path = "docs/nvsentinel.rs"]
mod nvsentinel;
#[path = "docs/other_tools.rs"]
mod other_tools;
#[path = "docs/truth.rs"]
mod truth;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::CommandFactory as _;
use dogwatch_core::power::PowerReason;
use dogwatch_core::reboot::RebootReason;
use dogwatch_core::remediation::RemediationReason;

const ANNOTATIONS: &str = include_str!("../../../docs/annotations-and-conditions.md");
const FLAGS: &str = include_str!("../../../docs/coordinator-flags.md");
const METRICS: &str = include_str!("../../../docs/metrics.md");
const HEALER: &str = include_str!("../../../docs/healer.md");

const HOSTS: &str = include_str!("../../../docs/hosts.md");
const REMEDIATION: &str = include_str!("../../../docs/remediation.md");
const WITH_MEDIK8S: &str = include_str!("../../../docs/remediation-medik8s.md");

fn missing<'a>(names: &[&'a str], page: &str) -> Vec<&'a str> {
    let absent = |name: &&&str| !page.contains(&format!("`{name}`"));
    names.iter().filter(absent).copied().collect()
}

/// The rows of a table of reasons: the reason, and "What to do" without links.
fn reason_rows<'a>(page: &'a str, heading: &str) -> Vec<(&'a str, String)> {
    let section = page.split(heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |row: &'a str| {
        let (reason, cells) = row.split_once('`').unwrap();
        let last = cells.trim_end_matches('|').rsplit('|').next().unwrap();
        (reason, without_links(last.trim()))
    };
    rows.map(row).collect()
}

fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let (label, target) = link.split_once("](").unwrap();
        plain += before;
        plain += label;
        rest = target.split_once(')').unwrap().1;
    }
    plain + rest
}

/// Compares the rows of the docs with the table of the code.
fn assert_same_reasons(
    mut on_page: Vec<(&str, String)>,
    in_code: impl Iterator<Item = (&'static str, Option<&'static str>)>,
) {
    let mut in_code: Vec<(&str, String)> = in_code
        .map(|(reason, step)| (reason, step.unwrap_or_default().to_owned()))
        .collect();
    assert!(in_code.len() > 30, "{in_code:?}");
    on_page.sort_unstable();
    in_code.sort_unstable();
    for (page, code) in on_page.iter().zip(&in_code) {
        assert_eq!(page, code, "left: the docs; right: the code");
    }
    assert_eq!(on_page.len(), in_code.len());
}

#[test]
fn every_reason_of_a_reboot_is_in_the_book_with_its_next_step_and_the_book_knows_no_other() {
    let mut rows = reason_rows(ANNOTATIONS, "## Reasons");
    rows.extend(reason_rows(HEALER, "## What it says"));
    let all = RebootReason::ALL.iter();
    assert_same_reasons(rows, all.map(|one| (one.as_str(), one.next_step())));
}

#[test]
fn every_reason_that_raises_the_alarm_is_named_on_the_page_of_metrics() {
    let row = METRICS
        .lines()
        .find(|line| line.starts_with("| `dogwatch_alarm`"))
        .unwrap();
    for reason in RebootReason::ALL {
        let is_named = row.contains(&format!("`{reason}`"));
        let is_of_healer = reason_rows(HEALER, "## What it says")
            .iter()
            .any(|(name, _)| *name == reason.as_str());
        let is_expected = reason.needs_person() && !is_of_healer;
        assert_eq!(is_named, is_expected, "{reason}");
    }
}

#[test]
fn what_lasts_until_a_person_acts_says_what_to_do() {
    let reboot = RebootReason::ALL.iter();
    let mut silent = reboot.filter(|one| one.needs_person() && one.next_step().is_none());
    assert_eq!(silent.next(), None);
    let mut silent = PowerReason::ALL
        .iter()
        .filter(|one| one.needs_person() && one.next_step().is_none());
    assert_eq!(silent.next(), None);
    let remediation = RemediationReason::ALL.iter();
    let mut silent = remediation.filter(|one| one.needs_person() && one.next_step().is_none());
    assert_eq!(silent.next(), None);
}

#[test]
fn every_reason_of_host_power_is_on_its_page_with_its_next_step_and_the_page_knows_no_other() {
    let rows = reason_rows(HOSTS, "## Reasons");
    let all = PowerReason::ALL.iter();
    assert_same_reasons(rows, all.map(|one| (one.as_str(), one.next_step())));
}

#[test]
fn every_reason_of_remediation_is_on_its_page_with_its_next_step_and_the_page_knows_no_other() {
    let rows = reason_rows(REMEDIATION, "## Reasons");
    let all = RemediationReason::ALL.iter();
    assert_same_reasons(rows, all.map(|one| (one.as_str(), one.next_step())));
}

#[test]
fn every_field_of_a_remediation_request_is_on_its_page() {
    let crd = dogwatch_api::power_remediation::remediation_crd();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut fields = Vec::new();
    for part in ["spec", "status"] {
        field_names(&schema["properties"][part], &mut fields);
    }
    assert!(fields.len() > 25, "{fields:?}");
    // The page documents `status.attempt` as well as `attempt`.
    let page = REMEDIATION.replace("`status.", "`").replace("`spec.", "`");
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    assert_eq!(missing(&fields, &page), [""; 0]);
    let phases = dogwatch_api::power_remediation::PowerRemediationPhase::ALL;
    assert_eq!(
        missing(
            &phases.map(dogwatch_api::power_remediation::PowerRemediationPhase::as_str),
            &page
        ),
        [""; 0]
    );
}

/// The names of all fields, except those of conditions, which Kubernetes defines.
fn field_names(schema: &serde_json::Value, found: &mut Vec<String>) {
    let of_items = schema["items"]["properties"].as_object();
    let properties = schema["properties"].as_object().or(of_items);
    for (name, field) in properties.into_iter().flatten() {
        found.push(name.clone());
        if name != "conditions" {
            field_names(field, found);
        }
    }
}

#[test]
fn every_annotation_and_condition_of_remediation_is_on_its_pages() {
    use dogwatch_api::{annotation, condition, power_remediation};
    let prefix = format!("{}UID", annotation::POWER_REMEDIATION_PREFIX);
    let mut names = vec![
        annotation::NODE,
        annotation::EXTERNAL_REMEDIATION,
        annotation::BARE_METAL_HOST,
        annotation::MACHINE_REMEDIATION_KEY,
        &prefix,
        annotation::NODE_BACKUP,
        annotation::REMEDIATION,
        annotation::CONFIRMED_OFF,
        annotation::FENCING,
        annotation::NHC_NODE_NAME,
        annotation::NHC_TIMED_OUT,
        annotation::SKIP_REMEDIATION,
        condition::OWNER_REMEDIATED,
        power_remediation::FINALIZER,
        power_remediation::KIND,
        dogwatch_api::power_remediation_template::KIND,
    ];
    names.extend(power_remediation::condition::ALL);
    let pages = format!("{REMEDIATION}{WITH_MEDIK8S}");
    assert_eq!(missing(&names, &pages), [""; 0]);
    assert_eq!(missing(&[annotation::FENCING], ANNOTATIONS), [""; 0]);
}

#[test]
fn every_annotation_label_and_condition_is_in_the_book() {
    use dogwatch_api::{annotation, condition, label};
    let names = [
        annotation::REBOOT,
        annotation::REBOOT_REQUESTED,
        annotation::REQUEST_WITHDRAWN,
        annotation::API_LOCK,
        annotation::ESCALATED,
        annotation::ABORT_REQUESTED,
        annotation::LAST_REBOOT,
        annotation::KEEP_CORDONED,
        annotation::HOLDER,
        annotation::NEXT_WAITERS,
        annotation::YIELD_COUNT,
        annotation::WAITING,
        annotation::WAITING_HOSTS,
        label::GROUP,
        label::MADE_BY,
        dogwatch_api::event::LOCK_BROKEN,
        label::CONTROL_PLANE,
        condition::MAINTENANCE_PLANNED,
        condition::DRAIN_IN_PROGRESS,
        condition::DRAINED,
        condition::MAINTENANCE_IN_PROGRESS,
        condition::SENTINEL_SURVIVED_REBOOT,
        condition::REBOOT_TRIGGER_UNKNOWN,
    ];
    assert_eq!(missing(&names, ANNOTATIONS), [""; 0]);
}

#[test]
fn every_flag_of_the_coordinator_is_in_the_book_with_its_default() {
    let command = dogwatch_coordinator::args::Args::command();
    let mut wrong = String::new();
    for flag in command
        .get_arguments()
        .filter(|flag| flag.get_long().is_some())
    {
        let name = flag.get_long().unwrap();
        let row = FLAGS
            .lines()
            .find(|line| line.starts_with(&format!("| `--{name}` |")));
        let default = flag.get_default_values().first();
        let expected = default.map(|text| format!("| `{}` |", text.to_string_lossy()));
        match (row, expected) {
            (None, _) if name == "help" || name == "version" => {}
            (None, _) => writeln!(wrong, "--{name} is not there").unwrap(),
            (Some(row), Some(expected)) if !row.contains(&expected) => {
                writeln!(wrong, "--{name}: no {expected} in {row}").unwrap();
            }
            (Some(_), _) => {}
        }
    }
    assert_eq!(wrong, "");
}

#[test]
fn the_metrics_in_the_book_are_those_that_are_served() {
    let page = dogwatch_coordinator::metrics::render_metrics(&everything());
    let served = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut served: Vec<&str> = served.filter_map(|line| line.split(' ').next()).collect();
    let rows = METRICS.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut told: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    served.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, served);
}

/// A node with a value for every metric that the loop sets.
fn everything() -> dogwatch_coordinator::metrics::MetricsView {
    use dogwatch_coordinator::metrics::{DrainView, LastRebootView, MetricsView, TriggerMetric};
    let then = Some(jiff::Timestamp::UNIX_EPOCH);
    let mut view = MetricsView {
        phase: Some(dogwatch_core::reboot::RebootPhase::Waiting),
        phase_since: then,
        waiting_since: then,
        blocked_by: [("lock".to_owned(), "node/n1".to_owned())].into(),
        drain: Some(DrainView::default()),
        triggers: [("command".to_owned(), TriggerMetric::Present)].into(),
        last: Some(LastRebootView {
            outcome: "Rebooted".into(),
            ended: jiff::Timestamp::UNIX_EPOCH,
            took: [(dogwatch_core::reboot::RebootPhase::Draining, Duration::ZERO)].into(),
        }),
        api_errors: [("conflict".to_owned(), 1)].into(),
        ..MetricsView::default()
    };
    view.count_reboot("Rebooted");
    view.raise_alarm("RebootFailed");
    view
}

/// Appends all Rust source below `folder`.
fn sources(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The rows of four columns that begin with a number.
fn numbered_rows(page: &str) -> Vec<Vec<&str>> {
    page.lines()
        .map(|line| line.split(" | ").collect::<Vec<_>>())
        .filter(|row| row.len() == 4 && row[0].trim_start_matches("| ").parse::<u8>().is_ok())
        .collect()
}

/// What shows a row: the names in code style of its last cell, each a scenario or a test.
fn assert_rows_are_shown(rows: &[Vec<&str>]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut code = String::new();
    sources(&root.join("crates"), &mut code);
    let there = |name: &str| {
        root.join(format!("scenarios/{name}.txt")).exists() || code.contains(&format!("fn {name}("))
    };
    for row in rows {
        let names: Vec<&str> = row[3].split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "nothing shows {}", row[1]);
        let lost: Vec<&&str> = names.iter().filter(|name| !there(name)).collect();
        assert!(lost.is_empty(), "not there: {lost:?}");
    }
}

#[test]
fn each_public_bug_has_an_issue_and_is_shown_by_a_test_or_a_scenario_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/forty-bugs.md")).unwrap();
    let rows = numbered_rows(&page);
    assert!(rows.len() >= 40, "{}", rows.len());
    for (number, row) in (1..).zip(&rows) {
        assert_eq!(row[0], format!("| {number}"));
        let (repository, _) = row[1].split_once('#').expect("an issue");
        assert!(repository.contains('/'), "{}", row[1]);
    }
    assert_rows_are_shown(&rows);
}

#[test]
fn each_of_the_twenty_pains_is_shown_by_a_test_or_a_scenario_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/twenty-pains.md")).unwrap();
    let rows = numbered_rows(&page);
    assert_eq!(rows.len(), 20, "{rows:?}");
    assert_rows_are_shown(&rows);
}

#[test]
fn each_attack_of_the_threat_model_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let section = page.split("\n## Threat model\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<Vec<&str>> = rows.skip(1).map(|row| row.split(" | ").collect()).collect();
    assert!(rows.len() > 15, "{rows:?}");
    for row in &rows {
        let [_, attack, _, shown_by, _] = row[..] else {
            panic!("five columns: {row:?}");
        };
        let mut source = String::new();
        let mut tests = 0;
        for name in shown_by.split('`').skip(1).step_by(2) {
            if name.contains('/') {
                let path = root.join(name);
                source = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{name}"));
                continue;
            }
            tests += 1;
            let is_there = source.contains(&format!("fn {name}("));
            assert!(is_there, "{attack}: {name} is not in the file before it");
        }
        assert!(tests > 0, "no test attacks so: {attack}");
    }
}

#[test]
fn each_test_that_the_tables_of_pairs_and_of_requests_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = ["0023-pairs.md", "0038-requests-tested.md"];
    let pages = pages.map(|page| root.join("docs/design").join(page));
    let pages = pages.map(|page| std::fs::read_to_string(page).unwrap());
    let names = pages
        .iter()
        .flat_map(|page| page.split('`').skip(1).step_by(2));
    let names: Vec<(&str, &str)> = names.filter_map(|name| name.split_once(".rs::")).collect();
    assert!(names.len() > 65, "{names:?}");
    for (file, test) in names {
        let source = std::fs::read_to_string(root.join(format!("{file}.rs")));
        let source = source.unwrap_or_else(|_| panic!("{file}.rs is not there"));
        let is_there = source.contains(&format!("fn {test}("));
        assert!(is_there, "{test} is not in {file}.rs");
    }
}

#[test]
fn no_page_links_to_one_that_is_not_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shown_first = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    let mut pages = Vec::from(shown_first.map(|page| root.join(page)));
    for folder in ["docs", "docs/design", "docs/reference"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        pages.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| is_page(path)),
        );
    }
    assert!(pages.len() > 10, "{pages:?}");
    let dead: Vec<(PathBuf, String)> = pages.iter().flat_map(|page| dead_links(page)).collect();
    assert_eq!(dead, []);
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn dead_links(page: &Path) -> Vec<(PathBuf, String)> {
    let text = std::fs::read_to_string(page).unwrap();
    let links = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let local = links.filter(|link| !link.contains("://") && !link.starts_with('#'));
    let folder = page.parent().unwrap();
    local
        .filter(|link| !folder.join(link.split('#').next().unwrap()).exists())
        .map(|link| (page.to_owned(), link.to_owned()))
        .collect()
}
