//! Programs of other projects that the benches measure beside ours.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::BenchEnvironment;

#[derive(clap::Args)]
pub struct PeerPrograms {
    /// kured's program, for the bench kured. In a clone of its repository: go build -o PATH ./cmd/kured
    #[arg(long, value_name = "PATH")]
    kured: Option<PathBuf>,

    /// metal3's baremetal-operator, for the bench power. In a clone of its repository: go build -o PATH .
    #[arg(long, value_name = "PATH", requires = "bmo_crds")]
    bmo: Option<PathBuf>,

    /// The folder of its CRDs, which is config/base/crds/bases in its repository
    #[arg(long, value_name = "FOLDER", requires = "bmo")]
    bmo_crds: Option<PathBuf>,
}

impl PeerPrograms {
    /// The variables that name the given programs to a bench.
    pub fn list_environment(&self) -> Result<BenchEnvironment> {
        let given = [
            ("KURED", &self.kured),
            ("BMO", &self.bmo),
            ("BMO_CRDS", &self.bmo_crds),
        ];
        let mut environment = Vec::new();
        for (variable, path) in given {
            let Some(path) = path else { continue };
            // A bench runs in the folder of its package.
            let path = path
                .canonicalize()
                .with_context(|| format!("{} cannot be read", path.display()))?;
            environment.push((variable, path.into_os_string()));
        }
        Ok(environment)
    }
}
