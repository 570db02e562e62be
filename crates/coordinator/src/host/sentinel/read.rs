//! What a sentinel file says.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use dogwatch_core::reboot::{Fingerprint, TriggerState};
use rustix::fs::OFlags;

use crate::host::{bounded, text};

/// Reads the file at `path`, which is no link. One that is gone again is `Absent`: the watch that
/// was armed before tells what came in its place.
pub(super) fn read(path: &Path, sentinel: &Path) -> TriggerState {
    match bounded::open(path, OFlags::NOFOLLOW).and_then(|file| present(&file)) {
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

fn present(file: &File) -> io::Result<TriggerState> {
    let metadata = file.metadata()?;
    let bytes = bounded::first_bytes(file, text::REASON_BYTES)?;
    Ok(TriggerState::Present {
        fingerprint: fingerprint(&metadata),
        reason: text::reason(&bytes),
    })
}

/// The file's identity and times. A `touch` moves both times, so does a new file.
///
/// Not the device number, though identity would want it: it may differ after a boot (order of
/// disks, btrfs and overlay make one up), and a file that survived would look new, and cause a
/// reboot after each reboot.
fn fingerprint(metadata: &std::fs::Metadata) -> Fingerprint {
    Fingerprint(format!(
        "inode {} mtime {}.{:09} ctime {}.{:09}",
        metadata.ino(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ))
}
