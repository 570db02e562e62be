//! The tree this xtask belongs to, and cargo run in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// The workspace's folder.
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the workspace")
}

/// The cargo that runs us, in the workspace's folder.
///
/// It does not see what cargo has set for xtask itself: crates whose build scripts read these variables (ring) would
/// be compiled again, with everything above them, after each `cargo build` without xtask.
pub fn cargo_command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace_root());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The same for tests and lints: with the system's OpenSSL where it can be linked. Compiling OpenSSL from source, as
/// the shipped programs do, takes 7 minutes of processor time.
pub fn test_cargo_command() -> Command {
    let mut command = cargo_command();
    let mut probe = Command::new("pkg-config");
    let has_openssl = probe.args(["--exists", "openssl"]).status();
    if has_openssl.is_ok_and(|status| status.success()) {
        command.env("OPENSSL_NO_VENDOR", "1");
    }
    command
}

/// Runs a command with its output shown; an error says what was run.
pub fn run_command(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("failed to start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Runs a command and takes what it prints.
pub fn read_output(command: &mut Command) -> Result<String> {
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
pub fn tracked_files() -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.current_dir(workspace_root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let names = read_output(&mut git)?;
    let files = names.split_terminator('\0').map(PathBuf::from);
    // A file that was deleted and not committed yet is still listed.
    Ok(files
        .filter(|file| workspace_root().join(file).is_file())
        .collect())
}
