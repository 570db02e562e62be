//! How a caller gets in, stays in and leaves.

use std::sync::{Arc, MutexGuard, PoisonError};

use http::StatusCode;
use tokio::time::Instant;

use super::ask::Ask;
use super::caller::Caller;
use super::deadline::Deadline;
use super::document::Root;
use super::login::{Login, Outcome, Pass};
use crate::Fault;

/// The service root. Source: DSP0266 §6.4.
const ROOT: &str = "/redfish/v1/";

/// What lets us in, and what did before: a BMC may still repeat it.
#[derive(Default)]
pub(super) struct Passes {
    now: Option<Arc<Pass>>,
    until: Option<Instant>,
    before: Option<Arc<Pass>>,
}

impl Passes {
    fn valid(&self, now: Instant) -> Option<Arc<Pass>> {
        let is_over = self.until.is_some_and(|until| until <= now);
        self.now.clone().filter(|_| !is_over)
    }

    /// Whatever the BMC may repeat.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Pass>> {
        [&self.now, &self.before].into_iter().flatten()
    }
}

impl Caller {
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

    pub(super) async fn pass(&self, deadline: Deadline) -> Result<Arc<Pass>, Fault> {
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

    /// This is over: a session that ended, or a password that was changed. Of several calls that find it
    /// so, the first counts.
    pub(super) async fn over(&self, pass: &Arc<Pass>, deadline: Deadline) -> Result<(), Fault> {
        let mut login = deadline.bound(self.login.lock()).await?;
        let now = self.lock_passes().now.clone();
        let was_ours = now.is_some_and(|now| Arc::ptr_eq(&now, pass));
        if was_ours {
            self.retire();
        }
        match **pass {
            Pass::Basic { .. } if was_ours => Err(login.refused(Instant::now())),
            Pass::Basic { .. } => login.may_ask(Instant::now()),
            Pass::Token { .. } => Ok(()),
        }
    }

    fn retire(&self) -> Option<Arc<Pass>> {
        let mut passes = self.lock_passes();
        let pass = passes.now.take()?;
        passes.before = Some(pass.clone());
        Some(pass)
    }

    pub(super) fn lock_passes(&self) -> MutexGuard<'_, Passes> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
