//! Searches the worlds, and prints what was covered and found.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use dogwatch_proof::search::SearchLimits;
use dogwatch_proof::worlds;

/// Searches small worlds with Dogwatch's production decisions
#[derive(Parser)]
#[command(name = "proof")]
struct ProofArguments {
    /// Search the larger worlds too
    #[arg(long)]
    full: bool,

    /// Take each guard out, and see its promise fail
    #[arg(long)]
    mutations: bool,

    /// Only the worlds or guards whose names contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Print the steps to each failure also for a guard that was taken out
    #[arg(long)]
    steps: bool,

    /// Stop each search after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    seconds: u64,

    /// How many threads search
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
}

fn main() -> ExitCode {
    let arguments = ProofArguments::parse();
    let limits = SearchLimits {
        threads: arguments.threads,
        most_time: Some(Duration::from_secs(arguments.seconds)),
        first_failure: true,
        ..SearchLimits::default()
    };
    let failed = if arguments.mutations {
        search_mutations(&arguments, limits)
    } else {
        search_worlds(&arguments, limits)
    };
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Whether a guard was not missed.
fn search_mutations(arguments: &ProofArguments, limits: SearchLimits) -> bool {
    let mut failed = false;
    println!("| Taken out | Fails | After | How |\n|---|---|---|---|");
    for mutation in worlds::mutations() {
        if !mutation.guard.contains(&arguments.only) {
            continue;
        }
        let found = worlds::search_mutation(mutation, limits);
        failed |= !found.is_found();
        println!("{found}");
        if arguments.steps || !found.is_found() {
            println!("{}", found.report);
        }
    }
    failed
}

/// Whether a promise was broken.
fn search_worlds(arguments: &ProofArguments, limits: SearchLimits) -> bool {
    let mut worlds = worlds::small_worlds();
    if arguments.full {
        worlds.extend(worlds::large_worlds());
    }
    let mut failed = false;
    for world in worlds {
        if !world.name.contains(&arguments.only) {
            continue;
        }
        let report = world.search(limits);
        failed |= !report.is_clean();
        println!("{report}");
    }
    failed
}
