//! Watches sentinel files: a file that exists requests a reboot. Source: specification §2.1.
//!
//! **For:** [`watch_sentinels`], a channel that always holds the current state of every sentinel.
//! **May touch:** the sentinels' folders by one inotify instance, and the files to read them.
//! **Promises:** no polling. No change is missed: each lookup arms its watches before it reads, and
//! every folder and link on the path is watched, so that a folder that is created later, moved away
//! or replaced is noticed. A sentinel that cannot be read is `Unknown`, never `Absent`.
//!
//! inotify itself does not notice a file system that is mounted over one of the folders. Therefore
//! the kernel's mount table is watched too, with its own wake-up (`proc_pid_mountinfo(5)`).

mod lookup;
mod mounts;
mod sentinel_file;
mod watches;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dogwatch_core::reboot::{ObservedTrigger, TriggerState};
use futures::StreamExt as _;
use inotify::{EventMask, EventOwned, EventStream, Inotify};
use tokio::sync::watch;

use self::mounts::MountTable;
use self::watches::InotifyWatches;

/// The file of this path below the root, with symbolic links followed inside the root only; or why
/// there is none.
pub(crate) fn find_file_below(root: &Path, path: &Path) -> Result<PathBuf, String> {
    match lookup::look_up_path(root, path, &mut |_, _| Ok(())) {
        Ok(lookup::SentinelLookup::File(file)) => Ok(file),
        Ok(lookup::SentinelLookup::Nothing) => Err("it is not there".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Pause before another inotify instance is requested after the kernel took one away. This was
/// never observed; a minute keeps such a host from spinning.
const REOPEN_INTERVAL: Duration = Duration::from_mins(1);

/// Room for at least 15 events with the longest names; more would only save system calls.
const EVENT_BUFFER_BYTES: usize = 4096;

/// Why sentinels cannot be watched at all.
#[derive(Debug, thiserror::Error)]
pub enum SentinelError {
    /// The path is not absolute.
    #[error("sentinel {} is not an absolute path: write it like /run/reboot-needed", .0.display())]
    NotAbsolute(PathBuf),
    /// A path such as `/` or `/run/..`.
    #[error("sentinel {} names no file: write it like /run/reboot-needed", .0.display())]
    NoFile(PathBuf),
    /// No inotify instance is available.
    #[error(
        "cannot watch sentinel files: raise fs.inotify.max_user_instances, or let fewer programs on this host use inotify"
    )]
    NoInotify(#[source] io::Error),
}

/// Watches the sentinels below `root` (`--host-root`; symbolic links are followed inside it).
///
/// The channel holds one [`ObservedTrigger`] per path, in the given order, from the start. A task
/// of the current tokio runtime keeps it up to date until every receiver is dropped.
pub fn watch_sentinels(
    root: &Path,
    sentinels: &[PathBuf],
) -> Result<watch::Receiver<Vec<ObservedTrigger>>, SentinelError> {
    for sentinel in sentinels {
        check_sentinel_path(sentinel)?;
    }
    let mut sight = SentinelWatcher {
        root: root.to_owned(),
        sentinels: sentinels.to_vec(),
    };
    let mut eyes = SentinelChanges::open().map_err(SentinelError::NoInotify)?;
    let (sender, receiver) = watch::channel(sight.read_sentinels(&mut eyes.watches));
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = sender.closed() => {}
            () = sight.follow_changes(eyes, &sender) => {}
        }
    });
    Ok(receiver)
}

/// The current state of one sentinel, without a watch.
pub fn read_sentinel_once(root: &Path, sentinel: &Path) -> ObservedTrigger {
    read_trigger(root, sentinel, &mut |_, _| Ok(()))
}

fn check_sentinel_path(sentinel: &Path) -> Result<(), SentinelError> {
    if !sentinel.is_absolute() {
        return Err(SentinelError::NotAbsolute(sentinel.to_owned()));
    }
    match sentinel.file_name() {
        Some(_) => Ok(()),
        None => Err(SentinelError::NoFile(sentinel.to_owned())),
    }
}

struct SentinelWatcher {
    root: PathBuf,
    sentinels: Vec<PathBuf>,
}

impl SentinelWatcher {
    /// Reads every sentinel after arming the watches that notice the next change.
    fn read_sentinels(&mut self, watches: &mut InotifyWatches) -> Vec<ObservedTrigger> {
        watches.begin_read();
        let seen = self
            .sentinels
            .iter()
            .map(|sentinel| {
                read_trigger(&self.root, sentinel, &mut |folder, name| {
                    watches.arm_watch(folder, name)
                })
            })
            .collect();
        watches.end_read();
        seen
    }

