//! The names in folders that the sentinels depend on, and their inotify watches.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use inotify::{WatchDescriptor, WatchMask};

/// Events that may change the result of a lookup in a folder. None of them is caused by our own
/// reading.
const CHANGE_MASK: WatchMask = WatchMask::CREATE
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVED_FROM)
    .union(WatchMask::MOVED_TO)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::ATTRIB)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// The watches of one read of all sentinels: about three folders each.
pub(super) struct InotifyWatches {
    kernel: inotify::Watches,
    armed: Vec<FolderWatch>,
    before: Vec<FolderWatch>,
}

struct FolderWatch {
    descriptor: WatchDescriptor,
    names: Vec<OsString>,
}

impl InotifyWatches {
    pub(super) fn new(kernel: inotify::Watches) -> Self {
        Self {
            kernel,
            armed: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Starts a read of all sentinels. The old watches stay until it ends, so that a watch that is
    /// needed again has no gap.
    pub(super) fn begin_read(&mut self) {
        self.before = std::mem::take(&mut self.armed);
    }

    /// From now on, changes of `name` in `folder` are noticed.
    pub(super) fn arm_watch(&mut self, folder: &Path, name: &OsStr) -> io::Result<()> {
        // The kernel returns the old descriptor if the folder is watched already.
        let descriptor = self.kernel.add(folder, CHANGE_MASK)?;
        let name = name.to_owned();
        match self.find_watch(&descriptor) {
            Some(watch) => watch.names.push(name),
            None => self.armed.push(FolderWatch {
                descriptor,
                names: vec![name],
            }),
        }
        Ok(())
    }

    /// Ends the read: watches that it did not need are removed.
    pub(super) fn end_read(&mut self) {
        for old in std::mem::take(&mut self.before) {
            if self.find_watch(&old.descriptor).is_none() {
                // Fails if the kernel has removed the watch with its folder.
                let _ = self.kernel.remove(old.descriptor);
            }
        }
    }

    /// Whether an event may change the last result. An event without a name is about the folder
    /// itself: deleted, moved, unmounted, its rights changed, its watch removed.
    pub(super) fn has_watch_for(&self, descriptor: &WatchDescriptor, name: Option<&OsStr>) -> bool {
        self.armed
            .iter()
            .filter(|watch| watch.descriptor == *descriptor)
            .any(|watch| name.is_none_or(|name| watch.names.iter().any(|known| known == name)))
    }

    fn find_watch(&mut self, descriptor: &WatchDescriptor) -> Option<&mut FolderWatch> {
        self.armed
            .iter_mut()
            .find(|watch| watch.descriptor == *descriptor)
    }
}
