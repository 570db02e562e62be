//! What a program is made of, as a CycloneDX document: the crates that cargo links into it, and the system's packages beside it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, ensure};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use cyclonedx_bom::{
    models::{
        component::Classification,
        dependency::{Dependencies, Dependency},
        license::{LicenseChoice, Licenses},
    },
    prelude::{
        Bom, Component, Components, Metadata as BomMetadata, NormalizedString, Purl,
        SpdxExpression, SpecVersion, UrnUuid, Validate as _,
    },
};
use sha2::{Digest, Sha256};

use crate::{
    elf::CpuArchitecture, shipped_program::ShippedProgram, system_package::SystemPackage,
    workspace_root,
};

/// What cargo knows about the workspace's dependencies.
pub struct CrateGraph {
    metadata: Metadata,
}

impl CrateGraph {
    /// Asks cargo, for programs of this kind of processor.
    pub fn read_workspace(architecture: CpuArchitecture) -> Result<Self> {
        let target = format!("{}-unknown-linux-gnu", architecture.gnu_name());
        let mut command = MetadataCommand::new();
        command
            .current_dir(workspace_root())
            .features(CargoOpt::SomeFeatures(Vec::new()))
            .other_options(["--locked".to_owned(), format!("--filter-platform={target}")]);
        let metadata = command
            .exec()
            .context("failed to ask cargo for the dependencies")?;
        Ok(Self { metadata })
    }

    /// The document as JSON.
    pub fn describe_program(
        &self,
        program: ShippedProgram,
        system: &BTreeSet<SystemPackage>,
    ) -> Result<Vec<u8>> {
        let linked = self.linked_crates(program)?;
        let root = self.find_package(program)?;
        let mut components = Vec::new();
        for package in linked.keys().filter(|id| ***id != root.id) {
            components.push(crate_component(&self.metadata[*package])?);
        }
        for package in system {
            components.push(system_component(package)?);
        }
        let mut main = crate_component(root)?;
        main.component_type = Classification::Application;
        main.name = NormalizedString::new(program.file_name());
        let bom = Bom {
            version: 1,
            serial_number: Some(serial_number(program, &components)?),
            metadata: Some(BomMetadata {
                component: Some(main),
                ..BomMetadata::default()
            }),
            components: Some(Components(components)),
            dependencies: Some(self.dependencies(&linked)),
            spec_version: SpecVersion::V1_5,
            ..Bom::default()
        };
        write_bom(bom)
    }

    fn find_package(&self, program: ShippedProgram) -> Result<&Package> {
        let mut packages = self.metadata.workspace_packages().into_iter();
        packages
            .find(|package| package.name.as_str() == program.cargo_package())
            .with_context(|| format!("no package {}", program.cargo_package()))
    }

    /// The crates that are compiled into a program, each with those it uses; not what only its build or its tests need.
    fn linked_crates(
        &self,
        program: ShippedProgram,
    ) -> Result<BTreeMap<&PackageId, Vec<&PackageId>>> {
        let graph = self
            .metadata
            .resolve
            .as_ref()
            .context("cargo gave no graph")?;
        let nodes: BTreeMap<&PackageId, &cargo_metadata::Node> =
            graph.nodes.iter().map(|node| (&node.id, node)).collect();
        let mut linked = BTreeMap::new();
        let mut open = vec![&self.find_package(program)?.id];
        while let Some(id) = open.pop() {
            if linked.contains_key(id) {
                continue;
            }
            let is_linked = |dep: &&cargo_metadata::NodeDep| {
                dep.dep_kinds
                    .iter()
                    .any(|kind| kind.kind == DependencyKind::Normal)
            };
            let uses: Vec<&PackageId> = nodes[id]
                .deps
                .iter()
                .filter(is_linked)
                .map(|dep| &dep.pkg)
                .collect();
            open.extend(&uses);
            linked.insert(id, uses);
        }
        Ok(linked)
    }

    fn dependencies(&self, linked: &BTreeMap<&PackageId, Vec<&PackageId>>) -> Dependencies {
        let name = |id: &PackageId| reference(&self.metadata[id]);
        let lines = linked.iter().map(|(id, uses)| Dependency {
            dependency_ref: name(id),
            dependencies: uses.iter().map(|id| name(id)).collect(),
        });
        Dependencies(lines.collect())
    }
}

/// The same for the same crate in each document, and without a path of the machine.
fn reference(package: &Package) -> String {
    format!("cargo:{}@{}", package.name, package.version)
}

fn crate_component(package: &Package) -> Result<Component> {
    let (name, version) = (package.name.as_str(), package.version.to_string());
    let mut component = Component::new(
        Classification::Library,
        name,
        &version,
        Some(reference(package)),
    );
    component.description = package.description.as_deref().map(NormalizedString::new);
    component.purl = Some(Purl::new("cargo", name, &version)?);
    component.licenses = package.license.as_deref().map(read_license);
    Ok(component)
}

/// Old crates write `MIT/Apache-2.0`; what is no expression at all is kept as it is.
fn read_license(text: &str) -> Licenses {
    let license = SpdxExpression::parse_lax(text.to_owned());
    Licenses(vec![license.map_or_else(
        |_| LicenseChoice::license(text),
        LicenseChoice::Expression,
    )])
}

fn system_component(package: &SystemPackage) -> Result<Component> {
    let SystemPackage { name, version } = package;
    let key = format!("deb:{name}@{version}");
    let mut component = Component::new(Classification::Library, name, version, Some(key));
    component.purl = Some(Purl::new("deb", &format!("debian/{name}"), version)?);
    Ok(component)
}

/// Made from what the document lists, because a random one would differ each time.
fn serial_number(program: ShippedProgram, components: &[Component]) -> Result<UrnUuid> {
    let mut hash = Sha256::new();
    hash.update(program.file_name());
    for component in components {
        hash.update(component.bom_ref.as_deref().unwrap_or_default());
        hash.update("\n");
    }
    let mut bytes = hash.finalize().to_vec();
    // Version 8 of RFC 9562: whose bits mean what their maker likes.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = crate::to_hex(&bytes[..16]);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    UrnUuid::new(format!("urn:uuid:{}", parts.join("-"))).map_err(|error| anyhow!("{error:?}"))
}

fn write_bom(bom: Bom) -> Result<Vec<u8>> {
    let checked = bom.validate();
    ensure!(
        checked.passed(),
        "the document breaks CycloneDX' rules: {checked:?}"
    );
    let mut json = Vec::new();
    bom.output_as_json_v1_5(&mut json)?;
    json.push(b'\n');
    Ok(json)
}
