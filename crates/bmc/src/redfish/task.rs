//! Waits for commands that the BMC completes after its 202 answer (DSP0266 §11).

use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use serde_json::Value;

use super::client::RedfishClient;
use super::deadline::Deadline;
use super::document::task_state;
use super::reply::RedfishReply;
use super::request::RedfishRequest;
use crate::{BmcFault, CommandAnswer, FaultClass};

/// The first wait between two polls; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq, Eq)]
enum TaskProgress {
    Done,
    Under,
    Forgotten,
    Failed(String),
}

/// Waits until an accepted command has ended. `reply` is the BMC's answer to the command. If it
/// names no task, or one that the BMC no longer knows, the command still counts as accepted: to
/// send it again would gain nothing.
///
/// # Errors
/// The task failed, or its end is unknown, for instance because the deadline passed.
pub(super) async fn wait_for_task(
    caller: &RedfishClient,
    reply: &RedfishReply,
    deadline: Deadline,
) -> Result<CommandAnswer, BmcFault> {
    let mut progress = parse_task_progress(reply)?;
    let mut wait = FIRST_WAIT;
    let monitor = task_monitor_link(reply);
    loop {
        match progress {
            TaskProgress::Done => return Ok(CommandAnswer::Accepted),
            TaskProgress::Forgotten => return Ok(CommandAnswer::AcceptedWithoutTask),
            TaskProgress::Failed(how) => {
                let message = format!("the BMC's task for the command ended as {how}");
                return Err(BmcFault::without_effect(FaultClass::Refused, message));
            }
            TaskProgress::Under => {}
        }
        let path = monitor
            .as_deref()
            .and_then(|link| caller.origin.path_at_origin(link).ok());
        let Some(path) = path else {
            return Ok(CommandAnswer::AcceptedWithoutTask);
        };
        wait_before_poll(wait, deadline).await?;
        wait = (wait * 2).min(LONGEST_WAIT);
        let reply = caller
            .get_with_retry(&RedfishRequest::get(path), deadline)
            .await
            .map_err(mark_unknown_end)?;
        progress = parse_poll_progress(&reply)?;
    }
}

async fn wait_before_poll(wait: Duration, deadline: Deadline) -> Result<(), BmcFault> {
    let slept = deadline.bound_by_deadline(tokio::time::sleep(wait)).await;
    slept.map_err(|fault| {
        mark_unknown_end(BmcFault {
            message: format!(
                "the BMC's task for the command did not end: {}",
                fault.message
            ),
            ..fault
        })
    })
}

/// Reads the answer to a poll of the task monitor. When the task has ended, the monitor gives the
/// command's own answer, also a refusal. An answer that is about the poll itself says nothing about
/// the command, which may still run: the BMC is busy, does not let us see the task, or redirects.
fn parse_poll_progress(reply: &RedfishReply) -> Result<TaskProgress, BmcFault> {
    match reply.status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Ok(TaskProgress::Under),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(mark_unknown_end(reply.to_fault())),
        status if status.is_redirection() => Err(mark_unknown_end(reply.to_fault())),
        _ => parse_task_progress(reply),
    }
}

/// Reads the answer to the command, or the command's own answer from its task monitor. A BMC that is
/// busy is polled again.
fn parse_task_progress(reply: &RedfishReply) -> Result<TaskProgress, BmcFault> {
    match reply.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(TaskProgress::Forgotten),
        status if status.is_server_error() => Ok(TaskProgress::Under),
        status if status.is_success() => Ok(progress_of_document(reply)),
        _ => Err(reply.to_fault()),
    }
}

fn progress_of_document(reply: &RedfishReply) -> TaskProgress {
    let document = reply.body_json().unwrap_or_default();
    match task_state(&document) {
        Some("Completed") => TaskProgress::Done,
        Some(state @ ("Exception" | "Killed" | "Cancelled")) => {
            TaskProgress::Failed(state.to_owned())
        }
        Some(_) => TaskProgress::Under,
        None if reply.status == StatusCode::ACCEPTED => TaskProgress::Under,
        None => TaskProgress::Done,
    }
}

/// The link to poll: `Location`, otherwise the task itself.
fn task_monitor_link(reply: &RedfishReply) -> Option<String> {
    let location = reply.header(LOCATION).map(ToOwned::to_owned);
    let itself = || {
        let document = reply.body_json()?;
        task_state(&document)?;
        let id = document.get("@odata.id").and_then(Value::as_str);
        id.map(ToOwned::to_owned)
    };
    location.or_else(itself)
}

fn mark_unknown_end(fault: BmcFault) -> BmcFault {
    BmcFault {
        may_have_run: true,
        ..fault
    }
}
