//! `dogwatch migrate kured`.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use dogwatch_api::reboot_policy::name_problem;
use dogwatch_core::kured::translate;
use serde_json::Value;

use super::daemonset::{Daemon, kureds};
use super::{policy, print};
use crate::args::Cluster;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Where kured is, and what to print.
#[derive(Debug, clap::Args)]
pub struct KuredArgs {
    /// kured's manifests, as they were applied or as Helm renders them; - is standard input. Without
    /// it kured is looked for in the cluster
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Where kured runs; without it kube-system, and then everywhere
    // The id is that of the global flag, which this one stands in for here.
    #[arg(id = "namespace", long = "namespace", short = 'n', value_name = "NAME")]
    _namespace: Option<String>,

    /// The policy's name, which is also the name of its nodes' group
    #[arg(long, value_name = "NAME", default_value = "kured", value_parser = name)]
    name: String,

    /// Prints nothing, and fails while a kured is in the cluster
    #[arg(long, conflicts_with = "file")]
    check: bool,

    /// How it is printed: commented YAML for kubectl apply, or everything as JSON or YAML
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: Format,
}

fn name(text: &str) -> Result<String, String> {
    match name_problem(text) {
        None => Ok(text.to_owned()),
        Some(problem) => Err(problem.to_owned()),
    }
}

/// Reads a kured and prints what it becomes.
pub async fn run(cluster: &Cluster, args: &KuredArgs) -> Result<(), Failure> {
    let objects = match &args.file {
        Some(path) => from_file(path)?,
        None => from_cluster(cluster).await?,
    };
    let mut daemons = kureds(&objects);
    if args.check {
        return check(&daemons);
    }
    let where_to = "name its manifests with -f FILE, or its namespace with -n";
    let daemon = match daemons.len() {
        0 => {
            return Err(
                Failure::new(Exit::NotFound, "there is no DaemonSet of kured").next(where_to),
            );
        }
        1 => daemons.remove(0),
        _ => {
            let names: Vec<String> = daemons.iter().map(Daemon::called).collect();
            let what = format!("there is more than one kured: {}", names.join(", "));
            return Err(Failure::new(Exit::Failed, what).next(where_to));
        }
    };
    if let Some(holder) = daemon.lock_holder() {
        eprintln!(
            "dogwatch: kured's lock is held by {holder}: let it finish before you stop kured"
        );
    }
    let plan = translate(&daemon.kured);
    let policy = policy::policy(&args.name, &plan);
    let mut out = output::stdout();
    match args.output {
        Format::Json => output::json(&mut out, &print::document(&policy, &plan))?,
        Format::Yaml => output::yaml(&mut out, &print::document(&policy, &plan))?,
        Format::Table | Format::Wide => print::commented(&mut out, &daemon, &policy, &plan)?,
    }
    Ok(out.flush()?)
}

/// Two daemons that reboot the same nodes know nothing of each other's lock.
fn check(daemons: &[Daemon]) -> Result<(), Failure> {
    let Some(daemon) = daemons.first() else {
        let mut out = output::stdout();
        writeln!(out, "no kured is in this cluster")?;
        return Ok(out.flush()?);
    };
    let what = format!(
        "kured is in this cluster ({}): it and Dogwatch do not see each other's lock, so two nodes can be out at once",
        daemon.called()
    );
    Err(Failure::new(Exit::Failed, what).next(format!(
        "when no node is in the middle of a reboot: `kubectl -n {} delete daemonset {}`",
        daemon.namespace, daemon.name
    )))
}

fn from_file(path: &PathBuf) -> Result<Vec<Value>, Failure> {
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    let failed = |error: &dyn std::error::Error| {
        let what = format!("failed to read {}: {error}", path.display());
        Failure::new(Exit::Failed, what).next("give the YAML or JSON of kured's DaemonSet")
    };
    read.map_err(|error| failed(&error))?;
    serde_saphyr::from_multiple(&text).map_err(|error| failed(&error))
}

async fn from_cluster(cluster: &Cluster) -> Result<Vec<Value>, Failure> {
    let connection = dogwatch_k8s::connect_to(cluster.context.as_deref())
        .await
        .map_err(|error| Failure::connect(&error))?;
    let read = async |namespace: Option<&str>| {
        dogwatch_k8s::kured::daemon_sets(connection.client.clone(), namespace)
            .await
            .map_err(|error| Failure::api("list DaemonSets", &connection.server, &error))
    };
    if cluster.namespace_given {
        return read(Some(&cluster.namespace)).await;
    }
    // Whoever may not list all namespaces can still see the usual one.
    match read(None).await {
        Ok(all) => Ok(all),
        Err(all) => read(Some("kube-system")).await.map_err(|_| all),
    }
}
