//! Which names in which folders the sentinels depend on, and their inotify watches.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use inotify::{WatchDescriptor, WatchMask};

/// What may change the answer to a look-up in a folder. Nothing that our own reading causes.
const CHANGES: WatchMask = WatchMask::CREATE
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVED_FROM)
    .union(WatchMask::MOVED_TO)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::ATTRIB)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// The watches of one look at all sentinels: some three folders each.
pub(super) struct Watches {
    kernel: inotify::Watches,
    armed: Vec<Watch>,
    before: Vec<Watch>,
}

struct Watch {
    descriptor: WatchDescriptor,
    names: Vec<OsString>,
}

impl Watches {
    pub(super) fn new(kernel: inotify::Watches) -> Self {
        Self {
            kernel,
            armed: Vec::new(),
            before: Vec::new(),
        }
    }

    /// A new look begins. The old watches stay until it ends: one that is needed again must not
    /// have a gap.
    pub(super) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.armed);
    }

    /// From now on a change of `name` in `folder` is told.
    pub(super) fn arm(&mut self, folder: &Path, name: &OsStr) -> io::Result<()> {
        // The kernel answers with the old descriptor where the same folder is watched already.
        let descriptor = self.kernel.add(folder, CHANGES)?;
        let name = name.to_owned();
        match self.find(&descriptor) {
            Some(watch) => watch.names.push(name),
            None => self.armed.push(Watch {
                descriptor,
                names: vec![name],
            }),
        }
        Ok(())
    }

    /// The look is over: what it did not need is not watched any more.
    pub(super) fn end(&mut self) {
        for old in std::mem::take(&mut self.before) {
            if self.find(&old.descriptor).is_none() {
                // It fails where the kernel has removed it already, with its folder.
                let _ = self.kernel.remove(old.descriptor);
            }
        }
    }

    /// Whether an event may change what the last look saw. One without a name is about the folder
    /// itself: deleted, moved, unmounted, its rights changed, its watch gone.
    pub(super) fn concern(&self, descriptor: &WatchDescriptor, name: Option<&OsStr>) -> bool {
        self.armed
            .iter()
            .filter(|watch| watch.descriptor == *descriptor)
            .any(|watch| name.is_none_or(|name| watch.names.iter().any(|known| known == name)))
    }

    fn find(&mut self, descriptor: &WatchDescriptor) -> Option<&mut Watch> {
        self.armed
            .iter_mut()
            .find(|watch| watch.descriptor == *descriptor)
    }
}
