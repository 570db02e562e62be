//! `cargo xtask bench`: the figures that the project promises, measured and printed as one table.
//!
//! A bench program is a `[[bench]]` target without the test harness (`harness = false`). It prints, for each figure, one
//! line of JSON on standard output: [`BenchFigure`]. Everything else it wants to say goes to standard error.

mod comparison;
mod figure_table;
mod growth;
mod machine_use;
mod peer_programs;

use std::{
    ffi::OsString,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use self::figure_table::{
    BenchFigure, FigureVerdict, TakenFigure, render_columns, render_markdown,
};
use self::machine_use::{MachineCounters, MachineUse, describe_machine};
use self::peer_programs::PeerPrograms;
use crate::{source_tree, testbed};

/// Environment variables that a bench is given.
type BenchEnvironment = Vec<(&'static str, OsString)>;

/// A bench program.
pub struct BenchProgram {
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
        package: "dogwatch-coordinator",
        target: "kured",
        // It has the coordinator built by itself, as above.
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
        package: "dogwatch-controller",
        target: "web",
        // It has the program built by itself.
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
        package: "dogwatch-web",
        target: "dashboard",
        profile: "quick",
        real: false,
    },
    BenchProgram {
        package: "dogwatch-sim",
        target: "rollout",
        profile: "quick",
        real: false,
    },
];

#[derive(clap::Args)]
pub struct BenchArguments {
    /// Only these bench programs, by the target's name
    names: Vec<String>,

    /// Print the table in Markdown, for a page
    #[arg(long)]
    markdown: bool,

    /// Measure this commit and the present tree in turn, instead of judging figures
    #[arg(long, value_name = "COMMIT", conflicts_with = "markdown")]
    compare: Option<String>,

    /// How often each of the two is measured
    #[arg(long, value_name = "N", default_value_t = 3, requires = "compare")]
    rounds: usize,

    /// Measure how figures grow with the size of the cluster: each at several sizes, with the exponent
    #[arg(long, conflicts_with_all = ["markdown", "compare", "kured", "bmo"])]
    growth: bool,

    #[command(flatten)]
    peers: PeerPrograms,
}

pub fn run(arguments: &BenchArguments) -> Result<()> {
    let chosen = choose_benches(&arguments.names)?;
    if chosen.iter().any(|bench| bench.real) {
        testbed::prepare_parts(&["control-plane"], None)?;
    }
    if let Some(revision) = &arguments.compare {
        return comparison::compare_revisions(&chosen, revision, arguments);
    }
    if arguments.growth {
        return growth::measure_growth(&chosen);
    }
    let environment = arguments.peers.list_environment()?;
    let mut figures = Vec::new();
    let mut uses = Vec::new();
    let mut failures = Vec::new();
    for bench in chosen {
        // The other programs' figures are worth having.
        match measure_program(bench, &environment) {
            Ok((measured, used)) => {
                figures.extend(measured);
                uses.push(used);
            }
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    print_report(&figures, &uses, arguments.markdown)?;
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    judge_figures(&figures)
}

/// Builds and runs a program. Returns its figures, and how much of the machine it used.
fn measure_program(
    bench: &BenchProgram,
    environment: &BenchEnvironment,
) -> Result<(Vec<TakenFigure>, String)> {
    build_program(bench)?;
    let (measured, used) = run_and_observe(bench, environment)?;
    let quiet = used.was_quiet();
    let taken = |figure| TakenFigure { figure, quiet };
    let figures = measured.into_iter().map(taken).collect();
    Ok((figures, format!("{}: {used}", bench.target)))
}

fn print_report(figures: &[TakenFigure], uses: &[String], markdown: bool) -> Result<()> {
    let date = source_tree::read_output(Command::new("date").args(["-u", "+%F %R UTC"]))?;
    println!("{}, {}", date.trim(), describe_machine());
    if markdown {
        println!("\n{}", render_markdown(figures));
        for used in uses {
            println!("- {used}");
        }
        return Ok(());
    }
    print!("{}", render_columns(figures));
    for used in uses {
        println!("{used}");
    }
    Ok(())
}

/// A figure that was not taken fails too, with what to do.
fn judge_figures(figures: &[TakenFigure]) -> Result<()> {
    let count = |verdict| {
        let those = figures.iter().filter(|figure| figure.verdict() == verdict);
        those.count()
    };
    let (missed, not_taken) = (count(FigureVerdict::Missed), count(FigureVerdict::NotTaken));
    ensure!(
        missed == 0,
        "{missed} of {} figures not reached",
        figures.len()
    );
    ensure!(
        not_taken == 0,
        "{not_taken} of {} figures were not taken, because others used the machine: run it again on a quiet one",
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

/// The command that builds and runs a bench of a tree.
fn bench_command(bench: &BenchProgram, tree: &Path) -> Command {
    let mut command = source_tree::cargo_command();
    command.current_dir(tree).args([
        "bench",
        "--quiet",
        "--package",
        bench.package,
        "--bench",
        bench.target,
        "--profile",
        bench.profile,
    ]);
    command
}

/// Compiles a bench, so that its compilation does not count as its use of the machine.
fn build_program(bench: &BenchProgram) -> Result<()> {
    let mut command = bench_command(bench, source_tree::workspace_root());
    source_tree::run_command(command.arg("--no-run"))
}

/// Runs a bench of this tree. Returns its figures, and what the machine did meanwhile.
fn run_and_observe(
    bench: &BenchProgram,
    environment: &BenchEnvironment,
) -> Result<(Vec<BenchFigure>, MachineUse)> {
    let before = MachineCounters::read_counters()?;
    let figures = run_program(bench, source_tree::workspace_root(), environment)?;
    Ok((figures, before.measure_use()?))
}

/// Runs a bench with these variables. Returns its figures.
fn run_program(
    bench: &BenchProgram,
    tree: &Path,
    environment: &BenchEnvironment,
) -> Result<Vec<BenchFigure>> {
    let target = bench.target;
    let mut command = bench_command(bench, tree);
    command.envs(environment.iter().cloned());
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
