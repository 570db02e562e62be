//! `dogwatch simulate`: how long would this rollout take?

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use dogwatch_core::duration::{format, parse};
use dogwatch_core::limit::Limit;
use dogwatch_sim::plan::{self, Outcome, Plan};
use dogwatch_sim::seed::Seed;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// The rollout.
#[derive(Debug, clap::Args)]
pub struct SimulateArgs {
    /// Nodes, without the control plane
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,

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
    #[arg(
        long,
        short,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    output: Format,
}

/// Plays the rollout and prints what it comes to. No cluster is touched.
pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let plan = args.plan();
    let all = plan.nodes + plan.control_plane;
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
    match args.output {
        Format::Table | Format::Wide => {
            table(&mut out, &plan, &outcome, args.output == Format::Wide)?;
        }
        Format::Json => output::json(&mut out, &document(&outcome))?,
        Format::Yaml => output::yaml(&mut out, &document(&outcome))?,
    }
    out.flush()?;
    kept(&plan, &outcome)
}

impl SimulateArgs {
    fn plan(&self) -> Plan {
        Plan {
            nodes: self.nodes,
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
            ..Plan::default()
        }
    }
}

fn table(out: &mut impl Write, plan: &Plan, outcome: &Outcome, wide: bool) -> io::Result<()> {
    let time = |time| format(whole(time));
    writeln!(
        out,
        "{} nodes and {} control-plane nodes, {} out at once",
        plan.nodes, plan.control_plane, outcome.budget
    )?;
    writeln!(out)?;
    writeln!(out, "the rollout takes        {}", time(outcome.took))?;
    writeln!(
        out,
        "longest wait             {} ({})",
        time(outcome.longest_wait.time),
        outcome.longest_wait.node
    )?;
    writeln!(
        out,
        "median wait              {}",
        time(outcome.median_wait)
    )?;
    writeln!(
        out,
        "longest out of service   {} ({})",
        time(outcome.longest_out.time),
        outcome.longest_out.node
    )?;
    writeln!(
        out,
        "most out at once         {} of {}, control plane {} of 1",
        outcome.most_out, outcome.budget, outcome.most_control_plane_out
    )?;
    writeln!(
        out,
        "served before an earlier one by {} at most",
        time(outcome.worst_inversion)
    )?;
    writeln!(
        out,
        "calls to the API server  {} ({:.1} a second)",
        outcome.calls.total(),
        rate(outcome)
    )?;
    if wide {
        for (what, calls) in outcome.calls.by_kind() {
            writeln!(out, "  {what:<23}{calls}")?;
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(outcome: &Outcome) -> f64 {
    outcome.calls.total() as f64 / outcome.took.as_secs_f64().max(1.0)
}

fn document(outcome: &Outcome) -> serde_json::Value {
    let calls: serde_json::Map<String, serde_json::Value> = outcome
        .calls
        .by_kind()
        .map(|(what, calls)| (what.to_owned(), calls.into()))
        .collect();
    json!({
        "tookSeconds": outcome.took.as_secs_f64(),
        "rebooted": outcome.rebooted,
        "longestWait": { "node": outcome.longest_wait.node, "seconds": outcome.longest_wait.time.as_secs_f64() },
        "medianWaitSeconds": outcome.median_wait.as_secs_f64(),
        "longestOut": { "node": outcome.longest_out.node, "seconds": outcome.longest_out.time.as_secs_f64() },
        "mostOut": outcome.most_out,
        "mostControlPlaneOut": outcome.most_control_plane_out,
        "budget": outcome.budget,
        "worstInversionSeconds": outcome.worst_inversion.as_secs_f64(),
        "calls": calls,
        "callsTotal": outcome.calls.total(),
    })
}

/// A plan that broke its own promise is a defect of ours, and ends as one.
fn kept(plan: &Plan, outcome: &Outcome) -> Result<(), Failure> {
    let all = plan.nodes + plan.control_plane;
    if outcome.rebooted < all {
        let left = all - outcome.rebooted;
        return Err(Failure::new(
            Exit::Failed,
            format!("{left} of {all} nodes never came back in service"),
        ));
    }
    if outcome.most_out > outcome.budget || outcome.most_control_plane_out > 1 {
        return Err(Failure::new(
            Exit::Failed,
            "more nodes were out at once than the budget allows",
        ));
    }
    Ok(())
}

/// Fractions of a second say nothing about a rollout, except where there is nothing else.
fn whole(time: Duration) -> Duration {
    if time < Duration::from_secs(1) {
        Duration::from_millis(time.subsec_millis().into())
    } else {
        Duration::from_secs(time.as_secs())
    }
}
