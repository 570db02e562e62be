//! The folder of one simulated machine.

use std::io;
use std::path::{Path, PathBuf};

use dogwatch_core::name::BootId;

/// The reboot command: it creates a file that asks this process for a power cycle, and ends.
const REBOOT_SCRIPT: &str = "#!/bin/sh\n# The demo's machine goes down when this file appears.\nprintf 'reboot\\n' > \"$0.request\"\n";

#[derive(Debug, Clone)]
pub struct HostFiles(PathBuf);

impl HostFiles {
    pub fn create_folder(folder: &Path, node: &str) -> io::Result<Self> {
        let files = Self(folder.join(node));
        std::fs::create_dir_all(files.0.join("run"))?;
        std::fs::write(files.command_path(), REBOOT_SCRIPT)?;
        Ok(files)
    }

    /// The sentinel, in a folder that a boot empties.
    pub fn sentinel_path(&self) -> PathBuf {
        self.0.join("run/reboot-needed")
    }

    pub fn boot_id_path(&self) -> PathBuf {
        self.0.join("boot_id")
    }

    /// The reboot command, a shell script.
    pub fn command_path(&self) -> PathBuf {
        self.0.join("reboot")
    }

    /// The file that the reboot command creates.
    pub fn request_path(&self) -> PathBuf {
        self.0.join("reboot.request")
    }

    pub fn touch_sentinel(&self, reason: &str) -> io::Result<()> {
        std::fs::write(self.sentinel_path(), reason)
    }

    /// Applies a boot: removes sentinel and request, and writes the new boot id.
    pub fn apply_boot(&self, boot: &BootId) -> io::Result<()> {
        for path in [self.sentinel_path(), self.request_path()] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        std::fs::write(self.boot_id_path(), format!("{boot}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_leaves_a_new_boot_id_and_no_sentinel() {
        let folder =
            std::env::temp_dir().join(format!("dogwatch-demo-files-{}", std::process::id()));
        let files = HostFiles::create_folder(&folder, "n1").unwrap();
        files.touch_sentinel("kernel").unwrap();
        files.apply_boot(&BootId::new("a-boot").unwrap()).unwrap();
        assert!(!files.sentinel_path().exists());
        assert_eq!(
            std::fs::read_to_string(files.boot_id_path()).unwrap(),
            "a-boot\n"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }
}
