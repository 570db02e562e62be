//! Finds the hosts that a command names, and reports those that it cannot find.

use std::collections::BTreeMap;

use dogwatch_core::power::{HostName, HostSeniority, HostSnapshot, OwnerRules, SharedBmcs};
use dogwatch_k8s::fleet::{HostFound, HostsFound};

use crate::args::ClusterArgs;
use crate::cluster::ConnectedCluster;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output;
use crate::table::to_printable;
use dogwatch_core::name_suggestions::suggest_names;

/// A host argument: `NAMESPACE/NAME` or the bare name, either with `host/` before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostArg {
    namespace: Option<String>,
    name: String,
}

/// The accepted spellings of the kind.
const HOST_KINDS: [&str; 5] = ["host", "hosts", "bmh", "baremetalhost", "baremetalhosts"];

/// The kind may be left out.
pub fn parse_host_arg(text: &str) -> Result<HostArg, String> {
    let words: Vec<&str> = text.split('/').collect();
    let rest = match words[..] {
        [kind, ..] if words.len() > 1 && HOST_KINDS.contains(&kind) => &words[1..],
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
        return Err(format!("{text:?} is not a host: write NAMESPACE/NAME"));
    }
    Ok(HostArg {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

/// Whether the text begins with the kind of a host.
pub fn is_host_arg(text: &str) -> bool {
    let kind = text.split_once('/').map(|(kind, _)| kind);
    kind.is_some_and(|kind| HOST_KINDS.contains(&kind))
}

/// `-n` is the hosts' namespace here, so Dogwatch's own namespace comes from the environment.
pub async fn connect_for_hosts(cluster: &ClusterArgs) -> Result<ConnectedCluster, CommandFailure> {
    if !cluster.namespace_given {
        return ConnectedCluster::connect_to(cluster).await;
    }
    let own = std::env::var(crate::args::NAMESPACE_VARIABLE).ok();
    let own = own.filter(|name| !name.is_empty());
    let cluster = ClusterArgs {
        namespace: own.unwrap_or_else(|| dogwatch_api::DEFAULT_NAMESPACE.into()),
        namespace_given: false,
        context: cluster.context.clone(),
    };
    ConnectedCluster::connect_to(&cluster).await
}

impl HostArg {
    /// The namespace is the named one, else `-n`, else that of the kubeconfig's context.
    pub fn resolve_name(&self, cluster: &ClusterArgs, connected: &ConnectedCluster) -> HostName {
        let given = cluster.namespace_given.then(|| cluster.namespace.clone());
        let namespace = self.namespace.clone().or(given);
        let here = || connected.fleet.default_namespace().to_owned();
        HostName::new(namespace.unwrap_or_else(here), self.name.clone())
    }
}

/// Why a command writes nothing to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostUnchanged {
    /// The host is in that state already. The text follows the host's name.
    AlreadySet(String),
    Refused {
        /// The reason; the text follows the host's name.
        text: String,
        /// The next step for the person.
        next: String,
    },
}

impl HostUnchanged {
    /// `text` follows the host's name; `next` is the next step for the person.
    pub fn refuse_change(text: impl Into<String>, next: impl Into<String>) -> Self {
        HostUnchanged::Refused {
            text: text.into(),
            next: next.into(),
        }
    }

    /// A host that is being deleted accepts no change.
    pub fn host_is_deleting() -> Self {
        Self::refuse_change(
            "is being deleted",
            "its metadata.finalizers name the programs that delay the deletion",
        )
    }
}

/// Prints one line and flushes it, without the control characters that other writers may have put
/// into it.
pub fn print_line(text: &str) -> Result<(), CommandFailure> {
    output::print_raw_line(&to_printable(text))
}

pub fn host_kind_missing() -> CommandFailure {
    let text =
        "the CRD BareMetalHost is not installed in this cluster, so the cluster has no hosts";
    CommandFailure::new(CliExitCode::NotFound, text)
        .with_next_step("metal3 installs this CRD; without metal3: dogwatch crds --hosts | kubectl apply --server-side -f -")
}

/// Says that the host does not exist and suggests similar names.
pub async fn no_such_host(connected: &ConnectedCluster, name: &HostName) -> CommandFailure {
    let failure = CommandFailure::new(
        CliExitCode::NotFound,
        format!("there is no BareMetalHost {name} in this cluster"),
    );
    let near = match connected.fleet.list_hosts(None).await {
        Ok(HostsFound::Hosts(hosts)) => {
            suggest_host_names(name, hosts.iter().map(|host| &host.name))
        }
        // Without the right to list hosts there is nothing to suggest.
        Ok(HostsFound::NoKind) | Err(_) => Vec::new(),
    };
    if near.is_empty() {
        return failure.with_next_step("`dogwatch status hosts` lists them");
    }
    failure.with_next_step(format!(
        "did you mean {}? `dogwatch status hosts` lists them",
        near.join(" or ")
    ))
}

/// Suggests the same name in another namespace, else similar names.
fn suggest_host_names<'a>(
    wrong: &HostName,
    hosts: impl Iterator<Item = &'a HostName>,
) -> Vec<String> {
    let hosts: Vec<&HostName> = hosts.collect();
    let same = hosts.iter().filter(|host| host.name == wrong.name);
    let same: Vec<String> = same.take(3).map(ToString::to_string).collect();
    if !same.is_empty() {
        return same;
    }
    let full: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let near = suggest_names(&wrong.to_string(), full.iter().map(String::as_str));
    near.into_iter().map(str::to_owned).collect()
}

pub async fn read_host(
    connected: &ConnectedCluster,
    name: &HostName,
) -> Result<HostSnapshot, CommandFailure> {
    let found = connected.fleet.read_host(name).await;
    match found.map_err(|error| connected.api_failure(&format!("read host {name}"), &error))? {
        HostFound::There(host) => Ok(*host),
        HostFound::NoHost => Err(no_such_host(connected, name).await),
        HostFound::NoKind => Err(host_kind_missing()),
    }
}

/// How long a person who pressed Tab has to wait at most.
const COMPLETION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// The names of all hosts for shell completion; empty when they cannot be read within
/// `COMPLETION_TIMEOUT`.
pub fn complete_host_names(context: Option<&str>) -> Vec<String> {
    run_for_completion(context, async |connected| {
        match connected.fleet.list_hosts(None).await {
            Ok(HostsFound::Hosts(hosts)) => {
                hosts.iter().map(|host| host.name.to_string()).collect()
            }
            Ok(HostsFound::NoKind) | Err(_) => Vec::new(),
        }
    })
}

/// Runs a lookup for shell completion within `COMPLETION_TIMEOUT`.
pub fn run_for_completion(
    context: Option<&str>,
    look: impl AsyncFnOnce(ConnectedCluster) -> Vec<String>,
) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let cluster = ClusterArgs {
        namespace: dogwatch_api::DEFAULT_NAMESPACE.into(),
        namespace_given: false,
        context: context.map(str::to_owned),
    };
    let look = async {
        match ConnectedCluster::connect_to(&cluster).await {
            Ok(connected) => look(connected).await,
            Err(_) => Vec::new(),
        }
    };
    let found = runtime.block_on(async { tokio::time::timeout(COMPLETION_TIMEOUT, look).await });
    found.unwrap_or_default()
}

