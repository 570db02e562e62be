//! Implements `dogwatch simulate`: how long would this rollout take?

mod input;
mod render;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ArgPredicate;
use dogwatch_kubesim::seed::SimulationSeed;

use dogwatch_core::duration::{format_duration, parse_duration};
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::NodeName;
use dogwatch_sim::plan::{self, NodeGroup, RolloutOutcome, RolloutPlan};
use jiff::Timestamp;

use self::render::{outcome_document, round_to_seconds, write_table};

use crate::exit::{CliExitCode, CommandFailure};
use crate::output::{self, OutputArgs, OutputFormat};

#[derive(Debug, clap::Args)]
pub struct SimulateArgs {
    /// Number of nodes, without the control plane
    #[arg(long, value_name = "N", default_value_t = 100, default_value_if("node_group", ArgPredicate::IsPresent, "0"), value_parser = clap::value_parser!(u32).range(0..=100_000))]
    nodes: u32,

    /// Nodes with labels for policies to select, named NAME-0001 and so on; unless --nodes is
    /// given, there are no others (repeatable)
    #[arg(long, value_name = "NAME=COUNT[,LABEL=VALUE]...", value_parser = input::parse_node_group)]
    node_group: Vec<NodeGroup>,

    /// File with RebootPolicies in YAML; the other flags apply where the policies say nothing
    /// (repeatable)
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,

    /// Start of the rollout, for windows and pauses: 2026-03-27T18:00:00Z, or
    /// 2026-03-27T18:00[Europe/Berlin]; defaults to now with --policy
    #[arg(long, value_name = "TIME", value_parser = input::parse_zoned_time)]
    start: Option<Timestamp>,

    /// Number of control-plane nodes, which reboot one at a time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    control_plane: u32,

    /// How many nodes may be unavailable at once
    #[arg(long, value_name = "N|N%", default_value = "1")]
    max_unavailable: UnavailabilityLimit,

    /// Time from the reboot command until the Node is Ready again
    #[arg(long, value_name = "DURATION", default_value = "4m", value_parser = parse_duration)]
    reboot_time: Duration,

    /// How long a drain takes
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = parse_duration)]
    drain_time: Duration,

    /// How long jobs that a policy's rule lets finish (WaitCompleted) still run when their node is
    /// cordoned; defaults to the rule's timeout, the worst case
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    job_time: Option<Duration>,

    /// Node that is held out of service for the whole rollout, for example node-0001 (repeatable)
    #[arg(long, value_name = "NODE", value_parser = parse_node_name)]
    hold: Vec<NodeName>,

    /// How long a Node must be Ready before the next one's turn
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    settle: Duration,

    /// Each node's own times differ from these by up to this many per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=100))]
    spread: u8,

    /// Pods to evict on each node
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pods_per_node: u32,

    /// Time within which all nodes begin to want a reboot
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    arrival: Duration,

    /// How long the API server takes to answer
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = parse_duration)]
    api_latency: Duration,

    /// Seed of everything random: the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    output: OutputArgs,
}

/// Simulates the rollout and prints the result. No cluster is touched.
pub fn run(args: &SimulateArgs) -> Result<(), CommandFailure> {
    let plan = args.build_plan()?;
    let all = plan.count_nodes();
    let terminal = io::stderr().is_terminal();
    let outcome = plan::run_with_progress(&plan, &mut |done, at| {
        if terminal && done % 50 == 0 {
            eprint!(
                "\r{done} of {all} nodes, {} into the rollout ",
                format_duration(round_to_seconds(at))
            );
        }
    });
    if terminal {
        eprint!("\r\x1b[K");
    }
    let format = args.output.format;
    output::print_document(format, &outcome_document(&plan, &outcome), |out| {
        Ok(write_table(
            out,
            &plan,
            &outcome,
            format == OutputFormat::Wide,
        )?)
    })?;
    check_promises(&plan, &outcome)
}

impl SimulateArgs {
    fn build_plan(&self) -> Result<RolloutPlan, CommandFailure> {
        let policies = input::read_policies(&self.policy)?;
        let begins = match self.start {
            Some(start) => start,
            None if policies.is_empty() => Timestamp::UNIX_EPOCH,
            None => Timestamp::now(),
        };
        let plan = RolloutPlan {
            nodes: self.nodes,
            groups: self.node_group.clone(),
            policies,
            start: begins,
            control_plane: self.control_plane,
            max_unavailable: self.max_unavailable,
            reboot_time: self.reboot_time,
            drain_time: self.drain_time,
            job_time: self.job_time,
            holds: self.hold.iter().cloned().collect(),
            settle: self.settle,
            spread_percent: self.spread,
            pods_per_node: self.pods_per_node,
            arrival: self.arrival,
            api_latency: self.api_latency,
            seed: SimulationSeed(self.seed),
        };
        match plan.find_unknown_hold() {
            Some(name) => Err(unknown_hold_failure(name)),
            None => Ok(plan),
        }
    }
}

fn parse_node_name(text: &str) -> Result<NodeName, String> {
    NodeName::new(text).map_err(|error| error.to_string())
}

fn unknown_hold_failure(name: &NodeName) -> CommandFailure {
    let text = format!("--hold {name}: no node of this rollout has that name");
    let next =
        "nodes are named node-0001, control-0001, or by their --node-group, for example gpu-0001";
    CommandFailure::new(CliExitCode::Usage, text).with_next_step(next)
}

/// A simulated rollout that breaks a promise is a defect of Dogwatch and fails the command.
fn check_promises(plan: &RolloutPlan, outcome: &RolloutOutcome) -> Result<(), CommandFailure> {
    let held: u32 = outcome.groups.iter().map(|group| group.held).sum();
    let all = plan.count_nodes() - held;
    let mut held_up = outcome
        .groups
        .iter()
        .filter(|group| group.rebooted + group.held < group.nodes);
    if let Some((group, why)) = held_up.find_map(|group| Some((group, group.held_up.as_ref()?))) {
        let left = group.nodes - group.held - group.rebooted;
        let text = format!(
            "{left} of {} nodes of group {} never begin a reboot: {why}",
            group.nodes, group.group
        );
        return Err(CommandFailure::new(CliExitCode::Failed, text));
    }
    if outcome.rebooted < all {
        let left = all - outcome.rebooted;
        return Err(CommandFailure::new(
            CliExitCode::Failed,
            format!("{left} of {all} nodes never came back into service"),
        ));
    }
    if outcome
        .groups
        .iter()
        .any(|group| group.most_out > group.budget)
    {
        return Err(CommandFailure::new(
            CliExitCode::Failed,
            "more nodes were unavailable at once than the budget allows",
        ));
    }
    Ok(())
}
