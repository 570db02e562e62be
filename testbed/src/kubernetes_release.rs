//! Which Kubernetes the control plane is: the newest that Dogwatch is tested against, or the oldest
//! on which all of it works.

use std::env;

use crate::Error;

/// Names the Kubernetes of the control plane, for example `1.32`. Without it: the newest.
pub const KUBERNETES_VARIABLE: &str = "DOGWATCH_KUBERNETES";

/// One Kubernetes that `testbed/control-plane` can build.
#[derive(Debug, PartialEq, Eq)]
pub struct KubernetesRelease {
    /// The file's name in `testbed/control-plane`.
    pub(crate) mod_file_name: &'static str,
    required_modules: &'static str,
    module_checksums: &'static str,
}

/// The newest comes first.
const KUBERNETES_RELEASES: [KubernetesRelease; 2] = [
    KubernetesRelease {
        mod_file_name: "go.mod",
        required_modules: include_str!("../control-plane/go.mod"),
        module_checksums: include_str!("../control-plane/go.sum"),
    },
    KubernetesRelease {
        mod_file_name: "go-1.32.mod",
        required_modules: include_str!("../control-plane/go-1.32.mod"),
        module_checksums: include_str!("../control-plane/go-1.32.sum"),
    },
];

impl KubernetesRelease {
    /// The newest release.
    pub(crate) fn newest() -> &'static Self {
        &KUBERNETES_RELEASES[0]
    }

    /// The release that [`KUBERNETES_VARIABLE`] names.
    pub fn selected() -> Result<&'static Self, Error> {
        match env::var(KUBERNETES_VARIABLE) {
            Ok(minor) if !minor.is_empty() => Self::of_minor(&minor),
            Ok(_) | Err(env::VarError::NotPresent) => Ok(Self::newest()),
            Err(env::VarError::NotUnicode(text)) => Self::of_minor(&text.to_string_lossy()),
        }
    }

    /// The release of this `MAJOR.MINOR`.
    fn of_minor(minor: &str) -> Result<&'static Self, Error> {
        let mut all = KUBERNETES_RELEASES.iter();
        let found = all.find(|release| release.minor() == minor);
        found.ok_or_else(|| Error::UnknownKubernetes {
            wanted: minor.to_owned(),
            known: KUBERNETES_RELEASES
                .map(|release| release.minor())
                .join(", "),
        })
    }

    /// The whole version, for example `v1.36.1`.
    pub fn version(&self) -> &'static str {
        self.required_modules
            .lines()
            .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
            .expect("go.mod requires k8s.io/kubernetes")
    }

    /// `MAJOR.MINOR`, for example `1.36`.
    pub fn minor(&self) -> &'static str {
        let version = self.version().trim_start_matches('v');
        let (minor, _patch) = version
            .rsplit_once('.')
            .expect("a Kubernetes version has three parts");
        minor
    }

    /// A change of any of these files triggers a new build.
    pub(crate) fn module_files(&self) -> [&'static str; 2] {
        [self.required_modules, self.module_checksums]
    }

    /// Sets the version; clients read it, and a few behave differently by it.
    pub(crate) fn linker_flags(&self) -> String {
        let version = self.version();
        let (major, minor) = self.minor().split_once('.').expect("MAJOR.MINOR");
        let package = "k8s.io/component-base/version";
        format!(
            "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_clients_read_is_the_one_in_go_mod() {
        for (minor, ends) in [("1.36", "gitMinor=36"), ("1.32", "gitMinor=32")] {
            let release = KubernetesRelease::of_minor(minor).unwrap();
            let flags = release.linker_flags();
            let version = release.version();
            assert!(version.starts_with(&format!("v{minor}.")), "{version}");
            assert!(flags.contains(&format!("gitVersion={version} ")), "{flags}");
            assert!(flags.ends_with(ends), "{flags}");
        }
    }

    #[test]
    fn a_release_that_cannot_be_built_is_refused_with_those_that_can() {
        let error = KubernetesRelease::of_minor("1.9").unwrap_err();
        assert_eq!(
            error.to_string(),
            "build Kubernetes 1.9: set DOGWATCH_KUBERNETES to one of 1.36, 1.32, or to nothing"
        );
    }
}
