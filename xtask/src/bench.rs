//! `cargo xtask bench`: the figures that the project promises, measured and printed as one table.
//!
//! A bench program is a `[[bench]]` target without the test harness (`harness = false`). It prints, for each figure, one
//! line of JSON on standard output: [`BenchFigure`]. Everything else it wants to say goes to standard error.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{source_tree, testbed};

/// A bench program.
struct BenchProgram {
    package: &'static str,
    target: &'static str,
    /// `release` where the binary itself is measured (size, memory), else `quick`, which compiles in a fraction.
    profile: &'static str,
    /// Whether it measures against the real API server, which is then built first.
    real: bool,
}

/// Every bench program; a new one is added here.
const BENCHES: &[BenchProgram] = &[
    BenchProgram {
        package: "dogwatch-coordinator",
        target: "coordinator",
        // It has the binary that it measures built by itself, in the profile that is shipped.
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "drain",
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "handover",
        profile: "quick",
        real: false,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "handover_real",
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "api_lock",
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-controller",
        target: "controller",
        // It has the program built by itself.
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-controller",
        target: "node_reboots",
        // It has the programs built by itself.
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "power",
        // It has the program built by itself.
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "remedy",
        // It has the program built by itself.
        profile: "quick",
        real: true,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "rollout",
        profile: "quick",
        real: false,
    },
];

/// One line of the table.
#[derive(Deserialize)]
struct BenchFigure {
    /// What was measured.
    what: String,
    /// The outcome, with its unit.
    measured: String,
    /// What is promised, with its unit; with what it was compared, where it was.
    reach: String,
    /// Whether the promise is kept.
    kept: bool,
}

#[derive(clap::Args)]
pub struct BenchArguments {
    /// Only these bench programs, by the target's name
    names: Vec<String>,
}

pub fn run(arguments: &BenchArguments) -> Result<()> {
    let chosen = choose_benches(&arguments.names)?;
    if chosen.iter().any(|bench| bench.real) {
        testbed::prepare_parts(&["control-plane"], None)?;
    }
    let mut figures = Vec::new();
    for bench in chosen {
        figures.extend(run_bench(bench)?);
    }
    print_figures(&figures);
    let missed = figures.iter().filter(|figure| !figure.kept).count();
    ensure!(
        missed == 0,
        "{missed} of {} figures not reached",
        figures.len()
    );
    Ok(())
}

fn choose_benches(names: &[String]) -> Result<Vec<&'static BenchProgram>> {
    if let Some(unknown) = names
        .iter()
        .find(|name| BENCHES.iter().all(|bench| bench.target != **name))
    {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.target).collect();
        bail!(
            "there is no bench {unknown}; use one of {}",
            known.join(", ")
        );
    }
    let wanted =
        |bench: &&BenchProgram| names.is_empty() || names.iter().any(|name| name == bench.target);
    Ok(BENCHES.iter().filter(wanted).collect())
}

fn run_bench(bench: &BenchProgram) -> Result<Vec<BenchFigure>> {
    let BenchProgram {
        package,
        target,
        profile,
        ..
    } = bench;
    let mut command = source_tree::cargo_command();
    command.args([
        "bench",
        "--quiet",
        "--package",
        package,
        "--bench",
        target,
        "--profile",
        profile,
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start the bench {target}"))?;
    let stdout = child.stdout.take().expect("asked for above");
    let figures = BufReader::new(stdout).lines().map(|line| {
        let line =
            line.with_context(|| format!("failed to read what the bench {target} prints"))?;
        serde_json::from_str(&line)
            .with_context(|| format!("the bench {target} printed no figure: {line}"))
    });
    let figures: Result<Vec<BenchFigure>> = figures.collect();
    let status = child
        .wait()
        .with_context(|| format!("failed to wait for the bench {target}"))?;
    ensure!(status.success(), "the bench {target} ended with {status}");
    figures
}

fn print_figures(figures: &[BenchFigure]) {
    let width = |column: fn(&BenchFigure) -> &str, title: &str| {
        let cells = figures.iter().map(|figure| column(figure).chars().count());
        cells.chain([title.len()]).max().unwrap_or_default()
    };
    let what = width(|figure| &figure.what, "what");
    let measured = width(|figure| &figure.measured, "measured");
    let reach = width(|figure| &figure.reach, "reach");
    println!(
        "{:what$}  {:measured$}  {:reach$}",
        "what", "measured", "reach"
    );
    for figure in figures {
        let verdict = if figure.kept { "ok" } else { "NOT REACHED" };
        let BenchFigure {
            what: name,
            measured: outcome,
            reach: promise,
            ..
        } = figure;
        println!("{name:what$}  {outcome:measured$}  {promise:reach$}  {verdict}");
    }
}
