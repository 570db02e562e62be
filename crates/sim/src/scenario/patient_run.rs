//! Runs a script that something else delays: a perturbation, or all faults at once.

use std::time::Duration;

use jiff::SignedDuration;

use super::end_state::EndState;
use super::perturbation::CallCounts;
use super::run::{ScenarioError, ScenarioRun};
use super::script_parser::ParsedScript;

/// How long a patient run waits longer than its script does.
const PATIENCE: Duration = Duration::from_mins(40);

/// How old the view of a watch may be that lost an event: a watch ends within 305 s.
const LONGEST_VIEW: SignedDuration = SignedDuration::from_mins(6);

/// The result of a script that was run with patience.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatientOutcome {
    /// The timeline.
    pub text: String,
    /// Broken promises.
    pub violations: Vec<String>,
    /// Expectations of the script that were not met, even with patience.
    pub unmet: Vec<String>,
    pub end: EndState,
    pub counts: CallCounts,
}

/// Runs a script without `each` to its last line, whatever its expectations say: what a
/// perturbation delays fails no wait. Then `calm` passes, so that every wait can come to its end.
pub async fn run_patiently(
    script: &ParsedScript,
    calm: Duration,
) -> Result<PatientOutcome, ScenarioError> {
    let mut run = ScenarioRun::start_run(script).await?;
    run.patience = PATIENCE;
    run.stage.checks.set_slack(LONGEST_VIEW);
    for line in &script.lines {
        run.run_line(line).await;
    }
    run.pass_time(calm, None).await;
    let counts = run.stage.faults.call_counts();
    let end = EndState::of_cluster(&run.stage);
    let unmet = std::mem::take(&mut run.failures);
    let mut violations = std::mem::take(&mut run.violations);
    let (outcome, _) = run.into_outcome();
    violations.extend(outcome.failures);
    Ok(PatientOutcome {
        text: outcome.text,
        violations,
        unmet,
        end,
        counts,
    })
}
