//! What each path answers, and to whom.

// A refusal is an answer like any other, made once for a request.
#![allow(clippy::result_large_err)]

use std::sync::Arc;

use dogwatch_runtime::connections::BusyConnectionGuard;
use dogwatch_runtime::stop::StopSignal;
use http::header::{HeaderName, HeaderValue, SET_COOKIE};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::access::{HostNames, check_host, check_origin, single_header};
use crate::actions::{parse_explain_path, parse_plan_path};
use crate::assets::{PageFile, find_page_file};
use crate::command::{CommandRights, CommandRunner};
use crate::command_routes::{answer_action, run_command};
use crate::events::{StreamGuard, event_body};
use crate::feed::EncodedReceiver;
use crate::plain_page::{render_notice_page, render_opening_page, render_plain_page};
use crate::response::{
    HTML, JSON, PageResponse, error_response, full_response, json_response, protected_response,
    wrong_method,
};
use crate::server::DashboardLimits;
use crate::session::{LinkOutcome, LinkSession};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const READ_METHODS: &str = "GET, HEAD";

pub(crate) struct DashboardState {
    /// `None` in the cluster.
    pub(crate) link: Option<LinkSession>,
    pub(crate) rights: &'static str,
    /// The cookie's name has the port: other servers on loopback share its cookies.
    pub(crate) cookie: String,
    pub(crate) hosts: HostNames,
    pub(crate) command_prefix: Vec<String>,
    pub(crate) encoded: EncodedReceiver,
    pub(crate) commands: Arc<dyn CommandRunner>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) running: Arc<Semaphore>,
    pub(crate) limits: DashboardLimits,
    pub(crate) stop: StopSignal,
}

pub(crate) async fn answer_request(
    state: Arc<DashboardState>,
    request: Request<Incoming>,
    busy: BusyConnectionGuard,
) -> PageResponse {
    let is_head = request.method() == Method::HEAD;
    let response = match route_request(&state, request, busy).await {
        Ok(response) | Err(response) => response,
    };
    if is_head {
        let (parts, _) = response.into_parts();
        return http::Response::from_parts(parts, http_body_util::Empty::new().boxed_unsync());
    }
    response
}

/// `Err` is a refusal; both are answers.
async fn route_request(
    state: &Arc<DashboardState>,
    request: Request<Incoming>,
    busy: BusyConnectionGuard,
) -> Result<PageResponse, PageResponse> {
    let refuse = |error: crate::access::OriginRefusal| {
        error_response(StatusCode::FORBIDDEN, &error.to_string())
    };
    check_host(request.headers(), &state.hosts).map_err(refuse)?;
    let uri = request.uri();
    if uri.authority().is_some() {
        let line = "this server is no proxy";
        return Err(error_response(StatusCode::BAD_REQUEST, line));
    }
    let (path, query) = (uri.path().to_owned(), uri.query().map(str::to_owned));
    if path == "/"
        && let Some(query) = &query
    {
        return open_link(state, &request, query);
    }
    if query.is_some() {
        return Err(error_response(
            StatusCode::BAD_REQUEST,
            "this path takes nothing after a ?",
        ));
    }
    // Another site may link to the page, but not fetch anything from it.
    let is_page = ["/", "/plain"].contains(&path.as_str());
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    if !(is_page && reads) {
        check_origin(request.headers(), request.method()).map_err(refuse)?;
    }
    check_session(state, request.headers(), is_page)?;
    if let Some(action) = path.strip_prefix("/api/actions/") {
        return answer_action(state, action, request).await;
    }
    if !reads {
        return Err(refuse_method(&path));
    }
    if let Some(file) = find_page_file(&path) {
        return Ok(file_response(file));
    }
    answer_read(state, &path, request.headers(), busy).await
}

fn refuse_method(path: &str) -> PageResponse {
    let rest = path.strip_prefix("/api/");
    let is_read = rest.is_some_and(|rest| {
        ["view", "events", "about"].contains(&rest)
            || rest
                .strip_prefix("explain/")
                .is_some_and(|rest| parse_explain_path(rest).is_some())
            || rest
                .strip_prefix("plan/")
                .is_some_and(|rest| parse_plan_path(rest).is_some())
    });
    if is_read || path == "/plain" || find_page_file(path).is_some() {
        wrong_method(READ_METHODS)
    } else {
        no_such_path()
    }
}

pub(crate) fn no_such_path() -> PageResponse {
    error_response(StatusCode::NOT_FOUND, "no such path")
}

fn file_response(file: &PageFile) -> PageResponse {
    full_response(StatusCode::OK, file.content_type, file.content)
}

