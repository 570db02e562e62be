//! `dogwatch manifests`: the kustomize base in one piece, for those who have no kustomize. It keeps what is installed.

mod parts;
mod plan;
#[cfg(test)]
mod tests;
mod workload;

use std::io::Write as _;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use dogwatch_api::{CONTROLLER, COORDINATOR, DEFAULT_NAMESPACE, LOCK_API};
use dogwatch_core::name::GroupName;
use dogwatch_k8s::fleet::{FleetClient, Installed};
use dogwatch_k8s::{ConnectError, Error, Kind};

use self::parts::Part;
use self::plan::Plan;
use crate::args::Cluster;
use crate::exit::{Exit, Failure};
use crate::output;

/// What the overlay `deploy/policies-deny` changes.
const WARN: &str = "validationActions: [Warn, Audit]";
const DENY: &str = "validationActions: [Deny]";

/// What differs from the base, and from what is installed.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ManifestsArgs {
    /// The coordinator's image; without it, the one that is installed
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    image: Option<String>,

    /// The controller's image, which is that of the program dogwatch; without it, the one that is installed
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    controller_image: Option<String>,

    /// What the admission policies do with a request for a reboot that its author has no right to: warn
    /// and audit, or deny. Without it, as is installed, else warn. Kubernetes 1.32 or later
    #[arg(
        long,
        value_name = "warn|deny",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "warn"
    )]
    with_policies: Option<Requests>,

    /// Leaves the admission policies out, but those that remediation needs: any node's token is then
    /// worth the whole cluster
    #[arg(long, conflicts_with_all = ["with_policies", "only"])]
    without_policies: bool,

    /// The controller remediates failed machines, which deletes Nodes; with the rights for that, and
    /// those with which health checks ask it to
    #[arg(long)]
    with_remediation: bool,

    /// The right to delete what a drain has left past its deadline; printed without this flag where a
    /// policy or the coordinators' flags ask for that
    #[arg(long)]
    with_delete_pods: bool,

    /// Rights over BareMetalHosts, for power control; printed without this flag where the kind is there
    #[arg(long)]
    with_power: bool,

    /// Rights over Cluster API's Machines, so that their health checks are told of planned reboots;
    /// printed without this flag where the kind is there
    #[arg(long)]
    with_cluster_api: bool,

    /// Rights in medik8s' namespace of Leases, so that medik8s is told of planned reboots; printed
    /// without this flag where that namespace is there
    #[arg(long)]
    with_medik8s: bool,

    /// The lock over HTTP, as a Deployment of its own; needs a Secret dogwatch-lock-tls of type
    /// kubernetes.io/tls. Printed without this flag where it is installed
    #[arg(long)]
    with_lock: bool,

    /// Prints these parts and nothing else; separated by commas
    #[arg(long, value_name = "PARTS", value_delimiter = ',', conflicts_with_all = ["with_remediation", "with_delete_pods", "with_power", "with_cluster_api", "with_medik8s", "with_lock"])]
    only: Vec<Part>,

    /// Does not ask the cluster what is installed: prints by the flags alone
    #[arg(long)]
    ignore_cluster: bool,
}

/// What becomes of a request for a reboot that its author has no right to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Requests {
    Warn,
    Deny,
}

/// Prints them.
pub async fn run(cluster: &Cluster, args: &ManifestsArgs) -> Result<(), Failure> {
    // A namespace is a DNS label, by the same rule as a group.
    GroupName::new(cluster.namespace.as_str()).map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!("namespace {:?}: {}", cluster.namespace, error.why),
        )
    })?;
    let installed = if args.ignore_cluster {
        None
    } else {
        installed(cluster).await?
    };
    let plan = plan::plan(&cluster.namespace, args, installed.as_ref())?;
    for note in &plan.notes {
        eprintln!("dogwatch: {note}");
    }
    let mut out = output::stdout();
    out.write_all(text(&cluster.namespace, &plan).as_bytes())?;
    Ok(out.flush()?)
}

/// What is installed; nothing is known where no cluster is named.
async fn installed(cluster: &Cluster) -> Result<Option<Installed>, Failure> {
    let connection = match dogwatch_k8s::connect_to(cluster.context.as_deref()).await {
        Ok(connection) => connection,
        Err(ConnectError::NoCluster) => return Ok(None),
        Err(error) => return Err(Failure::connect(&error).next(OFFLINE)),
    };
    let fleet = FleetClient::new(connection.client, cluster.namespace.clone());
    let what = "read what is installed";
    let found = read_installed(&fleet).await;
    found
        .map(Some)
        .map_err(|error| Failure::api(what, &connection.server, &error).next(OFFLINE))
}

/// For some seconds after a kind was installed the API server answers 429 for its objects.
async fn read_installed(fleet: &FleetClient) -> Result<Installed, Error> {
    for _ in 0..TRIES {
        match fleet.installed().await {
            Err(error) if matches!(error.kind(), Kind::Throttled { .. }) => {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            found => return found,
        }
    }
    fleet.installed().await
}

const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

const OFFLINE: &str = "to print by the flags alone, whatever is installed: --ignore-cluster";

/// All documents. The comments stay: whoever reviews them wants to know why a right is asked for.
fn text(namespace: &str, plan: &Plan) -> String {
    let files = plan.files.iter();
    let documents = files.flat_map(|file| file.split_inclusive("---\n"));
    let mut printed: Vec<String> = Vec::new();
    for document in documents {
        let document = document.trim_end_matches("---\n");
        printed.push(lines(&chosen(document, plan), namespace, plan.denies));
    }
    printed.join("---\n")
}

/// With image, flags and environment of whoever runs it.
fn chosen(document: &str, plan: &Plan) -> String {
    let is_named = |kind: &str, name: &str| {
        document.contains(&format!("\nkind: {kind}\nmetadata:\n  name: {name}\n"))
    };
    if is_named("DaemonSet", COORDINATOR) {
        return plan.coordinator.put_into(document);
    }
    if is_named("Deployment", CONTROLLER) {
        return plan.controller.put_into(document);
    }
    if is_named("Deployment", LOCK_API) {
        return plan.lock.put_into(document);
    }
    document.to_owned()
}

fn lines(document: &str, namespace: &str, denies: bool) -> String {
    let replaced = document
        .lines()
        .map(|line| replaced(line, namespace, denies));
    replaced.map(|line| line + "\n").collect()
}

fn replaced(line: &str, namespace: &str, denies: bool) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    match line.trim_start().split_once(": ") {
        Some((key @ ("namespace" | "name"), DEFAULT_NAMESPACE)) => {
            format!("{indent}{key}: {namespace}")
        }
        Some(_) if denies => line.replace(WARN, DENY),
        Some(_) | None => line.to_owned(),
    }
}
