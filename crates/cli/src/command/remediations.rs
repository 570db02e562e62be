//! Finds the remediation that a command names, and reports one that it cannot find.

mod follow;

use dogwatch_core::explain::RemediationReportInput;
use dogwatch_core::name_suggestions::suggest_names;
use dogwatch_core::remediation::ObjectName;
use dogwatch_k8s::fleet::RemediationsFound;

use super::hosts;
use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
pub use follow::{FollowEnd, follow_remediations};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemediationArgKind {
    /// A Machine of OpenShift or Cluster API.
    Machine,
    Request,
}

/// The accepted spellings of the kinds.
const REMEDIATION_KINDS: [(&str, RemediationArgKind); 7] = [
    ("machine", RemediationArgKind::Machine),
    ("machines", RemediationArgKind::Machine),
    ("remediation", RemediationArgKind::Request),
    ("remediations", RemediationArgKind::Request),
    ("powerremediation", RemediationArgKind::Request),
    ("powerremediations", RemediationArgKind::Request),
    ("prem", RemediationArgKind::Request),
];

/// `machine/NAMESPACE/NAME`, `remediation/NAMESPACE/NAME`, or either without the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemediationArg {
    pub kind: RemediationArgKind,
    namespace: Option<String>,
    name: String,
}

fn parse_kind(text: &str) -> Option<RemediationArgKind> {
    let (before, _) = text.split_once('/')?;
    let mut kinds = REMEDIATION_KINDS.into_iter();
    kinds
        .find(|(name, _)| *name == before)
        .map(|(_, kind)| kind)
}

/// Whether the text begins with the kind of a Machine or a request.
pub fn is_remediation_arg(text: &str) -> bool {
    parse_kind(text).is_some()
}

impl RemediationArgKind {
    /// The kind as it is written in a command.
    pub fn as_str(self) -> &'static str {
        match self {
            RemediationArgKind::Machine => "machine",
            RemediationArgKind::Request => "remediation",
        }
    }

    fn object_kind(self) -> &'static str {
        match self {
            RemediationArgKind::Machine => "Machine",
            RemediationArgKind::Request => "PowerRemediation",
        }
    }
}

pub fn parse_remediation_arg(text: &str) -> Result<RemediationArg, String> {
    let kind =
        parse_kind(text).ok_or("write machine/NAMESPACE/NAME or remediation/NAMESPACE/NAME")?;
    let words: Vec<&str> = text.split('/').collect();
    let (namespace, name) = match words[..] {
        [_, name] => (None, name),
        [_, namespace, name] => (Some(namespace), name),
        _ => return Err(format_hint(kind)),
    };
    let is_bad = |word: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        word.is_empty() || word.len() > 253 || !word.chars().all(allowed)
    };
    if is_bad(name) || namespace.is_some_and(is_bad) {
        return Err(format_hint(kind));
    }
    Ok(RemediationArg {
        kind,
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

fn format_hint(kind: RemediationArgKind) -> String {
    let word = kind.as_str();
    format!("write {word}/NAMESPACE/NAME, or {word}/NAME with -n NAMESPACE")
}

impl RemediationArg {
    /// The namespace is the named one, else `-n`, else that of the kubeconfig's context.
    pub fn resolve_name(&self, cluster: &ClusterArgs, connected: &ConnectedCluster) -> ObjectName {
        let given = cluster.namespace_given.then(|| cluster.namespace.clone());
        let namespace = self.namespace.clone().or(given);
        let here = || connected.fleet.default_namespace().to_owned();
        ObjectName::new(namespace.unwrap_or_else(here), self.name.clone())
    }
}

/// Reads everything that explanations of remediations need.
pub async fn read_remediations(
    connected: &ConnectedCluster,
) -> Result<RemediationReportInput, CommandFailure> {
    const LIST_ACTION: &str = "list Machines, hosts, Nodes and PowerRemediations";
    match connected.fleet.read_remediations().await {
        Ok(RemediationsFound::There(view)) => Ok(*view),
        Ok(RemediationsFound::NoKind) => Err(hosts::host_kind_missing()),
        Err(error) => Err(connected.api_failure(LIST_ACTION, &error)),
    }
}

/// Says that there is no such Machine or request and suggests similar names.
pub fn not_found_failure(
    view: &RemediationReportInput,
    kind: RemediationArgKind,
    name: &ObjectName,
) -> CommandFailure {
    let text = format!("there is no {} {name} in this cluster", kind.object_kind());
    let failure = CommandFailure::new(CliExitCode::NotFound, text);
    let there = list_names(view, kind);
    let near = suggest_names(&name.to_string(), there.iter().map(String::as_str));
    if there.is_empty() {
        return failure.with_next_step(match kind {
            RemediationArgKind::Machine => {
                "the cluster has no Machines: mark the Node, and see `dogwatch explain node/NAME`"
            }
            RemediationArgKind::Request => {
                "the cluster has no PowerRemediation; `dogwatch status remediations` also shows remediations requested by annotation"
            }
        });
    }
    if near.is_empty() {
        return failure
            .with_next_step("`dogwatch status remediations` lists those that are under way");
    }
    failure.with_next_step(format!("did you mean {}?", near.join(" or ")))
}

/// All names as `NAMESPACE/NAME`.
fn list_names(view: &RemediationReportInput, kind: RemediationArgKind) -> Vec<String> {
    match kind {
        RemediationArgKind::Machine => {
            let machines = view.snapshot.machines.keys();
            machines.map(ToString::to_string).collect()
        }
        RemediationArgKind::Request => {
            let requests = view.snapshot.requests.keys();
            requests.map(ToString::to_string).collect()
        }
    }
}

/// The same for shell completion; empty when they cannot be read soon.
pub fn complete_names(context: Option<&str>, kind: RemediationArgKind) -> Vec<String> {
    let look = async |connected: ConnectedCluster| match connected.fleet.read_remediations().await {
        Ok(RemediationsFound::There(view)) => list_names(&view, kind),
        Ok(RemediationsFound::NoKind) | Err(_) => Vec::new(),
    };
    hosts::run_for_completion(context, look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remediation_is_named_by_its_machine_or_by_its_request() {
        let of = |kind, namespace: Option<&str>, name: &str| RemediationArg {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        for (text, it) in [
            (
                "machine/ns/m1",
                of(RemediationArgKind::Machine, Some("ns"), "m1"),
            ),
            ("machines/m1", of(RemediationArgKind::Machine, None, "m1")),
            (
                "remediation/ns/r1",
                of(RemediationArgKind::Request, Some("ns"), "r1"),
            ),
            (
                "powerremediation/r1",
                of(RemediationArgKind::Request, None, "r1"),
            ),
            (
                "prem/ns/r1",
                of(RemediationArgKind::Request, Some("ns"), "r1"),
            ),
        ] {
            assert_eq!(parse_remediation_arg(text), Ok(it), "{text}");
        }
        for text in [
            "machine/",
            "machine/a/b/c",
            "remediation//x",
            "machine/A",
            "m1",
            "pod/a",
        ] {
            assert!(parse_remediation_arg(text).is_err(), "{text}");
        }
    }
}
