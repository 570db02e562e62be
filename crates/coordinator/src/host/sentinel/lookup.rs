//! The way to a sentinel, step by step, as the kernel would go it inside `--host-root`.
//!
//! The kernel's own walk would follow an absolute link (`/var/run → /run`) out of the host root
//! into our container, and would not tell which folders and links it depended on.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// Where the way ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// At a regular file. No part of this path was a link when it was looked at.
    File(PathBuf),
    /// Nowhere: some part of the way is not there.
    Nothing,
}

/// Why it is not known where it ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    #[error("the host root {} is not there", .0.display())]
    NoRoot(PathBuf),
    #[error("cannot watch {}: {source}", folder.display())]
    NotWatched { folder: PathBuf, source: io::Error },
    #[error("cannot look at {}: {source}", path.display())]
    NotSeen { path: PathBuf, source: io::Error },
    #[error("{} is no folder", .0.display())]
    NoFolder(PathBuf),
    #[error("{} is {what}, not a file", path.display())]
    NoFile { path: PathBuf, what: &'static str },
    #[error("{} is a link to nothing", .0.display())]
    Dangling(PathBuf),
    #[error("{} goes through more than {MOST_LINKS} links", .0.display())]
    TooManyLinks(PathBuf),
}

impl LookupError {
    /// What is wrong and what to do about it.
    pub(super) fn explain(&self, sentinel: &Path) -> String {
        let advice = match self {
            Self::NoRoot(_) => "mount the host's root there, or set --host-root",
            Self::NotWatched { source, .. } if source.raw_os_error() == Some(28) => {
                "raise fs.inotify.max_user_watches"
            }
            Self::NotWatched { .. } | Self::NotSeen { .. } => {
                "give the coordinator the right to read it, or set --sentinel"
            }
            Self::NoFolder(_) | Self::NoFile { .. } | Self::Dangling(_) | Self::TooManyLinks(_) => {
                "remove it, or set --sentinel to another path"
            }
        };
        format!(
            "cannot tell whether sentinel {} is there: {self}: {advice}",
            sentinel.display()
        )
    }
}

/// Goes the way to `sentinel` below `root`. Before each step `arm` is called with the folder and
/// the name about to be looked up in it: whatever happens to that name later must be told.
pub(super) fn look_up(
    root: &Path,
    sentinel: &Path,
    arm: &mut dyn FnMut(&Path, &OsStr) -> io::Result<()>,
) -> Result<Found, LookupError> {
    let mut way = Way::new(root, sentinel);
    while let Some(name) = way.next_name() {
        if let Some(found) = way.step(&name, arm)? {
            return Ok(found);
        }
    }
    Err(LookupError::NoFile {
        path: way.here(),
        what: "a folder",
    })
}

/// How far the walk has come.
struct Way {
    root: PathBuf,
    /// Names from the root to here, none of them a link.
    inside: Vec<OsString>,
    left: VecDeque<Piece>,
    links: usize,
    /// The last name came out of a link.
    from_link: bool,
}

enum Piece {
    Root,
    Up,
    Name(OsString),
}

impl Way {
    fn new(root: &Path, sentinel: &Path) -> Self {
        Self {
            root: root.to_owned(),
            inside: Vec::new(),
            left: pieces(sentinel).collect(),
            links: 0,
            from_link: false,
        }
    }

    fn here(&self) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(&self.inside);
        path
    }

    /// The next name to look up here; roots and `..` are gone on the way (`..` of the root is the
    /// root).
    fn next_name(&mut self) -> Option<OsString> {
        loop {
            match self.left.pop_front()? {
                Piece::Root => self.inside.clear(),
                Piece::Up => {
                    self.inside.pop();
                }
                Piece::Name(name) => return Some(name),
            }
        }
    }

    fn step(
        &mut self,
        name: &OsStr,
        arm: &mut dyn FnMut(&Path, &OsStr) -> io::Result<()>,
    ) -> Result<Option<Found>, LookupError> {
        let folder = self.here();
        match arm(&folder, name) {
            Ok(()) => {}
            Err(error) if gone(&error) && self.inside.is_empty() => {
                return Err(LookupError::NoRoot(folder));
            }
            // It went between two steps: its own folder's watch, already armed, will tell.
            Err(error) if gone(&error) => return Ok(Some(Found::Nothing)),
            Err(source) => return Err(LookupError::NotWatched { folder, source }),
        }
        let path = folder.join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) => self.enter(path, name, metadata.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.nothing(path),
            Err(source) => Err(LookupError::NotSeen { path, source }),
        }
    }

    fn enter(
        &mut self,
        path: PathBuf,
        name: &OsStr,
        kind: FileType,
    ) -> Result<Option<Found>, LookupError> {
        if kind.is_symlink() {
            self.follow(path)?;
            Ok(None)
        } else if kind.is_dir() {
            self.inside.push(name.to_owned());
            Ok(None)
        } else if !self.left.is_empty() {
            Err(LookupError::NoFolder(path))
        } else if kind.is_file() {
            Ok(Some(Found::File(path)))
        } else {
            Err(LookupError::NoFile {
                path,
                what: "a device, pipe or socket",
            })
        }
    }

    fn follow(&mut self, link: PathBuf) -> Result<(), LookupError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(LookupError::TooManyLinks(link));
        }
        self.from_link |= self.left.is_empty();
        let target = match std::fs::read_link(&link) {
            Ok(target) => target,
            Err(source) => return Err(LookupError::NotSeen { path: link, source }),
        };
        for piece in pieces(&target).collect::<Vec<_>>().into_iter().rev() {
            self.left.push_front(piece);
        }
        Ok(())
    }

    /// A folder may appear later. But somebody made the sentinel itself, if it is a link: that it
    /// leads nowhere is no "not needed".
    fn nothing(&self, path: PathBuf) -> Result<Option<Found>, LookupError> {
        if self.from_link {
            Err(LookupError::Dangling(path))
        } else {
            Ok(Some(Found::Nothing))
        }
    }
}

fn pieces(path: &Path) -> impl Iterator<Item = Piece> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Piece::Root),
        Component::ParentDir => Some(Piece::Up),
        Component::Normal(name) => Some(Piece::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

fn gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
