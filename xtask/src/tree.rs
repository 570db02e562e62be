//! The tree this xtask belongs to, and cargo run in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// The workspace's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the workspace")
}

/// The cargo that runs us, in the workspace's folder.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command with its output shown; an error says what was run.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("failed to start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Runs a command and takes what it prints.
pub fn read(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("failed to start {command:?}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {stderr}",
        output.status
    );
    String::from_utf8(output.stdout)
        .with_context(|| format!("failed to read what {command:?} printed"))
}

/// Every file that git would take, relative to the workspace's folder; those not yet added are seen too.
pub fn files() -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let names = read(&mut git)?;
    let files = names.split_terminator('\0').map(PathBuf::from);
    // A file that was deleted and not committed yet is still listed.
    Ok(files.filter(|file| root().join(file).is_file()).collect())
}