    /// Keeps the channel up to date for ever.
    async fn follow_changes(
        &mut self,
        mut eyes: SentinelChanges,
        sender: &watch::Sender<Vec<ObservedTrigger>>,
    ) {
        loop {
            let error = self.follow_until_broken(&mut eyes, sender).await;
            tracing::warn!(%error, "the watch of the sentinel files failed");
            publish_triggers(sender, self.all_unknown(&error));
            eyes = loop {
                match SentinelChanges::open() {
                    Ok(eyes) => break eyes,
                    Err(error) => tracing::warn!(%error, "cannot watch sentinel files"),
                }
                tokio::time::sleep(REOPEN_INTERVAL).await;
            };
            publish_triggers(sender, self.read_sentinels(&mut eyes.watches));
        }
    }

    async fn follow_until_broken(
        &mut self,
        eyes: &mut SentinelChanges,
        sender: &watch::Sender<Vec<ObservedTrigger>>,
    ) -> io::Error {
        loop {
            if let Err(error) = eyes.wait_for_change().await {
                return error;
            }
            publish_triggers(sender, self.read_sentinels(&mut eyes.watches));
        }
    }

    fn all_unknown(&self, error: &io::Error) -> Vec<ObservedTrigger> {
        self.sentinels
            .iter()
            .map(|sentinel| ObservedTrigger {
                source: trigger_source(sentinel),
                state: TriggerState::Unknown {
                    why: format!("the watch of {} failed: {error}", sentinel.display()),
                },
            })
            .collect()
    }
}

/// One inotify instance, and the mount table.
struct SentinelChanges {
    events: EventStream<[u8; EVENT_BUFFER_BYTES]>,
    watches: InotifyWatches,
    mounts: Option<MountTable>,
}

impl SentinelChanges {
    fn open() -> io::Result<Self> {
        let events = Inotify::init()?.into_event_stream([0; EVENT_BUFFER_BYTES])?;
        let watches = InotifyWatches::new(events.watches());
        let mounts = MountTable::open()
            .inspect_err(|error| tracing::warn!(%error, "mounts cannot be watched: if a file system is mounted over a sentinel's folder, the coordinator notices it only with the next change"))
            .ok();
        Ok(Self {
            events,
            watches,
            mounts,
        })
    }

    /// Returns after a change that a lookup could see.
    async fn wait_for_change(&mut self) -> io::Result<()> {
        loop {
            tokio::select! {
                biased;
                changed = wait_for_mount_change(&mut self.mounts) => return changed,
                event = self.events.next() => {
                    let event = event.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
                    if is_relevant_event(&event, &self.watches) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

async fn wait_for_mount_change(mounts: &mut Option<MountTable>) -> io::Result<()> {
    match mounts {
        Some(mounts) => mounts.wait_for_change().await,
        None => std::future::pending().await,
    }
}

/// After an overflow, any change may have been lost.
fn is_relevant_event(event: &EventOwned, watches: &InotifyWatches) -> bool {
    event.mask.contains(EventMask::Q_OVERFLOW)
        || watches.has_watch_for(&event.wd, event.name.as_deref())
}

fn publish_triggers(sender: &watch::Sender<Vec<ObservedTrigger>>, seen: Vec<ObservedTrigger>) {
    sender.send_if_modified(|held| {
        let changed = *held != seen;
        *held = seen;
        changed
    });
}

fn read_trigger(
    root: &Path,
    sentinel: &Path,
    arm: &mut dyn FnMut(&Path, &std::ffi::OsStr) -> io::Result<()>,
) -> ObservedTrigger {
    let state = match lookup::look_up_path(root, sentinel, arm) {
        Ok(lookup::SentinelLookup::File(path)) => {
            sentinel_file::read_sentinel_file(&path, sentinel)
        }
        Ok(lookup::SentinelLookup::Nothing) => TriggerState::Absent,
        Err(error) => TriggerState::Unknown {
            why: error.explain_error(sentinel),
        },
    };
    ObservedTrigger {
        source: trigger_source(sentinel),
        state,
    }
}

fn trigger_source(sentinel: &Path) -> String {
    format!("sentinel:{}", sentinel.display())
}

#[cfg(test)]
mod tests;
