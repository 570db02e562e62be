//! Which hosts a command is for, and how one that cannot be found is told.

use std::collections::BTreeMap;

use dogwatch_core::power::{Host, HostName, OwnerRules, Seniority, Sharing};
use dogwatch_k8s::fleet::{HostFound, HostsFound};

use crate::args::Cluster;
use crate::cluster::Connected;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::printable;
use dogwatch_core::near::near;

/// A host as it is typed: `NAMESPACE/NAME`, or its name alone; either with `host/` before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    namespace: Option<String>,
    name: String,
}

/// The kind, as people write it.
const KINDS: [&str; 5] = ["host", "hosts", "bmh", "baremetalhost", "baremetalhosts"];

/// Reads one; the kind may be left out.
pub fn named(text: &str) -> Result<Named, String> {
    let words: Vec<&str> = text.split('/').collect();
    let rest = match words[..] {
        [kind, ..] if words.len() > 1 && KINDS.contains(&kind) => &words[1..],
        _ => &words[..],
    };
    let (namespace, name) = match *rest {
        [name] => (None, name),
        [namespace, name] => (Some(namespace), name),
        _ => return Err("write NAMESPACE/NAME, or NAME with -n NAMESPACE".into()),
    };
    let is_bad = |word: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        word.is_empty() || word.len() > 253 || !word.chars().all(allowed)
    };
    if is_bad(name) || namespace.is_some_and(is_bad) {
        return Err(format!("{text:?} is no host: write NAMESPACE/NAME"));
    }
    Ok(Named {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

/// Whether the text says by its kind that it means a host.
pub fn is_host(text: &str) -> bool {
    let kind = text.split_once('/').map(|(kind, _)| kind);
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// The cluster; `-n` is the hosts' namespace, and Dogwatch's own is what the environment says.
pub async fn connect(cluster: &Cluster) -> Result<Connected, Failure> {
    if !cluster.namespace_given {
        return Connected::to(cluster).await;
    }
    let own = std::env::var(crate::args::NAMESPACE_VARIABLE).ok();
    let own = own.filter(|name| !name.is_empty());
    let cluster = Cluster {
        namespace: own.unwrap_or_else(|| dogwatch_api::DEFAULT_NAMESPACE.into()),
        namespace_given: false,
        context: cluster.context.clone(),
    };
    Connected::to(&cluster).await
}

impl Named {
    /// Where it is: as it is named, else in `-n`, else where the kubeconfig's context is.
    pub fn in_cluster(&self, cluster: &Cluster, connected: &Connected) -> HostName {
        let given = cluster.namespace_given.then(|| cluster.namespace.clone());
        let namespace = self.namespace.clone().or(given);
        let here = || connected.fleet.default_namespace().to_owned();
        HostName::new(namespace.unwrap_or_else(here), self.name.clone())
    }
}

/// Why nothing is written on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum No {
    /// It is so already: what follows the host's name.
    Already(String),
    /// It cannot be, or must not be.
    Refused {
        /// Why, as it follows the host's name.
        text: String,
        /// What to do.
        next: String,
    },
}

impl No {
    /// It must not be: why, as it follows the host's name, and what to do.
    pub fn refused(text: impl Into<String>, next: impl Into<String>) -> Self {
        No::Refused {
            text: text.into(),
            next: next.into(),
        }
    }

    /// A host that is on its way out takes nothing.
    pub fn deleting() -> Self {
        Self::refused(
            "is being deleted",
            "what waits for its end is in its metadata.finalizers",
        )
    }
}

/// One line, at once; what others wrote in it cannot move the terminal.
pub fn say(text: &str) -> Result<(), Failure> {
    output::say(&printable(text))
}

/// The kind BareMetalHost is not installed.
pub fn no_kind() -> Failure {
    let text = "the kind BareMetalHost is not installed in this cluster, so it has no hosts";
    Failure::new(Exit::NotFound, text)
        .next("with metal3 its own comes; without: dogwatch crds --hosts | kubectl apply --server-side -f -")
}

/// That a host does not exist, and which ones may have been meant.
pub async fn no_such_host(connected: &Connected, name: &HostName) -> Failure {
    let failure = Failure::new(
        Exit::NotFound,
        format!("there is no BareMetalHost {name} in this cluster"),
    );
    let near = match connected.fleet.hosts(None).await {
        Ok(HostsFound::Hosts(hosts)) => suggestions(name, hosts.iter().map(|host| &host.name)),
        // Of whoever may not list them, nothing more is known.
        Ok(HostsFound::NoKind) | Err(_) => Vec::new(),
    };
    if near.is_empty() {
        return failure.next("`dogwatch status hosts` lists them");
    }
    failure.next(format!(
        "did you mean {}? `dogwatch status hosts` lists them",
        near.join(" or ")
    ))
}

/// The same name elsewhere, else names that are near.
fn suggestions<'a>(wrong: &HostName, hosts: impl Iterator<Item = &'a HostName>) -> Vec<String> {
    let hosts: Vec<&HostName> = hosts.collect();
    let same = hosts.iter().filter(|host| host.name == wrong.name);
    let same: Vec<String> = same.take(3).map(ToString::to_string).collect();
    if !same.is_empty() {
        return same;
    }
    let full: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let near = near(&wrong.to_string(), full.iter().map(String::as_str));
    near.into_iter().map(str::to_owned).collect()
}

/// One host, or why it cannot be had.
pub async fn one(connected: &Connected, name: &HostName) -> Result<Host, Failure> {
    let found = connected.fleet.host(name).await;
    match found.map_err(|error| connected.failed(&format!("read host {name}"), &error))? {
        HostFound::There(host) => Ok(*host),
        HostFound::NoHost => Err(no_such_host(connected, name).await),
        HostFound::NoKind => Err(no_kind()),
    }
}

/// How long somebody who pressed the tabulator waits.
const SOON: std::time::Duration = std::time::Duration::from_secs(2);

/// The names of all hosts, for a shell that completes one; none where they cannot be had soon.
pub fn names(context: Option<&str>) -> Vec<String> {
    soon(context, async |connected| {
        match connected.fleet.hosts(None).await {
            Ok(HostsFound::Hosts(hosts)) => {
                hosts.iter().map(|host| host.name.to_string()).collect()
            }
            Ok(HostsFound::NoKind) | Err(_) => Vec::new(),
        }
    })
}

/// What a look finds within the time that somebody waits for it.
pub fn soon(
    context: Option<&str>,
    look: impl AsyncFnOnce(Connected) -> Vec<String>,
) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let cluster = Cluster {
        namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
        namespace_given: false,
        context: context.map(str::to_owned),
    };
    let look = async {
        match Connected::to(&cluster).await {
            Ok(connected) => look(connected).await,
            Err(_) => Vec::new(),
        }
    };
    let found = runtime.block_on(async { tokio::time::timeout(SOON, look).await });
    found.unwrap_or_default()
}

