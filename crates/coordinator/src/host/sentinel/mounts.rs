//! The kernel's table of mounts, which wakes its readers when something is mounted or unmounted.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::OFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::host::bounded;

/// An open table of mounts.
pub(super) struct Mounts(AsyncFd<File>);

impl Mounts {
    #[expect(
        deprecated,
        reason = "the successor is `unsafe`, which is forbidden here; a `File` keeps its promise"
    )]
    pub(super) fn open() -> io::Result<Self> {
        let table = bounded::open(Path::new("/proc/self/mountinfo"), OFlags::empty())?;
        AsyncFd::with_interest(table, Interest::PRIORITY).map(Self)
    }

    /// Returns when a mount changed. The kernel marks a change as an urgent one, once for each
    /// poll (`proc_pid_mounts(5)`); nothing has to be read.
    pub(super) async fn change(&mut self) -> io::Result<()> {
        let mut ready = self.0.ready(Interest::PRIORITY).await?;
        ready.clear_ready();
        Ok(())
    }
}
