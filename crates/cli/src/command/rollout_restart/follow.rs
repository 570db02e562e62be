//! Waits for all of them at once.

use std::time::Duration;

use dogwatch_core::rollout::{Clock, State, Verdict, decide};
use dogwatch_k8s::rollout::{Follow, Found, RolloutClient};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::said::{self, Ended};
use crate::exit::{Exit, Failure};
use crate::output::Format;

/// So long without a change, and its Warnings are read: they may say why.
const QUIET: Duration = Duration::from_secs(5);

/// Follows each to its end; in the order in which they were named.
pub async fn all(
    client: &RolloutClient,
    found: &[Found],
    limit: Duration,
    format: Format,
) -> Result<Vec<Ended>, Failure> {
    let mut waits = JoinSet::new();
    for (index, one) in found.iter().cloned().enumerate() {
        let follow = client.follow(&one);
        waits.spawn(async move { (index, one_of(one, follow, limit, format).await) });
    }
    let mut ended = Vec::new();
    while let Some(done) = waits.join_next().await {
        let (index, result) =
            done.map_err(|error| Failure::new(Exit::Failed, format!("failed to wait: {error}")))?;
        ended.push((index, result?));
    }
    ended.sort_by_key(|(index, _)| *index);
    Ok(ended.into_iter().map(|(_, ended)| ended).collect())
}

async fn one_of(
    found: Found,
    mut follow: Follow,
    limit: Duration,
    format: Format,
) -> Result<Ended, Failure> {
    let started = Instant::now();
    let mut told = String::new();
    let mut troubled = None;
    loop {
        let verdict = judged(&follow, started, limit, troubled.as_deref());
        if let Some(verdict) = &verdict {
            let text = text(verdict);
            if told != text {
                said::line(format, &found.name, verdict.state, &text)?;
                told = text;
            }
            if verdict.state != State::Going {
                return Ok(Ended::of(&found, verdict));
            }
        }
        let until = (started + limit).min(Instant::now() + QUIET);
        match tokio::time::timeout_at(until, follow.changed()).await {
            Ok(Ok(())) => troubled = None,
            Ok(Err(error)) => {
                let words = error.in_words();
                said::line(
                    format,
                    &found.name,
                    State::Going,
                    &format!("cannot be seen: {words}"),
                )?;
                troubled = Some(words);
            }
            Err(_) => follow.read_warning().await,
        }
    }
}

/// `None` until something has been seen, but for the time limit.
fn judged(
    follow: &Follow,
    started: Instant,
    limit: Duration,
    troubled: Option<&str>,
) -> Option<Verdict> {
    let clock = Clock {
        waited: started.elapsed(),
        limit,
    };
    match follow.seen() {
        Some(seen) => Some(decide(&seen, clock)),
        None if clock.waited < limit => None,
        None => Some(Verdict::unseen(limit, troubled)),
    }
}

fn text(verdict: &Verdict) -> String {
    match verdict.state {
        State::Going | State::Done => verdict.because.message.clone(),
        State::Failed => format!("failed: {}", verdict.because.message),
    }
}
