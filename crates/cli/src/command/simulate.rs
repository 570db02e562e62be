//! `dogwatch simulate`: how long would this rollout take?

mod given;
mod show;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ArgPredicate;

use dogwatch_core::duration::{format, parse};
use dogwatch_core::limit::Limit;
use dogwatch_sim::plan::{self, NodeGroup, Outcome, Plan};
use dogwatch_sim::seed::Seed;
use jiff::Timestamp;

use self::show::{document, table, whole};

use crate::exit::{Exit, Failure};
use crate::output::{self, Format, Output};

/// The rollout.
#[derive(Debug, clap::Args)]
pub struct SimulateArgs {
    /// Nodes, without the control plane
    #[arg(long, value_name = "N", default_value_t = 100, default_value_if("node_group", ArgPredicate::IsPresent, "0"), value_parser = clap::value_parser!(u32).range(0..=100_000))]
    nodes: u32,

    /// Nodes with labels, NAME-0001 and so on, which policies select by; without --nodes there are no others (repeatable)
    #[arg(long, value_name = "NAME=COUNT[,LABEL=VALUE]...", value_parser = given::node_group)]
    node_group: Vec<NodeGroup>,

    /// A file with RebootPolicies in YAML; where they are silent the other flags rule (repeatable)
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,

    /// When it begins, for windows and pauses: 2026-03-27T18:00:00Z, or 2026-03-27T18:00[Europe/Berlin]; without it now, where --policy is given
    #[arg(long, value_name = "TIME", value_parser = given::moment)]
    start: Option<Timestamp>,

    /// Control-plane nodes; they reboot one at a time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100))]
    control_plane: u32,

    /// How many of the nodes may be out at once
    #[arg(long, value_name = "N|N%", default_value = "1")]
    max_unavailable: Limit,

    /// From the reboot command until the Node is Ready again
    #[arg(long, value_name = "DURATION", default_value = "4m", value_parser = parse)]
    reboot_time: Duration,

    /// How long a drain takes
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = parse)]
    drain_time: Duration,

    /// How long a Node must be Ready before the next one's turn
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse)]
    settle: Duration,

    /// By up to how many per cent each node's own times differ from these
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=100))]
    spread: u8,

    /// Pods on each node that have to go
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pods_per_node: u32,

    /// Within which time all nodes come to want a reboot
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse)]
    arrival: Duration,

    /// How long the API server takes to answer
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = parse)]
    api_latency: Duration,

    /// Decides everything random: the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How it is printed
    #[command(flatten)]
    output: Output,
}

/// Plays the rollout and prints what it comes to. No cluster is touched.
pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let plan = args.plan()?;
    let all = plan.all_nodes();
    let terminal = io::stderr().is_terminal();
    let outcome = plan::run_watched(&plan, &mut |done, at| {
        if terminal && done % 50 == 0 {
            eprint!(
                "\r{done} of {all} nodes, {} into the rollout ",
                format(whole(at))
            );
        }
    });
    if terminal {
        eprint!("\r\x1b[K");
    }
    let mut out = output::stdout();
    match args.output.format {
        Format::Table | Format::Wide => {
            table(
                &mut out,
                &plan,
                &outcome,
                args.output.format == Format::Wide,
            )?;
        }
        Format::Json => output::json(&mut out, &document(&outcome))?,
        Format::Yaml => output::yaml(&mut out, &document(&outcome))?,
    }
    out.flush()?;
    kept(&plan, &outcome)
}

impl SimulateArgs {
    fn plan(&self) -> Result<Plan, Failure> {
        let policies = given::policies(&self.policy)?;
        let begins = match self.start {
            Some(start) => start,
            None if policies.is_empty() => Timestamp::UNIX_EPOCH,
            None => Timestamp::now(),
        };
        Ok(Plan {
            nodes: self.nodes,
            groups: self.node_group.clone(),
            policies,
            start: begins,
            control_plane: self.control_plane,
            max_unavailable: self.max_unavailable,
            reboot_time: self.reboot_time,
            drain_time: self.drain_time,
            settle: self.settle,
            spread_percent: self.spread,
            pods_per_node: self.pods_per_node,
            arrival: self.arrival,
            api_latency: self.api_latency,
            seed: Seed(self.seed),
        })
    }
}

/// A plan that broke its own promise is a defect of ours, and ends as one.
fn kept(plan: &Plan, outcome: &Outcome) -> Result<(), Failure> {
    let all = plan.all_nodes();
    let mut held_up = outcome
        .groups
        .iter()
        .filter(|group| group.rebooted < group.nodes);
    if let Some((group, why)) = held_up.find_map(|group| Some((group, group.held_up.as_ref()?))) {
        let left = group.nodes - group.rebooted;
        let text = format!(
            "{left} of {} nodes of group {} never begin: {why}",
            group.nodes, group.group
        );
        return Err(Failure::new(Exit::Failed, text));
    }
    if outcome.rebooted < all {
        let left = all - outcome.rebooted;
        return Err(Failure::new(
            Exit::Failed,
            format!("{left} of {all} nodes never came back in service"),
        ));
    }
    if outcome
        .groups
        .iter()
        .any(|group| group.most_out > group.budget)
    {
        return Err(Failure::new(
            Exit::Failed,
            "more nodes were out at once than the budget allows",
        ));
    }
    Ok(())
}
