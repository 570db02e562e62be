//! Asks a Prometheus HTTP API what keeps a gate of a `RebootPolicy` shut.
//!
//! **For:** [`Prometheus::shut`]: a gate in, sentences out; none is open.
//! **May touch:** the server that the gate names, and the two files of [`Settings`].
//! **Promises:** a gate is open on one thing only: a whole answer, in time, that says "no results".
//! Whatever else happens keeps it shut, and is said together with what to do. The token goes to one
//! origin, over TLS, and into no text. Between two questions nothing is kept: no connection, no
//! certificate, no token. Why so: `docs/design/0009-prometheus-gates.md`.

mod address;
mod alerts;
mod answer;
mod exchange;
mod files;
mod gatekeeper;
mod trouble;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use dogwatch_core::policy::{Alerts, PrometheusGate, PrometheusQuery};

use self::address::Address;
pub use self::address::{Origin, OriginError};
use self::answer::Results;
use self::exchange::Reply;
pub use self::gatekeeper::{CannotAsk, Gatekeeper};
use self::trouble::Trouble;

/// How long one question may take, from the name's resolution to the last byte. A Prometheus that is
/// well answers a rule's query in milliseconds; and several gates must fit into the half minute for
/// which an answer counts.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// What kured asks too, folded to a line for each name and state. Not `/api/v1/alerts`: servers that
/// evaluate no rules themselves answer that with an empty list, which would open the gate.
const ALERTS: &str = "count by (alertname, alertstate) (ALERTS != 0)";

/// What the one who runs the program says about Prometheus servers; a policy cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// PEM certificates that `https` servers are checked against, and nothing else then; without it
    /// those of the system. Read anew for each question.
    pub ca_file: Option<PathBuf>,
    /// What proves who asks.
    pub token: Option<Token>,
    /// How long one question may take in all.
    pub time_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ca_file: None,
            token: None,
            time_limit: TIME_LIMIT,
        }
    }
}

/// A bearer token, and the only place where it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The file that holds it; read anew for each question, for tokens are rotated.
    pub file: PathBuf,
    /// Where it may go.
    pub origin: Origin,
}

/// Whoever asks.
#[derive(Debug, Clone)]
pub struct Prometheus {
    settings: Settings,
}

impl Prometheus {
    /// Touches nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// What keeps this gate shut, a sentence for each reason; empty is open. Ends within the time
    /// limit. Needs a tokio runtime with I/O and time.
    pub async fn shut(&self, gate: &PrometheusGate) -> Vec<String> {
        match self.asked(gate).await {
            Ok(reasons) => reasons,
            Err(why) => vec![why],
        }
    }

    /// The same for who has to tell a gate that is shut from one that could not be asked, as from
    /// another place than the node's; what went wrong is in words.
    pub async fn asked(&self, gate: &PrometheusGate) -> Result<Vec<String>, String> {
        let address = Address::parse(&gate.url).map_err(|why| {
            format!("Prometheus cannot be asked: the address in the policy {why}")
        })?;
        let asked = tokio::time::timeout(self.settings.time_limit, self.ask(&address, &gate.ask));
        let answer = asked
            .await
            .unwrap_or(Err(Trouble::Slow(self.settings.time_limit)));
        match answer {
            Ok(reason) => Ok(reason.into_iter().collect()),
            Err(trouble) => Err(format!(
                "Prometheus at {address} cannot be asked: {}",
                trouble.in_words()
            )),
        }
    }

    async fn ask(
        &self,
        address: &Address,
        ask: &PrometheusQuery,
    ) -> Result<Option<String>, Trouble> {
        match ask {
            PrometheusQuery::Query(query) => {
                let results = self.results(address, query).await?;
                Ok(words::results(&results, address))
            }
            PrometheusQuery::Alerts(which) => self.alerts(address, which).await,
        }
    }

    async fn alerts(&self, address: &Address, which: &Alerts) -> Result<Option<String>, Trouble> {
        let filter = alerts::Filter::new(which)?;
        let results = self.results(address, ALERTS).await?;
        Ok(words::alerts(&filter.blocking(&results), address))
    }

    async fn results(&self, address: &Address, query: &str) -> Result<Results, Trouble> {
        let token = self.token_for(address.origin())?;
        let tls = if address.origin().is_tls() {
            Some(files::tls(self.settings.ca_file.as_deref())?)
        } else {
            None
        };
        let sent = self.token_sent(address.origin());
        let Reply {
            status,
            headers,
            body,
        } = exchange::get(address, &address.query_path(query), tls, token).await?;
        answer::read(status, &headers, &body, sent)
    }

    fn token_for(&self, origin: &Origin) -> Result<Option<http::HeaderValue>, Trouble> {
        let token = self.settings.token.as_ref();
        let token = token.filter(|token| token.origin == *origin);
        token.map(|token| files::bearer(&token.file)).transpose()
    }

    fn token_sent(&self, origin: &Origin) -> answer::TokenSent {
        match &self.settings.token {
            None => answer::TokenSent::NoneThere,
            Some(token) if token.origin == *origin => answer::TokenSent::Yes,
            Some(_) => answer::TokenSent::OtherOrigin,
        }
    }
}
