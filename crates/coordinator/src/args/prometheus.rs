//! The Prometheus settings of gates that a policy must not contain.

use std::path::PathBuf;

use dogwatch_prometheus::{BearerToken, PrometheusOrigin, PrometheusSettings};

use super::values::parse_absolute_path;

/// Flags about Prometheus servers.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args)]
pub struct PrometheusArgs {
    /// PEM certificates to check the policies' Prometheus servers against, in place of the system's
    #[arg(long, env = "DOGWATCH_PROMETHEUS_CA_FILE", value_name = "PATH", value_parser = parse_absolute_path)]
    pub prometheus_ca_file: Option<PathBuf>,

    /// A bearer token for the Prometheus at --prometheus-token-origin
    #[arg(long, env = "DOGWATCH_PROMETHEUS_TOKEN_FILE", value_name = "PATH", requires = "prometheus_token_origin", value_parser = parse_absolute_path)]
    pub prometheus_token_file: Option<PathBuf>,

    /// The only server to which the token of --prometheus-token-file is sent
    #[arg(
        long,
        env = "DOGWATCH_PROMETHEUS_TOKEN_ORIGIN",
        value_name = "https://HOST[:PORT]",
        requires = "prometheus_token_file"
    )]
    pub prometheus_token_origin: Option<PrometheusOrigin>,
}

impl PrometheusArgs {
    pub fn prometheus_settings(&self) -> PrometheusSettings {
        let token = self.prometheus_token_file.clone();
        PrometheusSettings {
            ca_file: self.prometheus_ca_file.clone(),
            token: token
                .zip(self.prometheus_token_origin.clone())
                .map(|(file, origin)| BearerToken { file, origin }),
            ..PrometheusSettings::default()
        }
    }
}
