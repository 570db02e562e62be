//! Who asks: by a session where the BMC makes them, else by basic authentication; and how long a BMC that
//! refused user and password is left alone.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::LOCATION;
use tokio::time::Instant;

use super::document::Root;
use super::origin::Origin;
use super::reply::Reply;
use super::secrets::basic;
use crate::{Class, Credentials, Fault, Password};

/// What goes along with a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// User and password each time.
    Basic {
        /// The value of `Authorization`.
        header: Password,
    },
    /// A session's token.
    Token {
        /// `X-Auth-Token`.
        value: Password,
        /// Where the session is, for its end.
        location: Option<String>,
    },
}

/// How long a BMC is left alone after it refused user and password; doubled each time, because BMCs
/// lock accounts after as few as 3 refusals within a minute (Dell's IP blocking) or 5 in all (Lenovo).
const REFUSED: Duration = Duration::from_secs(30);
/// The longest of it: the readiness check's interval. A new Secret makes a new driver, which asks at once.
const LONGEST: Duration = Duration::from_mins(5);
/// How long basic authentication stands in where there is no room for one session more.
const FULL: Duration = Duration::from_mins(5);

/// The longest token, and the longest link to a session, that is kept. Tokens have 16 to 500 bytes.
const LONGEST_HEADER: usize = 4 << 10;

/// What is known of logging in to one BMC. It is behind a lock that is held during a login: there is only
/// one at a time.
#[derive(Debug, Default)]
pub(super) struct Login {
    /// The service root, once it was read.
    pub(super) root: Option<Root>,
    refusals: u32,
    refused_until: Option<Instant>,
    basic: Basic,
}

/// When basic authentication is used though the root names sessions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Basic {
    /// It is not.
    #[default]
    Never,
    /// Until then: all sessions were taken.
    Until(Instant),
    /// The next time: a service that is switched off may answer 401 to everybody. In turns, so that a
    /// wrong password is not tried twice at once.
    InTurn,
    /// For good: the service makes no sessions.
    Always,
}

/// What became of a login.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is a session.
    In(Pass),
    /// This BMC makes no sessions.
    NoSessions,
    /// No room for one session more.
    Full,
    /// User or password.
    Refused,
    /// Something else is wrong.
    Failed(Fault),
}

impl Outcome {
    /// Of the answer to `POST …/Sessions`. A 400 counts as a refusal: some BMCs say so of a wrong password.
    pub(super) fn of(reply: &Reply) -> Self {
        if reply.is_out_of_sessions() {
            return Outcome::Full;
        }
        match reply.status {
            status if status.is_success() => token(reply).map_or(Outcome::NoSessions, Outcome::In),
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Outcome::Refused
            }
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_IMPLEMENTED => Outcome::NoSessions,
            _ => Outcome::Failed(reply.fault()),
        }
    }
}

fn token(reply: &Reply) -> Option<Pass> {
    let value = reply.header("X-Auth-Token");
    let value = value.filter(|value| (1..=LONGEST_HEADER).contains(&value.len()))?;
    let location = reply.header(LOCATION);
    let location = location.filter(|link| link.len() <= LONGEST_HEADER);
    Some(Pass::Token {
        value: Password::new(value),
        location: location.and_then(Origin::path_here),
    })
}

impl Pass {
    /// User and password, each time.
    pub(super) fn basic(credentials: &Credentials) -> Arc<Self> {
        let header = Password::new(basic(credentials));
        Arc::new(Pass::Basic { header })
    }

    /// What nobody may read of it.
    pub(super) fn secret(&self) -> &str {
        match self {
            Pass::Basic { header } => header.reveal(),
            Pass::Token { value, .. } => value.reveal(),
        }
    }
}

impl Login {
    /// Where a session is made; `None`: basic authentication now.
    pub(super) fn sessions(&self, now: Instant) -> Option<String> {
        let wants_basic = match self.basic {
            Basic::Never => false,
            Basic::Until(until) => now < until,
            Basic::InTurn | Basic::Always => true,
        };
        let link = self.root.as_ref().and_then(Root::sessions);
        link.filter(|_| !wants_basic)
    }

    /// Whether the BMC may be asked for a login now.
    ///
    /// # Errors
    /// [`Class::WrongCredentials`]: it refused a moment ago.
    pub(super) fn may_ask(&self, now: Instant) -> Result<(), Fault> {
        match self.refused_until {
            Some(until) if now < until => Err(refused()),
            Some(_) | None => Ok(()),
        }
    }

    /// The BMC let us in.
    pub(super) fn accepted(&mut self) {
        self.refusals = 0;
        self.refused_until = None;
        if self.basic == Basic::InTurn {
            self.basic = Basic::Always;
        }
    }

    /// The BMC refused user and password, however they were sent.
    pub(super) fn refused(&mut self, now: Instant) -> Fault {
        let wait = REFUSED * 2_u32.pow(self.refusals.min(4));
        let wait = wait.min(LONGEST);
        self.refusals += 1;
        self.refused_until = Some(now + wait);
        self.basic = match self.basic {
            Basic::Never => Basic::InTurn,
            Basic::InTurn | Basic::Always | Basic::Until(_) => Basic::Never,
        };
        refused()
    }

    /// The BMC makes no sessions.
    pub(super) fn without_sessions(&mut self) {
        self.basic = Basic::Always;
    }

    /// The BMC has no room for one more.
    pub(super) fn full(&mut self, now: Instant) {
        self.basic = Basic::Until(now + FULL);
    }

    /// Until when what lets us in is used; after that another way is tried.
    pub(super) fn lasts_until(&self) -> Option<Instant> {
        match self.basic {
            Basic::Until(until) => Some(until),
            Basic::Never | Basic::InTurn | Basic::Always => None,
        }
    }
}

/// Without the time that is left: a condition whose text changes at each poll is written at each poll.
fn refused() -> Fault {
    Fault::harmless(
        Class::WrongCredentials,
        "the BMC refused user and password; so that it locks no account, it is then left alone for 30 s, \
         and longer after each further refusal, up to 5 min",
    )
}
