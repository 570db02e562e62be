//! The shipped rules and dashboards, read from their files.

use std::collections::BTreeSet;

use serde_json::Value;

const RULES: &str = include_str!("../../../../../deploy/monitoring/prometheus-rule.yaml");
const DASHBOARDS: [&str; 3] = [
    include_str!("../../../../../deploy/monitoring/dashboards/fleet.json"),
    include_str!("../../../../../deploy/monitoring/dashboards/hosts.json"),
    include_str!("../../../../../deploy/monitoring/dashboards/node.json"),
];

/// The times that the rules wait in their expressions, and the second that the test waits.
const WAITS: [(&str, &str); 3] = [
    ("> 35 * 24 * 3600", "> 1"),
    ("> 24 * 3600", "> 1"),
    ("_timestamp_seconds > 900", "_timestamp_seconds > 1"),
];

fn shipped_rules() -> Vec<Value> {
    let object: Value = serde_saphyr::from_str(RULES).unwrap();
    let groups = object["spec"]["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

pub fn alert_names() -> BTreeSet<String> {
    let rules = shipped_rules();
    let names = rules.iter().map(|rule| rule["alert"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// The shipped rules, of which each waits for a second instead of minutes to weeks.
pub fn quick_rules() -> Vec<Value> {
    let mut rules = shipped_rules();
    for (wait, second) in WAITS {
        let mut shortened = 0;
        for rule in &mut rules {
            let expression = rule["expr"].as_str().unwrap();
            shortened += expression.matches(wait).count();
            rule["expr"] = expression.replace(wait, second).into();
        }
        assert_eq!(shortened, 1, "rules that wait for {wait}");
    }
    for rule in &mut rules {
        rule["for"] = "1s".into();
    }
    rules
}

/// The metrics of Dogwatch that a rule or a dashboard asks for.
pub fn metric_names() -> BTreeSet<String> {
    let texts = DASHBOARDS.iter().chain([&RULES]);
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let words = texts.flat_map(|text| text.split(move |it| !is_word(it)));
    let names = words.filter(|word| word.starts_with("dogwatch_"));
    names.map(str::to_owned).collect()
}
