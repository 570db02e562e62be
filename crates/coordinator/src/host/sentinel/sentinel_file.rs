//! Reads one sentinel file.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use dogwatch_core::reboot::{TriggerFingerprint, TriggerState};
use rustix::fs::OFlags;

use crate::host::{bounded_read, text};

/// Reads the file at `path`, which is no symbolic link. If it has vanished, the answer is `Absent`:
/// the watch that was armed before notices its successor.
pub(super) fn read_sentinel_file(path: &Path, sentinel: &Path) -> TriggerState {
    match bounded_read::open_nonblocking(path, OFlags::NOFOLLOW)
        .and_then(|file| read_present_state(&file))
    {
        Ok(state) => state,
        Err(error) if error.kind() == io::ErrorKind::NotFound => TriggerState::Absent,
        Err(error) => TriggerState::Unknown {
            why: format!(
                "cannot read sentinel {}: {error}: give the coordinator the right to read it, or remove it",
                sentinel.display()
            ),
        },
    }
}

fn read_present_state(file: &File) -> io::Result<TriggerState> {
    let metadata = file.metadata()?;
    let bytes = bounded_read::first_bytes(file, text::REASON_BYTES)?;
    Ok(TriggerState::Present {
        fingerprint: file_fingerprint(&metadata),
        reason: text::one_line_reason(&bytes),
    })
}

/// The file's inode and times. A `touch` changes both times, and so does a new file.
///
/// The device number would belong to the identity, but is left out: it may change at a boot (order
/// of disks; btrfs and overlay invent one). A file that survived the boot would then look new and
/// cause a reboot after each reboot.
fn file_fingerprint(metadata: &std::fs::Metadata) -> TriggerFingerprint {
    TriggerFingerprint(format!(
        "inode {} mtime {}.{:09} ctime {}.{:09}",
        metadata.ino(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ))
}