async fn answer_read(
    state: &Arc<DashboardState>,
    path: &str,
    headers: &HeaderMap,
    busy: BusyConnectionGuard,
) -> Result<PageResponse, PageResponse> {
    match path {
        "/plain" => Ok(answer_plain(state)),
        "/api/view" => Ok(answer_view(state)),
        "/api/about" => Ok(json_response(StatusCode::OK, &describe_dashboard(state))),
        "/api/events" => open_stream(state, headers, busy),
        _ => {
            let rest = path.strip_prefix("/api/").unwrap_or_default();
            let explain = rest.strip_prefix("explain/").and_then(parse_explain_path);
            let plan = || rest.strip_prefix("plan/").and_then(parse_plan_path);
            let command = explain.or_else(plan).ok_or_else(no_such_path)?;
            run_command(state, command, CommandRights::Process).await
        }
    }
}

/// The first use of the link gives the session's cookie. The answer is a page that goes on to `/`
/// by itself and no redirect: browsers do not send a strict cookie along a chain of redirects that
/// another site began.
fn open_link(
    state: &DashboardState,
    request: &Request<Incoming>,
    query: &str,
) -> Result<PageResponse, PageResponse> {
    let refused = |text| full_response(StatusCode::FORBIDDEN, HTML, render_notice_page(text));
    if request.method() != Method::GET {
        return Err(wrong_method("GET"));
    }
    let (Some(link), Some(token)) = (&state.link, query.strip_prefix("token=")) else {
        return Err(error_response(
            StatusCode::BAD_REQUEST,
            "this path takes nothing after a ?",
        ));
    };
    match link.open_link(token, request.headers(), &state.cookie) {
        LinkOutcome::Opened => {
            let mut response = full_response(StatusCode::OK, HTML, render_opening_page());
            let cookie = HeaderValue::from_str(&link.cookie_header(&state.cookie));
            let cookie = cookie.expect("the cookie has letters and digits only");
            response.headers_mut().insert(SET_COOKIE, cookie);
            Ok(response)
        }
        LinkOutcome::SameViewer => Ok(full_response(StatusCode::OK, HTML, render_opening_page())),
        LinkOutcome::UsedTwice => {
            tracing::warn!(
                "the one-time link of the dashboard was used twice; its session has ended"
            );
            Err(refused(
                "This link was used before. It works once, so the session that it opened has ended too: if you did not open it, somebody else has. Run the command again for a new link.",
            ))
        }
        LinkOutcome::Wrong => Err(refused(
            "This link is not the one that the command printed. Copy the whole line.",
        )),
    }
}

fn check_session(
    state: &DashboardState,
    headers: &HeaderMap,
    is_page: bool,
) -> Result<(), PageResponse> {
    let Some(link) = &state.link else {
        return Ok(());
    };
    if link.has_session(headers, &state.cookie) {
        return Ok(());
    }
    let line = "Open the link that the command printed. It works once; run the command again for a new one.";
    Err(if is_page {
        full_response(StatusCode::UNAUTHORIZED, HTML, render_notice_page(line))
    } else {
        error_response(StatusCode::UNAUTHORIZED, line)
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DashboardAbout<'a> {
    version: &'static str,
    /// Whether an action needs a token of the viewer.
    needs_token: bool,
    /// With which rights the page acts, as the end of a sentence.
    rights: &'static str,
    command_prefix: &'a [String],
}

fn describe_dashboard(state: &DashboardState) -> DashboardAbout<'_> {
    DashboardAbout {
        version: env!("CARGO_PKG_VERSION"),
        needs_token: state.link.is_none(),
        rights: state.rights,
        command_prefix: &state.command_prefix,
    }
}

fn not_read_yet() -> PageResponse {
    let line = "the cluster has not been read yet";
    error_response(StatusCode::SERVICE_UNAVAILABLE, line)
}

fn answer_view(state: &DashboardState) -> PageResponse {
    let newest = state.encoded.borrow().clone();
    newest.map_or_else(not_read_yet, |view| {
        full_response(StatusCode::OK, JSON, view.json.clone())
    })
}

fn answer_plain(state: &DashboardState) -> PageResponse {
    let newest = state.encoded.borrow().clone();
    let page = render_plain_page(newest.as_ref().map(|view| &*view.view));
    full_response(StatusCode::OK, HTML, page)
}

fn open_stream(
    state: &DashboardState,
    headers: &HeaderMap,
    busy: BusyConnectionGuard,
) -> Result<PageResponse, PageResponse> {
    let permit = Arc::clone(&state.streams).try_acquire_owned();
    let permit = permit
        .map_err(|_| error_response(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open"))?;
    let guard = StreamGuard {
        _permit: permit,
        _busy: busy,
    };
    let last_id = single_header(headers, &LAST_EVENT_ID);
    let body = event_body(state.encoded.clone(), last_id, state.stop.clone(), guard);
    let body = body.boxed_unsync();
    Ok(protected_response(
        StatusCode::OK,
        "text/event-stream",
        body,
    ))
}
