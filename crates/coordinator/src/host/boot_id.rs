//! The kernel's boot id: the one proof of a reboot (promise S4).

use std::io;
use std::path::{Path, PathBuf};

use dogwatch_core::name::{BadName, BootId};
use rustix::fs::OFlags;

use super::bounded;

/// A boot id is 36 bytes; what is far longer is another file.
const LONGEST: usize = 256;

/// Why there is no boot id.
#[derive(Debug, thiserror::Error)]
pub enum BootIdError {
    /// The file cannot be read.
    #[error("cannot read the boot id from {}: point --boot-id-file at the kernel's boot id, by default /proc/sys/kernel/random/boot_id", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} does not hold a boot id: point --boot-id-file at the kernel's boot id, by default /proc/sys/kernel/random/boot_id", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What rule it breaks.
        source: BadName,
    },
}

/// Reads the boot id. `/proc` shows the same one in every namespace, so this path is never looked
/// up below `--host-root`.
pub fn read(path: &Path) -> Result<BootId, BootIdError> {
    let bytes = bounded::open(path, OFlags::empty())
        .and_then(|file| bounded::first_bytes(&file, LONGEST))
        .map_err(|source| BootIdError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
    BootId::new(String::from_utf8_lossy(&bytes).trim_end()).map_err(|source| BootIdError::Invalid {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn the_running_kernel_has_a_boot_id() {
        let id = read(Path::new("/proc/sys/kernel/random/boot_id")).unwrap();
        assert_eq!(id.as_str().len(), 36, "{id}");
    }

    #[test]
    fn a_missing_file_names_the_file_the_flag_and_the_cause() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boot_id");
        let error = read(&path).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(text.contains("--boot-id-file"), "{text}");
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains("No such file"), "{cause}");
        assert!(!text.contains(&cause), "the cause is said twice");
    }

    #[test]
    fn what_is_no_boot_id_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boot_id");
        let long = "a".repeat(100_000);
        for content in ["", "\n", "two\nlines\n", "with space", &long] {
            std::fs::write(&path, content).unwrap();
            let error = read(&path).unwrap_err();
            assert!(matches!(error, BootIdError::Invalid { .. }), "{error}");
        }
        std::fs::write(&path, "5c8a24a4-2a4b-4a0c-8a51-8e0d3e2f0d6e\n").unwrap();
        assert!(read(&path).is_ok());
    }

    #[test]
    fn a_directory_or_a_fifo_in_its_place_is_an_error_and_no_hang() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).is_err());
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        assert!(read(&fifo).is_err());
    }
}
