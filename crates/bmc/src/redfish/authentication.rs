//! Logs in to a BMC, keeps the authentication valid and logs out.

use std::sync::{Arc, MutexGuard, PoisonError};

use http::StatusCode;
use tokio::time::Instant;

use super::client::RedfishClient;
use super::deadline::Deadline;
use super::document::ServiceRoot;
use super::login::{LoginOutcome, LoginState, RequestAuth};
use super::request::RedfishRequest;
use crate::BmcFault;

/// The service root. Source: DSP0266 §6.4.
const SERVICE_ROOT_PATH: &str = "/redfish/v1/";

/// The authentication in use, and the previous one, which a BMC may still repeat in its answers.
#[derive(Default)]
pub(super) struct AuthState {
    now: Option<Arc<RequestAuth>>,
    until: Option<Instant>,
    before: Option<Arc<RequestAuth>>,
}

impl AuthState {
    fn valid_auth(&self, now: Instant) -> Option<Arc<RequestAuth>> {
        let is_over = self.until.is_some_and(|until| until <= now);
        self.now.clone().filter(|_| !is_over)
    }

    /// Every authentication whose secrets the BMC may repeat.
    pub(super) fn all_auths(&self) -> impl Iterator<Item = &Arc<RequestAuth>> {
        [&self.now, &self.before].into_iter().flatten()
    }
}

impl RedfishClient {
    /// The service root as it was read for the login.
    pub(super) async fn service_root(&self, deadline: Deadline) -> Result<ServiceRoot, BmcFault> {
        self.ensure_auth(deadline).await?;
        let login = deadline.bound_by_deadline(self.login.lock()).await?;
        Ok(login.root.clone().unwrap_or_default())
    }

    pub(super) async fn end_session(&self, deadline: Deadline) {
        let pass = self.retire_auth();
        let Some(RequestAuth::Token { location, .. }) = pass.as_deref() else {
            return;
        };
        if let Some(location) = location {
            // A session that cannot be deleted ends by the BMC's own timeout.
            let _ = self
                .send_once(&RedfishRequest::delete(location), pass.as_deref(), deadline)
                .await;
        }
    }

    pub(super) async fn ensure_auth(
        &self,
        deadline: Deadline,
    ) -> Result<Arc<RequestAuth>, BmcFault> {
        if let Some(pass) = self.lock_auth_state().valid_auth(Instant::now()) {
            return Ok(pass);
        }
        let mut login = deadline.bound_by_deadline(self.login.lock()).await?;
        // Another call may have logged in while this one waited for the lock.
        if let Some(pass) = self.lock_auth_state().valid_auth(Instant::now()) {
            return Ok(pass);
        }
        login.check_login_allowed(Instant::now())?;
        let pass = self.log_in(&mut login, deadline).await?;
        login.record_accepted();
        let mut passes = self.lock_auth_state();
        passes.now = Some(pass.clone());
        passes.until = login.auth_valid_until();
        Ok(pass)
    }

    async fn log_in(
        &self,
        login: &mut LoginState,
        deadline: Deadline,
    ) -> Result<Arc<RequestAuth>, BmcFault> {
        if login.root.is_none() {
            login.root = Some(self.read_service_root(login, deadline).await?);
        }
        let Some(link) = login.sessions_link(Instant::now()) else {
            return self.verify_basic_auth(login, deadline).await;
        };
        let ask =
            RedfishRequest::create_session(self.origin.path_at_origin(&link)?, &self.credentials);
        let reply = self.send_once(&ask, None, deadline).await?;
        match LoginOutcome::from_reply(&reply) {
            LoginOutcome::In(pass) => return Ok(Arc::new(pass)),
            LoginOutcome::Refused => return Err(login.record_refused(Instant::now())),
            LoginOutcome::Failed(fault) => return Err(fault),
            LoginOutcome::NoSessions => login.record_no_sessions(),
            LoginOutcome::Full => login.record_sessions_full(Instant::now()),
        }
        self.verify_basic_auth(login, deadline).await
    }

    /// By the standard the service root needs no login; some BMCs want one.
    async fn read_service_root(
        &self,
        login: &mut LoginState,
        deadline: Deadline,
    ) -> Result<ServiceRoot, BmcFault> {
        let ask = RedfishRequest::get(SERVICE_ROOT_PATH);
        let reply = self.send_once(&ask, None, deadline).await?;
        if reply.status != StatusCode::UNAUTHORIZED {
            return reply.parse_document();
        }
        login.record_no_sessions();
        let basic = RequestAuth::basic_auth(&self.credentials);
        let reply = self.send_once(&ask, Some(&basic), deadline).await?;
        if reply.is_unauthorized() {
            return Err(login.record_refused(Instant::now()));
        }
        reply.parse_document()
    }

    /// Tests basic authentication with a single request, so that two concurrent calls do not send a
    /// wrong password twice.
    async fn verify_basic_auth(
        &self,
        login: &mut LoginState,
        deadline: Deadline,
    ) -> Result<Arc<RequestAuth>, BmcFault> {
        let basic = RequestAuth::basic_auth(&self.credentials);
        let systems = login
            .root
            .as_ref()
            .map_or(SERVICE_ROOT_PATH, ServiceRoot::systems_link);
        let ask = RedfishRequest::get(self.origin.path_at_origin(systems)?);
        let reply = self.send_once(&ask, Some(&basic), deadline).await?;
        match reply.status {
            _ if reply.is_unauthorized() => Err(login.record_refused(Instant::now())),
            status if status.is_server_error() => Err(reply.to_fault()),
            _ => Ok(basic),
        }
    }

    /// Discards an authentication that is no longer valid: the session ended or the password
    /// changed. If several calls notice it, only the first counts.
    pub(super) async fn discard_auth(
        &self,
        pass: &Arc<RequestAuth>,
        deadline: Deadline,
    ) -> Result<(), BmcFault> {
        let mut login = deadline.bound_by_deadline(self.login.lock()).await?;
        let now = self.lock_auth_state().now.clone();
        let was_ours = now.is_some_and(|now| Arc::ptr_eq(&now, pass));
        if was_ours {
            self.retire_auth();
        }
        match **pass {
            RequestAuth::Basic { .. } if was_ours => Err(login.record_refused(Instant::now())),
            RequestAuth::Basic { .. } => login.check_login_allowed(Instant::now()),
            RequestAuth::Token { .. } => Ok(()),
        }
    }

    fn retire_auth(&self) -> Option<Arc<RequestAuth>> {
        let mut passes = self.lock_auth_state();
        let pass = passes.now.take()?;
        passes.before = Some(pass.clone());
        Some(pass)
    }

    pub(super) fn lock_auth_state(&self) -> MutexGuard<'_, AuthState> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
