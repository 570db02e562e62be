//! Authentication of a driver: with a session if the BMC has them, otherwise with basic
//! authentication. Also decides how long to wait after a BMC refused user and password.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use tokio::time::Instant;

use super::document::ServiceRoot;
use super::origin::BmcOrigin;
use super::redaction::basic_auth_header;
use super::reply::RedfishReply;
use crate::{BmcFault, Credentials, FaultClass, Password};

/// How a request is authenticated.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestAuth {
    /// User and password with each request.
    Basic {
        /// The value of `Authorization`.
        header: Password,
    },
    /// A session's token.
    Token {
        /// The value of `X-Auth-Token`.
        value: Password,
        /// The session's URI, to end it.
        location: Option<String>,
    },
}

/// How long a BMC is left alone after it refused user and password; doubled each time, because BMCs
/// lock accounts after as few as 3 refusals within a minute (Dell's IP blocking) or 5 in all
/// (Lenovo).
const REFUSED_BACKOFF: Duration = Duration::from_secs(30);
/// The longest such wait: the interval of the readiness check. A new Secret makes a new driver,
/// which tries at once.
const REFUSED_BACKOFF_MAX: Duration = Duration::from_mins(5);
/// How long basic authentication is used after the BMC had no room for another session.
const SESSIONS_FULL_BACKOFF: Duration = Duration::from_mins(5);

/// The longest token and the longest session link that are kept, in bytes. Tokens have 16 to 500
/// bytes.
const LONGEST_HEADER: usize = 4 << 10;

/// What is known about logging in to one BMC. The lock around it is held during a login, so there
/// is only one login at a time.
#[derive(Debug, Default)]
pub(super) struct LoginState {
    /// The service root, once it was read.
    pub(super) root: Option<ServiceRoot>,
    refusals: u32,
    refused_until: Option<Instant>,
    basic: BasicAuthMode,
}

/// When basic authentication is used although the root names sessions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum BasicAuthMode {
    /// Sessions are used.
    #[default]
    Never,
    /// Until this time: all sessions were in use.
    Until(Instant),
    /// For the next login: a session service that is switched off may answer 401 to everybody. The
    /// two ways alternate, so that a wrong password is not tried twice at once.
    InTurn,
    /// Forever: the BMC makes no sessions.
    Always,
}

/// The result of a login.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LoginOutcome {
    In(RequestAuth),
    /// This BMC makes no sessions.
    NoSessions,
    /// The BMC has no room for another session.
    Full,
    Refused,
    /// Another fault.
    Failed(BmcFault),
}

impl LoginOutcome {
    /// Interprets the answer to `POST …/Sessions`. A 400 counts as a refusal: some BMCs answer a
    /// wrong password with it.
    pub(super) fn from_reply(reply: &RedfishReply) -> Self {
        if reply.is_out_of_sessions() {
            return LoginOutcome::Full;
        }
        match reply.status {
            status if status.is_success() => {
                parse_session_token(reply).map_or(LoginOutcome::NoSessions, LoginOutcome::In)
            }
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                LoginOutcome::Refused
            }
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => LoginOutcome::NoSessions,
            _ => LoginOutcome::Failed(reply.to_fault()),
        }
    }
}

fn parse_session_token(reply: &RedfishReply) -> Option<RequestAuth> {
    let value = reply.header("X-Auth-Token");
    let value = value.filter(|value| (1..=LONGEST_HEADER).contains(&value.len()))?;
    let location = reply.header(LOCATION);
    let location = location.filter(|link| link.len() <= LONGEST_HEADER);
    Some(RequestAuth::Token {
        value: Password::new(value),
        location: location.and_then(BmcOrigin::path_ignoring_host),
    })
}

impl RequestAuth {
    /// Basic authentication with these credentials.
    pub(super) fn basic_auth(credentials: &Credentials) -> Arc<Self> {
        let header = Password::new(basic_auth_header(credentials));
        Arc::new(RequestAuth::Basic { header })
    }

    /// The secret part, which must be redacted from messages.
    pub(super) fn secret_text(&self) -> &str {
        match self {
            RequestAuth::Basic { header } => header.reveal(),
            RequestAuth::Token { value, .. } => value.reveal(),
        }
    }
}

impl LoginState {
    /// Where a session is created; `None`: use basic authentication now.
    pub(super) fn sessions_link(&self, now: Instant) -> Option<String> {
        let wants_basic = match self.basic {
            BasicAuthMode::Never => false,
            BasicAuthMode::Until(until) => now < until,
            BasicAuthMode::InTurn | BasicAuthMode::Always => true,
        };
        let link = self.root.as_ref().and_then(ServiceRoot::sessions_link);
        link.filter(|_| !wants_basic)
    }

    /// Checks whether the BMC may be asked for a login now.
    ///
    /// # Errors
    /// [`FaultClass::WrongCredentials`]: the BMC refused a login a short time ago.
    pub(super) fn check_login_allowed(&self, now: Instant) -> Result<(), BmcFault> {
        match self.refused_until {
            Some(until) if now < until => Err(refused_fault()),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn record_accepted(&mut self) {
        self.refusals = 0;
        self.refused_until = None;
        if self.basic == BasicAuthMode::InTurn {
            self.basic = BasicAuthMode::Always;
        }
    }

    /// Records that the BMC refused user and password, as a session or as basic authentication.
    pub(super) fn record_refused(&mut self, now: Instant) -> BmcFault {
        let wait = REFUSED_BACKOFF * 2_u32.pow(self.refusals.min(4));
        let wait = wait.min(REFUSED_BACKOFF_MAX);
        self.refusals += 1;
        self.refused_until = Some(now + wait);
        self.basic = match self.basic {
            BasicAuthMode::Never => BasicAuthMode::InTurn,
            BasicAuthMode::InTurn | BasicAuthMode::Always | BasicAuthMode::Until(_) => {
                BasicAuthMode::Never
            }
        };
        refused_fault()
    }

    /// Records that the BMC makes no sessions.
    pub(super) fn record_no_sessions(&mut self) {
        self.basic = BasicAuthMode::Always;
    }

    /// Records that the BMC has no room for another session.
    pub(super) fn record_sessions_full(&mut self, now: Instant) {
        self.basic = BasicAuthMode::Until(now + SESSIONS_FULL_BACKOFF);
    }

    /// Until when the current authentication is used; after that another way is tried.
    pub(super) fn auth_valid_until(&self) -> Option<Instant> {
        match self.basic {
            BasicAuthMode::Until(until) => Some(until),
            BasicAuthMode::Never | BasicAuthMode::InTurn | BasicAuthMode::Always => None,
        }
    }
}

/// Does not state the remaining time: a condition whose text changes at each poll is written at
/// each poll.
fn refused_fault() -> BmcFault {
    BmcFault::without_effect(
        FaultClass::WrongCredentials,
        "the BMC refused user and password; to avoid a locked account, Dogwatch waits 30 s before the next login, and longer after each further refusal, up to 5 min",
    )
}
