//! Finds a program of a Go module in our cache, or builds it there once.

use std::{env, fs, path::PathBuf, process::Command};

use crate::{
    Error,
    cached_artifact::{find_or_make, fingerprint},
};

/// How to build one program of a Go module.
#[derive(Clone, Debug)]
pub(crate) struct GoProgramRecipe {
    /// The file's name; its main package is in `cmd/NAME`.
    pub(crate) name: &'static str,
    pub(crate) module: &'static str,
    /// The cache's subfolder, with the version, for people.
    pub(crate) folder: String,
    /// The module's own `go.mod`, or another file beside it.
    pub(crate) go_mod_file: &'static str,
    /// The module's files; a change of any of them triggers a new build.
    pub(crate) sources: Vec<&'static str>,
    /// Printed before the build; measured on 2 cores with an empty Go build cache.
    pub(crate) usual_build_time: &'static str,
    /// Go's `-ldflags`.
    pub(crate) linker_flags: String,
}

impl GoProgramRecipe {
    /// Builds the program if it is missing, with a message on standard error. If several processes
    /// call it at once, one builds and the others wait. Blocks for minutes.
    pub(crate) fn find_or_build(&self) -> Result<PathBuf, Error> {
        let sources = fingerprint(&self.sources);
        let folder = format!("{}-{sources:016x}", self.folder);
        find_or_make(&folder, self.name, |target| self.build_program(target))
    }

    /// Builds beside `target` and renames, so that no process sees half a program.
    fn build_program(&self, target: &std::path::Path) -> Result<(), Error> {
        let name = self.name;
        eprintln!(
            "building {name} ({}, once) into {}",
            self.usual_build_time,
            target.display()
        );
        let partial = target.with_extension("partial");
        let go = find_go().ok_or(Error::NoGo { program: name })?;
        let output = Command::new(&go)
            .current_dir(self.module)
            .env("CGO_ENABLED", "0")
            .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"])
            .arg(format!("-modfile={}", self.go_mod_file))
            .args(["-ldflags", &self.linker_flags, "-o"])
            .arg(&partial)
            .arg(format!("./cmd/{name}"))
            .output()
            .map_err(Error::io_error("run", go))?;
        if !output.status.success() {
            let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::Build {
                program: name,
                status: output.status,
                output: output_text,
            });
        }
        fs::rename(&partial, target).map_err(Error::io_error("rename", partial))
    }
}

/// The `go` on the PATH, else in the folder of Go's own installer.
pub fn find_go() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/local/go/bin")])
        .map(|folder| folder.join("go"))
        .find(|candidate| candidate.is_file())
}
