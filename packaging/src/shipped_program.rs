//! The two programs that are shipped, and where their files are.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{elf::ElfNeeds, workspace_root};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShippedProgram {
    /// The command line, and the controller.
    Dogwatch,
    Coordinator,
}

pub const SHIPPED_PROGRAMS: [ShippedProgram; 2] =
    [ShippedProgram::Dogwatch, ShippedProgram::Coordinator];

impl ShippedProgram {
    /// Of the program, its image and its packages.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Dogwatch => "dogwatch",
            Self::Coordinator => "dogwatch-coordinator",
        }
    }

    pub fn cargo_package(self) -> &'static str {
        match self {
            Self::Dogwatch => "dogwatch-cli",
            Self::Coordinator => "dogwatch-coordinator",
        }
    }

    pub fn summary(self) -> &'static str {
        match self {
            Self::Dogwatch => "Dogwatch's command line and controller",
            Self::Coordinator => "Dogwatch's coordinator, which runs on every node",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Dogwatch => {
                "Takes Kubernetes nodes out of service safely, reboots them and brings them back. This is the command line for people, \
                 which is also the controller and a plugin of kubectl."
            }
            Self::Coordinator => {
                "Drains its Kubernetes node, reboots it and returns it to service. Most clusters run it as a DaemonSet; this package \
                 runs it as a service of the host."
            }
        }
    }
}

/// Both programs as they will be shipped.
#[derive(Clone, Debug)]
pub struct ProgramFolder(PathBuf);

impl ProgramFolder {
    /// Programs that exist already.
    pub fn use_existing(folder: &Path) -> Result<Self> {
        let programs = Self(folder.to_owned());
        for program in SHIPPED_PROGRAMS {
            let path = programs.program_path(program);
            ensure!(
                path.is_file(),
                "{} is missing: build it with cargo build --release -p {}, or leave out --binaries",
                path.display(),
                program.cargo_package()
            );
        }
        let [one, other] = SHIPPED_PROGRAMS.map(|program| programs.read_needs(program));
        ensure!(
            one?.architecture == other?.architecture,
            "the programs in {} are for different processors",
            folder.display()
        );
        Ok(programs)
    }

    /// Compiles both, as they are released.
    pub fn build_release() -> Result<Self> {
        let target = workspace_root().join("target/shipped");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(workspace_root())
            .args(["build", "--release", "--locked", "--target-dir"])
            .arg(&target)
            // A shipped program carries its own OpenSSL, and no path of the machine that compiled it.
            .env_remove("OPENSSL_NO_VENDOR")
            .env("RUSTFLAGS", remapped_paths());
        for program in SHIPPED_PROGRAMS {
            command.args(["--package", program.cargo_package()]);
        }
        let status = command.status().context("failed to start cargo")?;
        ensure!(status.success(), "cargo build ended with {status}");
        Self::use_existing(&target.join("release"))
    }

    pub fn program_path(&self, program: ShippedProgram) -> PathBuf {
        self.0.join(program.file_name())
    }

    pub fn read_program(&self, program: ShippedProgram) -> Result<Vec<u8>> {
        let path = self.program_path(program);
        fs::read(&path).with_context(|| format!("failed to read {}", path.display()))
    }

    pub fn read_needs(&self, program: ShippedProgram) -> Result<ElfNeeds> {
        ElfNeeds::read_file(&self.program_path(program))
    }

    /// What a command of `dogwatch` prints.
    pub fn run_dogwatch(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let program = self.program_path(ShippedProgram::Dogwatch);
        let mut command = Command::new(&program);
        let output = command.env_clear().args(arguments).output();
        let output = output.with_context(|| format!("failed to start {}", program.display()))?;
        ensure!(
            output.status.success(),
            "dogwatch {arguments:?} ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }
}

fn remapped_paths() -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let rustup = std::env::var("RUSTUP_HOME").unwrap_or_else(|_| format!("{home}/.rustup"));
    let tree = workspace_root().display();
    format!(
        "--remap-path-prefix={cargo}=/cargo --remap-path-prefix={rustup}=/rustup --remap-path-prefix={tree}=/dogwatch"
    )
}
