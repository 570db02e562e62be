//! Random scripts. One that fails is made as short as possible, and printed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;

use dogwatch_sim::prove::{find_minimal_script, random_script, run_random_script};

use crate::campaign::{
    RunProgress, block_on_simulation, catch_simulation, for_each_in_parallel, number_from_env,
};

/// Seeds of every run of the tests.
const USUAL_RUNS: u64 = 6;

/// Why a script fails: by a broken promise, or because not everything comes to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ScriptFailure {
    Broken(Vec<String>),
    Unfinished(Vec<String>),
    Panicked(String),
}

impl ScriptFailure {
    /// Whether one of the causes is the same, apart from numbers: times, and which node it is. So
    /// the short script shows what the long one does, and no other failure.
    fn is_like(&self, other: &Self) -> bool {
        let is_same_kind = std::mem::discriminant(self) == std::mem::discriminant(other);
        is_same_kind && !self.causes().is_disjoint(&other.causes())
    }

    fn causes(&self) -> BTreeSet<String> {
        let texts = match self {
            Self::Broken(texts) | Self::Unfinished(texts) => texts.as_slice(),
            Self::Panicked(text) => std::slice::from_ref(text),
        };
        let causes = texts.iter().flat_map(|text| {
            let leftovers = text.rsplit_once("the cluster is not clean: ");
            leftovers
                .map_or(text.as_str(), |(_, left)| left)
                .split("; ")
        });
        causes
            .map(|cause| cause.replace(|c: char| c.is_ascii_digit(), ""))
            .collect()
    }
}

fn find_failure(text: &str) -> Option<ScriptFailure> {
    match catch_simulation(run_random_script(text)) {
        Err(panic) => Some(ScriptFailure::Panicked(panic)),
        // A script that was made shorter may lack what a later line needs.
        Ok(Err(_)) => None,
        Ok(Ok(outcome)) if !outcome.violations.is_empty() => {
            Some(ScriptFailure::Broken(outcome.violations))
        }
        Ok(Ok(outcome)) => {
            let end = outcome.unmet.into_iter();
            let end: Vec<String> = end
                .filter(|unmet| unmet.contains("wait until clean"))
                .collect();
            (!end.is_empty()).then_some(ScriptFailure::Unfinished(end))
        }
    }
}

/// Where a script is while it runs, and stays if it fails: in the folder `DOGWATCH_PROVE_SCRIPTS`.
struct ScriptFile {
    folder: Option<PathBuf>,
    seed: u64,
}

impl ScriptFile {
    fn of_seed(seed: u64) -> Self {
        let folder = std::env::var_os("DOGWATCH_PROVE_SCRIPTS").map(PathBuf::from);
        if let Some(folder) = &folder {
            std::fs::create_dir_all(folder).unwrap();
        }
        Self { folder, seed }
    }

    fn write(&self, kind: &str, script: &str) {
        if let Some(folder) = &self.folder {
            std::fs::write(folder.join(self.name(kind)), script).unwrap();
        }
    }

    fn remove(&self, kind: &str) {
        if let Some(folder) = &self.folder {
            std::fs::remove_file(folder.join(self.name(kind))).unwrap();
        }
    }

    fn name(&self, kind: &str) -> String {
        format!("seed-{}{kind}.txt", self.seed)
    }
}

/// Runs the script of one seed. If it fails, prints it as short as it still fails.
fn passes_seed(seed: u64) -> bool {
    let script = random_script(seed);
    let file = ScriptFile::of_seed(seed);
    file.write("", &script);
    let Some(failure) = find_failure(&script) else {
        file.remove("");
        return true;
    };
    println!("seed {seed}: {failure:?}");
    let still_fails = |text: &str| find_failure(text).is_some_and(|other| other.is_like(&failure));
    let short = find_minimal_script(&script, still_fails);
    println!("seed {seed}, as short as it still fails:\n{short}");
    file.write("-short", &short);
    false
}

/// `DOGWATCH_PROVE_RANDOM` runs, from seed `DOGWATCH_PROVE_SEED` on.
#[test]
fn random_scripts_break_no_promise_and_end_clean() {
    let first = number_from_env("DOGWATCH_PROVE_SEED").unwrap_or(1);
    let count = number_from_env("DOGWATCH_PROVE_RANDOM").unwrap_or(USUAL_RUNS);
    let seeds: Vec<u64> = (first..first + count).collect();
    let progress = RunProgress::of_total(seeds.len());
    let failed = Mutex::new(Vec::new());
    for_each_in_parallel(seeds, |seed| {
        if !passes_seed(seed) {
            failed.lock().unwrap().push(seed);
        }
        progress.count_one();
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "these seeds failed: {failed:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let script = random_script(3);
    let run = || block_on_simulation(run_random_script(&script)).unwrap();
    assert_eq!(run(), run());
}

#[test]
fn a_shorter_script_fails_alike_if_a_cause_is_the_same_but_for_numbers() {
    let unfinished = |left: &str| {
        let text = format!("line 9: wait until clean: the cluster is not clean: {left}");
        ScriptFailure::Unfinished(vec![text])
    };
    let long = unfinished("n1 is not Ready; a record on n1 in phase draining");
    assert!(long.is_like(&unfinished(
        "a record on n3 in phase draining; Drained on n3"
    )));
    assert!(!long.is_like(&unfinished("a record on n3 in phase waiting")));
    let broken = ScriptFailure::Broken(vec!["n1 is not Ready".to_owned()]);
    assert!(!long.is_like(&broken));
}
