//! `cargo xtask dist`: packages for Debian and for Red Hat, archives, a manifest for krew, and what each is made of.

mod debian;
mod install_files;
mod krew;
mod red_hat;
mod scripts;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};

use install_files::{InstallFiles, SharedParts};

use crate::{
    VERSION,
    elf::ElfNeeds,
    file_tree::compress_gzip,
    sbom::CrateGraph,
    sha256_hex,
    shipped_program::{ProgramFolder, SHIPPED_PROGRAMS, ShippedProgram},
    write_output,
};

/// What is needed besides the programs.
#[derive(Clone, Debug)]
pub struct DistSettings {
    /// Seconds since 1970: the time of every file.
    pub source_date: u64,
    /// Where the archives will be offered; krew downloads from there.
    pub download_url: String,
}

/// A program with everything that its packages say of it.
struct PackageSource<'a> {
    program: ShippedProgram,
    needs: ElfNeeds,
    files: &'a InstallFiles,
    source_date: u64,
}

/// Writes everything into the folder; returns the names, in order.
pub fn write_packages(
    programs: &ProgramFolder,
    settings: &DistSettings,
    output: &Path,
) -> Result<Vec<String>> {
    let parts = SharedParts::collect(programs)?;
    let mut written = Vec::new();
    let mut save = |name: String, bytes: &[u8]| {
        written.push((name.clone(), sha256_hex(bytes)));
        write_output(&output.join(name), bytes)
    };
    for program in SHIPPED_PROGRAMS {
        let needs = programs.read_needs(program)?;
        let graph = CrateGraph::read_workspace(needs.architecture)?;
        let sbom = graph.describe_program(program, &BTreeSet::new())?;
        let files = InstallFiles::of_program(program, programs, &parts, &sbom)?;
        let source = PackageSource {
            program,
            needs,
            files: &files,
            source_date: settings.source_date,
        };
        let name = program.file_name();
        let architecture = source.needs.architecture;
        let (deb, bytes) = debian::build_deb(&source)
            .with_context(|| format!("failed to make the Debian package of {name}"))?;
        save(deb, &bytes)?;
        let (rpm, bytes) = red_hat::build_rpm(&source)
            .with_context(|| format!("failed to make the rpm of {name}"))?;
        save(rpm, &bytes)?;
        let archive = format!("{name}-{VERSION}-linux-{}.tar.gz", architecture.go_name());
        let folder = archive.trim_end_matches(".tar.gz").to_owned() + "/";
        let bytes = compress_gzip(
            &files
                .to_archive_tree()
                .to_tar(&folder, settings.source_date)?,
        )?;
        save(archive.clone(), &bytes)?;
        save(format!("{name}-{VERSION}.cdx.json"), &sbom)?;
        if program == ShippedProgram::Dogwatch {
            let manifest =
                krew::describe_plugin(&archive, &sha256_hex(&bytes), architecture, settings);
            save("dogwatch.krew.yaml".to_owned(), manifest.as_bytes())?;
        }
    }
    write_checksums(written, output)
}

/// What `sha256sum --check` reads.
fn write_checksums(mut written: Vec<(String, String)>, output: &Path) -> Result<Vec<String>> {
    written.sort();
    let lines = written.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
    let text: String = lines.collect();
    let path = output.join("SHA256SUMS");
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
    let names = written.into_iter().map(|(name, _)| name);
    Ok(names.chain(["SHA256SUMS".to_owned()]).collect())
}
