//! Two versions of the project, measured in turn: what else the machine does hits both alike.

use std::{collections::BTreeMap, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use super::{BenchArguments, BenchProgram, run_program};
use crate::source_tree;

/// What both versions measured, round by round.
#[derive(Default)]
struct ComparedFigure {
    old: Vec<String>,
    new: Vec<String>,
}

/// Runs each bench of `revision` and of this tree in turn, as often as asked, and prints both.
pub fn compare_revisions(
    benches: &[&BenchProgram],
    revision: &str,
    arguments: &BenchArguments,
) -> Result<()> {
    let rounds = arguments.rounds;
    let environment = &arguments.peers.list_environment()?;
    let old_tree = check_out_revision(revision)?;
    for bench in benches {
        let mut figures: BTreeMap<String, ComparedFigure> = BTreeMap::new();
        for round in 1..=rounds {
            eprintln!("{}: round {round} of {rounds}", bench.target);
            for figure in run_program(bench, &old_tree, environment)? {
                figures
                    .entry(figure.what)
                    .or_default()
                    .old
                    .push(figure.measured);
            }
            for figure in run_program(bench, source_tree::workspace_root(), environment)? {
                figures
                    .entry(figure.what)
                    .or_default()
                    .new
                    .push(figure.measured);
            }
        }
        for (what, figure) in figures {
            println!("{what}");
            println!("  {revision}:  {}", figure.old.join("  |  "));
            println!("  this tree:  {}", figure.new.join("  |  "));
        }
    }
    Ok(())
}

/// A work tree of the revision, below the target folder. It has its own target folder, so a second comparison compiles
/// nothing.
fn check_out_revision(revision: &str) -> Result<PathBuf> {
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(source_tree::workspace_root());
        git
    };
    let name = format!("{revision}^{{commit}}");
    let commit = source_tree::read_output(git().args(["rev-parse", "--verify", &name]))
        .with_context(|| format!("{revision} is no commit of this repository"))?;
    let commit = commit.trim();
    let folder = source_tree::workspace_root()
        .join("target/compared")
        .join(commit);
    if !folder.join("Cargo.toml").exists() {
        // A folder that somebody removed is still registered.
        source_tree::run_command(git().args(["worktree", "prune"]))?;
        let mut add = git();
        add.args(["worktree", "add", "--detach"])
            .arg(&folder)
            .arg(commit);
        source_tree::run_command(&mut add)?;
    }
    Ok(folder)
}
