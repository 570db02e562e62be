//! The CustomResourceDefinitions that Cluster API and Karpenter ship in their Go modules, copied
//! from Go's module cache into the project's cache once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

use crate::{
    Error,
    cached_artifact::{find_or_make, fingerprint},
    find_go,
};

const MODULE_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
const GO_MOD: &str = include_str!("../crds/go.mod");
const GO_SUM: &str = include_str!("../crds/go.sum");
const WHAT: &str = "the CRDs of Cluster API and Karpenter";

/// The definitions in one module.
struct CrdModule {
    path: &'static str,
    /// Of the files, in the module.
    folder: &'static str,
    files: &'static [&'static str],
}

const CRD_MODULES: [CrdModule; 2] = [
    CrdModule {
        path: "sigs.k8s.io/cluster-api",
        folder: "core/config/crd/bases",
        files: &[
            "cluster.x-k8s.io_clusters.yaml",
            "cluster.x-k8s.io_machinedrainrules.yaml",
            "cluster.x-k8s.io_machinehealthchecks.yaml",
            "cluster.x-k8s.io_machines.yaml",
        ],
    },
    CrdModule {
        path: "sigs.k8s.io/karpenter",
        folder: "pkg/apis/crds",
        files: &["karpenter.sh_nodepools.yaml"],
    },
];

/// What `go mod download -json` prints for each module.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DownloadedModule {
    path: String,
    version: String,
    /// Where Go unpacked it.
    dir: PathBuf,
    sum: String,
}

/// The folder with the files; downloads the modules first if it is missing, in some seconds. Blocks.
pub fn find_or_download() -> Result<PathBuf, Error> {
    let files = CRD_MODULES.iter().flat_map(|module| module.files);
    let sources: Vec<&str> = [GO_MOD, GO_SUM].into_iter().chain(files.copied()).collect();
    let folder = format!("crds-{:016x}", fingerprint(&sources));
    find_or_make(&folder, "definitions", download_definitions)
}

/// The text of one definition, by its file's name.
pub(crate) fn read_definition(file: &str) -> Result<String, Error> {
    let path = find_or_download()?.join(file);
    fs::read_to_string(&path).map_err(Error::io_error("read", path))
}

/// Copies beside `target` and renames, so that no process sees half of the files.
fn download_definitions(target: &Path) -> Result<(), Error> {
    eprintln!("downloading {WHAT} (once) into {}", target.display());
    let partial = target.with_extension("partial");
    fs::create_dir_all(&partial).map_err(Error::io_error("make", &partial))?;
    for module in download_modules()? {
        let definitions = CRD_MODULES.iter().find(|known| known.path == module.path);
        let definitions = definitions.expect("only these modules were asked for");
        for file in definitions.files {
            let original = module.dir.join(definitions.folder).join(file);
            let copied = fs::copy(&original, partial.join(file));
            copied.map_err(Error::io_error("copy", original))?;
        }
    }
    fs::rename(&partial, target).map_err(Error::io_error("rename", partial))
}

fn download_modules() -> Result<Vec<DownloadedModule>, Error> {
    let go = find_go().ok_or(Error::NoGo { program: WHAT })?;
    let output = Command::new(&go)
        .current_dir(MODULE_FOLDER)
        .args(["mod", "download", "-json"])
        .args(CRD_MODULES.iter().map(|module| module.path))
        .output()
        .map_err(Error::io_error("run", go))?;
    let failed = |reason: &str| Error::Install {
        what: WHAT,
        command: "go mod download".to_owned(),
        status: output.status,
        output: reason.to_owned(),
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(failed(&format!("{errors}{printed}")));
    }
    let modules = serde_json::Deserializer::from_str(&printed).into_iter();
    let modules: Vec<DownloadedModule> = modules
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error.to_string()))?;
    // Go compares the sums that go.sum has, and adds those that it lacks.
    match modules.iter().find(|module| !is_pinned(module, GO_SUM)) {
        Some(unpinned) => Err(failed(&format!("{unpinned:?} is not in go.sum"))),
        None => Ok(modules),
    }
}

fn is_pinned(module: &DownloadedModule, go_sum: &str) -> bool {
    let line = format!("{} {} {}", module.path, module.version, module.sum);
    go_sum.lines().any(|pinned| pinned == line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_with_another_content_than_go_sum_says_is_refused() {
        let mut module = DownloadedModule {
            path: "sigs.k8s.io/a".to_owned(),
            version: "v1.0.0".to_owned(),
            dir: PathBuf::new(),
            sum: "h1:one=".to_owned(),
        };
        let go_sum = "sigs.k8s.io/a v1.0.0 h1:one=\nsigs.k8s.io/a v1.0.0/go.mod h1:two=\n";
        assert!(is_pinned(&module, go_sum));
        module.sum = "h1:two=".to_owned();
        assert!(!is_pinned(&module, go_sum));
    }

    #[test]
    fn every_module_of_go_mod_has_definitions() {
        let required = GO_MOD.lines().filter(|line| line.starts_with('\t')).count();
        assert_eq!(required, CRD_MODULES.len());
        for module in &CRD_MODULES {
            assert!(GO_MOD.contains(module.path), "{}", module.path);
        }
    }
}
