//! What the tests of a crate need before they start. Each `Cargo.toml` lists it: `[package.metadata.tests] needs = ["control-plane"]`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use dogwatch_testbed::{Binaries, prometheus, sushy, vm};
use serde::Deserialize;

use crate::{packages, tree};

/// In the order in which they are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Need {
    DebianPackages,
    ControlPlane,
    Prometheus,
    RedfishEmulator,
    VirtualMachine,
}

#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    metadata: Option<PackageMetadata>,
    #[cfg(test)]
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[cfg(test)]
#[derive(Deserialize)]
struct Dependency {
    name: String,
}

#[derive(Default, Deserialize)]
struct PackageMetadata {
    #[serde(default)]
    tests: TestMetadata,
}

#[derive(Default, Deserialize)]
struct TestMetadata {
    #[serde(default)]
    needs: Vec<Need>,
}

/// Prepares what the tests need that `cargo test` is going to run with these arguments.
pub fn prepare(cargo_test: &[String]) -> Result<()> {
    for need in needs_of(&read_workspace()?, &selected_packages(cargo_test))? {
        prepare_one(need)?;
    }
    Ok(())
}

fn prepare_one(need: Need) -> Result<()> {
    match need {
        Need::DebianPackages => packages::install_missing(),
        Need::ControlPlane => Binaries::find_or_build()
            .map(drop)
            .context("failed to get the real control plane"),
        Need::Prometheus => prometheus::find_or_build()
            .map(drop)
            .context("failed to get the real Prometheus"),
        Need::RedfishEmulator => sushy::find_or_install()
            .map(drop)
            .context("failed to get the Redfish emulator"),
        Need::VirtualMachine => vm::find_or_make_image()
            .map(drop)
            .context("failed to get the virtual machine"),
    }
}

fn read_workspace() -> Result<Workspace> {
    let metadata =
        tree::read(tree::cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&metadata).context("failed to read what cargo metadata printed")
}

/// The packages that `-p` names; none means the whole workspace.
fn selected_packages(cargo_test: &[String]) -> BTreeSet<&str> {
    let mut selected = BTreeSet::new();
    let mut arguments = cargo_test.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        let name = match argument.as_str() {
            "-p" | "--package" => arguments.next().map(String::as_str),
            other => other
                .strip_prefix("--package=")
                .or_else(|| other.strip_prefix("-p")),
        };
        selected.extend(name);
    }
    selected
}

fn needs_of(workspace: &Workspace, selected: &BTreeSet<&str>) -> Result<BTreeSet<Need>> {
    let known: BTreeSet<&str> = workspace
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    if let Some(unknown) = selected.iter().find(|name| !known.contains(*name)) {
        let names: Vec<&str> = known.into_iter().collect();
        bail!(
            "there is no package {unknown}: use one of {}",
            names.join(", ")
        );
    }
    let packages = workspace
        .packages
        .iter()
        .filter(|package| selected.is_empty() || selected.contains(package.name.as_str()));
    Ok(packages.flat_map(Package::needs).copied().collect())
}

impl Package {
    fn needs(&self) -> &[Need] {
        self.metadata
            .as_ref()
            .map_or(&[], |metadata| &metadata.tests.needs)
    }

    #[cfg(test)]
    fn uses_testbed(&self) -> bool {
        self.dependencies
            .iter()
            .any(|dependency| dependency.name == "dogwatch-testbed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_core_needs_nothing_and_the_whole_workspace_needs_everything() {
        let workspace = read_workspace().expect("cargo reads its own manifests");
        let core =
            needs_of(&workspace, &BTreeSet::from(["dogwatch-core"])).expect("it is a package");
        assert_eq!(core, BTreeSet::new());
        let all = needs_of(&workspace, &BTreeSet::new()).expect("nothing is named");
        assert_eq!(all.len(), 5, "{all:?}");
    }

    #[test]
    fn every_package_that_uses_the_testbed_lists_what_it_needs() {
        let workspace = read_workspace().expect("cargo reads its own manifests");
        for package in &workspace.packages {
            let is_tool = package.name == "xtask";
            assert_eq!(
                package.uses_testbed() && !is_tool || package.name == "dogwatch-testbed",
                !package.needs().is_empty(),
                "{}: list what its tests need under [package.metadata.tests]",
                package.name
            );
        }
    }

    #[test]
    fn packages_are_found_in_each_form_that_cargo_takes() {
        let line = arguments("-p a --test x --package b --package=c -pd -- -p e");
        assert_eq!(
            selected_packages(&line),
            BTreeSet::from(["a", "b", "c", "d"])
        );
        assert_eq!(
            selected_packages(&arguments("--workspace")),
            BTreeSet::new()
        );
    }

    #[test]
    fn an_unknown_package_is_refused_with_the_known_ones() {
        let workspace = read_workspace().expect("cargo reads its own manifests");
        let error = needs_of(&workspace, &BTreeSet::from(["dogwatch-cor"])).unwrap_err();
        assert!(error.to_string().contains("dogwatch-core"), "{error}");
    }
}
