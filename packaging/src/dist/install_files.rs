//! Which file goes where on a system.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result};

use crate::{
    file_tree::{DATA_MODE, FileTree, PROGRAM_MODE, compress_gzip},
    read_tree_file,
    shipped_program::{ProgramFolder, ShippedProgram},
};

/// What `dogwatch` itself prints for packages.
pub struct SharedParts {
    /// By the name of their file.
    man_pages: BTreeMap<String, Vec<u8>>,
    /// By the path at which a shell looks for them.
    completions: Vec<(&'static str, Vec<u8>)>,
}

const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/dogwatch"),
    ("zsh", "usr/share/zsh/site-functions/_dogwatch"),
    ("fish", "usr/share/fish/vendor_completions.d/dogwatch.fish"),
];

impl SharedParts {
    pub fn collect(programs: &ProgramFolder) -> Result<Self> {
        let folder = tempfile::tempdir().context("failed to make a folder for the man pages")?;
        let path = folder
            .path()
            .to_str()
            .context("the name of the folder is no text")?;
        programs.run_dogwatch(&["man", path])?;
        let mut man_pages = BTreeMap::new();
        for entry in fs::read_dir(folder.path())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            man_pages.insert(name, fs::read(entry.path())?);
        }
        let mut completions = Vec::new();
        for (shell, path) in COMPLETIONS {
            completions.push((path, programs.run_dogwatch(&["completions", shell])?));
        }
        Ok(Self {
            man_pages,
            completions,
        })
    }
}

/// The files of one program's packages.
pub struct InstallFiles {
    files: FileTree,
    /// Files that people change; an update keeps them.
    settings: Vec<&'static str>,
    unit: &'static str,
}

struct ServiceFiles {
    unit: &'static str,
    settings: &'static str,
}

fn service_files(program: ShippedProgram) -> ServiceFiles {
    match program {
        ShippedProgram::Dogwatch => ServiceFiles {
            unit: "dogwatch-controller.service",
            settings: "controller.env",
        },
        ShippedProgram::Coordinator => ServiceFiles {
            unit: "dogwatch-coordinator.service",
            settings: "coordinator.env",
        },
    }
}

impl InstallFiles {
    pub fn of_program(
        program: ShippedProgram,
        programs: &ProgramFolder,
        parts: &SharedParts,
        sbom: &[u8],
    ) -> Result<Self> {
        let name = program.file_name();
        let ServiceFiles { unit, settings } = service_files(program);
        let mut files = FileTree::default();
        files.add_file(
            &format!("usr/bin/{name}"),
            PROGRAM_MODE,
            programs.read_program(program)?,
        );
        let is_ours = |page: &str| {
            page.starts_with("dogwatch-coordinator") == (program == ShippedProgram::Coordinator)
        };
        for (page, text) in parts.man_pages.iter().filter(|(page, _)| is_ours(page)) {
            let section = page.rsplit('.').next().unwrap_or("1");
            let path = format!("usr/share/man/man{section}/{page}.gz");
            files.add_file(&path, DATA_MODE, compress_gzip(text)?);
        }
        if program == ShippedProgram::Dogwatch {
            // kubectl finds its plugins by this name.
            files.add_link("usr/bin/kubectl-dogwatch", "dogwatch");
            for (path, script) in &parts.completions {
                files.add_file(path, DATA_MODE, script.clone());
            }
        }
        let unit_text = read_tree_file(&format!("deploy/packages/{unit}"))?;
        files.add_file(
            &format!("usr/lib/systemd/system/{unit}"),
            DATA_MODE,
            unit_text,
        );
        let settings_text = read_tree_file(&format!("deploy/packages/{settings}"))?;
        // Root's alone: people put credentials into such files.
        files.add_file(&format!("etc/dogwatch/{settings}"), 0o600, settings_text);
        files.add_file(&format!("usr/share/sbom/{name}.cdx.json"), DATA_MODE, sbom);
        files.add_file(
            &format!("usr/share/doc/{name}/copyright"),
            DATA_MODE,
            read_tree_file("LICENSE")?,
        );
        let settings = match program {
            ShippedProgram::Dogwatch => vec!["/etc/dogwatch/controller.env"],
            ShippedProgram::Coordinator => vec!["/etc/dogwatch/coordinator.env"],
        };
        Ok(Self {
            files,
            settings,
            unit,
        })
    }

    pub fn installed_tree(&self) -> &FileTree {
        &self.files
    }

    pub fn settings_files(&self) -> &[&'static str] {
        &self.settings
    }

    pub fn unit_name(&self) -> &'static str {
        self.unit
    }

    /// For people without a package manager: everything flat, the program on top.
    pub fn to_archive_tree(&self) -> FileTree {
        let mut archive = FileTree::default();
        for (path, mode, content) in self.files.list_files() {
            let name = path.rsplit('/').next().unwrap_or(path);
            let place = match path {
                _ if path.starts_with("usr/bin/") => name.to_owned(),
                _ if name == "copyright" => "LICENSE".to_owned(),
                _ if path.starts_with("usr/share/man/") => format!("man/{name}"),
                _ if path.contains("completion") || path.contains("site-functions") => {
                    format!("completions/{name}")
                }
                _ => name.to_owned(),
            };
            archive.add_file(&place, mode, content);
        }
        archive
    }
}
