//! What the tree is like, in figures: `cargo xtask lint --figures` prints them, and `cargo xtask lint` compares them with
//! the committed ratchet, which may only fall.
//!
//! Counted as the house review counted: a file under `tests/`, `benches/` or `proof/`, or named `tests.rs`, is a test; a
//! trailing `#[cfg(test)] mod tests { … }` is taken off every other file. rustfmt's shape is relied on: one definition begins on
//! one line.

mod definitions;
mod ratchet;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};

use crate::source_tree;
use definitions::{is_one_word_function, is_one_word_type};

pub use definitions::{function_length, function_name};
pub use ratchet::check_ratchet;

/// Longer than this is no error, but the ratchet counts it.
pub const LONG_FILE_LINES: usize = 400;
pub const LONG_FUNCTION_LINES: usize = 60;
/// `git log --oneline` stays readable.
const LONGEST_COMMIT_SUBJECT: usize = 72;
/// The last commit before the renovation; older subjects are not counted.
const FIRST_COUNTED_COMMIT: &str = "6b8b0f0";

/// A figure with its name in the ratchet.
pub struct Figure {
    pub name: &'static str,
    pub value: u64,
}

/// All figures of the tree as it is on disk.
pub fn measure_tree() -> Result<Vec<Figure>> {
    let mut counts = TreeCounts::default();
    for file in source_tree::tracked_files()? {
        if file.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(source_tree::workspace_root().join(&file))
                .with_context(|| format!("failed to read {}", file.display()))?;
            counts.add_file(&file, &text);
        }
    }
    let mut figures = counts.figures();
    figures.push(Figure {
        name: "commit-subjects-too-long",
        value: count_long_subjects(),
    });
    Ok(figures)
}

/// 0 where the history is not there, as in a shallow clone.
fn count_long_subjects() -> u64 {
    let range = format!("{FIRST_COUNTED_COMMIT}..HEAD");
    let mut git = std::process::Command::new("git");
    git.current_dir(source_tree::workspace_root())
        .args(["log", "--format=%s", &range]);
    let subjects = source_tree::read_output(&mut git).unwrap_or_default();
    let too_long = |subject: &&str| subject.chars().count() > LONGEST_COMMIT_SUBJECT;
    subjects.lines().filter(too_long).count() as u64
}

#[derive(Default)]
struct TreeCounts {
    production_lines: u64,
    test_lines: u64,
    long_files: u64,
    long_functions: u64,
    functions: u64,
    one_word_functions: u64,
    one_word_types: u64,
    /// How many types have each name.
    types: BTreeMap<String, u64>,
}

impl TreeCounts {
    fn add_file(&mut self, file: &Path, text: &str) {
        let all: Vec<&str> = text.lines().collect();
        let production = if is_test_file(file) {
            0
        } else {
            production_length(&all)
        };
        let lines = &all[..production];
        self.production_lines += production as u64;
        self.test_lines += (all.len() - production) as u64;
        self.long_files += u64::from(production > LONG_FILE_LINES);
        for (index, line) in lines.iter().enumerate() {
            if let Some(name) = function_name(line) {
                self.functions += 1;
                self.one_word_functions += u64::from(is_one_word_function(name));
                let length = function_length(&lines[index..]);
                self.long_functions += u64::from(length > LONG_FUNCTION_LINES);
            }
            if let Some(name) = definitions::type_name(line) {
                self.one_word_types += u64::from(is_one_word_type(name));
                *self.types.entry(name.to_owned()).or_default() += 1;
            }
        }
    }

    fn figures(&self) -> Vec<Figure> {
        let types: u64 = self.types.values().sum();
        let clashing: u64 = self.types.values().filter(|count| **count > 1).sum();
        let figure = |name, value| Figure { name, value };
        vec![
            figure("production-lines", self.production_lines),
            figure("test-lines", self.test_lines),
            figure("production-files-over-400-lines", self.long_files),
            figure("functions-over-60-lines", self.long_functions),
            figure("functions", self.functions),
            figure("one-word-functions", self.one_word_functions),
            figure(
                "one-word-functions-permille",
                permille(self.one_word_functions, self.functions),
            ),
            figure("types", types),
            figure(
                "one-word-types-permille",
                permille(self.one_word_types, types),
            ),
            figure("types-that-share-a-name", clashing),
            figure(
                "types-that-share-a-name-permille",
                permille(clashing, types),
            ),
        ]
    }
}

fn permille(part: u64, whole: u64) -> u64 {
    (part * 1000).checked_div(whole).unwrap_or_default()
}

fn is_test_file(file: &Path) -> bool {
    let is_folder = |name: &str| file.components().any(|part| part.as_os_str() == name);
    is_folder("tests") || is_folder("benches") || is_folder("proof") || file.ends_with("tests.rs")
}

/// How many lines come before the tests at the end of a file.
fn production_length(lines: &[&str]) -> usize {
    let begins_tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].ends_with('{')
    };
    lines
        .windows(2)
        .position(begins_tests)
        .unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_code_is_counted_and_its_tests_are_not() {
        let mut counts = TreeCounts::default();
        let text = "struct Step;\nfn read() {\n}\nfn read_lease() {\n}\n#[cfg(test)]\nmod tests {\n    fn x() {}\n}\n";
        counts.add_file(Path::new("crates/core/src/a.rs"), text);
        counts.add_file(Path::new("crates/core/src/b.rs"), "enum Step {\n}\n");
        counts.add_file(Path::new("crates/core/tests/c.rs"), "fn read() {\n}\n");
        let value = |name: &str| {
            let figures = counts.figures();
            let figure = figures.iter().find(|figure| figure.name == name);
            figure.map(|figure| figure.value)
        };
        assert_eq!(value("production-lines"), Some(7));
        assert_eq!(value("test-lines"), Some(6));
        assert_eq!(value("functions"), Some(2));
        assert_eq!(value("one-word-functions"), Some(1));
        assert_eq!(value("types-that-share-a-name"), Some(2));
        assert_eq!(value("one-word-types-permille"), Some(1000));
    }
}
