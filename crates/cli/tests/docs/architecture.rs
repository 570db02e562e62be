//! A newcomer finds the code by the map: it is short, and the files that it names exist.

use std::path::{Path, PathBuf};

const ARCHITECTURE: &str = include_str!("../../../../ARCHITECTURE.md");
const CONTRIBUTING: &str = include_str!("../../../../CONTRIBUTING.md");
const LOOPS: &str = include_str!("../../../../docs/loops.md");

const TOP_FOLDERS: [&str; 6] = [
    "crates/",
    "deploy/",
    "docs/",
    "scenarios/",
    "testbed/",
    "xtask/",
];

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text between backticks that begins with a folder of the repository.
fn paths_in(text: &str) -> Vec<&str> {
    let quoted = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_path = |name: &&str| TOP_FOLDERS.iter().any(|folder| name.starts_with(folder));
    quoted.filter(is_path).collect()
}

fn missing_paths<'a>(paths: &[&'a str]) -> Vec<&'a str> {
    let root = repository_root();
    let is_missing = |path: &&&str| !root.join(path).exists();
    paths.iter().filter(is_missing).copied().collect()
}

#[test]
fn every_file_that_the_architecture_names_exists() {
    let paths = paths_in(ARCHITECTURE);
    assert!(paths.len() > 60, "{paths:?}");
    assert_eq!(missing_paths(&paths), [""; 0]);
}

#[test]
fn every_loop_is_in_the_file_that_its_page_names() {
    let paths = paths_in(LOOPS);
    assert!(paths.len() >= 20, "{paths:?}");
    assert_eq!(missing_paths(&paths), [""; 0]);
}

#[test]
fn every_file_to_change_exists() {
    let section = CONTRIBUTING
        .split("\n## Where to change what\n")
        .nth(1)
        .unwrap();
    let paths = paths_in(section.split("\n## ").next().unwrap());
    assert!(paths.len() > 50, "{paths:?}");
    assert_eq!(missing_paths(&paths), [""; 0]);
}

#[test]
fn the_architecture_fits_on_a_page_of_drawing_and_one_of_words() {
    let bytes = ARCHITECTURE.len();
    assert!(bytes <= 12 * 1024, "ARCHITECTURE.md has {bytes} bytes");
}
