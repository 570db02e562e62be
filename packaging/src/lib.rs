//! Images and packages of both programs, made without a container engine and without Debian's or Red Hat's tools.
//!
//! **For:** `cargo xtask image` and `cargo xtask dist`.
//! **May touch:** the tree, cargo, the libraries of the machine, and the output folder.
//! **Promises:** the same source, toolchain and libraries give the same bytes.

pub mod dist;
pub mod elf;
pub mod file_tree;
pub mod image;
pub mod sbom;
pub mod shipped_program;
pub mod system_package;

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The version of both programs.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The tree that this program was built from.
pub fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("packaging is a folder of the workspace")
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

fn to_hex(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in bytes {
        write!(hex, "{byte:02x}").expect("a String takes all");
    }
    hex
}

fn read_tree_file(path: &str) -> Result<Vec<u8>> {
    fs::read(workspace_root().join(path)).with_context(|| format!("failed to read {path}"))
}

fn write_output(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("failed to make {}", folder.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("failed to write {}", path.display()))
}
