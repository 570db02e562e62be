//! Implements `dogwatch migrate kured`.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use dogwatch_api::reboot_policy::policy_name_problem;
use dogwatch_core::kured::translate_kured;
use serde_json::Value;

use super::daemonset::{KuredDaemonSet, find_kured_daemonsets};
use super::{policy, print};
use crate::args::ClusterArgs;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::{self, OutputFormat};

#[derive(Debug, clap::Args)]
pub struct MigrateKuredArgs {
    /// File with kured's manifests, as applied or as rendered by Helm; - is standard input. Without
    /// it, kured is looked up in the cluster
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Namespace in which kured runs; without it, kube-system is searched and then all namespaces
    // This id is that of the global flag, which this one replaces here.
    #[arg(id = "namespace", long = "namespace", short = 'n', value_name = "NAME")]
    _namespace: Option<String>,

    /// Name of the policy, which is also the name of its nodes' group
    #[arg(long, value_name = "NAME", default_value = "kured", value_parser = parse_policy_name)]
    name: String,

    /// Print nothing, and fail while a kured is in the cluster
    #[arg(long, conflicts_with = "file")]
    check: bool,

    /// Output format: commented YAML for kubectl apply, or everything as JSON or YAML
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: OutputFormat,
}

fn parse_policy_name(text: &str) -> Result<String, String> {
    match policy_name_problem(text) {
        None => Ok(text.to_owned()),
        Some(problem) => Err(problem.to_owned()),
    }
}

pub async fn run(cluster: &ClusterArgs, args: &MigrateKuredArgs) -> Result<(), CommandFailure> {
    let objects = match &args.file {
        Some(path) => read_objects_from_file(path)?,
        None => read_objects_from_cluster(cluster).await?,
    };
    let mut daemons = find_kured_daemonsets(&objects);
    if args.check {
        return check_no_kured(&daemons);
    }
    let where_to = "give kured's manifests with -f FILE, or kured's namespace with -n";
    let daemon = match daemons.len() {
        0 => {
            return Err(CommandFailure::new(
                CliExitCode::NotFound,
                "there is no DaemonSet of kured in the cluster",
            )
            .with_next_step(where_to));
        }
        1 => daemons.remove(0),
        _ => {
            let names: Vec<String> = daemons
                .iter()
                .map(KuredDaemonSet::namespaced_name)
                .collect();
            let what = format!(
                "there is more than one DaemonSet of kured: {}",
                names.join(", ")
            );
            return Err(CommandFailure::new(CliExitCode::Failed, what).with_next_step(where_to));
        }
    };
    if let Some(holder) = daemon.lock_holder() {
        eprintln!(
            "dogwatch: {holder} holds kured's lock: wait until it has rebooted before you stop kured"
        );
    }
    let plan = translate_kured(&daemon.kured);
    let policy = policy::build_policy(&args.name, &plan);
    let document = print::render_document(&policy, &plan);
    output::print_document(args.output, &document, |out| {
        print::write_commented_yaml(out, &daemon, &policy, &plan)
    })
}

/// kured and Dogwatch would reboot the same nodes without knowing each other's lock.
fn check_no_kured(daemons: &[KuredDaemonSet]) -> Result<(), CommandFailure> {
    let Some(daemon) = daemons.first() else {
        let mut out = output::buffered_stdout();
        writeln!(out, "kured is not in this cluster")?;
        return Ok(out.flush()?);
    };
    let what = format!(
        "kured is in this cluster ({}): kured and Dogwatch use different locks, so two nodes can be out of service at once",
        daemon.namespaced_name()
    );
    Err(
        CommandFailure::new(CliExitCode::Failed, what).with_next_step(format!(
            "wait until no node is rebooting, then: `kubectl -n {} delete daemonset {}`",
            daemon.namespace, daemon.name
        )),
    )
}

fn read_objects_from_file(path: &PathBuf) -> Result<Vec<Value>, CommandFailure> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    let failed = |error: &dyn std::error::Error| {
        let what = format!("failed to read {}: {error}", path.display());
        CommandFailure::new(CliExitCode::Failed, what)
            .with_next_step("give the YAML or JSON of kured's DaemonSet")
    };
    read.map_err(|error| failed(&error))?;
    serde_saphyr::from_multiple(&text).map_err(|error| failed(&error))
}

async fn read_objects_from_cluster(cluster: &ClusterArgs) -> Result<Vec<Value>, CommandFailure> {
    let connection = dogwatch_k8s::connect_to_context(cluster.context.as_deref())
        .await
        .map_err(|error| CommandFailure::from_connect_error(&error))?;
    let read = async |namespace: Option<&str>| {
        dogwatch_k8s::kured::list_daemonsets(connection.client.clone(), namespace)
            .await
            .map_err(|error| {
                CommandFailure::from_api_error("list DaemonSets", &connection.server, &error)
            })
    };
    if cluster.namespace_given {
        return read(Some(&cluster.namespace)).await;
    }
    // Without the right to list all namespaces, kube-system may still be readable.
    match read(None).await {
        Ok(all) => Ok(all),
        Err(all) => read(Some("kube-system")).await.map_err(|_| all),
    }
}
