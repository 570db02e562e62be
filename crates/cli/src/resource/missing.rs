//! Reports objects and kinds that do not exist, and suggests similar names.

use dogwatch_core::name_suggestions::suggest_names;
use dogwatch_k8s::fleet::{HostsFound, RemediationsFound, SchedulesFound};

use super::ObjectKind;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};

const MAX_SAME_NAMES: usize = 3;

/// Adds the existing names that are similar to `wrong`, and `list_hint`, which says where all are
/// listed.
pub fn not_found(
    text: impl Into<String>,
    wrong: &str,
    existing: &[String],
    list_hint: &str,
) -> CommandFailure {
    let failure = CommandFailure::new(CliExitCode::NotFound, text);
    let similar = similar_names(wrong, existing);
    if similar.is_empty() {
        return failure.with_next_step(list_hint);
    }
    failure.with_next_step(format!(
        "did you mean {}? {list_hint}",
        similar.join(" or ")
    ))
}

/// The same name in another namespace, else similar names.
fn similar_names<'a>(wrong: &str, existing: &'a [String]) -> Vec<&'a str> {
    let existing = existing.iter().map(String::as_str);
    if let Some((_, name)) = wrong.split_once('/') {
        let is_same = |other: &&str| other.split_once('/').is_some_and(|(_, it)| it == name);
        let same: Vec<&str> = existing
            .clone()
            .filter(is_same)
            .take(MAX_SAME_NAMES)
            .collect();
        if !same.is_empty() {
            return same;
        }
    }
    suggest_names(wrong, existing)
}

/// Says that a namespaced object does not exist.
pub async fn object_not_found(
    connected: &ConnectedCluster,
    kind: ObjectKind,
    name: &str,
) -> CommandFailure {
    let existing = list_object_names(connected, kind).await;
    let text = format!("there is no {} {name} in this cluster", kind.object_kind());
    let list_hint = match (kind, existing.as_slice()) {
        (ObjectKind::Host, _) => "`dogwatch status hosts` lists them",
        (ObjectKind::Schedule, _) => "`dogwatch status schedules` lists them",
        (ObjectKind::Machine, []) => {
            "the cluster has no Machines: mark the Node, and see `dogwatch explain node/NAME`"
        }
        (ObjectKind::Remediation, []) => {
            "the cluster has no PowerRemediation; `dogwatch status remediations` also shows remediations requested by annotation"
        }
        (ObjectKind::Machine | ObjectKind::Remediation, [_, ..]) => {
            "`dogwatch status remediations` lists those that are under way"
        }
    };
    not_found(text, name, &existing, list_hint)
}

/// Says that the kind is not installed. Remediations and Machines need hosts.
pub fn kind_missing(kind: ObjectKind) -> CommandFailure {
    let (text, next_step) = match kind {
        ObjectKind::Host | ObjectKind::Machine | ObjectKind::Remediation => (
            "the CRD BareMetalHost is not installed in this cluster, so the cluster has no hosts",
            "metal3 installs this CRD; without metal3: dogwatch crds --hosts | kubectl apply --server-side -f -",
        ),
        ObjectKind::Schedule => (
            "the CRD RebootSchedule is not installed in this cluster, so the cluster has no schedules",
            "install it: dogwatch crds | kubectl apply --server-side -f -",
        ),
    };
    CommandFailure::new(CliExitCode::NotFound, text).with_next_step(next_step)
}

/// The names of all objects of the kind as `NAMESPACE/NAME`; empty when they cannot be read.
pub async fn list_object_names(connected: &ConnectedCluster, kind: ObjectKind) -> Vec<String> {
    let fleet = &connected.fleet;
    match kind {
        ObjectKind::Host => match fleet.list_hosts(None).await {
            Ok(HostsFound::Hosts(hosts)) => to_texts(hosts.iter().map(|host| &host.name)),
            Ok(HostsFound::NoKind) | Err(_) => Vec::new(),
        },
        ObjectKind::Schedule => match fleet.list_schedules(None).await {
            Ok(SchedulesFound::Schedules(all)) => to_texts(all.iter().map(|one| &one.name)),
            Ok(SchedulesFound::NoKind) | Err(_) => Vec::new(),
        },
        ObjectKind::Machine | ObjectKind::Remediation => match fleet.read_remediations().await {
            Ok(RemediationsFound::There(view)) if kind == ObjectKind::Machine => {
                to_texts(view.snapshot.machines.keys())
            }
            Ok(RemediationsFound::There(view)) => to_texts(view.snapshot.requests.keys()),
            Ok(RemediationsFound::NoKind) | Err(_) => Vec::new(),
        },
    }
}

fn to_texts(names: impl Iterator<Item: ToString>) -> Vec<String> {
    names.map(|name| name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_in_another_namespace_is_what_was_meant() {
        let existing = ["metal/h1", "metal/h2", "rack-2/h1"].map(str::to_owned);
        assert_eq!(
            similar_names("default/h1", &existing),
            ["metal/h1", "rack-2/h1"]
        );
        assert_eq!(similar_names("mtal/h2", &existing)[0], "metal/h2");
        let existing = ["a/monthly", "a/daily"].map(str::to_owned);
        assert_eq!(similar_names("b/monthly", &existing), ["a/monthly"]);
    }
}
