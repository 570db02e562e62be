//! Resolves the path of a sentinel step by step, as the kernel would inside `--host-root`.
//!
//! The kernel's own lookup would follow an absolute symbolic link (`/var/run → /run`) out of the
//! host root into our container, and would not tell which folders and links it used.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many symbolic links as the kernel follows (`path_resolution(7)`).
const MOST_LINKS: usize = 40;

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SentinelLookup {
    /// A regular file. No part of this path was a symbolic link at the lookup.
    File(PathBuf),
    /// Nothing: some part of the path is missing.
    Nothing,
}

/// Why a path cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookupError {
    #[error("the host root {} does not exist", .0.display())]
    NoRoot(PathBuf),
    #[error("cannot watch {}: {source}", folder.display())]
    NotWatched { folder: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    NotSeen { path: PathBuf, source: io::Error },
    #[error("{} is not a folder", .0.display())]
    NoFolder(PathBuf),
    #[error("{} is {what}, not a file", path.display())]
    NoFile { path: PathBuf, what: &'static str },
    #[error("{} is a link whose target does not exist", .0.display())]
    Dangling(PathBuf),
    #[error("{} contains more than {MOST_LINKS} links", .0.display())]
    TooManyLinks(PathBuf),
}

impl LookupError {
    /// What is wrong and what to do about it.
    pub(super) fn explain_error(&self, sentinel: &Path) -> String {
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
            "cannot find out whether sentinel {} exists: {self}: {advice}",
            sentinel.display()
        )
    }
}

/// Resolves `sentinel` below `root`. Before each step, `arm` is called with the folder and the name
/// to look up in it, so that later changes of that name are noticed.
pub(super) fn look_up_path(
    root: &Path,
    sentinel: &Path,
    arm: &mut dyn FnMut(&Path, &OsStr) -> io::Result<()>,
) -> Result<SentinelLookup, LookupError> {
    let mut way = PathWalk::new(root, sentinel);
    while let Some(name) = way.next_name() {
        if let Some(found) = way.step_into(&name, arm)? {
            return Ok(found);
        }
    }
    Err(LookupError::NoFile {
        path: way.current_path(),
        what: "a folder",
    })
}

/// The state of a path lookup.
struct PathWalk {
    root: PathBuf,
    /// Names from the root to here, none of them a symbolic link.
    inside: Vec<OsString>,
    left: VecDeque<PathPiece>,
    links: usize,
    /// The sentinel itself is a symbolic link.
    from_link: bool,
}

enum PathPiece {
    Root,
    Up,
    Name(OsString),
}

impl PathWalk {
    fn new(root: &Path, sentinel: &Path) -> Self {
        Self {
            root: root.to_owned(),
            inside: Vec::new(),
            left: path_pieces(sentinel).collect(),
            links: 0,
            from_link: false,
        }
    }

    fn current_path(&self) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(&self.inside);
        path
    }

    /// The next name to look up. Resolves roots and `..` (`..` of the root is the root).
    fn next_name(&mut self) -> Option<OsString> {
        loop {
            match self.left.pop_front()? {
                PathPiece::Root => self.inside.clear(),
                PathPiece::Up => {
                    self.inside.pop();
                }
                PathPiece::Name(name) => return Some(name),
            }
        }
    }

    fn step_into(
        &mut self,
        name: &OsStr,
        arm: &mut dyn FnMut(&Path, &OsStr) -> io::Result<()>,
    ) -> Result<Option<SentinelLookup>, LookupError> {
        let folder = self.current_path();
        match arm(&folder, name) {
            Ok(()) => {}
            Err(error) if is_path_gone(&error) && self.inside.is_empty() => {
                return Err(LookupError::NoRoot(folder));
            }
            // The folder vanished between two steps: the watch on its parent, which is armed, will
            // notice its return.
            Err(error) if is_path_gone(&error) => return Ok(Some(SentinelLookup::Nothing)),
            Err(source) => return Err(LookupError::NotWatched { folder, source }),
        }
        let path = folder.join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) => self.enter_name(path, name, metadata.file_type()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.missing_result(path),
            Err(source) => Err(LookupError::NotSeen { path, source }),
        }
    }

    fn enter_name(
        &mut self,
        path: PathBuf,
        name: &OsStr,
        kind: FileType,
    ) -> Result<Option<SentinelLookup>, LookupError> {
        if kind.is_symlink() {
            self.follow_link(path)?;
            Ok(None)
        } else if kind.is_dir() {
            self.inside.push(name.to_owned());
            Ok(None)
        } else if !self.left.is_empty() {
            Err(LookupError::NoFolder(path))
        } else if kind.is_file() {
            Ok(Some(SentinelLookup::File(path)))
        } else {
            Err(LookupError::NoFile {
                path,
                what: "a device, pipe or socket",
            })
        }
    }

    fn follow_link(&mut self, link: PathBuf) -> Result<(), LookupError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(LookupError::TooManyLinks(link));
        }
        self.from_link |= self.left.is_empty();
        let target = match std::fs::read_link(&link) {
            Ok(target) => target,
            Err(source) => return Err(LookupError::NotSeen { path: link, source }),
        };
        for piece in path_pieces(&target).collect::<Vec<_>>().into_iter().rev() {
            self.left.push_front(piece);
        }
        Ok(())
    }

    /// A missing folder may be created later. But if the sentinel itself is a symbolic link,
    /// somebody created it: a dangling one does not mean "not needed".
    fn missing_result(&self, path: PathBuf) -> Result<Option<SentinelLookup>, LookupError> {
        if self.from_link {
            Err(LookupError::Dangling(path))
        } else {
            Ok(Some(SentinelLookup::Nothing))
        }
    }
}

fn path_pieces(path: &Path) -> impl Iterator<Item = PathPiece> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(PathPiece::Root),
        Component::ParentDir => Some(PathPiece::Up),
        Component::Normal(name) => Some(PathPiece::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

fn is_path_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
