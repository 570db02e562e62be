//! A node's folder.

use std::io;
use std::path::{Path, PathBuf};

use dogwatch_core::name::BootId;

/// The reboot command: it asks for the power cycle that this process makes, and ends.
const REBOOT: &str = "#!/bin/sh\n# The demo's machine goes down when this file appears.\nprintf 'reboot\\n' > \"$0.request\"\n";

/// The files of one simulated machine.
#[derive(Debug, Clone)]
pub struct HostFiles(PathBuf);

impl HostFiles {
    /// Makes the folder of this node.
    pub fn make(folder: &Path, node: &str) -> io::Result<Self> {
        let files = Self(folder.join(node));
        std::fs::create_dir_all(files.0.join("run"))?;
        std::fs::write(files.command(), REBOOT)?;
        Ok(files)
    }

    /// The sentinel, in a folder that a boot empties.
    pub fn sentinel(&self) -> PathBuf {
        self.0.join("run/reboot-needed")
    }

    /// Where the boot id stands.
    pub fn boot_id(&self) -> PathBuf {
        self.0.join("boot_id")
    }

    /// The reboot command, a shell script.
    pub fn command(&self) -> PathBuf {
        self.0.join("reboot")
    }

    /// What the reboot command makes.
    pub fn request(&self) -> PathBuf {
        self.0.join("reboot.request")
    }

    /// Asks for a reboot.
    pub fn touch(&self, reason: &str) -> io::Result<()> {
        std::fs::write(self.sentinel(), reason)
    }

    /// What a boot does to them.
    pub fn boot(&self, boot: &BootId) -> io::Result<()> {
        for path in [self.sentinel(), self.request()] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        std::fs::write(self.boot_id(), format!("{boot}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_leaves_a_new_boot_id_and_no_sentinel() {
        let folder =
            std::env::temp_dir().join(format!("dogwatch-demo-files-{}", std::process::id()));
        let files = HostFiles::make(&folder, "n1").unwrap();
        files.touch("kernel").unwrap();
        files.boot(&BootId::new("a-boot").unwrap()).unwrap();
        assert!(!files.sentinel().exists());
        assert_eq!(
            std::fs::read_to_string(files.boot_id()).unwrap(),
            "a-boot\n"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
