//! `cargo xtask prove`: perturbed and random runs of whole clusters, and fuzzing. Without an option
//! it runs every perturbation, which takes hours; it goes on where it was stopped.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use crate::{cargo_tool::cache_folder, source_tree};

#[derive(clap::Args)]
pub struct ProveArguments {
    /// Runs a seeded sample of the perturbations and some random scripts
    #[arg(long, conflicts_with_all = ["random", "fuzz"])]
    quick: bool,
    /// Runs this many random scripts in place of the perturbations; a script that fails is made short
    #[arg(long, value_name = "RUNS")]
    random: Option<u64>,
    /// Gives this many inputs to every parser of foreign bytes, in place of the perturbations
    #[arg(long, value_name = "INPUTS", conflicts_with = "random")]
    fuzz: Option<u64>,
    /// Searches the small worlds of the model check, and takes each guard out, in place of the
    /// perturbations
    #[arg(long, conflicts_with_all = ["quick", "random", "fuzz"])]
    model: bool,
    /// Which sample, or the first seed of the random scripts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Perturbs only these scenarios (names, separated by commas)
    #[arg(long, value_name = "NAMES")]
    scenario: Option<String>,
    /// How many of the perturbations are run, a sample by the seed; all without it
    #[arg(long, value_name = "RUNS")]
    sample: Option<u64>,
    /// Forgets what earlier calls have found
    #[arg(long)]
    restart: bool,
}

pub fn run(arguments: &ProveArguments) -> Result<()> {
    if let Some(inputs) = arguments.fuzz {
        return run_fuzzers(inputs);
    }
    if arguments.model {
        return run_model_check();
    }
    let mut command = source_tree::test_cargo_command();
    command.args(["test", "-p", "dogwatch-sim", "--test", "prove"]);
    if !arguments.quick {
        // Compiles for some minutes, and then runs three times as fast.
        command.args(["--profile", "quick"]);
    }
    command.args(["--", "--nocapture", "--test-threads=1"]);
    command.env("DOGWATCH_PROVE_SEED", arguments.seed.to_string());
    if let Some(names) = &arguments.scenario {
        command.env("DOGWATCH_SCENARIO", names);
    }
    if arguments.quick {
        return source_tree::run_command(&mut command);
    }
    if let Some(runs) = arguments.random {
        let scripts = prove_folder()?.join("scripts");
        println!("scripts that fail are kept in {}", scripts.display());
        command.env("DOGWATCH_PROVE_SCRIPTS", scripts);
        command.env("DOGWATCH_PROVE_RANDOM", runs.to_string());
        command.arg("random_scripts");
        return source_tree::run_command(&mut command);
    }
    let state = open_state_file(arguments.restart)?;
    println!("what is found is written to {}", state.display());
    command.env("DOGWATCH_PROVE_STATE", state);
    let runs = arguments.sample.unwrap_or(u64::MAX);
    command.env("DOGWATCH_PROVE_RUNS", runs.to_string());
    command.arg("perturbations");
    source_tree::run_command(&mut command)
}

/// `proof/` is a workspace of its own, so cargo builds it beside ours.
fn run_model_check() -> Result<()> {
    for options in [&[][..], &["--mutations"]] {
        let mut command = source_tree::test_cargo_command();
        command.args(["run", "--release", "--manifest-path", "proof/Cargo.toml"]);
        command.arg("--").args(options);
        source_tree::run_command(&mut command)?;
    }
    Ok(())
}

/// The parsers of `core` and `k8s` are public, those of the others are not.
fn run_fuzzers(inputs: u64) -> Result<()> {
    let public = [
        "-p",
        "dogwatch-core",
        "-p",
        "dogwatch-k8s",
        "--test",
        "fuzz",
    ];
    let private = [
        "-p",
        "dogwatch-bmc",
        "-p",
        "dogwatch-controller",
        "--lib",
        "fuzz",
    ];
    for tests in [public, private] {
        let mut command = source_tree::test_cargo_command();
        command.arg("test").args(tests);
        command.env("DOGWATCH_FUZZ_INPUTS", inputs.to_string());
        source_tree::run_command(&mut command)?;
    }
    Ok(())
}

/// Where runs keep what they find.
fn prove_folder() -> Result<PathBuf> {
    let folder = cache_folder()?.join("prove");
    fs::create_dir_all(&folder)
        .with_context(|| format!("failed to make the folder {}", folder.display()))?;
    Ok(folder)
}

fn open_state_file(restart: bool) -> Result<PathBuf> {
    let path = prove_folder()?.join("perturbations.tsv");
    if restart && path.exists() {
        fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
    }
    Ok(path)
}
