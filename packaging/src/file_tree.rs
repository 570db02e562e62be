//! Files with their modes, in order, and the archive of them: the same bytes each time.

use std::{collections::BTreeMap, io::Write};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

/// What an archive holds below its root, by path without a leading slash.
#[derive(Clone, Debug, Default)]
pub struct FileTree(BTreeMap<String, TreeEntry>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeEntry {
    Directory { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Link { target: String },
}

pub const PROGRAM_MODE: u32 = 0o755;
pub const DATA_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

impl FileTree {
    /// Adds a file, and the folders above it.
    pub fn add_file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        let content = content.into();
        self.add_entry(path, TreeEntry::File { mode, content });
    }

    pub fn add_folder(&mut self, path: &str, mode: u32) {
        self.add_entry(path, TreeEntry::Directory { mode });
    }

    pub fn add_link(&mut self, path: &str, target: &str) {
        let target = target.to_owned();
        self.add_entry(path, TreeEntry::Link { target });
    }

    /// In the order of their paths, so that a folder comes before what is in it.
    pub fn list_entries(&self) -> impl Iterator<Item = (&str, &TreeEntry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    pub fn list_files(&self) -> impl Iterator<Item = (&str, u32, &[u8])> {
        self.0.iter().filter_map(|(path, entry)| match entry {
            TreeEntry::File { mode, content } => Some((path.as_str(), *mode, content.as_slice())),
            TreeEntry::Directory { .. } | TreeEntry::Link { .. } => None,
        })
    }

    fn add_entry(&mut self, path: &str, entry: TreeEntry) {
        let path = path.trim_start_matches('/');
        for (end, _) in path.match_indices('/') {
            let folder = TreeEntry::Directory { mode: FOLDER_MODE };
            self.0.entry(path[..end].to_owned()).or_insert(folder);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// The archive, each path with this prefix. Owner and group are root's; every time is the one that is given.
    pub fn to_tar(&self, prefix: &str, seconds: u64) -> Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            let name = format!("{prefix}{path}");
            append_entry(&mut archive, &name, entry, seconds)
                .with_context(|| format!("failed to archive {name}"))?;
        }
        Ok(archive.into_inner()?)
    }
}

fn append_entry(
    archive: &mut tar::Builder<Vec<u8>>,
    name: &str,
    entry: &TreeEntry,
    seconds: u64,
) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mtime(seconds);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    match entry {
        TreeEntry::Directory { mode } => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(*mode);
            header.set_size(0);
            archive.append_data(&mut header, format!("{name}/"), std::io::empty())?;
        }
        TreeEntry::File { mode, content } => {
            header.set_entry_type(EntryType::Regular);
            header.set_mode(*mode);
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, name, content.as_slice())?;
        }
        TreeEntry::Link { target } => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            archive.append_link(&mut header, name, target)?;
        }
    }
    Ok(())
}

/// Compressed without a name or a time in it.
pub fn compress_gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The level of zstd that shipped images are made at: the smallest that a decoder unpacks with little memory.
pub const SHIPPED_ZSTD_LEVEL: i32 = 19;

/// The same bytes for the same `level`, in the thread of the caller.
pub fn compress_zstd(bytes: &[u8], level: i32) -> Result<Vec<u8>> {
    zstd::bulk::compress(bytes, level).context("failed to compress by zstd")
}

/// The time that files bear: `SOURCE_DATE_EPOCH` where it is set, else the last commit's.
pub fn read_source_date() -> Result<u64> {
    if let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let text = text.to_string_lossy().into_owned();
        return text
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH is no number of seconds: {text:?}"));
    }
    let output = std::process::Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(crate::workspace_root())
        .output()
        .context("failed to start git")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "failed to ask git for the time of the last commit: set SOURCE_DATE_EPOCH"
    );
    text.trim()
        .parse()
        .context("git prints no number of seconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(order: &[&str]) -> FileTree {
        let mut tree = FileTree::default();
        for path in order {
            tree.add_file(path, DATA_MODE, path.as_bytes());
        }
        tree.add_link("/etc/link", "a");
        tree
    }

    #[test]
    fn the_order_in_which_files_were_added_does_not_show() {
        let one = tree(&["/usr/bin/a", "/etc/a", "/etc/b"])
            .to_tar("./", 7)
            .unwrap();
        let two = tree(&["/etc/b", "/etc/a", "/usr/bin/a"])
            .to_tar("./", 7)
            .unwrap();
        assert_eq!(one, two);
        assert_eq!(compress_gzip(&one).unwrap(), compress_gzip(&two).unwrap());
    }

    #[test]
    fn a_folder_comes_before_what_is_in_it_and_everything_is_roots_at_the_given_time() {
        let bytes = tree(&["/usr/share/x/file"])
            .to_tar("", 1_700_000_000)
            .unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut names = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 1_700_000_000);
            assert_eq!(entry.header().uid().unwrap(), 0);
            names.push(entry.path().unwrap().display().to_string());
        }
        let expected = [
            "etc/",
            "etc/link",
            "usr/",
            "usr/share/",
            "usr/share/x/",
            "usr/share/x/file",
        ];
        assert_eq!(names, expected);
    }
}
