//! Waits for all restarts at once.

use std::time::Duration;

use dogwatch_core::rollout::{RolloutClock, RolloutState, RolloutVerdict, decide};
use dogwatch_k8s::rollout::{RolloutClient, RolloutTarget, RolloutWatch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::report::{self, RestartResult};
use crate::exit::{CliExitCode, CommandFailure};
use crate::output::OutputFormat;

/// After this long without a change the workload's Warning Events are read: they may say why.
const QUIET_BEFORE_WARNINGS: Duration = Duration::from_secs(5);

/// Follows each rollout to its end; results come in the order of the arguments.
pub async fn follow_all(
    client: &RolloutClient,
    found: &[RolloutTarget],
    limit: Duration,
    format: OutputFormat,
) -> Result<Vec<RestartResult>, CommandFailure> {
    let mut waits = JoinSet::new();
    for (index, one) in found.iter().cloned().enumerate() {
        let follow = client.watch_restart(&one);
        waits.spawn(async move { (index, follow_one(one, follow, limit, format).await) });
    }
    let mut ended = Vec::new();
    while let Some(done) = waits.join_next().await {
        let (index, result) = done.map_err(|error| {
            CommandFailure::new(CliExitCode::Failed, format!("failed to wait: {error}"))
        })?;
        ended.push((index, result?));
    }
    ended.sort_by_key(|(index, _)| *index);
    Ok(ended.into_iter().map(|(_, ended)| ended).collect())
}

async fn follow_one(
    found: RolloutTarget,
    mut follow: RolloutWatch,
    limit: Duration,
    format: OutputFormat,
) -> Result<RestartResult, CommandFailure> {
    let started = Instant::now();
    let mut told = String::new();
    let mut troubled = None;
    loop {
        let verdict = judge_progress(&follow, started, limit, troubled.as_deref());
        if let Some(verdict) = &verdict {
            let text = verdict_text(verdict);
            if told != text {
                report::print_progress_line(format, &found.name, verdict.state, &text)?;
                told = text;
            }
            if verdict.state != RolloutState::Going {
                return Ok(RestartResult::of_verdict(&found, verdict));
            }
        }
        let until = (started + limit).min(Instant::now() + QUIET_BEFORE_WARNINGS);
        match tokio::time::timeout_at(until, follow.wait_for_change()).await {
            Ok(Ok(())) => troubled = None,
            Ok(Err(error)) => {
                let words = error.error_chain();
                report::print_progress_line(
                    format,
                    &found.name,
                    RolloutState::Going,
                    &format!("its progress cannot be read: {words}"),
                )?;
                troubled = Some(words);
            }
            Err(_) => follow.read_warning().await,
        }
    }
}

/// Returns `None` until something was observed, except after the time limit.
fn judge_progress(
    follow: &RolloutWatch,
    started: Instant,
    limit: Duration,
    troubled: Option<&str>,
) -> Option<RolloutVerdict> {
    let clock = RolloutClock {
        waited: started.elapsed(),
        limit,
    };
    match follow.current_snapshot() {
        Some(seen) => Some(decide(&seen, clock)),
        None if clock.waited < limit => None,
        None => Some(RolloutVerdict::timed_out_unseen(limit, troubled)),
    }
}

fn verdict_text(verdict: &RolloutVerdict) -> String {
    match verdict.state {
        RolloutState::Going | RolloutState::Done => verdict.because.message.clone(),
        RolloutState::Failed => format!("failed: {}", verdict.because.message),
    }
}
