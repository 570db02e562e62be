//! What a program needs from the system before its first line runs: the loader, and shared libraries. Read from the file, as
//! the loader reads it; nothing is run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use goblin::elf::{Elf, header};

/// What one file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfNeeds {
    pub architecture: CpuArchitecture,
    /// The loader's path; a shared library has none.
    pub interpreter: Option<String>,
    pub libraries: Vec<String>,
    /// `(libc.so.6, GLIBC_2.34)`: what the libraries must know.
    pub versions: BTreeSet<(String, String)>,
}

/// The processor that a program is built for, and its name in each world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuArchitecture {
    X86_64,
    Aarch64,
}

impl CpuArchitecture {
    fn from_machine(machine: u16) -> Result<Self> {
        match machine {
            header::EM_X86_64 => Ok(Self::X86_64),
            header::EM_AARCH64 => Ok(Self::Aarch64),
            other => {
                bail!("a program for machine {other} (of elf.h); known are x86-64 and aarch64")
            }
        }
    }

    /// In OCI images, Debian packages and krew.
    pub fn go_name(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// In rpm packages, and in names of archives.
    pub fn gnu_name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Where a loader looks without a cache: Debian's folders, then everybody's.
    fn library_folders(self) -> [String; 6] {
        let triplet = format!("{}-linux-gnu", self.gnu_name());
        [
            format!("/lib/{triplet}"),
            format!("/usr/lib/{triplet}"),
            "/lib64".to_owned(),
            "/usr/lib64".to_owned(),
            "/lib".to_owned(),
            "/usr/lib".to_owned(),
        ]
    }
}

impl ElfNeeds {
    pub fn read_file(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
        Self::parse_bytes(&bytes)
            .with_context(|| format!("failed to understand {}", path.display()))
    }

    fn parse_bytes(bytes: &[u8]) -> Result<Self> {
        let elf = Elf::parse(bytes)?;
        ensure!(
            elf.runpaths.is_empty() && elf.rpaths.is_empty(),
            "it names folders of its own for libraries, which an image would not have"
        );
        Ok(Self {
            architecture: CpuArchitecture::from_machine(elf.header.e_machine)?,
            interpreter: elf.interpreter.map(str::to_owned),
            libraries: elf
                .libraries
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
            versions: read_versions(&elf),
        })
    }
}

fn read_versions(elf: &Elf<'_>) -> BTreeSet<(String, String)> {
    let mut versions = BTreeSet::new();
    let text = |offset| elf.dynstrtab.get_at(offset).unwrap_or_default().to_owned();
    for need in elf
        .verneed
        .iter()
        .flat_map(goblin::elf::VerneedSection::iter)
    {
        let file = text(need.vn_file);
        versions.extend(
            need.iter()
                .map(|version| (file.clone(), text(version.vna_name))),
        );
    }
    versions
}

/// Every library that these programs need, also for each other, and their loaders: by the path at which it belongs.
pub fn find_shared_objects(programs: &[PathBuf]) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut open = Vec::new();
    for program in programs {
        open.push(ElfNeeds::read_file(program)?);
    }
    while let Some(needs) = open.pop() {
        let libraries = needs
            .libraries
            .iter()
            .map(|name| find_library(name, needs.architecture));
        let loader = needs.interpreter.iter().map(|path| Ok(path.clone()));
        for path in libraries.chain(loader) {
            let path: String = path?;
            let is_new = found.insert(path.clone(), PathBuf::from(&path)).is_none();
            if is_new {
                open.push(ElfNeeds::read_file(Path::new(&path))?);
            }
        }
    }
    Ok(found)
}

fn find_library(name: &str, architecture: CpuArchitecture) -> Result<String> {
    let folders = architecture.library_folders();
    let paths = folders.iter().map(|folder| format!("{folder}/{name}"));
    let mut existing = paths.filter(|path| Path::new(path).is_file());
    existing.next().with_context(|| {
        format!(
            "library {name} is not installed: it is in none of {}",
            folders.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's own program is as good as any.
    fn own_needs() -> ElfNeeds {
        ElfNeeds::read_file(&std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_program_names_its_loader_its_libraries_and_the_oldest_glibc_that_will_do() {
        let needs = own_needs();
        assert!(needs.interpreter.is_some());
        assert!(
            needs.libraries.contains(&"libc.so.6".to_owned()),
            "{needs:?}"
        );
        let glibc = needs
            .versions
            .iter()
            .any(|(file, version)| file == "libc.so.6" && version.starts_with("GLIBC_"));
        assert!(glibc, "{needs:?}");
    }

    #[test]
    fn the_libraries_of_libraries_are_found_too() {
        let found = find_shared_objects(&[std::env::current_exe().unwrap()]).unwrap();
        let names: Vec<&str> = found
            .keys()
            .filter_map(|path| path.rsplit('/').next())
            .collect();
        assert!(names.contains(&"libc.so.6"), "{names:?}");
        assert!(
            names.iter().any(|name| name.starts_with("ld-linux")),
            "{names:?}"
        );
    }

    #[test]
    fn what_is_no_program_and_a_library_that_is_missing_are_said() {
        let error = ElfNeeds::read_file(Path::new("/etc/passwd")).unwrap_err();
        assert!(format!("{error:#}").contains("/etc/passwd"), "{error:#}");
        let error = find_library("libnowhere.so.1", CpuArchitecture::X86_64).unwrap_err();
        assert!(error.to_string().contains("libnowhere.so.1"), "{error}");
    }
}
