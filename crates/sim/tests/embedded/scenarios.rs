//! Every script in `scenarios/` produces the expected output beside it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use dogwatch_sim::scenario;

/// If this variable is set, the outputs are written instead of compared.
const BLESS: &str = "DOGWATCH_BLESS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn scripts() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut scripts: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .filter(|path| wanted(path))
        .collect();
    scripts.sort();
    scripts
}

/// `DOGWATCH_SCENARIO=name` runs one script alone, `DOGWATCH_SCENARIO='remedy-*'` those whose names
/// begin so.
fn wanted(path: &Path) -> bool {
    let Ok(wanted) = std::env::var("DOGWATCH_SCENARIO") else {
        return true;
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match wanted.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == wanted,
    }
}

fn run(text: &str) -> scenario::ScenarioOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime
        .block_on(scenario::run_script(text))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The output beside a script was written by another process, so a script that produces it again is
/// deterministic. Only one that does not, or whose output is being written, runs a second time, which
/// tells a change from an accident.
fn judge(script: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(script).unwrap();
    let outcome = run(&text);
    let expected = script.with_extension("out");
    let is_blessed = std::env::var_os(BLESS).is_some();
    if is_blessed {
        std::fs::write(&expected, &outcome.text).unwrap();
    }
    if !outcome.failures.is_empty() {
        return Err(format!("{}\n{}", outcome.failures.join("\n"), outcome.text));
    }
    let known = std::fs::read_to_string(&expected).unwrap_or_default();
    let difference = difference(&known, &outcome.text);
    // `each` makes it many scripts, which would take minutes.
    let runs_again = (is_blessed || difference.is_some()) && !text.contains("\neach ");
    if runs_again && run(&text) != outcome {
        return Err("the same script gave another text the second time".into());
    }
    match difference {
        None => Ok(()),
        Some(difference) => Err(format!(
            "{difference}\n({BLESS}=1 writes down what happens now)"
        )),
    }
}

fn difference(known: &str, now: &str) -> Option<String> {
    let (known_lines, now_lines): (Vec<&str>, Vec<&str>) =
        (known.lines().collect(), now.lines().collect());
    let at = (0..known_lines.len().max(now_lines.len()))
        .find(|at| known_lines.get(*at) != now_lines.get(*at))?;
    let line = |lines: &[&str]| lines.get(at).copied().unwrap_or("(the end)").to_owned();
    Some(format!(
        "line {}:\n  was {}\n  is  {}",
        at + 1,
        line(&known_lines),
        line(&now_lines)
    ))
}

#[test]
fn every_scenario_does_what_stands_beside_it() {
    let scripts = scripts();
    assert!(!scripts.is_empty(), "there are no scenarios");
    let queue = Mutex::new(scripts);
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(script) = { queue.lock().unwrap().pop() } {
                    if let Err(why) = std::panic::catch_unwind(|| judge(&script))
                        .unwrap_or_else(|_| Err("it panicked".into()))
                    {
                        failed
                            .lock()
                            .unwrap()
                            .push(format!("{}: {why}", script.display()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn every_scenario_says_which_promise_it_shows() {
    for script in scripts() {
        let text = std::fs::read_to_string(&script).unwrap();
        let first = text.lines().next().unwrap_or_default().to_owned();
        let promises = ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "L1"];
        let named =
            first.starts_with('#') && promises.iter().any(|promise| first.contains(promise));
        assert!(named, "{} begins with {first:?}", script.display());
    }
}
