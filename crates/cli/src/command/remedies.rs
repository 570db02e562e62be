//! Which remediation a command is for, and how one that cannot be found is told.

use dogwatch_core::explain::RemedyView;
use dogwatch_core::remedy::ObjectName;
use dogwatch_k8s::fleet::RemediesFound;

use super::hosts;
use crate::args::Cluster;
use crate::cluster::Connected;
use crate::exit::{Exit, Failure};
use dogwatch_core::near::near;

/// What a remediation is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Machine, of OpenShift or Cluster API.
    Machine,
    /// A `PowerRemediation`.
    Request,
}

/// The kinds, as people write them.
const KINDS: [(&str, Kind); 7] = [
    ("machine", Kind::Machine),
    ("machines", Kind::Machine),
    ("remediation", Kind::Request),
    ("remediations", Kind::Request),
    ("powerremediation", Kind::Request),
    ("powerremediations", Kind::Request),
    ("prem", Kind::Request),
];

/// `machine/NAMESPACE/NAME`, `remediation/NAMESPACE/NAME`, or either without the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// What it is.
    pub kind: Kind,
    namespace: Option<String>,
    name: String,
}

fn kind(text: &str) -> Option<Kind> {
    let (before, _) = text.split_once('/')?;
    let mut kinds = KINDS.into_iter();
    kinds
        .find(|(name, _)| *name == before)
        .map(|(_, kind)| kind)
}

/// Whether the text says by its kind that it means a Machine or a request.
pub fn is_remedy(text: &str) -> bool {
    kind(text).is_some()
}

impl Kind {
    /// As it is written in a command.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Machine => "machine",
            Kind::Request => "remediation",
        }
    }

    /// The kind of the objects.
    fn objects(self) -> &'static str {
        match self {
            Kind::Machine => "Machine",
            Kind::Request => "PowerRemediation",
        }
    }
}

/// Reads one, with its kind.
pub fn named(text: &str) -> Result<Named, String> {
    let kind = kind(text).ok_or("write machine/NAMESPACE/NAME or remediation/NAMESPACE/NAME")?;
    let words: Vec<&str> = text.split('/').collect();
    let (namespace, name) = match words[..] {
        [_, name] => (None, name),
        [_, namespace, name] => (Some(namespace), name),
        _ => return Err(form(kind)),
    };
    let is_bad = |word: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        word.is_empty() || word.len() > 253 || !word.chars().all(allowed)
    };
    if is_bad(name) || namespace.is_some_and(is_bad) {
        return Err(form(kind));
    }
    Ok(Named {
        kind,
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

fn form(kind: Kind) -> String {
    let word = kind.as_str();
    format!("write {word}/NAMESPACE/NAME, or {word}/NAME with -n NAMESPACE")
}

impl Named {
    /// Where it is: as it is named, else in `-n`, else where the kubeconfig's context is.
    pub fn in_cluster(&self, cluster: &Cluster, connected: &Connected) -> ObjectName {
        let given = cluster.namespace_given.then(|| cluster.namespace.clone());
        let namespace = self.namespace.clone().or(given);
        let here = || connected.fleet.default_namespace().to_owned();
        ObjectName::new(namespace.unwrap_or_else(here), self.name.clone())
    }
}

/// Everything that remediations are explained from.
pub async fn look(connected: &Connected) -> Result<RemedyView, Failure> {
    const WHAT: &str = "list Machines, hosts, Nodes and PowerRemediations";
    match connected.fleet.remedies().await {
        Ok(RemediesFound::There(view)) => Ok(*view),
        Ok(RemediesFound::NoKind) => Err(hosts::no_kind()),
        Err(error) => Err(connected.failed(WHAT, &error)),
    }
}

/// That there is no such Machine or request, and which ones may have been meant.
pub fn not_found(view: &RemedyView, kind: Kind, name: &ObjectName) -> Failure {
    let text = format!("there is no {} {name} in this cluster", kind.objects());
    let failure = Failure::new(Exit::NotFound, text);
    let there = names(view, kind);
    let near = near(&name.to_string(), there.iter().map(String::as_str));
    if there.is_empty() {
        return failure.next(match kind {
            Kind::Machine => {
                "it has no Machines at all: mark the Node, and see `dogwatch explain node/NAME`"
            }
            Kind::Request => {
                "it has none at all; `dogwatch status remediations` shows those by annotation too"
            }
        });
    }
    if near.is_empty() {
        return failure.next("`dogwatch status remediations` lists those that are under way");
    }
    failure.next(format!("did you mean {}?", near.join(" or ")))
}

/// `NAMESPACE/NAME` of all that there are.
fn names(view: &RemedyView, kind: Kind) -> Vec<String> {
    match kind {
        Kind::Machine => {
            let machines = view.world.machines.keys();
            machines.map(ToString::to_string).collect()
        }
        Kind::Request => {
            let requests = view.world.requests.keys();
            requests.map(ToString::to_string).collect()
        }
    }
}

/// The same, for a shell that completes one; none where they cannot be had soon.
pub fn completions(context: Option<&str>, kind: Kind) -> Vec<String> {
    let look = async |connected: Connected| match connected.fleet.remedies().await {
        Ok(RemediesFound::There(view)) => names(&view, kind),
        Ok(RemediesFound::NoKind) | Err(_) => Vec::new(),
    };
    hosts::soon(context, look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remediation_is_named_by_its_machine_or_by_its_request() {
        let of = |kind, namespace: Option<&str>, name: &str| Named {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        for (text, it) in [
            ("machine/ns/m1", of(Kind::Machine, Some("ns"), "m1")),
            ("machines/m1", of(Kind::Machine, None, "m1")),
            ("remediation/ns/r1", of(Kind::Request, Some("ns"), "r1")),
            ("powerremediation/r1", of(Kind::Request, None, "r1")),
            ("prem/ns/r1", of(Kind::Request, Some("ns"), "r1")),
        ] {
            assert_eq!(named(text), Ok(it), "{text}");
        }
        for text in [
            "machine/",
            "machine/a/b/c",
            "remediation//x",
            "machine/A",
            "m1",
            "pod/a",
        ] {
            assert!(named(text).is_err(), "{text}");
        }
    }
}
