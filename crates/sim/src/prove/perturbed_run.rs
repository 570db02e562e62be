//! Runs a scenario with one perturbation, and compares it with the run without.

use std::time::Duration;

use dogwatch_kubesim::seed::SimulationSeed;

use crate::scenario::{
    EndState, PatientOutcome, Perturbation, ScenarioError, ScriptError, expand_script,
    parse_script, run_patiently,
};

/// What passes after the last line of a script. The longest wait of the usual flags is 30 minutes
/// (`--reboot-timeout`), and a lost event is found within 5 minutes.
const CALM: Duration = Duration::from_mins(90);
/// What passes where the end states still differ after [`CALM`]: a drain takes an hour, and back-offs
/// double.
const LONG_CALM: Duration = Duration::from_hours(12);

/// A script that is perturbed.
#[derive(Debug, Clone)]
pub struct ProofCase {
    pub name: String,
    /// Without `each`.
    pub text: String,
}

impl ProofCase {
    /// A scenario. Of one with `each`, the first combination: most of the others are perturbations
    /// themselves.
    pub fn from_scenario(name: &str, text: &str) -> Result<Self, ScriptError> {
        let first = expand_script(text)?.into_iter().next();
        let text = first.map_or_else(|| text.to_owned(), |first| first.text);
        let name = name.to_owned();
        Ok(Self { name, text })
    }
}

/// The run without a perturbation.
#[derive(Debug, Clone)]
pub struct BaseRun {
    /// What can be perturbed.
    pub perturbations: Vec<Perturbation>,
    pub outcome: PatientOutcome,
}

pub async fn run_base(case: &ProofCase) -> Result<BaseRun, ScenarioError> {
    let outcome = run_patiently(&parse_script(&case.text)?, CALM).await?;
    let perturbations = outcome.counts.list_perturbations();
    Ok(BaseRun {
        perturbations,
        outcome,
    })
}

/// How a perturbed run compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerturbationVerdict {
    /// The same end, all promises kept, all expectations met.
    Same,
    /// The same end, all promises kept. The script expects a time or a number that the perturbation
    /// itself changes.
    OtherExpectations(Vec<String>),
    /// All promises kept, but the cluster is left in another state.
    OtherEnd(Vec<String>),
    /// A promise is broken.
    Broken(Vec<String>),
}

impl PerturbationVerdict {
    /// One word, for tables.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherExpectations(_) => "other-expectations",
            Self::OtherEnd(_) => "other-end",
            Self::Broken(_) => "broken",
        }
    }

    pub fn details(&self) -> &[String] {
        match self {
            Self::Same => &[],
            Self::OtherExpectations(lines) | Self::OtherEnd(lines) | Self::Broken(lines) => lines,
        }
    }
}

/// Runs the case with this perturbation.
pub async fn judge_perturbation(
    case: &ProofCase,
    base: &BaseRun,
    perturbation: &Perturbation,
) -> Result<PerturbationVerdict, ScenarioError> {
    let text = insert_after_start(&case.text, &perturbation.to_string());
    let script = parse_script(&text)?;
    let perturbed = run_patiently(&script, CALM).await?;
    let known = &base.outcome.violations;
    let violations = perturbed.violations.iter();
    let violations: Vec<String> = violations
        .filter(|violation| !known.contains(violation))
        .cloned()
        .collect();
    if !violations.is_empty() {
        return Ok(PerturbationVerdict::Broken(violations));
    }
    let differences = base.outcome.end.differences_to(&perturbed.end);
    if !differences.is_empty() {
        let later = compare_much_later(case, &text).await?;
        if !later.is_empty() {
            return Ok(PerturbationVerdict::OtherEnd(later));
        }
    }
    let known = &base.outcome.unmet;
    let unmet: Vec<String> = perturbed
        .unmet
        .into_iter()
        .filter(|unmet| !known.contains(unmet))
        .collect();
    Ok(if unmet.is_empty() {
        PerturbationVerdict::Same
    } else {
        PerturbationVerdict::OtherExpectations(unmet)
    })
}

/// Both runs once more, with a long calm.
async fn compare_much_later(case: &ProofCase, text: &str) -> Result<Vec<String>, ScenarioError> {
    let end = |text: &str| {
        let script = parse_script(text);
        async move { Ok::<EndState, ScenarioError>(run_patiently(&script?, LONG_CALM).await?.end) }
    };
    let (base, perturbed) = (end(&case.text).await?, end(text).await?);
    Ok(base.differences_to(&perturbed))
}

/// The script with one more line after `start`.
pub fn insert_after_start(text: &str, line: &str) -> String {
    let mut out = String::with_capacity(text.len() + line.len() + 1);
    let mut is_inserted = false;
    for old in text.lines() {
        out.push_str(old);
        out.push('\n');
        if !is_inserted && old.trim() == "start" {
            out.push_str(line);
            out.push('\n');
            is_inserted = true;
        }
    }
    out
}

/// `count` of the items, chosen by the seed and their names alone.
pub fn choose_sample<T>(
    items: Vec<T>,
    count: usize,
    seed: u64,
    name: impl Fn(&T) -> String,
) -> Vec<T> {
    let rank = |item: &T| {
        let mut stream = SimulationSeed(seed).stream_for_actor(&name(item));
        stream.next_below(u64::MAX)
    };
    let mut ranked: Vec<(u64, T)> = items.into_iter().map(|item| (rank(&item), item)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.truncate(count);
    ranked.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_inserted_once_and_after_the_start() {
        let text = "cluster nodes=1\nstart\nrun 1s\nstart\n";
        assert_eq!(
            insert_after_start(text, "compact"),
            "cluster nodes=1\nstart\ncompact\nrun 1s\nstart\n"
        );
    }

    #[test]
    fn a_sample_depends_on_the_seed_and_nothing_else() {
        let all = || (0..100).collect::<Vec<u32>>();
        let sample = |seed| choose_sample(all(), 10, seed, u32::to_string);
        assert_eq!(sample(1), sample(1));
        assert_ne!(sample(1), sample(2));
        assert_eq!(sample(1).len(), 10);
    }
}
