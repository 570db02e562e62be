//! The flags of `dogwatch controller`. Source: specification §7.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use dogwatch_controller::lock::http;
use dogwatch_controller::run::Component;
use dogwatch_coordinator::args::PrometheusArgs;
use dogwatch_core::duration;
use dogwatch_core::limit::Limit;
use dogwatch_process::listen::Listen;
use dogwatch_process::log::Format;

use super::power::PowerArgs;
use super::remediation::RemediationArgs;

/// What runs, and where it serves.
#[derive(Debug, Clone, clap::Args)]
pub struct ControllerArgs {
    /// What runs: power, remediation, healer, lock; separated by commas
    #[arg(
        long,
        env = "DOGWATCH_COMPONENTS",
        value_name = "NAMES",
        default_value = "power,healer",
        value_delimiter = ',',
        value_parser = part
    )]
    pub components: Vec<Part>,

    /// How many nodes of a group may be out of service at once, where no policy says it
    #[arg(
        long,
        env = "DOGWATCH_MAX_UNAVAILABLE",
        value_name = "N|N%",
        default_value = "1"
    )]
    pub max_unavailable: Limit,

    /// How long a drain for the lock API may take, where no policy says it
    #[arg(long, env = "DOGWATCH_DRAIN_TIMEOUT", value_name = "DURATION", default_value = "1h", value_parser = positive)]
    pub drain_timeout: Duration,

    /// Where the lock API is served; other addresses than loopback need a certificate
    #[arg(
        long,
        env = "DOGWATCH_LOCK_LISTEN",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:8080"
    )]
    pub lock_listen: SocketAddr,

    /// Who may use the lock API: whom the cluster knows and allows, or, on loopback, everybody
    #[arg(
        long,
        env = "DOGWATCH_LOCK_AUTH",
        value_name = "WHO",
        default_value = "kubernetes",
        value_enum
    )]
    pub lock_auth: LockAuth,

    /// The certificate of the lock API and of FleetLock (PEM); read again when it changes
    #[arg(long, env = "DOGWATCH_LOCK_TLS_CERT", value_name = "PATH")]
    pub lock_tls_cert: Option<PathBuf>,

    /// Its private key (PEM)
    #[arg(long, env = "DOGWATCH_LOCK_TLS_KEY", value_name = "PATH")]
    pub lock_tls_key: Option<PathBuf>,

    /// The authorities of client certificates (PEM), where such are taken
    #[arg(long, env = "DOGWATCH_LOCK_CLIENT_CA", value_name = "PATH")]
    pub lock_client_ca: Option<PathBuf>,

    /// For whom a token must have been made, one of these: kubectl create token NAME --audience dogwatch;
    /// separated by commas
    #[arg(
        long,
        env = "DOGWATCH_LOCK_AUDIENCE",
        value_name = "NAMES",
        default_value = http::AUDIENCE,
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub lock_audience: Vec<String>,

    /// Where FleetLock is served, to clients that nobody checks; nowhere unless it is given
    #[arg(long, env = "DOGWATCH_FLEETLOCK_LISTEN", value_name = "IP:PORT")]
    pub fleetlock_listen: Option<SocketAddr>,

    /// Whose lock FleetLock clients may ask for, separated by commas; needed with --fleetlock-listen. "*" is
    /// any group that is not one of Nodes: "default", "control-plane" and those of policies only by name
    #[arg(
        long,
        env = "DOGWATCH_FLEETLOCK_GROUPS",
        value_name = "GROUPS",
        value_delimiter = ',',
        value_parser = fleetlock_group
    )]
    pub fleetlock_groups: Vec<String>,

    /// Cordons and drains the node of a FleetLock client
    #[arg(long, env = "DOGWATCH_FLEETLOCK_DRAIN")]
    pub fleetlock_drain: bool,

    /// How the power of hosts is kept
    #[command(flatten)]
    pub power: PowerArgs,

    /// How failed machines are remediated
    #[command(flatten)]
    pub remediation: RemediationArgs,

    /// What gates of policies need to ask a Prometheus
    #[command(flatten)]
    pub prometheus: PrometheusArgs,

    /// Where /metrics, /healthz and /readyz are served; port 0 is any, "off" is nowhere
    #[arg(
        long,
        env = "DOGWATCH_LISTEN",
        value_name = "HOST:PORT",
        default_value = ":9422"
    )]
    pub listen: Listen,

    /// Where /healthz and /readyz are served to the kubelet, beside --listen, so that nobody who reaches the
    /// metrics can keep it from its answer; port 0 is any, "off" is nowhere
    #[arg(
        long,
        env = "DOGWATCH_PROBE_LISTEN",
        value_name = "HOST:PORT",
        default_value = ":9421"
    )]
    pub probe_listen: Listen,

    /// How the log is written
    #[arg(
        long,
        env = "DOGWATCH_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text",
        value_enum
    )]
    pub log_format: Format,
}

