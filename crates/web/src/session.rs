//! The one-time link and the session that it opens.

use std::io::{self, Read as _};
use std::sync::Mutex;

use dogwatch_runtime::mutex::lock_ignoring_poison;
use http::HeaderMap;
use http::header::COOKIE;

/// Bytes of randomness in a secret.
const SECRET_BYTES: usize = 32;

/// A secret in hexadecimal digits.
#[derive(Clone)]
pub(crate) struct SessionSecret(String);

impl SessionSecret {
    pub(crate) fn generate() -> io::Result<Self> {
        let mut bytes = [0_u8; SECRET_BYTES];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
        Ok(Self(digits.collect()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes as long for a first wrong digit as for a last one.
    fn matches(&self, given: &str) -> bool {
        let pairs = self.0.bytes().zip(given.bytes());
        let difference = pairs.fold(0, |sum, (own, other)| sum | (own ^ other));
        std::hint::black_box(difference) == 0 && self.0.len() == given.len()
    }
}

/// One link, one session.
pub(crate) struct LinkSession {
    link: SessionSecret,
    session: SessionSecret,
    state: Mutex<LinkState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Unused,
    Used,
    /// The link was used twice: one of the two who have it should not, and nobody knows which.
    Revoked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkOutcome {
    /// The first use: the viewer gets the session's cookie.
    Opened,
    /// The session's own viewer came again.
    SameViewer,
    /// It was used before, by another viewer. The session has ended.
    UsedTwice,
    Wrong,
}

impl LinkSession {
    pub(crate) fn generate() -> io::Result<Self> {
        Ok(Self {
            link: SessionSecret::generate()?,
            session: SessionSecret::generate()?,
            state: Mutex::new(LinkState::Unused),
        })
    }

    pub(crate) fn link_token(&self) -> &str {
        self.link.reveal()
    }

    pub(crate) fn open_link(&self, token: &str, headers: &HeaderMap, cookie: &str) -> LinkOutcome {
        if !self.link.matches(token) {
            return LinkOutcome::Wrong;
        }
        if self.has_session(headers, cookie) {
            return LinkOutcome::SameViewer;
        }
        let mut state = lock_ignoring_poison(&self.state);
        match *state {
            LinkState::Unused => {
                *state = LinkState::Used;
                LinkOutcome::Opened
            }
            LinkState::Used | LinkState::Revoked => {
                *state = LinkState::Revoked;
                LinkOutcome::UsedTwice
            }
        }
    }

    /// Whether the request has the session's cookie and the session has not ended.
    pub(crate) fn has_session(&self, headers: &HeaderMap, cookie: &str) -> bool {
        *lock_ignoring_poison(&self.state) == LinkState::Used
            && cookie_values(headers, cookie).any(|value| self.session.matches(value))
    }

    /// The cookie is sent to this origin's host only, and never with a request that another site
    /// causes. Scripts cannot read it.
    pub(crate) fn cookie_header(&self, cookie: &str) -> String {
        format!(
            "{cookie}={}; Path=/; HttpOnly; SameSite=Strict",
            self.session.reveal()
        )
    }
}

fn cookie_values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_cookie(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_link_opens_one_session_and_a_second_use_ends_it() {
        let session = LinkSession::generate().unwrap();
        let token = session.link_token().to_owned();
        let nobody = HeaderMap::new();
        assert!(!session.has_session(&nobody, "c"));
        assert_eq!(session.open_link("", &nobody, "c"), LinkOutcome::Wrong);
        assert_eq!(
            session.open_link(&token[1..], &nobody, "c"),
            LinkOutcome::Wrong
        );
        assert_eq!(session.open_link(&token, &nobody, "c"), LinkOutcome::Opened);
        let header = session.cookie_header("c");
        let viewer = with_cookie(&format!("other=1; {}", header.split(';').next().unwrap()));
        assert!(session.has_session(&viewer, "c"));
        assert!(!session.has_session(&viewer, "d"));
        assert_eq!(
            session.open_link(&token, &viewer, "c"),
            LinkOutcome::SameViewer
        );
        assert_eq!(
            session.open_link(&token, &nobody, "c"),
            LinkOutcome::UsedTwice
        );
        assert!(!session.has_session(&viewer, "c"), "the session has ended");
        assert_eq!(
            session.open_link(&token, &viewer, "c"),
            LinkOutcome::UsedTwice
        );
    }

    #[test]
    fn the_cookie_does_not_open_a_session_that_the_link_has_not() {
        let session = LinkSession::generate().unwrap();
        let header = session.cookie_header("c");
        let early = with_cookie(header.split(';').next().unwrap());
        assert!(!session.has_session(&early, "c"));
    }

    #[test]
    fn two_secrets_differ() {
        let (one, other) = (
            SessionSecret::generate().unwrap(),
            SessionSecret::generate().unwrap(),
        );
        assert!(!one.matches(other.reveal()));
        assert!(one.matches(one.reveal()));
        assert_eq!(one.reveal().len(), 2 * SECRET_BYTES);
    }
}
