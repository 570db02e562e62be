//! `dogwatch rollout-restart`: new pods, by the rules of whatever controls them.

mod follow;
mod said;

use std::io::Write as _;
use std::time::Duration;

use dogwatch_core::rollout::State;
use dogwatch_k8s::rollout::{Failed, Found, RolloutClient};

use crate::args::Cluster;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use said::Ended;

/// What to restart, and how long to wait.
#[derive(Debug, clap::Args)]
pub struct RolloutRestartArgs {
    /// What controls the pods: deployment/web, sts/db, rollouts.argoproj.io/api
    #[arg(required = true, value_name = "KIND/NAME", value_parser = target)]
    targets: Vec<Target>,

    /// Their namespace; that of the kubeconfig's context where it is not given
    // The id is that of the global flag, which this one stands in for here.
    #[arg(id = "namespace", long = "namespace", short = 'n', value_name = "NAME")]
    _namespace: Option<String>,

    /// How long to wait for the new pods
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = dogwatch_core::duration::parse)]
    timeout: Duration,

    /// Has the API server check everything, and changes nothing
    #[arg(long)]
    dry_run: bool,

    /// How the end is printed; with json and yaml the progress goes to standard error
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: Format,
}

/// One thing to restart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    kind: String,
    name: String,
}

fn target(text: &str) -> Result<Target, String> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [kind, name] if !kind.is_empty() && !name.is_empty() => Ok(Target {
            kind: kind.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write KIND/NAME, like deployment/web".to_owned()),
    }
}

/// Checks everything, restarts everything, waits for everything. The first trouble gives the exit code.
pub async fn run(cluster: &Cluster, args: &RolloutRestartArgs) -> Result<(), Failure> {
    let connection = dogwatch_k8s::connect_to(cluster.context.as_deref())
        .await
        .map_err(|error| Failure::connect(&error))?;
    let client = RolloutClient::new(connection.client);
    let namespace = if cluster.namespace_given {
        cluster.namespace.clone()
    } else {
        client.default_namespace().to_owned()
    };
    let server = connection.server;
    let found = find_all(&client, &args.targets, &namespace, &server).await?;
    let restarted = restart_all(&client, found, args.dry_run, &server).await?;
    if args.dry_run {
        return said::dry(&restarted, args.output);
    }
    let ended = follow::all(&client, &restarted, args.timeout, args.output).await?;
    finish(&ended, args.output)
}

/// Nothing is restarted while one of them cannot be.
async fn find_all(
    client: &RolloutClient,
    targets: &[Target],
    namespace: &str,
    server: &str,
) -> Result<Vec<Found>, Failure> {
    let mut found: Vec<Found> = Vec::new();
    for Target { kind, name } in targets {
        let what = format!("read {kind}/{name}");
        let one = client.find(kind, name, namespace).await;
        let one = one.map_err(|error| failure(&what, server, &error))?;
        // Named twice, it is restarted once.
        if !found.iter().any(|other| other.seen.uid == one.seen.uid) {
            found.push(one);
        }
    }
    Ok(found)
}

async fn restart_all(
    client: &RolloutClient,
    mut found: Vec<Found>,
    dry_run: bool,
    server: &str,
) -> Result<Vec<Found>, Failure> {
    // kubectl writes whole seconds, so that a second restart within one does nothing.
    let at = format!("{:.3}", jiff::Timestamp::now());
    for index in 0..found.len() {
        let (before, rest) = found.split_at_mut(index);
        let one = &mut rest[0];
        if let Err(error) = client.restart(one, &at, dry_run).await {
            let failure = failure(&format!("restart {}", one.name), server, &error);
            return Err(if before.is_empty() || dry_run {
                failure
            } else {
                let names: Vec<&str> = before.iter().map(|one| one.name.as_str()).collect();
                failure.next(format!("{} were restarted before that", names.join(", ")))
            });
        }
    }
    Ok(found)
}

fn finish(ended: &[Ended], format: Format) -> Result<(), Failure> {
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, &ended)?,
        Format::Yaml => output::yaml(&mut out, &ended)?,
        // The lines of the progress have said it.
        Format::Table | Format::Wide => {}
    }
    out.flush()?;
    let failed: Vec<&Ended> = ended
        .iter()
        .filter(|one| one.state == State::Failed)
        .collect();
    let Some(first) = failed.first() else {
        return Ok(());
    };
    for one in &failed[1..] {
        eprintln!("dogwatch: {}: {}", one.name, one.message);
    }
    Err(
        Failure::new(Exit::Failed, format!("{}: {}", first.name, first.message)).next(format!(
            "`kubectl describe {}` and its pods tell more; `kubectl rollout undo` goes back",
            first.name
        )),
    )
}

fn failure(what: &str, server: &str, error: &Failed) -> Failure {
    match error {
        Failed::Api(error) => Failure::api(what, server, error),
        Failed::Kind(_) => Failure::new(Exit::NotFound, error.in_words())
            .next("`kubectl api-resources` lists the kinds"),
        Failed::NotFound { .. } => Failure::new(Exit::NotFound, error.in_words())
            .next("name its namespace with -n, its cluster with --context"),
        Failed::Refused(refusal) => {
            Failure::new(Exit::Failed, refusal.what.clone()).next(refusal.next.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_kind_and_a_name() {
        let both = target("deploy/web").unwrap();
        assert_eq!((both.kind.as_str(), both.name.as_str()), ("deploy", "web"));
        for text in ["web", "deploy/", "/web", "a/b/c", ""] {
            assert!(target(text).unwrap_err().contains("KIND/NAME"), "{text}");
        }
    }
}
