//! Asks a Prometheus HTTP API what keeps a gate of a `RebootPolicy` shut.
//!
//! **For:** [`PrometheusClient::shut_reasons_of`]: a gate in, reasons out; no reason means open.
//! **May touch:** the server that the gate names, and the two files of [`PrometheusSettings`].
//! **Promises:** a gate is open only on a complete answer, in time, that says "no results".
//! Everything else keeps it shut, with a reason that says what to do. The token goes to one origin,
//! over TLS, and into no text. Between two queries nothing is kept: no connection, no certificate,
//! no token. Reasons: `docs/design/0009-prometheus-gates.md`.

mod address;
mod alerts;
mod answer;
mod exchange;
mod files;
mod gate_checker;
mod query_error;
mod reason_text;

use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::policy::{BlockingAlerts, PrometheusGate, PrometheusQuery};

use self::address::PrometheusAddress;
pub use self::address::{PrometheusOrigin, PrometheusOriginError};
use self::answer::QueryResults;
use self::exchange::HttpReply;
pub use self::gate_checker::{GateChecker, NoGateChecker};
use self::query_error::QueryError;

/// How long one query may take, from the name's resolution to the last byte. A healthy Prometheus
/// answers a rule's query in milliseconds, and several gates must fit into the half minute for
/// which an answer counts.
pub const QUERY_TIME_LIMIT: Duration = Duration::from_secs(5);

/// The query that kured uses too, reduced to a line for each name and state. Not `/api/v1/alerts`:
/// servers that evaluate no rules themselves answer that with an empty list, which would open the
/// gate.
const ALERTS_QUERY: &str = "count by (alertname, alertstate) (ALERTS != 0)";

/// The operator's settings for Prometheus servers; a policy cannot change them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusSettings {
    /// PEM certificates that alone are trusted for `https` servers; without it the system's are.
    /// Read anew for each query.
    pub ca_file: Option<PathBuf>,
    pub token: Option<BearerToken>,
    /// How long one query may take in all.
    pub time_limit: Duration,
}

impl Default for PrometheusSettings {
    fn default() -> Self {
        Self {
            ca_file: None,
            token: None,
            time_limit: QUERY_TIME_LIMIT,
        }
    }
}

/// A bearer token, and the only origin that it is sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerToken {
    /// The file that holds the token; read anew for each query, because tokens are rotated.
    pub file: PathBuf,
    pub origin: PrometheusOrigin,
}

#[derive(Debug, Clone)]
pub struct PrometheusClient {
    settings: PrometheusSettings,
}

impl PrometheusClient {
    /// Touches nothing yet.
    pub fn new(settings: PrometheusSettings) -> Self {
        Self { settings }
    }

    /// The reasons that keep this gate shut, a sentence each; empty means open. Ends within the
    /// time limit. Needs a tokio runtime with I/O and time.
    pub async fn shut_reasons_of(&self, gate: &PrometheusGate) -> Vec<String> {
        match self.check_gate(gate).await {
            Ok(reasons) => reasons,
            Err(why) => vec![why],
        }
    }

    /// Like [`Self::shut_reasons_of`], but tells a shut gate from one that could not be asked (as
    /// when asked from another place than the node): then the error is in words.
    pub async fn check_gate(&self, gate: &PrometheusGate) -> Result<Vec<String>, String> {
        let address = PrometheusAddress::parse(&gate.url).map_err(|why| {
            format!("Prometheus cannot be queried: the address in the policy {why}")
        })?;
        let asked = tokio::time::timeout(
            self.settings.time_limit,
            self.query_gate(&address, &gate.ask),
        );
        let answer = asked
            .await
            .unwrap_or(Err(QueryError::Slow(self.settings.time_limit)));
        match answer {
            Ok(reason) => Ok(reason.into_iter().collect()),
            Err(trouble) => Err(format!(
                "Prometheus at {address} cannot be queried: {}",
                trouble.error_chain()
            )),
        }
    }

    async fn query_gate(
        &self,
        address: &PrometheusAddress,
        ask: &PrometheusQuery,
    ) -> Result<Option<String>, QueryError> {
        match ask {
            PrometheusQuery::Query(query) => {
                let results = self.query_results(address, query).await?;
                Ok(reason_text::format_results(&results, address))
            }
            PrometheusQuery::Alerts(which) => self.find_blocking_alerts(address, which).await,
        }
    }

    async fn find_blocking_alerts(
        &self,
        address: &PrometheusAddress,
        which: &BlockingAlerts,
    ) -> Result<Option<String>, QueryError> {
        let filter = alerts::AlertMatcher::new(which)?;
        let results = self.query_results(address, ALERTS_QUERY).await?;
        Ok(reason_text::format_alerts(
            &filter.blocking_alerts(&results),
            address,
        ))
    }

    async fn query_results(
        &self,
        address: &PrometheusAddress,
        query: &str,
    ) -> Result<QueryResults, QueryError> {
        let token = self.token_for(address.origin())?;
        let tls = if address.origin().is_tls() {
            Some(files::build_tls_config(self.settings.ca_file.as_deref())?)
        } else {
            None
        };
        let sent = self.token_sent(address.origin());
        let HttpReply {
            status,
            headers,
            body,
        } = exchange::get_reply(address, &address.query_path(query), tls, token).await?;
        answer::parse_answer(status, &headers, &body, sent)
    }

    fn token_for(
        &self,
        origin: &PrometheusOrigin,
    ) -> Result<Option<http::HeaderValue>, QueryError> {
        let token = self.settings.token.as_ref();
        let token = token.filter(|token| token.origin == *origin);
        token
            .map(|token| files::read_bearer_header(&token.file))
            .transpose()
    }

    fn token_sent(&self, origin: &PrometheusOrigin) -> answer::TokenSent {
        match &self.settings.token {
            None => answer::TokenSent::NoneThere,
            Some(token) if token.origin == *origin => answer::TokenSent::Yes,
            Some(_) => answer::TokenSent::OtherOrigin,
        }
    }
}
