//! Sentinel files: a file that exists asks for a reboot. Source: specification §2.1.
//!
//! **For:** [`watch`], a channel that always holds what every sentinel says now.
//! **May touch:** the sentinels' folders by one inotify instance, and the files to read them.
//! **Promises:** no polling. No change is missed: each look-up arms its watches before it reads,
//! and every folder and link on the way is watched, so that a folder that appears later, is moved
//! away or replaced is noticed. What cannot be read is `Unknown`, never `Absent`.
//!
//! Not noticed by inotify itself: a file system mounted over one of the folders. Therefore the
//! kernel's table of mounts is watched too, by its own wake-up (`proc_pid_mountinfo(5)`).

mod lookup;
mod mounts;
mod read;
mod watches;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dogwatch_core::reboot::{TriggerSeen, TriggerState};
use futures::StreamExt as _;
use inotify::{EventMask, EventOwned, EventStream, Inotify};
use tokio::sync::watch;

use self::mounts::Mounts;
use self::watches::Watches;

/// The file of this path below the root, by links that stay inside it; or why there is none.
pub(crate) fn find_below(root: &Path, path: &Path) -> Result<PathBuf, String> {
    match lookup::look_up(root, path, &mut |_, _| Ok(())) {
        Ok(lookup::Found::File(file)) => Ok(file),
        Ok(lookup::Found::Nothing) => Err("it is not there".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// How long to wait for the kernel to grant another inotify instance after it took one away.
/// It has never been seen to; a minute keeps such a host from spinning.
const REOPEN_AFTER: Duration = Duration::from_mins(1);

/// Room for at least 15 events with the longest names; more only saves system calls.
const EVENT_BUFFER: usize = 4096;

/// Why sentinels cannot be watched at all.
#[derive(Debug, thiserror::Error)]
pub enum SentinelError {
    /// A path that is not absolute names nothing on a host.
    #[error("sentinel {} is not an absolute path: write it like /run/reboot-needed", .0.display())]
    NotAbsolute(PathBuf),
    /// A path such as `/` or `/run/..`.
    #[error("sentinel {} names no file: write it like /run/reboot-needed", .0.display())]
    NoFile(PathBuf),
    /// No inotify instance to be had.
    #[error(
        "cannot watch sentinel files: raise fs.inotify.max_user_instances, or give fewer programs a watch"
    )]
    NoInotify(#[source] io::Error),
}

/// Watches the sentinels below `root` (`--host-root`; links are followed inside it).
///
/// The channel holds one [`TriggerSeen`] per path, in the order given, from the first moment on. A
/// task of the current tokio runtime keeps it true, until every receiver is gone.
pub fn watch(
    root: &Path,
    sentinels: &[PathBuf],
) -> Result<watch::Receiver<Vec<TriggerSeen>>, SentinelError> {
    for sentinel in sentinels {
        check(sentinel)?;
    }
    let mut sight = Sight {
        root: root.to_owned(),
        sentinels: sentinels.to_vec(),
    };
    let mut eyes = Eyes::open().map_err(SentinelError::NoInotify)?;
    let (sender, receiver) = watch::channel(sight.look(&mut eyes.watches));
    tokio::spawn(async move {
        tokio::select! {
            () = sender.closed() => {}
            () = sight.follow(eyes, &sender) => {}
        }
    });
    Ok(receiver)
}

/// What one sentinel says at this moment, without a watch.
pub fn read_once(root: &Path, sentinel: &Path) -> TriggerSeen {
    seen(root, sentinel, &mut |_, _| Ok(()))
}

fn check(sentinel: &Path) -> Result<(), SentinelError> {
    if !sentinel.is_absolute() {
        return Err(SentinelError::NotAbsolute(sentinel.to_owned()));
    }
    match sentinel.file_name() {
        Some(_) => Ok(()),
        None => Err(SentinelError::NoFile(sentinel.to_owned())),
    }
}

/// What to look at.
struct Sight {
    root: PathBuf,
    sentinels: Vec<PathBuf>,
}

impl Sight {
    /// Reads every sentinel, having armed the watches that will tell of the next change.
    fn look(&mut self, watches: &mut Watches) -> Vec<TriggerSeen> {
        watches.begin();
        let seen = self
            .sentinels
            .iter()
            .map(|sentinel| {
                seen(&self.root, sentinel, &mut |folder, name| {
                    watches.arm(folder, name)
                })
            })
            .collect();
        watches.end();
        seen
    }

    /// Keeps the channel true for ever.
    async fn follow(&mut self, mut eyes: Eyes, sender: &watch::Sender<Vec<TriggerSeen>>) {
        loop {
            let error = self.follow_until_broken(&mut eyes, sender).await;
            tracing::warn!(%error, "watch of sentinel files broke");
            publish(sender, self.all_unknown(&error));
            eyes = loop {
                match Eyes::open() {
                    Ok(eyes) => break eyes,
                    Err(error) => tracing::warn!(%error, "cannot watch sentinel files"),
                }
                tokio::time::sleep(REOPEN_AFTER).await;
            };
            publish(sender, self.look(&mut eyes.watches));
        }
    }

    async fn follow_until_broken(
        &mut self,
        eyes: &mut Eyes,
        sender: &watch::Sender<Vec<TriggerSeen>>,
    ) -> io::Error {
        loop {
            if let Err(error) = eyes.change().await {
                return error;
            }
            publish(sender, self.look(&mut eyes.watches));
        }
    }

    fn all_unknown(&self, error: &io::Error) -> Vec<TriggerSeen> {
        self.sentinels
            .iter()
            .map(|sentinel| TriggerSeen {
                source: source(sentinel),
                state: TriggerState::Unknown {
                    why: format!("the watch of {} broke: {error}", sentinel.display()),
                },
            })
            .collect()
    }
}

/// One inotify instance, and the table of mounts.
struct Eyes {
    events: EventStream<[u8; EVENT_BUFFER]>,
    watches: Watches,
    mounts: Option<Mounts>,
}

impl Eyes {
    fn open() -> io::Result<Self> {
        let events = Inotify::init()?.into_event_stream([0; EVENT_BUFFER])?;
        let watches = Watches::new(events.watches());
        let mounts = Mounts::open()
            .inspect_err(|error| tracing::warn!(%error, "mounts are not watched: a file system mounted over a sentinel's folder is noticed with the next change only"))
            .ok();
        Ok(Self {
            events,
            watches,
            mounts,
        })
    }

    /// Returns once something happened that a look-up could see.
    async fn change(&mut self) -> io::Result<()> {
        loop {
            tokio::select! {
                event = self.events.next() => {
                    let event = event.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
                    if concerns_us(&event, &self.watches) {
                        return Ok(());
                    }
                }
                changed = mounts_change(&mut self.mounts) => return changed,
            }
        }
    }
}

async fn mounts_change(mounts: &mut Option<Mounts>) -> io::Result<()> {
    match mounts {
        Some(mounts) => mounts.change().await,
        None => std::future::pending().await,
    }
}

/// After an overflow anything may have happened.
fn concerns_us(event: &EventOwned, watches: &Watches) -> bool {
    event.mask.contains(EventMask::Q_OVERFLOW) || watches.concern(&event.wd, event.name.as_deref())
}

fn publish(sender: &watch::Sender<Vec<TriggerSeen>>, seen: Vec<TriggerSeen>) {
    sender.send_if_modified(|held| {
        let changed = *held != seen;
        *held = seen;
        changed
    });
}

fn seen(
    root: &Path,
    sentinel: &Path,
    arm: &mut dyn FnMut(&Path, &std::ffi::OsStr) -> io::Result<()>,
) -> TriggerSeen {
    let state = match lookup::look_up(root, sentinel, arm) {
        Ok(lookup::Found::File(path)) => read::read(&path, sentinel),
        Ok(lookup::Found::Nothing) => TriggerState::Absent,
        Err(error) => TriggerState::Unknown {
            why: error.explain(sentinel),
        },
    };
    TriggerSeen {
        source: source(sentinel),
        state,
    }
}

fn source(sentinel: &Path) -> String {
    format!("sentinel:{}", sentinel.display())
}

#[cfg(test)]
mod tests;
