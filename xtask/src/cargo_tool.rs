//! Programs of crates.io that the project's own commands run: installed once into the project's cache, each at one version.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};

use crate::source_tree;

pub struct CargoTool {
    pub name: &'static str,
    pub version: &'static str,
    /// More for `cargo install`.
    pub install_arguments: &'static [&'static str],
    pub usual_install_time: &'static str,
}

impl CargoTool {
    /// The program's path; installs it first where it is missing.
    pub fn find_or_install(&self) -> Result<PathBuf> {
        let Self { name, version, .. } = self;
        let folder = cache_folder()?.join(format!("{name}-{version}"));
        let program = folder.join("bin").join(name);
        if !program.is_file() {
            eprintln!(
                "installing {name} {version} ({}, once) into {}",
                self.usual_install_time,
                folder.display()
            );
            let mut cargo = source_tree::cargo_command();
            cargo
                .args(["install", "--quiet", "--locked", "--version", version, name])
                .args(self.install_arguments)
                .arg("--root")
                .arg(&folder);
            source_tree::run_command(&mut cargo)
                .with_context(|| format!("failed to install {name}"))?;
        }
        Ok(program)
    }
}

/// The folder where the test bed builds its programs (`cache_dir` there).
pub fn cache_folder() -> Result<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let below = |name: &str, folder: &str| Some(PathBuf::from(variable(name)?).join(folder));
    below("DOGWATCH_CACHE", "")
        .or_else(|| below("XDG_CACHE_HOME", "dogwatch"))
        .or_else(|| below("HOME", ".cache/dogwatch"))
        .context("failed to find a cache folder: set DOGWATCH_CACHE, XDG_CACHE_HOME or HOME")
}
