//! Which of the system's packages a file is from, asked of dpkg. A system without dpkg gives none.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

/// A Debian package whose files are in an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemPackage {
    pub name: String,
    pub version: String,
}

impl SystemPackage {
    /// The package that owns a file.
    pub fn owning_file(path: &str) -> Result<Option<Self>> {
        for path in merged_paths(path) {
            let Some(text) = query_dpkg(&["--search", &path])? else {
                continue;
            };
            // A diversion is a line of its own; a package with several architectures is `libc6:amd64`.
            let mut owners = text.lines().filter(|line| !line.starts_with("diversion"));
            let name = owners.find_map(|line| line.split_once(": "));
            let Some((name, _)) = name else { continue };
            let version = query_dpkg(&["--show", "--showformat=${Version}", name])?;
            let name = name.split(':').next().unwrap_or(name).to_owned();
            let version = version.context("dpkg does not know a package that it has just named")?;
            return Ok(Some(Self { name, version }));
        }
        Ok(None)
    }

    /// The package's licence, which has to go where its files go.
    pub fn copyright_path(&self) -> String {
        format!("/usr/share/doc/{}/copyright", self.name)
    }
}

/// `/lib` is `/usr/lib` on today's systems, and dpkg knows a file by one of both names.
fn merged_paths(path: &str) -> Vec<String> {
    let mut paths = vec![path.to_owned()];
    paths.push(match path.strip_prefix("/usr") {
        Some(rest) => rest.to_owned(),
        None => format!("/usr{path}"),
    });
    // The loader's path is a link into the folder of libraries.
    if let Ok(real) = Path::new(path).canonicalize() {
        paths.push(real.display().to_string());
        paths.push(real.display().to_string().replacen("/usr", "", 1));
    }
    paths
}

fn query_dpkg(arguments: &[&str]) -> Result<Option<String>> {
    let output = match Command::new("dpkg-query").args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("failed to start dpkg-query"),
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(output.status.success().then_some(text))
}
