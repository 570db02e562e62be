//! Runs commands for viewers: reads with the rights of this process, actions with the viewer's.

// A refusal is an answer like any other, made once for a request.
#![allow(clippy::result_large_err)]

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::Serialize;

use crate::access::single_header;
use crate::actions::{ActionError, is_action_path, parse_action};
use crate::command::{
    CommandOutcome, CommandOutput, CommandRights, DashboardCommand, ViewerToken, join_shell_words,
};
use crate::response::{JSON, PageResponse, error_response, json_response, wrong_method};
use crate::routes::{DashboardState, no_such_path};

/// Longest body of a request. Source: specification §6, "bodies up to 4 KiB".
const MAX_BODY_BYTES: usize = 4096;

pub(crate) async fn answer_action(
    state: &Arc<DashboardState>,
    action: &str,
    request: Request<Incoming>,
) -> Result<PageResponse, PageResponse> {
    if !is_action_path(action) {
        return Err(no_such_path());
    }
    if request.method() != Method::POST {
        return Err(wrong_method("POST"));
    }
    let rights = action_rights(state, request.headers())?;
    let content_type = single_header(request.headers(), &CONTENT_TYPE);
    if content_type != Some(JSON) || request.headers().contains_key(CONTENT_ENCODING) {
        let line = "send the form as application/json, without a content encoding";
        return Err(error_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, line));
    }
    let body = read_body(state, request).await?;
    let command = parse_action(action, &body).map_err(|error| match error {
        ActionError::NoSuchPath => no_such_path(),
        ActionError::BadForm | ActionError::BadReason | ActionError::NoReason => {
            error_response(StatusCode::BAD_REQUEST, &error.to_string())
        }
    })?;
    tracing::info!(words = ?command.to_words(), "runs a command for a viewer");
    run_command(state, command, rights).await
}

/// With a session: the process'. Without: the viewer's own, of which the token is the proof.
fn action_rights(
    state: &DashboardState,
    headers: &HeaderMap,
) -> Result<CommandRights, PageResponse> {
    if state.link.is_some() {
        return Ok(CommandRights::Process);
    }
    let token = single_header(headers, &AUTHORIZATION)
        .and_then(|value| value.strip_prefix("Bearer "))
        .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    token
        .map(|token| CommandRights::Viewer(ViewerToken::new(token)))
        .ok_or_else(|| {
            let line = "an action needs your own token: send it as Authorization: Bearer TOKEN";
            error_response(StatusCode::UNAUTHORIZED, line)
        })
}

async fn read_body(
    state: &DashboardState,
    request: Request<Incoming>,
) -> Result<Bytes, PageResponse> {
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    match tokio::time::timeout(state.limits.read_timeout, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(error_response(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the form is larger than 4 KiB",
        )),
        Ok(Err(_)) => Err(error_response(
            StatusCode::BAD_REQUEST,
            "the form did not arrive",
        )),
        Err(_) => Err(error_response(
            StatusCode::REQUEST_TIMEOUT,
            "the form did not arrive in time",
        )),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageCommandAnswer {
    /// What a person types for the same.
    command: String,
    #[serde(flatten)]
    output: CommandOutput,
}

/// A command goes on if the viewer disconnects: it may have written its first object.
pub(crate) async fn run_command(
    state: &Arc<DashboardState>,
    command: DashboardCommand,
    rights: CommandRights,
) -> Result<PageResponse, PageResponse> {
    let busy = || {
        error_response(
            StatusCode::SERVICE_UNAVAILABLE,
            "other commands are running",
        )
    };
    let acquired = Arc::clone(&state.running).acquire_owned();
    let acquired = tokio::time::timeout(state.limits.read_timeout, acquired).await;
    let permit = acquired.map_err(|_| busy())?.map_err(|_| busy())?;
    let shown = shown_command(state, &command);
    let work = state.commands.run_command(command, rights);
    let timeout = state.limits.command_timeout;
    let task = tokio::spawn(async move {
        let _permit = permit;
        tokio::time::timeout(timeout, work).await
    });
    let output = match task.await {
        Ok(Ok(output)) => output,
        Ok(Err(_)) => CommandOutput {
            outcome: CommandOutcome::Unreachable,
            text: "the command did not end in time: look whether it had an effect before you repeat it".to_owned(),
        },
        Err(_) => CommandOutput {
            outcome: CommandOutcome::Failed,
            text: "the command ended by a defect of Dogwatch: its log says more".to_owned(),
        },
    };
    let status = outcome_status(output.outcome);
    let command = shown;
    Ok(json_response(
        status,
        &PageCommandAnswer { command, output },
    ))
}

fn shown_command(state: &DashboardState, command: &DashboardCommand) -> String {
    let words = command.to_words();
    let all = state.command_prefix.iter().chain(&words);
    join_shell_words(all.map(String::as_str))
}

fn outcome_status(outcome: CommandOutcome) -> StatusCode {
    match outcome {
        CommandOutcome::Succeeded | CommandOutcome::Blocked | CommandOutcome::Failed => {
            StatusCode::OK
        }
        CommandOutcome::NotFound => StatusCode::NOT_FOUND,
        CommandOutcome::Unreachable => StatusCode::BAD_GATEWAY,
        CommandOutcome::Forbidden => StatusCode::FORBIDDEN,
    }
}
