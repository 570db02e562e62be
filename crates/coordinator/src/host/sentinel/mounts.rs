//! Watches the kernel's mount table, which wakes its readers when something is mounted or
//! unmounted.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::OFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::host::bounded_read;

pub(super) struct MountTable(AsyncFd<File>);

impl MountTable {
    #[expect(
        deprecated,
        reason = "the successor is `unsafe`, which is forbidden here; a `File` keeps its promise"
    )]
    pub(super) fn open() -> io::Result<Self> {
        let table =
            bounded_read::open_nonblocking(Path::new("/proc/self/mountinfo"), OFlags::empty())?;
        AsyncFd::with_interest(table, Interest::PRIORITY).map(Self)
    }

    /// Returns after a mount change. The kernel signals a change as an exceptional condition
    /// (`POLLPRI`), once per poll (`proc_pid_mounts(5)`); nothing has to be read.
    pub(super) async fn wait_for_change(&mut self) -> io::Result<()> {
        let mut ready = self.0.ready(Interest::PRIORITY).await?;
        ready.clear_ready();
        Ok(())
    }
}
