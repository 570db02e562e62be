//! What is made once and kept in the cache: one process makes it, the others that come meanwhile wait.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use crate::{Error, cache_dir};

/// `TARGET` in the cache's sub-folder `folder`, made by `make` where it is not there. `make` puts it there with one rename,
/// so that it is whole or not there at all. Blocks.
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
    fs::create_dir_all(&folder).map_err(Error::io("make", &folder))?;
    let lock_file = folder.join("lock");
    let lock = File::create(&lock_file).map_err(Error::io("create", &lock_file))?;
    if lock.try_lock().is_err() {
        eprintln!("waiting for another process that makes {target}");
        lock.lock().map_err(Error::io("lock", &lock_file))?;
    }
    // Somebody else may have made it while we waited for the lock.
    if !made.exists() {
        make(&made)?;
    }
    Ok(made)
}

/// FNV-1a: the standard library's hasher may change with the compiler, and making anew costs minutes.
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