/// For each host that names the BMC of another host: those other hosts.
pub fn find_shared_bmcs(hosts: &[HostSnapshot]) -> BTreeMap<HostName, Vec<HostName>> {
    let mut sharing = SharedBmcs::default();
    for host in hosts {
        let seniority = HostSeniority::of_host(host, &OwnerRules::default());
        sharing.put_host(&host.name, seniority, &host.levels);
    }
    let before = hosts
        .iter()
        .map(|host| (host.name.clone(), sharing.senior_hosts(&host.name)));
    before.filter(|(_, others)| !others.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_with_or_without_its_kind_and_its_namespace() {
        let of = |namespace: Option<&str>, name: &str| HostArg {
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
            assert_eq!(parse_host_arg(text), Ok(host), "{text}");
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
            assert!(parse_host_arg(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_same_name_in_another_namespace_is_what_was_meant() {
        let hosts = [
            HostName::new("metal", "h1"),
            HostName::new("metal", "h2"),
            HostName::new("rack-2", "h1"),
        ];
        let found = suggest_host_names(&HostName::new("default", "h1"), hosts.iter());
        assert_eq!(found, ["metal/h1", "rack-2/h1"]);
        let found = suggest_host_names(&HostName::new("mtal", "h2"), hosts.iter());
        assert_eq!(found[0], "metal/h2");
    }
}
