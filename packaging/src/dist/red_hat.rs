//! An rpm, written by the crate `rpm`.

use anyhow::{Context, Result};
use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileMode, FileOptions, PackageBuilder};

use super::{PackageSource, scripts};
use crate::{VERSION, file_tree::TreeEntry, shipped_program::ShippedProgram};

const RELEASE: &str = "1";
/// rpm records where a package was built; a machine's name has no business there.
const BUILD_HOST: &str = "dogwatch";
const HOMEPAGE: &str = env!("CARGO_PKG_REPOSITORY");
/// Folders that are of every system, or shared with others: a package does not own them.
const OWN_FOLDERS: [&str; 1] = ["etc/dogwatch"];

/// The name of the file, and the file.
pub fn build_rpm(source: &PackageSource<'_>) -> Result<(String, Vec<u8>)> {
    let (program, architecture) = (source.program, source.needs.architecture.gnu_name());
    let name = format!(
        "{}-{VERSION}-{RELEASE}.{architecture}.rpm",
        program.file_name()
    );
    let date = u32::try_from(source.source_date).context("rpm has no dates after 2106")?;
    let config = BuildConfig::v4()
        .source_date(date)
        .compression(CompressionWithLevel::Gzip(9));
    let mut builder = PackageBuilder::new(
        program.file_name(),
        VERSION,
        "Apache-2.0",
        architecture,
        program.summary(),
    );
    builder
        .using_config(config)
        .release(RELEASE)
        .description(program.description())
        .url(HOMEPAGE)
        .build_host(BUILD_HOST)
        .cookie(BUILD_HOST);
    add_files(&mut builder, source)?;
    add_dependencies(&mut builder, source);
    let scripts = scripts::red_hat_scripts(source.files.unit_name());
    builder
        .post_install_script(scripts.after_install)
        .pre_uninstall_script(scripts.before_removal)
        .post_uninstall_script(scripts.after_removal);
    let mut bytes = Vec::new();
    builder.build()?.write(&mut bytes)?;
    Ok((name, bytes))
}

fn add_files(builder: &mut PackageBuilder, source: &PackageSource<'_>) -> Result<()> {
    for (path, entry) in source.files.installed_tree().list_entries() {
        let place = format!("/{path}");
        match entry {
            TreeEntry::Directory { mode } => {
                if OWN_FOLDERS.contains(&path) {
                    let mode = FileMode::dir(u16::try_from(*mode)?);
                    builder.with_dir_entry(FileOptions::dir(place).mode(mode))?;
                }
            }
            TreeEntry::Link { target } => {
                builder.with_symlink(FileOptions::symlink(place, target.as_str()))?;
            }
            TreeEntry::File { mode, content } => {
                let is_settings = source.files.settings_files().contains(&place.as_str());
                let mut options =
                    FileOptions::new(place).mode(FileMode::regular(u16::try_from(*mode)?));
                if is_settings {
                    options = options.config().noreplace();
                }
                builder.with_file_contents(content.clone(), options)?;
            }
        }
    }
    Ok(())
}

/// By the names that rpm itself gives to libraries and to their versions.
fn add_dependencies(builder: &mut PackageBuilder, source: &PackageSource<'_>) {
    for library in &source.needs.libraries {
        builder.requires(Dependency::any(format!("{library}()(64bit)")));
    }
    for (library, version) in &source.needs.versions {
        builder.requires(Dependency::any(format!("{library}({version})(64bit)")));
    }
    match source.program {
        ShippedProgram::Dogwatch => {
            for suggested in ["ipmitool", "fence-agents-all"] {
                builder.suggests(Dependency::any(suggested));
            }
        }
        ShippedProgram::Coordinator => {}
    }
}
