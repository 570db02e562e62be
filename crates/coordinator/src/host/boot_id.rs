//! Reads the kernel's boot id: the only proof of a reboot (promise S4).

use std::io;
use std::path::{Path, PathBuf};

use dogwatch_core::name::{BadName, BootId};
use rustix::fs::OFlags;

use super::bounded_read;

/// A boot id has 36 bytes; a much longer file is not a boot id.
const BOOT_ID_MAX_BYTES: usize = 256;

#[derive(Debug, thiserror::Error)]
pub enum BootIdError {
    #[error("cannot read the boot id from {}: point --boot-id-file at the kernel's boot id, by default /proc/sys/kernel/random/boot_id", path.display())]
    Unreadable {
        /// `--boot-id-file`.
        path: PathBuf,
        source: io::Error,
    },
    /// The file's content is no boot id.
    #[error("{} does not hold a boot id: point --boot-id-file at the kernel's boot id, by default /proc/sys/kernel/random/boot_id", path.display())]
    Invalid {
        path: PathBuf,
        /// The rule that the content breaks.
        source: BadName,
    },
}

/// `/proc` shows the same boot id in every namespace, so this path is never looked up below
/// `--host-root`.
pub fn read_boot_id(path: &Path) -> Result<BootId, BootIdError> {
    let bytes = bounded_read::open_nonblocking(path, OFlags::empty())
        .and_then(|file| bounded_read::first_bytes(&file, BOOT_ID_MAX_BYTES))
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
        let id = read_boot_id(Path::new("/proc/sys/kernel/random/boot_id")).unwrap();
        assert_eq!(id.as_str().len(), 36, "{id}");
    }

    #[test]
    fn a_missing_file_names_the_file_the_flag_and_the_cause() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boot_id");
        let error = read_boot_id(&path).unwrap_err();
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
            let error = read_boot_id(&path).unwrap_err();
            assert!(matches!(error, BootIdError::Invalid { .. }), "{error}");
        }
        std::fs::write(&path, "5c8a24a4-2a4b-4a0c-8a51-8e0d3e2f0d6e\n").unwrap();
        assert!(read_boot_id(&path).is_ok());
    }

    #[test]
    fn a_directory_or_a_fifo_in_its_place_is_an_error_and_no_hang() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_boot_id(folder.path()).is_err());
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR).unwrap();
        assert!(read_boot_id(&fifo).is_err());
    }
}
