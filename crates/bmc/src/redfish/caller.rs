//! Requests with a login and a deadline.

use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use http::header::LOCATION;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::Exchange;
use super::ask::Ask;
use super::deadline::Deadline;
use super::document::Root;
use super::login::{Login, Outcome, Pass};
use super::origin::Origin;
use super::reply::Reply;
use super::secrets::without_secrets;
use crate::{Class, Credentials, Fault};

/// The service root. Source: DSP0266 §6.4.
const ROOT: &str = "/redfish/v1/";

/// Speaks to one BMC in one name.
pub(super) struct Caller {
    exchange: Arc<dyn Exchange>,
    pub(super) origin: Origin,
    credentials: Credentials,
    login: AsyncMutex<Login>,
    passes: Mutex<Passes>,
}

/// What lets us in, and what did before: a BMC may still repeat it.
#[derive(Default)]
struct Passes {
    now: Option<Arc<Pass>>,
    until: Option<Instant>,
    before: Option<Arc<Pass>>,
}

impl Passes {
    fn valid(&self, now: Instant) -> Option<Arc<Pass>> {
        let is_over = self.until.is_some_and(|until| until <= now);
        self.now.clone().filter(|_| !is_over)
    }
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
        path: &str,
        deadline: Deadline,
    ) -> Result<(T, String), Fault> {
        let reply = self.get(path, deadline).await?;
        let document = reply.document().map_err(nothing_sent)?;
        Ok((document, reply.path))
    }

    /// Asks for something. A connection that was lost before its answer is tried once more: BMCs close
    /// idle ones at any moment.
    pub(super) async fn get(&self, path: &str, deadline: Deadline) -> Result<Reply, Fault> {
        let ask = Ask::get(path);
        let reply = match self.ask(&ask, deadline).await {
            Err(fault) if is_lost(&fault) => self.ask(&ask, deadline).await,
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

    /// The service root, as it was read for the login.
    pub(super) async fn root(&self, deadline: Deadline) -> Result<Root, Fault> {
        self.pass(deadline).await?;
        let login = deadline.bound(self.login.lock()).await?;
        Ok(login.root.clone().unwrap_or_default())
    }

    /// Ends the session.
    pub(super) async fn close(&self, deadline: Deadline) {
        let pass = self.retire();
        let Some(Pass::Token { location, .. }) = pass.as_deref() else {
            return;
        };
        if let Some(location) = location {
            // What fails ends by itself, after the BMC's own time.
            let _ = self
                .once(&Ask::delete(location), pass.as_deref(), deadline)
                .await;
        }
    }

    /// The fault as it may leave the driver.
    pub(super) fn tell(&self, fault: Fault) -> Fault {
        let passes = self.lock_passes();
        let tokens = [&passes.now, &passes.before].into_iter().flatten();
        let own = Pass::basic(&self.credentials);
        let mut secrets = tokens.map(|pass| pass.secret()).collect::<Vec<_>>();
        secrets.extend([
            own.secret().trim_start_matches("Basic "),
            self.credentials.password.reveal(),
        ]);
        without_secrets(fault, secrets)
    }

    async fn pass(&self, deadline: Deadline) -> Result<Arc<Pass>, Fault> {
        if let Some(pass) = self.lock_passes().valid(Instant::now()) {
            return Ok(pass);
        }
        let mut login = deadline.bound(self.login.lock()).await?;
        // Somebody else may have logged in while we waited.
        if let Some(pass) = self.lock_passes().valid(Instant::now()) {
            return Ok(pass);
        }
        login.may_ask(Instant::now())?;
        let pass = self.log_in(&mut login, deadline).await?;
        login.accepted();
        let mut passes = self.lock_passes();
        passes.now = Some(pass.clone());
        passes.until = login.lasts_until();
        Ok(pass)
    }

    async fn log_in(&self, login: &mut Login, deadline: Deadline) -> Result<Arc<Pass>, Fault> {
        if login.root.is_none() {
            login.root = Some(self.read_root(login, deadline).await?);
        }
        let Some(link) = login.sessions(Instant::now()) else {
            return self.prove_basic(login, deadline).await;
        };
        let ask = Ask::login(self.origin.path(&link)?, &self.credentials);
        let reply = self.once(&ask, None, deadline).await?;
        match Outcome::of(&reply) {
            Outcome::In(pass) => return Ok(Arc::new(pass)),
            Outcome::Refused => return Err(login.refused(Instant::now())),
            Outcome::Failed(fault) => return Err(fault),
            Outcome::NoSessions => login.without_sessions(),
            Outcome::Full => login.full(Instant::now()),
        }
        self.prove_basic(login, deadline).await
    }

    /// The root needs no login by the standard; some want one all the same.
    async fn read_root(&self, login: &mut Login, deadline: Deadline) -> Result<Root, Fault> {
        let ask = Ask::get(ROOT);
        let reply = self.once(&ask, None, deadline).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return reply.document();
        }
        login.without_sessions();
        let basic = Pass::basic(&self.credentials);
        let reply = self.once(&ask, Some(&basic), deadline).await?;
        if reply.is_unauthorized() {
            return Err(login.refused(Instant::now()));
        }
        reply.document()
    }

    /// One request alone, so that two at once do not bring a wrong password twice.
    async fn prove_basic(&self, login: &mut Login, deadline: Deadline) -> Result<Arc<Pass>, Fault> {
        let basic = Pass::basic(&self.credentials);
        let systems = login.root.as_ref().map_or(ROOT, Root::systems);
        let ask = Ask::get(self.origin.path(systems)?);
        let reply = self.once(&ask, Some(&basic), deadline).await?;
        match reply.status {
            _ if reply.is_unauthorized() => Err(login.refused(Instant::now())),
            status if status.is_server_error() => Err(reply.fault()),
            _ => Ok(basic),
        }
    }

    /// This is over: a session that ended, or a password that was changed.
    async fn over(&self, pass: &Arc<Pass>, deadline: Deadline) -> Result<(), Fault> {
        let was_ours = {
            let passes = self.lock_passes();
            passes
                .now
                .as_ref()
                .is_some_and(|now| Arc::ptr_eq(now, pass))
        };
        if was_ours {
            self.retire();
        }
        match **pass {
            Pass::Token { .. } => Ok(()),
            Pass::Basic { .. } => {
                let mut login = deadline.bound(self.login.lock()).await?;
                Err(login.refused(Instant::now()))
            }
        }
    }

    fn retire(&self) -> Option<Arc<Pass>> {
        let mut passes = self.lock_passes();
        let pass = passes.now.take()?;
        passes.before = Some(pass.clone());
        Some(pass)
    }

    fn lock_passes(&self) -> std::sync::MutexGuard<'_, Passes> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request; a second one where the BMC wants the path with a slash at its end, or without (HPE's
    /// and Supermicro's do). No other redirect is followed.
    async fn once(
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
            return Err(deadline.passed());
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
