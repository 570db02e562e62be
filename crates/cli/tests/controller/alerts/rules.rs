//! The shipped rules, made quick.

use std::collections::BTreeSet;

use dogwatch_testbed::monitoring::shipped_rules;
use serde_json::Value;

/// The times that the rules wait in their expressions, and the second that the test waits.
const WAITS: [(&str, &str); 3] = [
    ("> 35 * 24 * 3600", "> 1"),
    ("> 24 * 3600", "> 1"),
    ("_timestamp_seconds > 900", "_timestamp_seconds > 1"),
];

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
