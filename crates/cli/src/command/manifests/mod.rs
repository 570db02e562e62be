//! Implements `dogwatch manifests`, which prints the kustomize base without kustomize and keeps the
//! installed settings.

mod notes;
mod parts;
mod plan;
#[cfg(test)]
mod tests;
mod workload;

use std::io::Write as _;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use dogwatch_api::{CONTROLLER, COORDINATOR, DEFAULT_NAMESPACE, LOCK_API_ACCOUNT, WEB_ACCOUNT};
use dogwatch_core::name::GroupName;
use dogwatch_k8s::fleet::{ClusterInstallation, FleetClient};
use dogwatch_k8s::{ApiErrorKind, ConnectError, Error};

use self::parts::ManifestPart;
use self::plan::ManifestPlan;
use crate::args::ClusterArgs;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output;

/// Not a part of what is installed: it is applied in another cluster.
const WORKLOAD_ACCOUNT: &str = include_str!("../../../../../deploy/workload-clusters/account.yaml");

/// The line that the overlay `deploy/policies-deny` changes.
const WARN_ACTIONS: &str = "validationActions: [Warn, Audit]";
const DENY_ACTIONS: &str = "validationActions: [Deny]";

#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ManifestsArgs {
    /// Image of the coordinator; defaults to the installed one
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    image: Option<String>,

    /// Image of the controller, which is that of the program dogwatch; defaults to the installed
    /// one
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    controller_image: Option<String>,

    /// What the admission policies do with a reboot request that its author has no right to make:
    /// warn and audit, or deny. Defaults to what is installed, else to warn. Needs Kubernetes 1.32
    /// or later
    #[arg(
        long,
        value_name = "warn|deny",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "warn"
    )]
    with_policies: Option<UnauthorizedRequests>,

    /// Leave out the admission policies, except those that remediation needs: the token of any node
    /// can then take over the whole cluster
    #[arg(long, conflicts_with_all = ["with_policies", "only"])]
    without_policies: bool,

    /// Let the controller remediate failed machines, which deletes Nodes; adds the rights for that,
    /// and the rights of health checks to request it
    #[arg(long)]
    with_remediation: bool,

    /// Add the right to delete pods that a drain has not moved by its deadline; added without this
    /// flag when a policy or the coordinators' flags ask for it
    #[arg(long)]
    with_delete_pods: bool,

    /// Add the right to restart Deployments by rollout before their pods are drained; added without
    /// this flag when a policy asks for it
    #[arg(long)]
    with_roll_first: bool,

    /// Add the right to read MachineDrainRules of Cluster API; added without this flag when a policy
    /// honours them and that kind is installed
    #[arg(long)]
    with_machine_drain_rules: bool,

    /// Add rights over BareMetalHosts, for power control; added without this flag when that kind is
    /// installed
    #[arg(long)]
    with_power: bool,

    /// Add rights over Cluster API's Machines, so that their health checks learn of planned
    /// reboots; added without this flag when that kind is installed
    #[arg(long)]
    with_cluster_api: bool,

    /// Add rights in medik8s' namespace of Leases, so that medik8s learns of planned reboots; added
    /// without this flag when that namespace exists
    #[arg(long)]
    with_medik8s: bool,

    /// Add the lock API as a Deployment of its own; needs a Secret dogwatch-lock-tls of type
    /// kubernetes.io/tls. Added without this flag when it is installed
    #[arg(long)]
    with_lock: bool,

    /// Add the dashboard as a Deployment of its own, with a NetworkPolicy that lets only port
    /// forwards reach it; added without this flag when it is installed
    #[arg(long)]
    with_web: bool,

    /// Print only these parts; separated by commas
    #[arg(long, value_name = "PARTS", value_delimiter = ',', conflicts_with_all = ["with_remediation", "with_delete_pods", "with_roll_first", "with_machine_drain_rules", "with_power", "with_cluster_api", "with_medik8s", "with_lock", "with_web"])]
    only: Vec<ManifestPart>,

    /// Print only the account of the remediator in a workload cluster of Cluster API, and how to make
    /// the Secret with its kubeconfig; apply it in the workload cluster
    #[arg(long, conflicts_with_all = ["image", "controller_image", "only", "with_policies", "without_policies", "with_remediation", "with_delete_pods", "with_roll_first", "with_machine_drain_rules", "with_power", "with_cluster_api", "with_medik8s", "with_lock", "with_web"])]
    workload_cluster: bool,

    /// Do not ask the cluster what is installed; use only the flags
    #[arg(long)]
    ignore_cluster: bool,
}

/// What the admission policies do with a reboot request that its author has no right to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnauthorizedRequests {
    Warn,
    Deny,
}

