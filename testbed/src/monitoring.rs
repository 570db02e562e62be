//! What `deploy/monitoring` ships, for the tests that ask a real Prometheus or the docs about it. Panics at a file that is not as
//! shipped.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

const RULES: &str = include_str!("../../deploy/monitoring/prometheus-rule.yaml");
const DASHBOARD_FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../deploy/monitoring/dashboards"
);
/// A dashboard that is not found would leave its queries out of every test.
const FEWEST_QUERIES: usize = 40;

/// A query of a dashboard, which may name the variable `$node`.
#[derive(Clone, Debug)]
pub struct PanelQuery {
    /// The title of its panel, as JSON.
    pub title: String,
    /// In `PromQL`.
    pub query: String,
}

/// The alerts in their order, as Prometheus reads them.
pub fn shipped_rules() -> Vec<Value> {
    let object: Value = serde_saphyr::from_str(RULES).expect("YAML");
    let groups = list_items(&object["spec"]["groups"]);
    groups
        .iter()
        .flat_map(|group| list_items(&group["rules"]))
        .cloned()
        .collect()
}

/// The queries of all dashboards.
pub fn shipped_queries() -> Vec<PanelQuery> {
    let entries = fs::read_dir(DASHBOARD_FOLDER).expect("the folder of the dashboards");
    let paths = entries.map(|entry| entry.expect("a file that can be read").path());
    let boards = paths.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let queries: Vec<PanelQuery> = boards.flat_map(|board| list_queries(&board)).collect();
    assert!(queries.len() > FEWEST_QUERIES, "{queries:?}");
    queries
}

/// The metrics of Dogwatch that an alert or a dashboard asks for.
pub fn queried_metrics() -> BTreeSet<String> {
    let rules = shipped_rules();
    let rules = rules.iter().map(|rule| read_text(&rule["expr"]));
    let panels = shipped_queries().into_iter().map(|panel| panel.query);
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut metrics = BTreeSet::new();
    for query in rules.chain(panels) {
        let words = query.split(|it| !is_word(it));
        let names = words.filter(|word| word.starts_with("dogwatch_"));
        metrics.extend(names.map(str::to_owned));
    }
    metrics
}

fn list_queries(board: &Path) -> Vec<PanelQuery> {
    let text = fs::read_to_string(board).expect("a file that can be read");
    let board: Value = serde_json::from_str(&text).expect("JSON");
    let mut queries = Vec::new();
    for panel in list_items(&board["panels"]) {
        let targets = list_items(&panel["targets"]).iter();
        queries.extend(targets.map(|target| PanelQuery {
            title: panel["title"].to_string(),
            query: read_text(&target["expr"]),
        }));
    }
    queries
}

fn list_items(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn read_text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