/// Of each host that names a BMC which another one named first, those others.
pub fn sharing(hosts: &[Host]) -> BTreeMap<HostName, Vec<HostName>> {
    let mut sharing = Sharing::default();
    for host in hosts {
        let seniority = Seniority::of(host, &OwnerRules::default());
        sharing.put(&host.name, seniority, &host.levels);
    }
    let before = hosts
        .iter()
        .map(|host| (host.name.clone(), sharing.before(&host.name)));
    before.filter(|(_, others)| !others.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_with_or_without_its_kind_and_its_namespace() {
        let of = |namespace: Option<&str>, name: &str| Named {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        for (text, host) in [
            ("h1", of(None, "h1")),
            ("metal/h1", of(Some("metal"), "h1")),
            ("host/h1", of(None, "h1")),
            ("host/metal/h1", of(Some("metal"), "h1")),
            ("bmh/metal/h1", of(Some("metal"), "h1")),
            ("host", of(None, "host")),
        ] {
            assert_eq!(named(text), Ok(host), "{text}");
        }
        for text in [
            "",
            "/",
            "metal/",
            "/h1",
            "a/b/c",
            "host/a/b/c",
            "metal/H1",
            "a b",
        ] {
            assert!(named(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_same_name_in_another_namespace_is_what_was_meant() {
        let hosts = [
            HostName::new("metal", "h1"),
            HostName::new("metal", "h2"),
            HostName::new("rack-2", "h1"),
        ];
        let found = suggestions(&HostName::new("default", "h1"), hosts.iter());
        assert_eq!(found, ["metal/h1", "rack-2/h1"]);
        let found = suggestions(&HostName::new("mtal", "h2"), hosts.iter());
        assert_eq!(found[0], "metal/h2");
    }
}