pub async fn run(cluster: &ClusterArgs, args: &ManifestsArgs) -> Result<(), CommandFailure> {
    // A namespace is a DNS label, as a group's name is.
    GroupName::new(cluster.namespace.as_str()).map_err(|error| {
        CommandFailure::new(
            CliExitCode::Usage,
            format!("namespace {:?}: {}", cluster.namespace, error.why),
        )
    })?;
    if args.workload_cluster {
        let mut out = output::buffered_stdout();
        out.write_all(render_workload_account(&cluster.namespace).as_bytes())?;
        return Ok(out.flush()?);
    }
    let installed = if args.ignore_cluster {
        None
    } else {
        find_installed(cluster).await?
    };
    let plan = plan::plan_manifests(&cluster.namespace, args, installed.as_ref())?;
    for note in &plan.notes {
        eprintln!("dogwatch: {note}");
    }
    let mut out = output::buffered_stdout();
    out.write_all(render_manifests(&cluster.namespace, &plan).as_bytes())?;
    Ok(out.flush()?)
}

/// Reads what is installed; `None` when no cluster is configured.
async fn find_installed(
    cluster: &ClusterArgs,
) -> Result<Option<ClusterInstallation>, CommandFailure> {
    let connection = match dogwatch_k8s::connect_to_context(cluster.context.as_deref()).await {
        Ok(connection) => connection,
        Err(ConnectError::NoCluster) => return Ok(None),
        Err(error) => {
            return Err(
                CommandFailure::from_connect_error(&error).with_next_step(IGNORE_CLUSTER_HINT)
            );
        }
    };
    let fleet = FleetClient::new(connection.client, cluster.namespace.clone());
    let what = "read what is installed";
    let found = read_installed(&fleet).await;
    found.map(Some).map_err(|error| {
        CommandFailure::from_api_error(what, &connection.server, &error)
            .with_next_step(IGNORE_CLUSTER_HINT)
    })
}

/// For some seconds after a kind was installed, the API server answers 429 for its objects.
async fn read_installed(fleet: &FleetClient) -> Result<ClusterInstallation, Error> {
    for _ in 0..MAX_READ_TRIES {
        match fleet.read_installation().await {
            Err(error) if matches!(error.kind(), ApiErrorKind::Throttled { .. }) => {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            found => return found,
        }
    }
    fleet.read_installation().await
}

const MAX_READ_TRIES: u32 = 10;
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

const IGNORE_CLUSTER_HINT: &str =
    "to ignore the installation and use the flags only, add --ignore-cluster";

/// The account for a workload cluster. Its comment has commands that name the namespace.
fn render_workload_account(namespace: &str) -> String {
    let commands = WORKLOAD_ACCOUNT
        .replace(" -n dogwatch ", &format!(" -n {namespace} "))
        .replace(
            ", namespace: dogwatch}",
            &format!(", namespace: {namespace}}}"),
        );
    rewrite_document(&commands, namespace, false)
}

/// Renders all documents with their comments, which tell reviewers why each right is needed.
fn render_manifests(namespace: &str, plan: &ManifestPlan) -> String {
    let files = plan.files.iter();
    let documents = files.flat_map(|file| file.split_inclusive("---\n"));
    let mut printed: Vec<String> = Vec::new();
    for document in documents {
        let document = document.trim_end_matches("---\n");
        printed.push(rewrite_document(
            &apply_workload_settings(document, plan),
            namespace,
            plan.denies,
        ));
    }
    printed.join("---\n")
}

/// Puts the operator's image, flags and environment into a document.
fn apply_workload_settings(document: &str, plan: &ManifestPlan) -> String {
    let is_named = |kind: &str, name: &str| {
        document.contains(&format!("\nkind: {kind}\nmetadata:\n  name: {name}\n"))
    };
    if is_named("DaemonSet", COORDINATOR) {
        return plan.coordinator.apply_to_manifest(document);
    }
    if is_named("Deployment", CONTROLLER) {
        return plan.controller.apply_to_manifest(document);
    }
    if is_named("Deployment", LOCK_API_ACCOUNT) {
        return plan.lock.apply_to_manifest(document);
    }
    if is_named("Deployment", WEB_ACCOUNT) {
        return plan.web.apply_to_manifest(document);
    }
    document.to_owned()
}

fn rewrite_document(document: &str, namespace: &str, denies: bool) -> String {
    let replaced = document
        .lines()
        .map(|line| rewrite_line(line, namespace, denies));
    replaced.map(|line| line + "\n").collect()
}

fn rewrite_line(line: &str, namespace: &str, denies: bool) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    match line.trim_start().split_once(": ") {
        Some((key @ ("namespace" | "name"), DEFAULT_NAMESPACE)) => {
            format!("{indent}{key}: {namespace}")
        }
        Some(_) if denies => line.replace(WARN_ACTIONS, DENY_ACTIONS),
        Some(_) | None => line.to_owned(),
    }
}
