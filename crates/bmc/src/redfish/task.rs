//! A command that the BMC works on after it has answered: 202, and where to ask (DSP0266 §11).

use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use serde_json::Value;

use super::ask::Ask;
use super::caller::Caller;
use super::deadline::Deadline;
use super::document::task_state;
use super::reply::Reply;
use crate::{Answer, Class, Fault};

/// How long the first wait is; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How a task stands.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Done,
    Under,
    Forgotten,
    Failed(String),
}

/// Waits until what the BMC accepted has ended. `reply` is its answer to the command. An answer that leads to no
/// task, or to one that the BMC does not know any more, is an answer all the same: nothing is gained by sending
/// the command again.
///
/// # Errors
/// The task failed; or nobody knows how it ends, the deadline among it.
pub(super) async fn finish(
    caller: &Caller,
    reply: &Reply,
    deadline: Deadline,
) -> Result<Answer, Fault> {
    let mut progress = progress(reply)?;
    let mut wait = FIRST_WAIT;
    let monitor = monitor(reply);
    loop {
        match progress {
            Progress::Done => return Ok(Answer::Accepted),
            Progress::Forgotten => return Ok(Answer::AcceptedWithoutTask),
            Progress::Failed(how) => {
                let message = format!("the BMC's task for it ended as {how}");
                return Err(Fault::harmless(Class::Refused, message));
            }
            Progress::Under => {}
        }
        let path = monitor
            .as_deref()
            .and_then(|link| caller.origin.path(link).ok());
        let Some(path) = path else {
            return Ok(Answer::AcceptedWithoutTask);
        };
        pause(wait, deadline).await?;
        wait = (wait * 2).min(LONGEST_WAIT);
        let reply = caller
            .get(&Ask::get(path), deadline)
            .await
            .map_err(unknown)?;
        progress = self::progress(&reply)?;
    }
}

async fn pause(wait: Duration, deadline: Deadline) -> Result<(), Fault> {
    let slept = deadline.bound(tokio::time::sleep(wait)).await;
    slept.map_err(|fault| {
        unknown(Fault {
            message: format!("the BMC's task for it did not end: {}", fault.message),
            ..fault
        })
    })
}

/// Of an answer to the command, or to a question about its task: once the task has ended, that is the
/// command's own answer. A BMC that is busy is asked again.
fn progress(reply: &Reply) -> Result<Progress, Fault> {
    match reply.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(Progress::Forgotten),
        status if status.is_server_error() => Ok(Progress::Under),
        status if status.is_success() => Ok(of_document(reply)),
        _ => Err(reply.fault()),
    }
}

fn of_document(reply: &Reply) -> Progress {
    let document = reply.json().unwrap_or_default();
    match task_state(&document) {
        Some("Completed") => Progress::Done,
        Some(state @ ("Exception" | "Killed" | "Cancelled")) => Progress::Failed(state.to_owned()),
        Some(_) => Progress::Under,
        None if reply.status == StatusCode::ACCEPTED => Progress::Under,
        None => Progress::Done,
    }
}

/// Where to ask: `Location`, else the task itself.
fn monitor(reply: &Reply) -> Option<String> {
    let location = reply.header(LOCATION).map(ToOwned::to_owned);
    let itself = || {
        let document = reply.json()?;
        task_state(&document)?;
        let id = document.get("@odata.id").and_then(Value::as_str);
        id.map(ToOwned::to_owned)
    };
    location.or_else(itself)
}

fn unknown(fault: Fault) -> Fault {
    Fault {
        may_have_run: true,
        ..fault
    }
}
