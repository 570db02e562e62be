//! What gates of policies need to ask a Prometheus, and no policy may say.

use std::path::PathBuf;

use dogwatch_prometheus::{Origin, Settings, Token};

use super::values::absolute;

/// Flags about Prometheus servers.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args)]
pub struct PrometheusArgs {
    /// PEM certificates that the Prometheus servers of policies are checked against, in place of the system's
    #[arg(long, env = "DOGWATCH_PROMETHEUS_CA_FILE", value_name = "PATH", value_parser = absolute)]
    pub prometheus_ca_file: Option<PathBuf>,

    /// A bearer token for the Prometheus at --prometheus-token-origin
    #[arg(long, env = "DOGWATCH_PROMETHEUS_TOKEN_FILE", value_name = "PATH", requires = "prometheus_token_origin", value_parser = absolute)]
    pub prometheus_token_file: Option<PathBuf>,

    /// The only server that the token of --prometheus-token-file is sent to
    #[arg(
        long,
        env = "DOGWATCH_PROMETHEUS_TOKEN_ORIGIN",
        value_name = "https://HOST[:PORT]",
        requires = "prometheus_token_file"
    )]
    pub prometheus_token_origin: Option<Origin>,
}

impl PrometheusArgs {
    /// How gates ask.
    pub fn settings(&self) -> Settings {
        let token = self.prometheus_token_file.clone();
        Settings {
            ca_file: self.prometheus_ca_file.clone(),
            token: token
                .zip(self.prometheus_token_origin.clone())
                .map(|(file, origin)| Token { file, origin }),
            ..Settings::default()
        }
    }
}
