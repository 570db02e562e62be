//! Finds the schedule that a command names, and reports one that it cannot find.

use dogwatch_core::schedule::{Schedule, ScheduleName};
use dogwatch_k8s::fleet::{ScheduleFound, SchedulesFound};

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use dogwatch_core::name_suggestions::suggest_names;

/// The accepted spellings of the kind.
const SCHEDULE_KINDS: [&str; 5] = [
    "schedule",
    "schedules",
    "rebootschedule",
    "rebootschedules",
    "rbs",
];

/// A schedule argument: `schedule/NAMESPACE/NAME` or `schedule/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleArg {
    namespace: Option<String>,
    name: String,
}

/// Whether the text begins with the kind of a schedule.
pub fn is_schedule_arg(text: &str) -> bool {
    let kind = text.split_once('/').map(|(kind, _)| kind);
    kind.is_some_and(|kind| SCHEDULE_KINDS.contains(&kind))
}

pub fn parse_schedule_arg(text: &str) -> Result<ScheduleArg, String> {
    let words: Vec<&str> = text.split('/').collect();
    let (namespace, name) = match words[..] {
        [_, name] => (None, name),
        [_, namespace, name] => (Some(namespace), name),
        _ => {
            return Err("write schedule/NAMESPACE/NAME, or schedule/NAME with -n NAMESPACE".into());
        }
    };
    let is_bad = |word: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        word.is_empty() || word.len() > 253 || !word.chars().all(allowed)
    };
    if is_bad(name) || namespace.is_some_and(is_bad) {
        return Err(format!(
            "{text:?} is not a schedule: write schedule/NAMESPACE/NAME"
        ));
    }
    Ok(ScheduleArg {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

impl ScheduleArg {
    /// The namespace is the named one, else `-n`, else that of the kubeconfig's context.
    fn resolve_name(&self, cluster: &ClusterArgs, connected: &ConnectedCluster) -> ScheduleName {
        let given = cluster.namespace_given.then(|| cluster.namespace.clone());
        let namespace = self.namespace.clone().or(given);
        let here = || connected.fleet.default_namespace().to_owned();
        ScheduleName {
            namespace: namespace.unwrap_or_else(here),
            name: self.name.clone(),
        }
    }
}

pub fn schedule_kind_missing() -> CommandFailure {
    let text =
        "the CRD RebootSchedule is not installed in this cluster, so the cluster has no schedules";
    CommandFailure::new(CliExitCode::NotFound, text)
        .with_next_step("install it: dogwatch crds | kubectl apply --server-side -f -")
}

pub async fn read_schedule(
    cluster: &ClusterArgs,
    connected: &ConnectedCluster,
    named: &ScheduleArg,
) -> Result<Schedule, CommandFailure> {
    let name = named.resolve_name(cluster, connected);
    let found = connected.fleet.read_schedule(&name).await;
    match found.map_err(|error| connected.api_failure(&format!("read schedule {name}"), &error))? {
        ScheduleFound::There(schedule) => Ok(*schedule),
        ScheduleFound::NoSchedule => Err(no_such_schedule(connected, &name).await),
        ScheduleFound::NoKind => Err(schedule_kind_missing()),
    }
}

async fn no_such_schedule(connected: &ConnectedCluster, name: &ScheduleName) -> CommandFailure {
    let text = format!("there is no RebootSchedule {name} in this cluster");
    let failure = CommandFailure::new(CliExitCode::NotFound, text);
    let there = match connected.fleet.list_schedules(None).await {
        Ok(SchedulesFound::Schedules(all)) => all.iter().map(|one| one.name.to_string()).collect(),
        // Without the right to list schedules there is nothing to suggest.
        Ok(SchedulesFound::NoKind) | Err(_) => Vec::new(),
    };
    let near = suggest_schedule_names(name, &there);
    if near.is_empty() {
        return failure.with_next_step("`dogwatch status schedules` lists them");
    }
    failure.with_next_step(format!(
        "did you mean {}? `dogwatch status schedules` lists them",
        near.join(" or ")
    ))
}

/// Suggests the same name in another namespace, else similar names.
fn suggest_schedule_names<'a>(wrong: &ScheduleName, there: &'a [String]) -> Vec<&'a str> {
    let end = format!("/{}", wrong.name);
    let same = there.iter().filter(|name| name.ends_with(&end));
    let same: Vec<&str> = same.take(3).map(String::as_str).collect();
    if !same.is_empty() {
        return same;
    }
    suggest_names(&wrong.to_string(), there.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_named_by_its_kind_with_or_without_its_namespace() {
        for (text, namespace, name) in [
            ("schedule/monthly", None, "monthly"),
            ("rbs/metal3/monthly", Some("metal3"), "monthly"),
            ("rebootschedules/a/host", Some("a"), "host"),
        ] {
            assert!(is_schedule_arg(text), "{text}");
            let expected = ScheduleArg {
                namespace: namespace.map(str::to_owned),
                name: name.into(),
            };
            assert_eq!(parse_schedule_arg(text), Ok(expected), "{text}");
        }
        assert!(!is_schedule_arg("schedule"), "a node may be called so");
        for text in ["schedule/", "schedule//a", "schedule/A", "schedule/a/b/c"] {
            assert!(parse_schedule_arg(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_same_name_in_another_namespace_is_what_was_meant() {
        let there = ["a/monthly".to_owned(), "a/daily".to_owned()];
        let wrong = |name: &str| ScheduleName {
            namespace: "b".into(),
            name: name.into(),
        };
        assert_eq!(
            suggest_schedule_names(&wrong("monthly"), &there),
            ["a/monthly"]
        );
    }
}
