//! Reads files of the host without trusting their kind or size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens without waiting: a FIFO in the place of a file must not block us.
pub(crate) fn open_nonblocking(path: &Path, extra: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | extra;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Reads `limit` bytes and one more, so that the caller can tell a longer file from one of exactly
/// `limit` bytes.
pub(crate) fn first_bytes(file: &File, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(256);
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
