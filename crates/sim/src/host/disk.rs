//! The files of a simulated host that a coordinator reads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_core::reboot::{ObservedTrigger, TriggerFingerprint, TriggerState};
use tokio::sync::watch;

/// A tmpfs: a boot deletes the files below this folder.
const TMPFS_FOLDER: &str = "/run/";

/// A host's files. Clones share one disk.
#[derive(Debug, Clone)]
pub struct SimDisk(Arc<DiskInner>);

#[derive(Debug)]
struct DiskInner {
    files: Mutex<DiskFiles>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct DiskFiles {
    written: u64,
    files: BTreeMap<String, DiskFile>,
}

#[derive(Debug, Clone)]
struct DiskFile {
    /// Stands for inode and times: no two writes have the same value.
    serial: u64,
    content: Result<String, String>,
}

impl Default for SimDisk {
    fn default() -> Self {
        let (changed, _) = watch::channel(0);
        Self(Arc::new(DiskInner {
            files: Mutex::default(),
            changed,
        }))
    }
}

impl SimDisk {
    /// Creates the file, or updates it.
    pub fn touch_file(&self, path: &str, content: &str) {
        self.write_file(path, Ok(content.to_owned()));
    }

    /// Makes reads of the file fail.
    pub fn break_file(&self, path: &str, why: &str) {
        self.write_file(path, Err(why.to_owned()));
    }

    pub fn remove_file(&self, path: &str) {
        self.change_files(|files| {
            files.files.remove(path);
        });
    }

    /// Deletes the files that do not survive a boot.
    pub fn clear_volatile_files(&self) {
        self.change_files(|files| {
            files
                .files
                .retain(|path, _| !path.starts_with(TMPFS_FOLDER));
        });
    }

    pub fn watch_changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// Reads the sentinel at this path.
    pub fn read_sentinel(&self, path: &str) -> ObservedTrigger {
        let files = self
            .0
            .files
            .lock()
            .expect("nothing panics while files change");
        let state = match files.files.get(path) {
            None => TriggerState::Absent,
            Some(DiskFile {
                content: Err(why), ..
            }) => TriggerState::Unknown { why: why.clone() },
            Some(DiskFile {
                content: Ok(reason),
                serial,
            }) => TriggerState::Present {
                fingerprint: TriggerFingerprint(format!("write-{serial}")),
                reason: reason.clone(),
            },
        };
        ObservedTrigger {
            source: format!("sentinel:{path}"),
            state,
        }
    }

    fn write_file(&self, path: &str, content: Result<String, String>) {
        self.change_files(|files| {
            files.written += 1;
            let file = DiskFile {
                serial: files.written,
                content,
            };
            files.files.insert(path.to_owned(), file);
        });
    }

    fn change_files(&self, change: impl FnOnce(&mut DiskFiles)) {
        change(
            &mut self
                .0
                .files
                .lock()
                .expect("nothing panics while files change"),
        );
        self.0.changed.send_modify(|version| *version += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(disk: &SimDisk, path: &str) -> Option<TriggerFingerprint> {
        match disk.read_sentinel(path).state {
            TriggerState::Present { fingerprint, .. } => Some(fingerprint),
            TriggerState::Absent | TriggerState::Unknown { .. } => None,
        }
    }

    #[test]
    fn run_is_empty_after_a_boot_and_var_is_not() {
        let disk = SimDisk::default();
        disk.touch_file("/run/reboot-needed", "x");
        disk.touch_file("/var/reboot-needed", "x");
        let before = fingerprint(&disk, "/var/reboot-needed");
        disk.clear_volatile_files();
        assert_eq!(fingerprint(&disk, "/run/reboot-needed"), None);
        assert_eq!(fingerprint(&disk, "/var/reboot-needed"), before);
    }

    #[test]
    fn touching_anew_is_another_appearance() {
        let disk = SimDisk::default();
        disk.touch_file("/var/a", "x");
        let first = fingerprint(&disk, "/var/a");
        disk.touch_file("/var/a", "x");
        assert_ne!(fingerprint(&disk, "/var/a"), first);
    }
}