/// A part that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What leads.
    Healer,
    /// The lock over HTTP.
    Lock,
    /// The power of BareMetalHosts.
    Power,
    /// Failed machines are proved off and come back.
    Remediation,
}

impl From<Part> for Component {
    fn from(part: Part) -> Self {
        match part {
            Part::Healer => Component::Healer,
            Part::Lock => Component::Lock,
            Part::Power => Component::Power,
            Part::Remediation => Component::Remediation,
        }
    }
}

/// `--lock-auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LockAuth {
    /// By token or certificate; they need verb "lock" on rebootlocks.dogwatch.dev
    Kubernetes,
    /// Nobody is checked
    None,
}

impl From<LockAuth> for http::LockAuth {
    fn from(auth: LockAuth) -> Self {
        match auth {
            LockAuth::Kubernetes => http::LockAuth::Kubernetes,
            LockAuth::None => http::LockAuth::None,
        }
    }
}

const PARTS: &str = "there are power, remediation, healer and lock";

fn part(text: &str) -> Result<Part, String> {
    match text {
        "healer" => Ok(Part::Healer),
        "lock" => Ok(Part::Lock),
        "power" => Ok(Part::Power),
        "remediation" => Ok(Part::Remediation),
        "web" => Err(format!("{text} is not built yet: {PARTS}")),
        _ => Err(PARTS.to_owned()),
    }
}

fn fleetlock_group(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if text == "*" || (!text.is_empty() && text.chars().all(allowed)) {
        return Ok(text.to_owned());
    }
    Err("a group has letters, digits, '.' and '-'; or * for any".to_owned())
}

fn positive(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::args::Args;
    use crate::command::Command;

    fn parsed(flags: &[&str]) -> Result<ControllerArgs, String> {
        let words = ["dogwatch", "controller"]
            .into_iter()
            .chain(flags.iter().copied());
        let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Controller(args) = args.command else {
            panic!("these are the words of another command");
        };
        Ok(*args)
    }

    #[test]
    fn what_is_not_built_yet_is_refused_by_name() {
        let error = parsed(&["--components", "healer,web"]).unwrap_err();
        assert!(
            error.contains("--components") && error.contains("not built yet"),
            "{error}"
        );
        let error = parsed(&["--components", "watchdog"]).unwrap_err();
        assert!(error.contains("remediation, healer and lock"), "{error}");
    }

    /// The book's table, held to what `--help` says.
    #[test]
    fn every_flag_is_in_the_book_with_its_default_and_the_book_knows_no_other() {
        const BOOK: &str = include_str!("../../../../../docs/controller.md");
        let command = Args::command();
        let command = command.find_subcommand("controller").unwrap();
        let own = command.get_arguments().filter(|flag| {
            let name = flag.get_long().unwrap_or("help");
            !flag.is_global_set() && !["help", "version"].contains(&name)
        });
        let names: Vec<String> = own
            .map(|flag| {
                let name = format!("| `--{}` |", flag.get_long().unwrap());
                let row = BOOK
                    .lines()
                    .find(|line| line.starts_with(&name))
                    .unwrap_or_default();
                let default = flag.get_default_values().first();
                let default = default.map_or("| (".to_owned(), |text| {
                    format!("| `{}` |", text.to_string_lossy())
                });
                assert!(row.contains(&default), "{name} {default}: {row:?}");
                name
            })
            .collect();
        let rows = BOOK.lines().filter(|line| line.starts_with("| `--"));
        let unknown: Vec<&str> = rows
            .filter(|row| !names.iter().any(|name| row.starts_with(name)))
            .collect();
        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn components_are_chosen_by_name() {
        assert_eq!(
            parsed(&[]).unwrap().components,
            [Part::Power, Part::Healer],
            "what deletes Nodes, and what strangers reach, is asked for"
        );
        assert_eq!(
            parsed(&["--components=lock"]).unwrap().components,
            [Part::Lock]
        );
    }

    #[test]
    fn what_cannot_be_is_refused_and_the_flag_is_named() {
        for (flag, value) in [
            ("--max-unavailable", "0"),
            ("--drain-timeout", "0s"),
            ("--lock-listen", "8080"),
            ("--lock-auth", "everybody"),
            ("--lock-audience", ""),
            ("--fleetlock-listen", "localhost"),
            ("--fleetlock-groups", "a b"),
            ("--fleetlock-groups", ""),
            ("--listen", "9422"),
            ("--probe-listen", "9421"),
            ("--bmc-max-concurrent", "0"),
            ("--bmc-timeout", "500ms"),
            ("--bmc-timeout", "2m"),
            ("--power-poll-interval", "often"),
            ("--power-check-interval", "0s"),
            ("--power-confirm-interval", "10ms"),
            ("--power-settle", "0s"),
            ("--soft-power-off-timeout", "1"),
            ("--host-namespaces", "Metal"),
            ("--max-fenced", "0"),
            ("--fence-cooldown", "soon"),
            ("--log-format", "xml"),
        ] {
            let error = parsed(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(error.contains(flag), "{error}");
        }
    }
}
