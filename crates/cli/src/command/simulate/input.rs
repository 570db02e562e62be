//! Parses the input of the simulation: nodes with labels, policies, a start time.

use std::collections::BTreeMap;
use std::path::Path;

use dogwatch_api::reboot_policy::KIND;
use dogwatch_core::name::NodeName;
use dogwatch_core::policy::Policy;
use dogwatch_k8s::policy::convert_policy;
use dogwatch_sim::plan::NodeGroup;
use jiff::tz::TimeZoneDatabase;
use jiff::{Timestamp, fmt::temporal::DateTimeParser};
use serde_json::Value;

use crate::exit::{CliExitCode, CommandFailure};

/// The same maximum as that of `--nodes`.
const MAX_GROUP_NODES: u32 = 100_000;

/// Parses `NAME=COUNT[,LABEL=VALUE]…`.
pub(super) fn parse_node_group(text: &str) -> Result<NodeGroup, String> {
    let mut parts = text.split(',');
    let first = parts.next().and_then(|part| part.split_once('='));
    let (name, count) = first.ok_or("write it like gpu=20,team=ml")?;
    let name = NodeName::new(name).map_err(|error| error.to_string())?;
    let count: u32 = count
        .parse()
        .ok()
        .filter(|count| (1..=MAX_GROUP_NODES).contains(count))
        .ok_or_else(|| format!("{count:?} is not a number of nodes from 1 to {MAX_GROUP_NODES}"))?;
    let labels = parts.map(|label| {
        let (key, value) = label
            .split_once('=')
            .ok_or_else(|| format!("{label:?} is not a label: write it like team=ml"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    let labels: BTreeMap<String, String> = labels.collect::<Result<_, String>>()?;
    Ok(NodeGroup {
        name,
        count,
        labels,
    })
}

/// Parses a time with a zone in brackets, or an RFC 3339 time.
pub(super) fn parse_zoned_time(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let zones = TimeZoneDatabase::bundled();
    let time = DateTimeParser::new().parse_zoned_with(&zones, text);
    let time = time.map_err(|error| {
        format!("{error}; write it like 2026-03-27T18:00:00Z or 2026-03-27T18:00[Europe/Berlin]")
    })?;
    Ok(time.timestamp())
}

/// Reads all policies of these files by name. A policy that the coordinators would refuse is an
/// error.
pub(super) fn read_policies(files: &[impl AsRef<Path>]) -> Result<Vec<Policy>, CommandFailure> {
    let mut policies: Vec<Policy> = Vec::new();
    for file in files {
        policies.extend(read_policy_file(file.as_ref())?);
    }
    policies.sort_by(|a, b| a.name.cmp(&b.name));
    for pair in policies.windows(2) {
        if let [a, b] = pair
            && a.name == b.name
        {
            return Err(usage_failure(format!(
                "RebootPolicy {} is given twice",
                a.name
            )));
        }
    }
    Ok(policies)
}

fn read_policy_file(file: &Path) -> Result<Vec<Policy>, CommandFailure> {
    let failed = |what: String| usage_failure(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| failed(error.to_string()))?;
    let objects = documents.iter().flat_map(list_items);
    objects
        .map(|object| parse_policy(object).map_err(failed))
        .collect()
}

/// The objects of a document: its items if it is a list.
fn list_items(document: &Value) -> Vec<&Value> {
    match document["items"].as_array() {
        Some(items) => items.iter().collect(),
        None if document.is_null() => Vec::new(),
        None => vec![document],
    }
}

fn parse_policy(object: &Value) -> Result<Policy, String> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if object["kind"] != KIND {
        let kind = object["kind"].as_str().unwrap_or("nothing");
        return Err(format!("{kind} {name:?} is not a {KIND}"));
    }
    let policy = convert_policy(name, &object["spec"]);
    if policy.problems.is_empty() {
        return Ok(policy);
    }
    Err(format!("{KIND} {name:?}: {}", policy.problems.join("; ")))
}

fn usage_failure(text: String) -> CommandFailure {
    CommandFailure::new(CliExitCode::Usage, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_nodes_is_read_with_its_labels() {
        let group = parse_node_group("gpu=20,team=ml,example.com/zone=a").unwrap();
        assert_eq!((group.name.as_str(), group.count), ("gpu", 20));
        assert_eq!(group.labels["example.com/zone"], "a");
        for bad in ["gpu", "gpu=", "gpu=0", "GPU=2", "gpu=2,team", "gpu=200000"] {
            assert!(parse_node_group(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_has_a_zone() {
        let expected: Timestamp = "2026-03-27T17:00:00Z".parse().unwrap();
        assert_eq!(
            parse_zoned_time("2026-03-27T18:00[Europe/Berlin]"),
            Ok(expected)
        );
        assert_eq!(parse_zoned_time("2026-03-27T17:00:00Z"), Ok(expected));
        assert!(parse_zoned_time("2026-03-27T18:00").is_err());
    }

    #[test]
    fn a_policy_that_cannot_be_followed_is_refused_with_its_field() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("kind: RebootPolicy\nmetadata: {name: a}\nspec: {windows: [{days: [Funday]}]}\n");
        let refused = format!("{:?}", read_policies(&[&file]).unwrap_err());
        assert!(refused.contains("spec.windows[0]"), "{refused}");
        write("kind: Pod\nmetadata: {name: a}\n");
        let refused = format!("{:?}", read_policies(&[&file]).unwrap_err());
        assert!(refused.contains("is not a RebootPolicy"), "{refused}");
        write(
            "kind: RebootPolicy\nmetadata: {name: a}\n---\nkind: RebootPolicy\nmetadata: {name: b}\n",
        );
        assert_eq!(read_policies(&[&file]).unwrap().len(), 2);
        assert!(read_policies(&[&file, &file]).is_err());
    }
}
