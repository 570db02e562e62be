//! The project's cache folder, for programs that are built or installed once and are not in the
//! tree.

use std::{env, path::PathBuf};

use crate::Error;

/// `$DOGWATCH_CACHE`, else `$XDG_CACHE_HOME/dogwatch`, else `~/.cache/dogwatch`. The folder may not
/// exist yet.
pub fn cache_dir() -> Result<PathBuf, Error> {
    choose_cache_dir(|name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    })
}

fn choose_cache_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Error> {
    variable("DOGWATCH_CACHE")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("dogwatch")))
        .or_else(|| Some(variable("HOME")?.join(".cache/dogwatch")))
        .ok_or(Error::NoCacheFolder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(set: &[(&str, &str)]) -> Option<PathBuf> {
        choose_cache_dir(|name| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| PathBuf::from(value))
        })
        .ok()
    }

    #[test]
    fn the_projects_own_variable_wins_over_xdg_and_xdg_over_home() {
        let all = [
            ("HOME", "/h"),
            ("XDG_CACHE_HOME", "/x"),
            ("DOGWATCH_CACHE", "/d"),
        ];
        assert_eq!(chosen(&all), Some(PathBuf::from("/d")));
        assert_eq!(chosen(&all[..2]), Some(PathBuf::from("/x/dogwatch")));
        assert_eq!(chosen(&all[..1]), Some(PathBuf::from("/h/.cache/dogwatch")));
        assert_eq!(chosen(&[]), None);
    }
}
