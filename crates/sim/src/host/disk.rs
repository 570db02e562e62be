//! The files of a simulated host that a coordinator looks at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dogwatch_core::reboot::{Fingerprint, TriggerSeen, TriggerState};
use tokio::sync::watch;

/// Files below this folder are gone after a boot: it is a tmpfs.
const VOLATILE: &str = "/run/";

/// A host's files. Cheap to clone: all clones are one disk.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: Mutex<Files>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Files {
    written: u64,
    files: BTreeMap<String, File>,
}

#[derive(Debug, Clone)]
struct File {
    /// Stands for inode and times: no two writes share it.
    serial: u64,
    content: Result<String, String>,
}

impl Default for Disk {
    fn default() -> Self {
        let (changed, _) = watch::channel(0);
        Self(Arc::new(Inner {
            files: Mutex::default(),
            changed,
        }))
    }
}

impl Disk {
    /// Creates the file, or touches it anew.
    pub fn touch(&self, path: &str, content: &str) {
        self.write(path, Ok(content.to_owned()));
    }

    /// Makes the file unreadable.
    pub fn break_file(&self, path: &str, why: &str) {
        self.write(path, Err(why.to_owned()));
    }

    /// Removes the file.
    pub fn remove(&self, path: &str) {
        self.change(|files| {
            files.files.remove(path);
        });
    }

    /// What a boot leaves.
    pub fn boot(&self) {
        self.change(|files| files.files.retain(|path, _| !path.starts_with(VOLATILE)));
    }

    /// Follows changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// What a sentinel at this path says.
    pub fn look(&self, path: &str) -> TriggerSeen {
        let files = self
            .0
            .files
            .lock()
            .expect("nothing panics while files change");
        let state = match files.files.get(path) {
            None => TriggerState::Absent,
            Some(File {
                content: Err(why), ..
            }) => TriggerState::Unknown { why: why.clone() },
            Some(File {
                content: Ok(reason),
                serial,
            }) => TriggerState::Present {
                fingerprint: Fingerprint(format!("write-{serial}")),
                reason: reason.clone(),
            },
        };
        TriggerSeen {
            source: format!("sentinel:{path}"),
            state,
        }
    }

    fn write(&self, path: &str, content: Result<String, String>) {
        self.change(|files| {
            files.written += 1;
            let file = File {
                serial: files.written,
                content,
            };
            files.files.insert(path.to_owned(), file);
        });
    }

    fn change(&self, change: impl FnOnce(&mut Files)) {
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

    fn fingerprint(disk: &Disk, path: &str) -> Option<Fingerprint> {
        match disk.look(path).state {
            TriggerState::Present { fingerprint, .. } => Some(fingerprint),
            TriggerState::Absent | TriggerState::Unknown { .. } => None,
        }
    }

    #[test]
    fn run_is_empty_after_a_boot_and_var_is_not() {
        let disk = Disk::default();
        disk.touch("/run/reboot-needed", "x");
        disk.touch("/var/reboot-needed", "x");
        let before = fingerprint(&disk, "/var/reboot-needed");
        disk.boot();
        assert_eq!(fingerprint(&disk, "/run/reboot-needed"), None);
        assert_eq!(fingerprint(&disk, "/var/reboot-needed"), before);
    }

    #[test]
    fn touching_anew_is_another_appearance() {
        let disk = Disk::default();
        disk.touch("/var/a", "x");
        let first = fingerprint(&disk, "/var/a");
        disk.touch("/var/a", "x");
        assert_ne!(fingerprint(&disk, "/var/a"), first);
    }
}
