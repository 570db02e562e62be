//! What the tests of a crate need before they start. Each `Cargo.toml` lists it: `[package.metadata.tests] needs = ["control-plane"]`.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{debian_packages, source_tree, testbed};

/// In the order in which they are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TestNeed {
    DebianPackages,
    Browser,
    ControlPlane,
    Helm,
    ModuleCrds,
    Prometheus,
    RedfishEmulator,
    VirtualMachine,
}

#[derive(Deserialize)]
struct WorkspaceMetadata {
    packages: Vec<WorkspacePackage>,
}

#[derive(Deserialize)]
struct WorkspacePackage {
    name: String,
    #[serde(default)]
    metadata: Option<PackageMetadata>,
    #[cfg(test)]
    #[serde(default)]
    dependencies: Vec<PackageDependency>,
}

#[cfg(test)]
#[derive(Deserialize)]
struct PackageDependency {
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
    needs: Vec<TestNeed>,
}

impl TestNeed {
    /// The name of the part at the test bed's program; Debian packages are xtask's own matter.
    fn testbed_part(self) -> Option<&'static str> {
        match self {
            TestNeed::DebianPackages => None,
            TestNeed::Browser => Some("browser"),
            TestNeed::ControlPlane => Some("control-plane"),
            TestNeed::Helm => Some("helm"),
            TestNeed::ModuleCrds => Some("module-crds"),
            TestNeed::Prometheus => Some("prometheus"),
            TestNeed::RedfishEmulator => Some("redfish-emulator"),
            TestNeed::VirtualMachine => Some("virtual-machine"),
        }
    }
}

/// What the tests need that `cargo test` is going to run with some arguments.
pub struct TestNeeds(BTreeSet<TestNeed>);

impl TestNeeds {
    pub fn of_arguments(cargo_test: &[String]) -> Result<Self> {
        needs_of(&read_workspace()?, &selected_packages(cargo_test)).map(Self)
    }

    pub fn install_packages(&self) -> Result<()> {
        if self.0.contains(&TestNeed::DebianPackages) {
            debian_packages::install_missing()?;
        }
        Ok(())
    }

    /// Builds or downloads what is missing; `testbed` is the test bed's program where it was built already.
    pub fn prepare_parts(&self, testbed: Option<&Path>) -> Result<()> {
        let parts: Vec<&str> = self
            .0
            .iter()
            .filter_map(|need| need.testbed_part())
            .collect();
        testbed::prepare_parts(&parts, testbed)
    }
}

fn read_workspace() -> Result<WorkspaceMetadata> {
    let metadata = source_tree::read_output(source_tree::cargo_command().args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
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

fn needs_of(
    workspace: &WorkspaceMetadata,
    selected: &BTreeSet<&str>,
) -> Result<BTreeSet<TestNeed>> {
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
    Ok(packages
        .flat_map(WorkspacePackage::listed_needs)
        .copied()
        .collect())
}

impl WorkspacePackage {
    fn listed_needs(&self) -> &[TestNeed] {
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
        let all = needs_of(&workspace, &BTreeSet::new()).expect("no package is given");
        assert_eq!(all.len(), 8, "{all:?}");
    }

    #[test]
    fn every_package_that_uses_the_testbed_lists_what_it_needs() {
        let workspace = read_workspace().expect("cargo reads its own manifests");
        for package in &workspace.packages {
            let is_tool = package.name == "xtask";
            let uses_servers = package.uses_testbed() && !is_tool;
            assert!(
                !uses_servers || !package.listed_needs().is_empty(),
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
