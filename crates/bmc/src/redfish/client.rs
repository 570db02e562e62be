//! Sends requests to a BMC with authentication and a deadline.

use std::sync::{Arc, Mutex};

use http::header::LOCATION;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use super::RedfishTransport;
use super::authentication::AuthState;
use super::deadline::Deadline;
use super::login::{LoginState, RequestAuth};
use super::origin::BmcOrigin;
use super::redaction::redact_secrets;
use super::reply::RedfishReply;
use super::request::RedfishRequest;
use crate::{BmcFault, Credentials, FaultClass};

/// Sends requests to one BMC with one set of credentials.
pub(super) struct RedfishClient {
    exchange: Arc<dyn RedfishTransport>,
    pub(super) origin: BmcOrigin,
    pub(super) credentials: Credentials,
    /// Held during a login.
    pub(super) login: AsyncMutex<LoginState>,
    pub(super) passes: Mutex<AuthState>,
}

/// Marks a fault as one of a request that sent no command.
pub(super) fn nothing_sent(fault: BmcFault) -> BmcFault {
    BmcFault {
        may_have_run: false,
        ..fault
    }
}

impl RedfishClient {
    pub(super) fn new(
        exchange: Arc<dyn RedfishTransport>,
        origin: BmcOrigin,
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

    /// Reads a document, and returns the path at which it was found.
    ///
    /// # Errors
    /// No error has an effect on the host: no command was sent.
    pub(super) async fn get_document<T: DeserializeOwned>(
        &self,
        ask: &RedfishRequest,
        deadline: Deadline,
    ) -> Result<(T, String), BmcFault> {
        let reply = self.get_with_retry(ask, deadline).await?;
        let document = reply.parse_document().map_err(nothing_sent)?;
        Ok((document, reply.path))
    }

    /// Sends a GET. If the connection is lost before the answer, it tries once more: BMCs close
    /// idle connections at any moment.
    pub(super) async fn get_with_retry(
        &self,
        ask: &RedfishRequest,
        deadline: Deadline,
    ) -> Result<RedfishReply, BmcFault> {
        let reply = match self.send_logged_in(ask, deadline).await {
            Err(fault) if is_connection_lost(&fault) => self.send_logged_in(ask, deadline).await,
            reply => reply,
        };
        reply.map_err(nothing_sent)
    }

    /// Sends a request with authentication. If the session has ended, it logs in again, once: the
    /// BMC did not carry out the first request.
    pub(super) async fn send_logged_in(
        &self,
        ask: &RedfishRequest,
        deadline: Deadline,
    ) -> Result<RedfishReply, BmcFault> {
        for _ in 0..2 {
            let pass = self.ensure_auth(deadline).await.map_err(nothing_sent)?;
            let reply = self.send_once(ask, Some(&pass), deadline).await?;
            if !reply.is_unauthorized() {
                return Ok(reply);
            }
            self.discard_auth(&pass, deadline).await?;
        }
        // The new login was accepted, and the request was refused all the same.
        let mut login = deadline.bound_by_deadline(self.login.lock()).await?;
        Err(login.record_refused(Instant::now()))
    }

    /// Removes secrets from a fault before it leaves the driver.
    pub(super) fn redact_fault(&self, fault: BmcFault) -> BmcFault {
        let passes = self.lock_auth_state();
        let tokens = passes.all_auths();
        let own = RequestAuth::basic_auth(&self.credentials);
        let mut secrets = tokens.map(|pass| pass.secret_text()).collect::<Vec<_>>();
        secrets.extend([
            own.secret_text().trim_start_matches("Basic "),
            self.credentials.password.reveal(),
        ]);
        redact_secrets(fault, secrets)
    }

    /// Sends one request, and a second one if the BMC redirects to the same path with or without a
    /// slash at its end (HPE and Supermicro do). It follows no other redirect.
    pub(super) async fn send_once(
        &self,
        ask: &RedfishRequest,
        pass: Option<&RequestAuth>,
        deadline: Deadline,
    ) -> Result<RedfishReply, BmcFault> {
        let reply = self.send_to_path(ask, &ask.path, pass, deadline).await?;
        let Some(path) = self.slash_redirect_path(&reply)? else {
            return Ok(reply);
        };
        let reply = self.send_to_path(ask, &path, pass, deadline).await?;
        match self.slash_redirect_path(&reply)? {
            None => Ok(reply),
            Some(_) => Err(BmcFault::without_effect(
                FaultClass::Contradiction,
                "the BMC redirects in a circle",
            )),
        }
    }

    fn slash_redirect_path(&self, reply: &RedfishReply) -> Result<Option<String>, BmcFault> {
        if !matches!(reply.status.as_u16(), 301 | 302 | 307 | 308) {
            return Ok(None);
        }
        let path = self
            .origin
            .path_at_origin(reply.header(LOCATION).unwrap_or_default())?;
        if path.trim_end_matches('/') != reply.path.trim_end_matches('/') {
            return Err(reply.to_fault());
        }
        Ok(Some(path))
    }

    async fn send_to_path(
        &self,
        ask: &RedfishRequest,
        path: &str,
        pass: Option<&RequestAuth>,
        deadline: Deadline,
    ) -> Result<RedfishReply, BmcFault> {
        let request = ask.build_http_request(path, pass)?;
        let left = deadline.time_left();
        if left.is_zero() {
            return Err(Deadline::exceeded_fault());
        }
        let answered = deadline
            .bound_by_deadline(self.exchange.send_request(request, left))
            .await;
        // The request had begun, so the BMC may have carried it out.
        let answered = answered.unwrap_or_else(|late| {
            Err(BmcFault {
                may_have_run: true,
                ..late
            })
        });
        let words = ask.method_and_path(path);
        let response = answered.map_err(|fault| BmcFault {
            message: format!("{words}: {}", fault.message),
            ..fault
        })?;
        Ok(RedfishReply::new(response, words, path.to_owned()))
    }
}

/// Whether the connection was lost before the answer.
fn is_connection_lost(fault: &BmcFault) -> bool {
    fault.class == FaultClass::Unreachable && fault.may_have_run
}
