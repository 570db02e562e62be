//! Implements `dogwatch rollout-restart`: new pods, by the rollout rules of their controller.

mod follow;
mod report;

use std::time::Duration;

use dogwatch_core::rollout::RolloutState;
use dogwatch_k8s::rollout::{RestartError, RolloutClient, RolloutTarget};

use crate::args::ClusterArgs;
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::{self, OutputFormat};
use report::RestartResult;

#[derive(Debug, clap::Args)]
pub struct RolloutRestartArgs {
    /// Workloads to restart: deployment/web, sts/db, rollouts.argoproj.io/api
    #[arg(required = true, value_name = "KIND/NAME", value_parser = parse_target)]
    targets: Vec<RestartTarget>,

    /// Namespace of the workloads; defaults to that of the kubeconfig's context
    // This id is that of the global flag, which this one replaces here.
    #[arg(id = "namespace", long = "namespace", short = 'n', value_name = "NAME")]
    _namespace: Option<String>,

    /// How long to wait for the new pods
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = dogwatch_core::duration::parse_duration)]
    timeout: Duration,

    /// Let the API server check everything, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Output format of the result; with json and yaml the progress goes to standard error
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: OutputFormat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RestartTarget {
    kind: String,
    name: String,
}

fn parse_target(text: &str) -> Result<RestartTarget, String> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [kind, name] if !kind.is_empty() && !name.is_empty() => Ok(RestartTarget {
            kind: kind.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write KIND/NAME, like deployment/web".to_owned()),
    }
}

/// Checks all workloads, then restarts all, then waits for all. The first failure gives the exit
/// code.
pub async fn run(cluster: &ClusterArgs, args: &RolloutRestartArgs) -> Result<(), CommandFailure> {
    let connection = dogwatch_k8s::connect_to_context(cluster.context.as_deref())
        .await
        .map_err(|error| CommandFailure::from_connect_error(&error))?;
    let client = RolloutClient::new(connection.client);
    let namespace = if cluster.namespace_given {
        cluster.namespace.clone()
    } else {
        client.default_namespace().to_owned()
    };
    let server = connection.server;
    let found = find_targets(&client, &args.targets, &namespace, &server).await?;
    let restarted = restart_targets(&client, found, args.dry_run, &server).await?;
    if args.dry_run {
        return report::print_dry_run(&restarted, args.output);
    }
    let ended = follow::follow_all(&client, &restarted, args.timeout, args.output).await?;
    print_results(&ended, args.output)
}

/// Fails if one workload cannot be restarted, before any restart.
async fn find_targets(
    client: &RolloutClient,
    targets: &[RestartTarget],
    namespace: &str,
    server: &str,
) -> Result<Vec<RolloutTarget>, CommandFailure> {
    let mut found: Vec<RolloutTarget> = Vec::new();
    for RestartTarget { kind, name } in targets {
        let what = format!("read {kind}/{name}");
        let one = client.find_target(kind, name, namespace).await;
        let one = one.map_err(|error| rollout_failure(&what, server, &error))?;
        // A workload that was named twice is restarted once.
        if !found.iter().any(|other| other.seen.uid == one.seen.uid) {
            found.push(one);
        }
    }
    Ok(found)
}

async fn restart_targets(
    client: &RolloutClient,
    mut found: Vec<RolloutTarget>,
    dry_run: bool,
    server: &str,
) -> Result<Vec<RolloutTarget>, CommandFailure> {
    // kubectl writes whole seconds, so a second restart within the same second does nothing.
    let at = format!("{:.3}", jiff::Timestamp::now());
    for index in 0..found.len() {
        let (before, rest) = found.split_at_mut(index);
        let one = &mut rest[0];
        if let Err(error) = client.write_restart(one, &at, dry_run).await {
            let failure = rollout_failure(&format!("restart {}", one.name), server, &error);
            return Err(if before.is_empty() || dry_run {
                failure
            } else {
                let names: Vec<&str> = before.iter().map(|one| one.name.as_str()).collect();
                failure.with_next_step(format!(
                    "{} were restarted before this failure",
                    names.join(", ")
                ))
            });
        }
    }
    Ok(found)
}

fn print_results(ended: &[RestartResult], format: OutputFormat) -> Result<(), CommandFailure> {
    // For people, the progress lines have printed the result.
    output::print_document(format, &ended, |_| Ok(()))?;
    let failed: Vec<&RestartResult> = ended
        .iter()
        .filter(|one| one.state == RolloutState::Failed)
        .collect();
    let Some(first) = failed.first() else {
        return Ok(());
    };
    for one in &failed[1..] {
        eprintln!("dogwatch: {}: {}", one.name, one.message);
    }
    Err(CommandFailure::new(
        CliExitCode::Failed,
        format!("{}: {}", first.name, first.message),
    )
    .with_next_step(format!(
        "for details see `kubectl describe {}` and its pods; `kubectl rollout undo` restores the previous version",
        first.name
    )))
}

fn rollout_failure(what: &str, server: &str, error: &RestartError) -> CommandFailure {
    match error {
        RestartError::Api(error) => CommandFailure::from_api_error(what, server, error),
        RestartError::Kind(_) => CommandFailure::new(CliExitCode::NotFound, error.error_chain())
            .with_next_step("`kubectl api-resources` lists the kinds"),
        RestartError::NotFound { .. } => {
            CommandFailure::new(CliExitCode::NotFound, error.error_chain())
                .with_next_step("give its namespace with -n, its cluster with --context")
        }
        RestartError::Refused(refusal) => {
            CommandFailure::new(CliExitCode::Failed, refusal.what.clone())
                .with_next_step(refusal.next.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_kind_and_a_name() {
        let both = parse_target("deploy/web").unwrap();
        assert_eq!((both.kind.as_str(), both.name.as_str()), ("deploy", "web"));
        for text in ["web", "deploy/", "/web", "a/b/c", ""] {
            assert!(
                parse_target(text).unwrap_err().contains("KIND/NAME"),
                "{text}"
            );
        }
    }
}
