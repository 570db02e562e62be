//! A Debian package: an `ar` archive of a version, a control archive and a data archive (deb(5)).

use anyhow::{Context, Result, bail};

use super::{PackageSource, scripts};
use crate::{
    VERSION,
    file_tree::{DATA_MODE, FileTree, PROGRAM_MODE, compress_gzip},
    shipped_program::ShippedProgram,
};

const MAINTAINER: &str = "The Dogwatch developers";
const HOMEPAGE: &str = env!("CARGO_PKG_REPOSITORY");

/// The package that has a library, on Debian and Ubuntu. The OpenSSL of a system is needed by programs for tests only.
const LIBRARY_PACKAGES: [(&str, &str); 5] = [
    ("libc.so.6", "libc6"),
    ("libm.so.6", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libssl.so.3", "libssl3"),
    ("libcrypto.so.3", "libssl3"),
];

/// The name of the file, and the file.
pub fn build_deb(source: &PackageSource<'_>) -> Result<(String, Vec<u8>)> {
    let architecture = source.needs.architecture.go_name();
    let name = format!(
        "{}_{VERSION}_{architecture}.deb",
        source.program.file_name()
    );
    let control = control_files(source)?.to_tar("./", source.source_date)?;
    let data = source
        .files
        .installed_tree()
        .to_tar("./", source.source_date)?;
    let mut archive = ar::Builder::new(Vec::new());
    append_member(&mut archive, "debian-binary", b"2.0\n", source)?;
    append_member(
        &mut archive,
        "control.tar.gz",
        &compress_gzip(&control)?,
        source,
    )?;
    append_member(&mut archive, "data.tar.gz", &compress_gzip(&data)?, source)?;
    Ok((name, archive.into_inner()?))
}

fn append_member(
    archive: &mut ar::Builder<Vec<u8>>,
    name: &str,
    bytes: &[u8],
    source: &PackageSource<'_>,
) -> Result<()> {
    let mut header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
    header.set_mode(0o100_644);
    header.set_mtime(source.source_date);
    archive
        .append(&header, bytes)
        .with_context(|| format!("failed to add {name}"))
}

fn control_files(source: &PackageSource<'_>) -> Result<FileTree> {
    let mut files = FileTree::default();
    files.add_file("control", DATA_MODE, control_text(source)?);
    let mut settings = String::new();
    for path in source.files.settings_files() {
        settings.push_str(path);
        settings.push('\n');
    }
    files.add_file("conffiles", DATA_MODE, settings);
    for (name, text) in scripts::debian_scripts(source.files.unit_name()) {
        files.add_file(name, PROGRAM_MODE, text);
    }
    Ok(files)
}

fn control_text(source: &PackageSource<'_>) -> Result<String> {
    let program = source.program;
    let bytes: usize = source
        .files
        .installed_tree()
        .list_files()
        .map(|(_, _, content)| content.len())
        .sum();
    let suggests = match program {
        ShippedProgram::Dogwatch => "Suggests: ipmitool, fence-agents\n",
        ShippedProgram::Coordinator => "",
    };
    Ok(format!(
        "Package: {}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {MAINTAINER}\nInstalled-Size: {}\nDepends: {}\n{suggests}\
         Section: admin\nPriority: optional\nHomepage: {HOMEPAGE}\nDescription: {}\n {}\n",
        program.file_name(),
        source.needs.architecture.go_name(),
        bytes.div_ceil(1024),
        dependencies(source)?,
        program.summary(),
        program.description(),
    ))
}

/// glibc with the newest version that a symbol asks for; every other library in any version.
fn dependencies(source: &PackageSource<'_>) -> Result<String> {
    let mut packages = Vec::new();
    for library in &source.needs.libraries {
        if library.starts_with("ld-linux") {
            continue;
        }
        let known = LIBRARY_PACKAGES.iter().find(|(name, _)| name == library);
        let Some((_, package)) = known else {
            bail!("no Debian package is known for {library}: add it to LIBRARY_PACKAGES");
        };
        let package = match *package {
            "libc6" => format!("libc6 (>= {})", newest_glibc(source)?),
            other => other.to_owned(),
        };
        if !packages.contains(&package) {
            packages.push(package);
        }
    }
    packages.sort();
    Ok(packages.join(", "))
}

fn newest_glibc(source: &PackageSource<'_>) -> Result<String> {
    let versions = source.needs.versions.iter();
    let glibc = versions.filter_map(|(_, version)| match version.as_str() {
        // Packed relocations are a property of the loader: glibc has it since 2.36.
        "GLIBC_ABI_DT_RELR" => Some("2.36"),
        version => version.strip_prefix("GLIBC_"),
    });
    // As numbers: 2.4 is older than 2.34.
    let numbers = |text: &str| -> Vec<u32> {
        text.split('.')
            .filter_map(|part| part.parse().ok())
            .collect()
    };
    let newest = glibc.max_by_key(|version| numbers(version));
    Ok(newest
        .context("the program names no version of glibc")?
        .to_owned())
}
