//! Requests with a login and a deadline.

use std::sync::{Arc, Mutex};

use http::header::LOCATION;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::Exchange;
use super::admission::Passes;
use super::ask::Ask;
use super::deadline::Deadline;
use super::login::{Login, Pass};
use super::origin::Origin;
use super::reply::Reply;
use super::secrets::without_secrets;
use crate::{Class, Credentials, Fault};

/// Speaks to one BMC in one name.
pub(super) struct Caller {
    exchange: Arc<dyn Exchange>,
    pub(super) origin: Origin,
    pub(super) credentials: Credentials,
    /// Held during a login.
    pub(super) login: AsyncMutex<Login>,
    pub(super) passes: Mutex<Passes>,
}

/// The same fault, of something that sent no command.
pub(super) fn nothing_sent(fault: Fault) -> Fault {
    Fault {
        may_have_run: false,
        ..fault
    }
}

impl Caller {
    pub(super) fn new(
        exchange: Arc<dyn Exchange>,
        origin: Origin,
        credentials: Credentials,
    ) -> Self {
        Self {
            exchange,
            origin,
            credentials,
            login: AsyncMutex::default(),
            passes: Mutex::default(),
        }
    }

    /// A document, and the path that it was found at.
    ///
    /// # Errors
    /// Each is harmless: nothing was told to do anything.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        deadline: Deadline,
    ) -> Result<(T, String), Fault> {
        let reply = self.get(ask, deadline).await?;
        let document = reply.document().map_err(nothing_sent)?;
        Ok((document, reply.path))
    }

    /// Asks for something. A connection that was lost before its answer is tried once more: BMCs close
    /// idle ones at any moment.
    pub(super) async fn get(&self, ask: &Ask, deadline: Deadline) -> Result<Reply, Fault> {
        let reply = match self.ask(ask, deadline).await {
            Err(fault) if is_lost(&fault) => self.ask(ask, deadline).await,
            reply => reply,
        };
        reply.map_err(nothing_sent)
    }

    /// Asks, logged in. A session that is over is made anew, once: what it asked for was not done.
    pub(super) async fn ask(&self, ask: &Ask, deadline: Deadline) -> Result<Reply, Fault> {
        for _ in 0..2 {
            let pass = self.pass(deadline).await.map_err(nothing_sent)?;
            let reply = self.once(ask, Some(&pass), deadline).await?;
            if !reply.is_unauthorized() {
                return Ok(reply);
            }
            self.over(&pass, deadline).await?;
        }
        // Let in, and refused all the same.
        let mut login = deadline.bound(self.login.lock()).await?;
        Err(login.refused(Instant::now()))
    }

    /// The fault as it may leave the driver.
    pub(super) fn tell(&self, fault: Fault) -> Fault {
        let passes = self.lock_passes();
        let tokens = passes.all();
        let own = Pass::basic(&self.credentials);
        let mut secrets = tokens.map(|pass| pass.secret()).collect::<Vec<_>>();
        secrets.extend([
            own.secret().trim_start_matches("Basic "),
            self.credentials.password.reveal(),
        ]);
        without_secrets(fault, secrets)
    }

    /// One request; a second one where the BMC wants the path with a slash at its end, or without (HPE's
    /// and Supermicro's do). No other redirect is followed.
    pub(super) async fn once(
        &self,
        ask: &Ask,
        pass: Option<&Pass>,
        deadline: Deadline,
    ) -> Result<Reply, Fault> {
        let reply = self.carry(ask, &ask.path, pass, deadline).await?;
        let Some(path) = self.beside(&reply)? else {
            return Ok(reply);
        };
        let reply = self.carry(ask, &path, pass, deadline).await?;
        match self.beside(&reply)? {
            None => Ok(reply),
            Some(_) => Err(Fault::harmless(
                Class::Contradiction,
                "it redirects in a circle",
            )),
        }
    }

    fn beside(&self, reply: &Reply) -> Result<Option<String>, Fault> {
        if !matches!(reply.status.as_u16(), 301 | 302 | 307 | 308) {
            return Ok(None);
        }
        let path = self
            .origin
            .path(reply.header(LOCATION).unwrap_or_default())?;
        if path.trim_end_matches('/') != reply.path.trim_end_matches('/') {
            return Err(reply.fault());
        }
        Ok(Some(path))
    }

    async fn carry(
        &self,
        ask: &Ask,
        path: &str,
        pass: Option<&Pass>,
        deadline: Deadline,
    ) -> Result<Reply, Fault> {
        let request = ask.request(path, pass)?;
        let left = deadline.left();
        if left.is_zero() {
            return Err(Deadline::passed());
        }
        let answered = deadline.bound(self.exchange.ask(request, left)).await;
        // It had begun.
        let answered = answered.unwrap_or_else(|late| {
            Err(Fault {
                may_have_run: true,
                ..late
            })
        });
        let words = ask.words(path);
        let response = answered.map_err(|fault| Fault {
            message: format!("{words}: {}", fault.message),
            ..fault
        })?;
        Ok(Reply::new(response, words, path.to_owned()))
    }
}

/// Whether the connection went away before the answer.
fn is_lost(fault: &Fault) -> bool {
    fault.class == Class::Unreachable && fault.may_have_run
}
