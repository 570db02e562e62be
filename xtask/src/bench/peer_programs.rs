//! Programs of other projects that the benches measure beside ours.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

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
    /// Names the given programs in the environment of a bench.
    pub fn add_to_environment(&self, command: &mut Command) -> Result<()> {
        let given = [
            ("KURED", &self.kured),
            ("BMO", &self.bmo),
            ("BMO_CRDS", &self.bmo_crds),
        ];
        for (variable, path) in given {
            let Some(path) = path else { continue };
            // A bench runs in the folder of its package.
            let path = path
                .canonicalize()
                .with_context(|| format!("{} cannot be read", path.display()))?;
            command.env(variable, path);
        }
        Ok(())
    }
}
