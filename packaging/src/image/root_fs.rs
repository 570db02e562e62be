//! What an image holds beside its program: no shell, no package manager, only what the program opens.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, Result, ensure};

use super::ImageSources;
use crate::{
    elf::find_shared_objects,
    file_tree::{DATA_MODE, FileTree, PROGRAM_MODE},
    shipped_program::{ProgramFolder, ShippedProgram},
    system_package::SystemPackage,
};

/// A user that owns nothing; the manifests run the controller as it.
pub const PLAIN_UID: u32 = 65532;
const PASSWD: &str =
    "root:x:0:0:root:/:/sbin/nologin\ndogwatch:x:65532:65532:Dogwatch:/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\ndogwatch:x:65532:\n";
/// Host names as everywhere else: the file first, and then DNS.
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";
/// Where OpenSSL and rustls look first.
const CA_BUNDLE: &str = "etc/ssl/certs/ca-certificates.crt";

/// The files, and the packages that they are from.
pub struct RootFs {
    files: FileTree,
    packages: BTreeSet<SystemPackage>,
}

/// Programs of the system that the program runs.
fn helper_programs(program: ShippedProgram) -> &'static [&'static str] {
    match program {
        // Fence agents are Python, so they are in the image of deploy/Containerfile only.
        ShippedProgram::Dogwatch => &["/usr/bin/ipmitool"],
        // For --reboot-method=command and sentinel commands, in the host's namespaces.
        ShippedProgram::Coordinator => &["/usr/bin/nsenter"],
    }
}

impl RootFs {
    pub fn collect(
        program: ShippedProgram,
        programs: &ProgramFolder,
        sources: &ImageSources,
    ) -> Result<Self> {
        let mut root = Self {
            files: base_files(sources)?,
            packages: BTreeSet::new(),
        };
        let mut executables = vec![programs.program_path(program)];
        for helper in helper_programs(program) {
            let path = PathBuf::from(helper);
            ensure!(
                path.is_file(),
                "{helper} is missing, which {} runs: install it",
                program.file_name()
            );
            root.add_system_file(helper, PROGRAM_MODE)?;
            executables.push(path);
        }
        for path in find_shared_objects(&executables)?.keys() {
            // The loader is run as a program; a library may be.
            root.add_system_file(path, PROGRAM_MODE)?;
        }
        root.add_copyrights()?;
        Ok(root)
    }

    pub fn system_files(&self) -> &FileTree {
        &self.files
    }

    pub fn system_packages(&self) -> &BTreeSet<SystemPackage> {
        &self.packages
    }

    fn add_system_file(&mut self, path: &str, mode: u32) -> Result<()> {
        let content = fs::read(path).with_context(|| format!("failed to read {path}"))?;
        self.files.add_file(path, mode, content);
        self.packages.extend(SystemPackage::owning_file(path)?);
        Ok(())
    }

    fn add_copyrights(&mut self) -> Result<()> {
        for package in &self.packages {
            let path = package.copyright_path();
            let text = fs::read(&path).with_context(|| {
                format!("failed to read the licence of {}: {path}", package.name)
            })?;
            self.files.add_file(&path, DATA_MODE, text);
        }
        Ok(())
    }
}

fn base_files(sources: &ImageSources) -> Result<FileTree> {
    let bundle = &sources.ca_certificates;
    let certificates = fs::read(bundle).with_context(|| {
        format!(
            "failed to read {}: install ca-certificates, or name a bundle with --ca-certificates",
            bundle.display()
        )
    })?;
    let mut files = FileTree::default();
    files.add_file("etc/passwd", DATA_MODE, PASSWD);
    files.add_file("etc/group", DATA_MODE, GROUP);
    files.add_file("etc/nsswitch.conf", DATA_MODE, NSSWITCH);
    files.add_file(CA_BUNDLE, DATA_MODE, certificates);
    // Whoever runs as another user may write here; the manifests mount something of their own.
    files.add_folder("tmp", 0o1777);
    Ok(files)
}
