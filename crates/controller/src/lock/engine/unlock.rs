//! A host gives its lock up: all of it, whoever of its requests relies on it.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::lock::api_lock::Who;
use dogwatch_k8s::{Error, Kind};
use tokio::sync::oneshot;

use super::leave::{self, Progress, Why};
use super::request::presence_stands;
use super::shared::{Pauses, Shared};
use super::trace::Trace;
use crate::lock::service::{Client, UnlockAnswer};

/// How long a client is kept waiting while the API server does not answer. What was begun goes on.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn serve(shared: Arc<Shared>, client: Client) -> UnlockAnswer {
    if let Err(why) = presence_stands(&shared).await {
        return UnlockAnswer::Unavailable { why };
    }
    let (answer, answered) = oneshot::channel();
    // A task of its own: a client that goes away wanted it all the same.
    tokio::spawn(run(shared, client, answer));
    answered
        .await
        .unwrap_or_else(|_| UnlockAnswer::Unavailable {
            why: "this process ends; ask again".into(),
        })
}

async fn run(shared: Arc<Shared>, client: Client, answer: oneshot::Sender<UnlockAnswer>) {
    let mut trace = Trace::new(&shared, client);
    let mut answer = Some(answer);
    let begun = shared.now().mono;
    let mut pauses = Pauses::default();
    let mut steps = 0_u32;
    loop {
        let error = match leave::step(&shared, &mut trace.left, Who::Host, Why::Done).await {
            Ok(Progress::Done) => break,
            Ok(Progress::Again) => {
                steps += 1;
                continue;
            }
            Err(error) => error,
        };
        tracing::warn!(error = error.in_words(), holder = %trace.left.holder, "cannot unlock yet");
        let late = shared.now().mono >= begun + PATIENCE || *shared.stop.borrow();
        if (is_final(&error) || late)
            && let Some(answer) = answer.take()
        {
            // The client may be gone.
            let _ = answer.send(trouble(&trace, &error));
        }
        if answer.is_none() && steps == 0 {
            break;
        }
        pauses.pause().await;
    }
    trace.settled();
    if let Some(answer) = answer {
        let holder = &trace.left.holder;
        let why = match steps {
            0 => format!("{holder} held nothing"),
            _ => format!("{holder} holds nothing any more"),
        };
        let _ = answer.send(UnlockAnswer::Free { why });
    }
}

/// Asking again will not help before somebody has done something.
fn is_final(error: &Error) -> bool {
    match error.kind() {
        Kind::Forbidden | Kind::Refused => true,
        Kind::NotFound
        | Kind::AlreadyExists
        | Kind::Conflict
        | Kind::Gone
        | Kind::Throttled { .. }
        | Kind::Transient => false,
    }
}

fn trouble(trace: &Trace, error: &Error) -> UnlockAnswer {
    let (holder, error_text) = (&trace.left.holder, error.in_words());
    if is_final(error) {
        let why =
            format!("the lock of {holder} cannot be given up, and is still held: {error_text}");
        UnlockAnswer::Failed { why }
    } else {
        let why = format!("whether {holder} still holds is not known: {error_text}; ask again");
        UnlockAnswer::Unavailable { why }
    }
}
