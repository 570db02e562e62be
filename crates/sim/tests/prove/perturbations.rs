//! Every perturbation of every scenario, or a sample.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dogwatch_sim::prove::{BaseRun, ProofCase, choose_sample, judge_perturbation, run_base};
use dogwatch_sim::scenario::Perturbation;

use crate::campaign::{
    CampaignState, RunProgress, catch_simulation, for_each_in_parallel, number_from_env,
};

/// Scenarios and perturbations in every run of the tests: a sample by the seed.
const USUAL_CASES: usize = 16;
const USUAL_RUNS: u64 = 32;

struct PerturbedCase {
    case: ProofCase,
    base: BaseRun,
}

struct PerturbationRun {
    case: Arc<PerturbedCase>,
    perturbation: Perturbation,
}

impl PerturbationRun {
    fn key(&self) -> String {
        format!("{}: {}", self.case.case.name, self.perturbation)
    }
}

fn read_cases() -> Vec<ProofCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let wanted = std::env::var("DOGWATCH_SCENARIO").unwrap_or_default();
    let entries = std::fs::read_dir(folder).unwrap();
    let mut scripts: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    scripts.sort();
    let cases = scripts.iter().map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy();
        ProofCase::from_scenario(&name, &std::fs::read_to_string(path).unwrap()).unwrap()
    });
    cases
        .filter(|case| wanted.is_empty() || wanted.split(',').any(|wanted| wanted == case.name))
        .collect()
}

fn run_bases(cases: Vec<ProofCase>) -> Vec<Arc<PerturbedCase>> {
    let bases = Mutex::new(Vec::new());
    for_each_in_parallel(cases, |case| {
        let begun = now();
        let base = catch_simulation(run_base(&case)).unwrap().unwrap();
        if std::env::var_os("DOGWATCH_PROVE_TIMES").is_some() {
            println!(
                "{}: {:?}, {} points, unmet {:?}, violations {:?}",
                case.name,
                begun.elapsed(),
                base.perturbations.len(),
                base.outcome.unmet,
                base.outcome.violations
            );
        }
        bases
            .lock()
            .unwrap()
            .push(Arc::new(PerturbedCase { case, base }));
    });
    let mut bases = bases.into_inner().unwrap();
    bases.sort_by(|one, other| one.case.name.cmp(&other.case.name));
    bases
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a run takes is real time"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn list_runs(cases: &[Arc<PerturbedCase>]) -> Vec<PerturbationRun> {
    let runs = cases.iter().flat_map(|case| {
        case.base
            .perturbations
            .iter()
            .map(|perturbation| PerturbationRun {
                case: Arc::clone(case),
                perturbation: perturbation.clone(),
            })
    });
    runs.collect()
}

/// Verdicts with their details, by the key of the run.
type RunResults = BTreeMap<String, (String, String)>;

fn perform_runs(runs: Vec<PerturbationRun>, state: &CampaignState) -> RunResults {
    let progress = RunProgress::of_total(runs.len());
    let results = Mutex::new(RunResults::new());
    for_each_in_parallel(runs, |run| {
        let key = run.key();
        let result = state.known_verdict(&key).cloned().unwrap_or_else(|| {
            let PerturbedCase { case, base } = &*run.case;
            let judged = catch_simulation(judge_perturbation(case, base, &run.perturbation));
            let result = match judged {
                Ok(judged) => {
                    let verdict = judged.unwrap();
                    (verdict.as_str().to_owned(), verdict.details().join(" | "))
                }
                Err(panic) => ("panic".to_owned(), panic),
            };
            state.record_verdict(&key, &result.0, &result.1);
            result
        });
        if is_finding(&result.0) {
            println!("{}: {key}\n    {}", result.0, result.1);
        }
        results.lock().unwrap().insert(key, result);
        progress.count_one();
    });
    results.into_inner().unwrap()
}

/// `DOGWATCH_PROVE_RUNS` perturbations, chosen by `DOGWATCH_PROVE_SEED`; without the first, a small
/// sample of few scenarios, because each scenario must also run unperturbed.
#[test]
fn a_sample_of_perturbations_breaks_no_promise_and_ends_the_same() {
    let wanted = number_from_env("DOGWATCH_PROVE_RUNS");
    let count = usize::try_from(wanted.unwrap_or(USUAL_RUNS)).unwrap_or(usize::MAX);
    let seed = number_from_env("DOGWATCH_PROVE_SEED").unwrap_or(1);
    let mut cases = read_cases();
    if wanted.is_none() {
        cases = choose_sample(cases, USUAL_CASES, seed, |case| case.name.clone());
    }
    let cases = run_bases(cases);
    let all = list_runs(&cases);
    println!("{} perturbations of {} scenarios", all.len(), cases.len());
    let runs = choose_sample(all, count, seed, PerturbationRun::key);
    let path = std::env::var_os("DOGWATCH_PROVE_STATE").map(PathBuf::from);
    let state = CampaignState::open_file(path, &program_name());
    let results = perform_runs(runs, &state);
    print_table(&results);
    let bad = results
        .iter()
        .filter(|(_, (verdict, _))| is_finding(verdict));
    let bad: Vec<&String> = bad.map(|(key, _)| key).collect();
    assert!(bad.is_empty(), "{} findings: {bad:#?}", bad.len());
}

/// This program: what another one found is of no use.
fn program_name() -> String {
    let path = std::env::current_exe().unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    format!("{name} {}", std::fs::metadata(&path).unwrap().len())
}

fn is_finding(verdict: &str) -> bool {
    !matches!(verdict, "same" | "other-expectations")
}

/// How often each kind of perturbation ended in which way.
fn print_table(results: &RunResults) {
    let mut table: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for (key, (verdict, _)) in results {
        *table.entry((kind_of_key(key), verdict)).or_default() += 1;
    }
    for ((kind, verdict), count) in table {
        println!("{kind:<24} {verdict:<20} {count:>8}");
    }
}

/// `event drop` of `NAME: perturb event 3 nodes of n1 drop`.
fn kind_of_key(key: &str) -> String {
    let words: Vec<&str> = key.split(' ').collect();
    let at = words.iter().position(|word| *word == "perturb").unwrap();
    format!("{} {}", words[at + 1], words.last().unwrap())
}
