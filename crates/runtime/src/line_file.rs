//! A file of lines, bounded in size, written by a thread of its own: the caller never waits for a
//! disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::mutex::lock_ignoring_poison;

/// How many lines may wait for the disk.
const MAX_WAITING_LINES: usize = 1024;

/// How long the end of the process waits for the last lines.
const LAST_LINES_TIMEOUT: Duration = Duration::from_secs(2);

/// Writes lines to a file. When the file is full, it becomes `FILE.1`, and the one before is gone.
#[derive(Debug)]
pub struct LineFile {
    /// `None` only while it is dropped.
    lines: Option<SyncSender<String>>,
    lost: Arc<AtomicU64>,
    /// Tells that the thread has written everything. The lock only makes the file shareable.
    written: Mutex<Receiver<()>>,
}

impl LineFile {
    /// Opens the file, or says why it cannot be opened. New lines go to its end. Half a line, which
    /// a process that was killed left there, is removed.
    pub fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = open_for_append(path)?;
        remove_half_line(path, &file)?;
        let written = file.metadata()?.len();
        let (lines, queue) = sync_channel(MAX_WAITING_LINES);
        let mut rotated = RotatedFile {
            path: path.to_owned(),
            file,
            written,
            max_bytes,
        };
        let (done, written_all) = sync_channel(1);
        std::thread::Builder::new()
            .name("line-file".into())
            .spawn(move || {
                rotated.write_lines(&queue);
                // Nobody waits for it any more after a timeout.
                let _ = done.send(());
            })?;
        Ok(Self {
            lines: Some(lines),
            lost: Arc::new(AtomicU64::new(0)),
            written: Mutex::new(written_all),
        })
    }

    /// Queues a line, or counts it as lost if the disk is too slow. Never waits.
    pub fn push_line(&self, line: String) {
        match self.lines.as_ref().map(|lines| lines.try_send(line)) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) | None => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// How many lines were lost since the last call.
    pub fn take_lost_lines(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl Drop for LineFile {
    /// The last lines are written before the process ends, unless the disk hangs.
    fn drop(&mut self) {
        self.lines = None;
        let _ = lock_ignoring_poison(&self.written).recv_timeout(LAST_LINES_TIMEOUT);
    }
}

struct RotatedFile {
    path: PathBuf,
    file: File,
    written: u64,
    max_bytes: u64,
}

fn open_for_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn remove_half_line(path: &Path, file: &File) -> io::Result<()> {
    let text = std::fs::read(path)?;
    let whole = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1);
    if whole < text.len() {
        file.set_len(u64::try_from(whole).unwrap_or(u64::MAX))?;
    }
    Ok(())
}

impl RotatedFile {
    fn write_lines(&mut self, queue: &Receiver<String>) {
        let mut fails = false;
        while let Ok(line) = queue.recv() {
            let done = self.write_line(line);
            if let (Err(error), false) = (&done, fails) {
                tracing::warn!(%error, file = %self.path.display(), "cannot write the decision log");
            }
            fails = done.is_err();
        }
    }

    fn write_line(&mut self, mut line: String) -> io::Result<()> {
        line.push('\n');
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.written > 0 && self.written.saturating_add(length) > self.max_bytes {
            self.rotate_file()?;
        }
        self.file.write_all(line.as_bytes())?;
        self.written += length;
        Ok(())
    }

    fn rotate_file(&mut self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)?;
        self.file = open_for_append(&self.path)?;
        self.written = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotated(folder: &Path, max_bytes: u64) -> RotatedFile {
        let path = folder.join("log");
        let file = open_for_append(&path).unwrap();
        RotatedFile {
            path,
            file,
            written: 0,
            max_bytes,
        }
    }

    fn new_folder(name: &str) -> PathBuf {
        let name = format!("dogwatch-line-file-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_full_file_becomes_the_old_one_and_no_line_is_cut() {
        let folder = new_folder("full");
        let mut file = rotated(&folder, 8);
        for line in ["one", "two", "three"] {
            file.write_line(line.into()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            (read("log.1"), read("log")),
            ("one\ntwo\n".into(), "three\n".into())
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn half_a_line_of_a_killed_process_is_removed() {
        let folder = new_folder("half");
        let path = folder.join("log");
        std::fs::write(&path, "one\ntw").unwrap();
        drop(LineFile::open(&path, 100).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
        std::fs::write(&path, "tw").unwrap();
        drop(LineFile::open(&path, 100).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn who_writes_never_waits_and_lost_lines_are_counted() {
        let (lines, queue) = sync_channel(1);
        let (done, written) = sync_channel(1);
        drop(done);
        let file = LineFile {
            lines: Some(lines),
            lost: Arc::new(AtomicU64::new(0)),
            written: Mutex::new(written),
        };
        for _ in 0..3 {
            file.push_line("x".into());
        }
        assert_eq!(file.take_lost_lines(), 2);
        assert_eq!(file.take_lost_lines(), 0);
        assert_eq!(queue.recv().unwrap(), "x");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error_at_once() {
        assert!(LineFile::open(Path::new("/does/not/exist/log"), 1).is_err());
    }
}
