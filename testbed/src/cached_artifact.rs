//! Artifacts that are made once and kept in the cache: one process makes one while the others wait.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use crate::{Error, cache_dir};

/// Returns `TARGET` in the cache's subfolder `folder`, and calls `make` if it is missing. `make`
/// must put it there with one rename, so that it is complete or absent. Blocks.
pub(crate) fn find_or_make(
    folder: &str,
    target: &str,
    make: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let folder = cache_dir()?.join(folder);
    let made = folder.join(target);
    if made.exists() {
        return Ok(made);
    }
    fs::create_dir_all(&folder).map_err(Error::io_error("make", &folder))?;
    let lock_file = folder.join("lock");
    let lock = File::create(&lock_file).map_err(Error::io_error("create", &lock_file))?;
    if lock.try_lock().is_err() {
        eprintln!("waiting for another process that builds {target}");
        lock.lock().map_err(Error::io_error("lock", &lock_file))?;
    }
    // Another process may have made it while we waited for the lock.
    if !made.exists() {
        make(&made)?;
    }
    Ok(made)
}

/// An empty folder beside `target`, to be renamed to it. What a process that died has left there is
/// removed.
pub(crate) fn empty_partial_folder(target: &Path) -> Result<PathBuf, Error> {
    let partial = target.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(Error::io_error("remove", &partial))?;
    }
    fs::create_dir_all(&partial).map_err(Error::io_error("make", &partial))?;
    Ok(partial)
}

/// FNV-1a: the standard library's hash may change with the compiler, and a rebuild takes minutes.
pub(crate) fn fingerprint(texts: &[&str]) -> u64 {
    texts
        .iter()
        .flat_map(|text| text.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_file_names_another_folder() {
        assert_ne!(fingerprint(&["a", "bc"]), fingerprint(&["ab", "c"]));
        assert_ne!(fingerprint(&["a", "b"]), fingerprint(&["a"]));
    }
}
