//! Which schedule a command is for, and how one that cannot be found is told.

use dogwatch_core::schedule::{Schedule, ScheduleName};
use dogwatch_k8s::fleet::{ScheduleFound, SchedulesFound};

use crate::args::Cluster;
use crate::cluster::Connected;
use crate::exit::{Exit, Failure};
use dogwatch_core::near::near;

/// The kind, as people write it.
const KINDS: [&str; 5] = [
    "schedule",
    "schedules",
    "rebootschedule",
    "rebootschedules",
    "rbs",
];

/// A schedule as it is typed: `schedule/NAMESPACE/NAME`, or `schedule/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    namespace: Option<String>,
    name: String,
}

/// Whether the text says by its kind that it means a schedule.
pub fn is_schedule(text: &str) -> bool {
    let kind = text.split_once('/').map(|(kind, _)| kind);
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// Reads one, with its kind.
pub fn named(text: &str) -> Result<Named, String> {
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
            "{text:?} is no schedule: write schedule/NAMESPACE/NAME"
        ));
    }
    Ok(Named {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

impl Named {
    /// Where it is: as it is named, else in `-n`, else where the kubeconfig's context is.
    fn in_cluster(&self, cluster: &Cluster, connected: &Connected) -> ScheduleName {
        let given = cluster.namespace_given.then(|| cluster.namespace.clone());
        let namespace = self.namespace.clone().or(given);
        let here = || connected.fleet.default_namespace().to_owned();
        ScheduleName {
            namespace: namespace.unwrap_or_else(here),
            name: self.name.clone(),
        }
    }
}

/// The kind RebootSchedule is not installed.
pub fn no_kind() -> Failure {
    let text = "the kind RebootSchedule is not installed in this cluster, so it has no schedules";
    Failure::new(Exit::NotFound, text)
        .next("it comes with dogwatch crds | kubectl apply --server-side -f -")
}

/// One schedule, or why it cannot be had.
pub async fn one(
    cluster: &Cluster,
    connected: &Connected,
    named: &Named,
) -> Result<Schedule, Failure> {
    let name = named.in_cluster(cluster, connected);
    let found = connected.fleet.schedule(&name).await;
    match found.map_err(|error| connected.failed(&format!("read schedule {name}"), &error))? {
        ScheduleFound::There(schedule) => Ok(*schedule),
        ScheduleFound::NoSchedule => Err(no_such_schedule(connected, &name).await),
        ScheduleFound::NoKind => Err(no_kind()),
    }
}

async fn no_such_schedule(connected: &Connected, name: &ScheduleName) -> Failure {
    let text = format!("there is no RebootSchedule {name} in this cluster");
    let failure = Failure::new(Exit::NotFound, text);
    let there = match connected.fleet.schedules(None).await {
        Ok(SchedulesFound::Schedules(all)) => all.iter().map(|one| one.name.to_string()).collect(),
        // Of whoever may not list them, nothing more is known.
        Ok(SchedulesFound::NoKind) | Err(_) => Vec::new(),
    };
    let near = suggestions(name, &there);
    if near.is_empty() {
        return failure.next("`dogwatch status schedules` lists them");
    }
    failure.next(format!(
        "did you mean {}? `dogwatch status schedules` lists them",
        near.join(" or ")
    ))
}

/// The same name elsewhere, else names that are near.
fn suggestions<'a>(wrong: &ScheduleName, there: &'a [String]) -> Vec<&'a str> {
    let end = format!("/{}", wrong.name);
    let same = there.iter().filter(|name| name.ends_with(&end));
    let same: Vec<&str> = same.take(3).map(String::as_str).collect();
    if !same.is_empty() {
        return same;
    }
    near(&wrong.to_string(), there.iter().map(String::as_str))
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
            assert!(is_schedule(text), "{text}");
            let expected = Named {
                namespace: namespace.map(str::to_owned),
                name: name.into(),
            };
            assert_eq!(named(text), Ok(expected), "{text}");
        }
        assert!(!is_schedule("schedule"), "a node may be called so");
        for text in ["schedule/", "schedule//a", "schedule/A", "schedule/a/b/c"] {
            assert!(named(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_same_name_in_another_namespace_is_what_was_meant() {
        let there = ["a/monthly".to_owned(), "a/daily".to_owned()];
        let wrong = |name: &str| ScheduleName {
            namespace: "b".into(),
            name: name.into(),
        };
        assert_eq!(suggestions(&wrong("monthly"), &there), ["a/monthly"]);
    }
}
