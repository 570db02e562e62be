//! Mutated inputs for parsers of foreign bytes.
//!
//! **For:** tests: each parser of bytes that Dogwatch does not write itself runs on thousands of
//! inputs. They are mutants of valid ones (the seeds); the coverage of the code is not measured.
//! **May touch:** the folder `fuzz-seeds` of the crate under test, its own process' figures.
//! **Promises:** the same seeds and the same number give the same inputs. An input on which the
//! parser panics or takes too long is kept as a file, and is the first input from then on.
//!
//! `DOGWATCH_FUZZ_INPUTS=1000000` runs more inputs than the usual [`USUAL_INPUTS`].

mod byte_mutator;
mod limits;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

pub use byte_mutator::ByteMutator;
use limits::{peak_memory, thread_seconds};

/// Inputs for each parser in every run of the tests.
const USUAL_INPUTS: u64 = 20_000;
/// Processor time for one input, in seconds. The slowest of a million took some milliseconds.
const LONGEST_INPUT_SECONDS: u64 = 2;
/// By how much the process' peak memory may rise, in MiB, while one parser runs.
const MOST_MEMORY_MIB: u64 = 512;

/// The parser under test.
pub struct FuzzTarget<'a> {
    /// Its name, and that of the folder of its kept inputs.
    pub name: &'a str,
    /// `env!("CARGO_MANIFEST_DIR")` of the crate under test.
    pub crate_folder: &'a str,
    /// Valid inputs, and invalid ones worth mutating.
    pub seeds: &'a [&'a [u8]],
}

impl FuzzTarget<'_> {
    /// Calls `check` with every seed, every kept input, and the mutants of both.
    ///
    /// # Panics
    /// If `check` panics, takes seconds of processor time, or much memory.
    pub fn check_inputs(&self, mut check: impl FnMut(&[u8])) {
        let folder = self.kept_folder();
        let mut seeds: Vec<Vec<u8>> = self.seeds.iter().map(|seed| seed.to_vec()).collect();
        seeds.extend(read_kept_inputs(&folder));
        let memory = peak_memory();
        for seed in &seeds {
            self.check_input(seed, &folder, &mut check);
        }
        let mut mutator = ByteMutator::new(self.name, seeds);
        for _ in 0..count_of_inputs() {
            let input = mutator.next_input();
            self.check_input(&input, &folder, &mut check);
        }
        let risen = peak_memory().saturating_sub(memory) >> 20;
        assert!(
            risen < MOST_MEMORY_MIB,
            "{}: the peak memory rose by {risen} MiB",
            self.name
        );
    }

    fn kept_folder(&self) -> PathBuf {
        Path::new(self.crate_folder)
            .join("fuzz-seeds")
            .join(self.name)
    }

    fn check_input(&self, input: &[u8], folder: &Path, check: &mut impl FnMut(&[u8])) {
        let begun = thread_seconds();
        let outcome = catch_unwind(AssertUnwindSafe(|| check(input)));
        let took = thread_seconds().saturating_sub(begun);
        if outcome.is_ok() && took < LONGEST_INPUT_SECONDS {
            return;
        }
        let path = keep_input(folder, input);
        let text = String::from_utf8_lossy(input);
        eprintln!(
            "{}: failed, or took {took} s, on {} bytes, kept as {}: {}",
            self.name,
            input.len(),
            path.display(),
            text.chars().take(500).collect::<String>()
        );
        match outcome {
            Err(panic) => resume_unwind(panic),
            Ok(()) => panic!("{}: one input took {took} s", self.name),
        }
    }
}

/// How many inputs each parser gets.
///
/// # Panics
/// If `DOGWATCH_FUZZ_INPUTS` is not a number.
pub fn count_of_inputs() -> u64 {
    let wanted = std::env::var("DOGWATCH_FUZZ_INPUTS");
    wanted.map_or(USUAL_INPUTS, |wanted| {
        wanted.parse().expect("DOGWATCH_FUZZ_INPUTS is a number")
    })
}

fn read_kept_inputs(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).expect("a kept input can be read"))
        .collect()
}

/// Named by its content, so that the same input is kept once.
fn keep_input(folder: &Path, input: &[u8]) -> PathBuf {
    let name = format!("{:016x}", byte_mutator::hash_bytes(input));
    let path = folder.join(name);
    // What cannot be kept is still printed.
    let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&path, input));
    path
}

/// Checks that a text is one line without control characters, as errors are.
///
/// # Panics
/// If it is not.
pub fn assert_one_line(text: &str) {
    assert!(!text.is_empty(), "an error says nothing");
    let control = text.chars().find(|letter| letter.is_control());
    assert!(control.is_none(), "an error has {control:?}: {text:?}");
    assert!(text.len() < 4096, "an error of {} bytes", text.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_on_which_the_parser_panics_fails_the_test() {
        let folder = std::env::temp_dir().join(format!("dogwatch-fuzz-{}", std::process::id()));
        let target = FuzzTarget {
            name: "finds-a-panic",
            crate_folder: folder.to_str().unwrap(),
            seeds: &[b"{\"a\": 17}"],
        };
        let found = catch_unwind(|| {
            target.check_inputs(|input| assert!(!input.contains(&0xff), "a byte that is no text"));
        });
        assert!(found.is_err());
        assert_eq!(read_kept_inputs(&target.kept_folder()).len(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
