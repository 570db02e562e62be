//! The flags of `dogwatch controller`. Source: specification §7.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use dogwatch_controller::lock::http;
use dogwatch_controller::run::ControllerComponent;
use dogwatch_coordinator::args::PrometheusArgs;
use dogwatch_core::duration;
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_runtime::listen::ListenAddress;
use dogwatch_runtime::log::LogFormat;

use super::power::PowerArgs;
use super::remediation::RemediationArgs;

#[derive(Debug, Clone, clap::Args)]
pub struct ControllerArgs {
    /// Components to run: power, remediation, healer, lock, web; separated by commas
    #[arg(
        long,
        env = "DOGWATCH_COMPONENTS",
        value_name = "NAMES",
        default_value = "power,healer",
        value_delimiter = ',',
        value_parser = parse_component
    )]
    pub components: Vec<ComponentArg>,

    /// How many nodes of a group may be unavailable at once, unless a policy says otherwise
    #[arg(
        long,
        env = "DOGWATCH_MAX_UNAVAILABLE",
        value_name = "N|N%",
        default_value = "1"
    )]
    pub max_unavailable: UnavailabilityLimit,

    /// How long a drain for the lock API may take, unless a policy says otherwise
    #[arg(long, env = "DOGWATCH_DRAIN_TIMEOUT", value_name = "DURATION", default_value = "1h", value_parser = parse_positive_duration)]
    pub drain_timeout: Duration,

    /// Address of the lock API; any other address than loopback needs a certificate
    #[arg(
        long,
        env = "DOGWATCH_LOCK_LISTEN",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:8080"
    )]
    pub lock_listen: SocketAddr,

    /// Who may use the lock API: callers that the cluster authenticates and authorizes, or
    /// everybody, on loopback only
    #[arg(
        long,
        env = "DOGWATCH_LOCK_AUTH",
        value_name = "WHO",
        default_value = "kubernetes",
        value_enum
    )]
    pub lock_auth: LockAuthArg,

    /// Certificate of the lock API and of FleetLock (PEM); read again when it changes
    #[arg(long, env = "DOGWATCH_LOCK_TLS_CERT", value_name = "PATH")]
    pub lock_tls_cert: Option<PathBuf>,

    /// Private key of that certificate (PEM)
    #[arg(long, env = "DOGWATCH_LOCK_TLS_KEY", value_name = "PATH")]
    pub lock_tls_key: Option<PathBuf>,

    /// CA certificates for client certificates (PEM); without it, client certificates are not
    /// accepted
    #[arg(long, env = "DOGWATCH_LOCK_CLIENT_CA", value_name = "PATH")]
    pub lock_client_ca: Option<PathBuf>,

    /// Accepted audiences of tokens, separated by commas: kubectl create token NAME --audience
    /// dogwatch
    #[arg(
        long,
        env = "DOGWATCH_LOCK_AUDIENCE",
        value_name = "NAMES",
        default_value = http::DEFAULT_LOCK_AUDIENCE,
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub lock_audience: Vec<String>,

    /// Address of FleetLock, whose clients are not authenticated; not served unless given
    #[arg(long, env = "DOGWATCH_FLEETLOCK_LISTEN", value_name = "IP:PORT")]
    pub fleetlock_listen: Option<SocketAddr>,

    /// Groups whose lock FleetLock clients may take, separated by commas; needed with
    /// --fleetlock-listen. "*" is any group without Nodes: "default", "control-plane" and groups of
    /// policies must be named
    #[arg(
        long,
        env = "DOGWATCH_FLEETLOCK_GROUPS",
        value_name = "GROUPS",
        value_delimiter = ',',
        value_parser = parse_fleetlock_group
    )]
    pub fleetlock_groups: Vec<String>,

    /// Cordon and drain the node of a FleetLock client
    #[arg(long, env = "DOGWATCH_FLEETLOCK_DRAIN")]
    pub fleetlock_drain: bool,

    /// Address of the dashboard (component web): everybody who can connect sees the fleet; actions
    /// need the viewer's own token
    #[arg(
        long,
        env = "DOGWATCH_WEB_LISTEN",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:9426"
    )]
    pub web_listen: SocketAddr,

    /// Host names by which browsers reach the dashboard, separated by commas, beside localhost and
    /// the names of Service dogwatch-web
    #[arg(
        long,
        env = "DOGWATCH_WEB_HOSTS",
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub web_hosts: Vec<String>,

    #[command(flatten)]
    pub power: PowerArgs,

    #[command(flatten)]
    pub remediation: RemediationArgs,

    #[command(flatten)]
    pub prometheus: PrometheusArgs,

    /// Address of /metrics, /healthz and /readyz; port 0 picks a free port, "off" disables them
    #[arg(
        long,
        env = "DOGWATCH_LISTEN",
        value_name = "HOST:PORT",
        default_value = ":9422"
    )]
    pub listen: ListenAddress,

    /// Second address of /healthz and /readyz, for the kubelet, so that clients of --listen cannot
    /// delay its probes; port 0 picks a free port, "off" disables it
    #[arg(
        long,
        env = "DOGWATCH_PROBE_LISTEN",
        value_name = "HOST:PORT",
        default_value = ":9421"
    )]
    pub probe_listen: ListenAddress,

    /// A file for the decision log: decisions about hosts and remediations, readings of BMCs, power
    /// commands and releases, one JSON object a line, for `dogwatch verify-trace`; at most 64 MiB
    /// together with the older FILE.1
    #[arg(long, env = "DOGWATCH_DECISION_LOG", value_name = "FILE")]
    pub decision_log: Option<PathBuf>,

    /// Log format
    #[arg(
        long,
        env = "DOGWATCH_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text",
        value_enum
    )]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentArg {
    Healer,
    Lock,
    Power,
    Remediation,
    Web,
}

impl From<ComponentArg> for ControllerComponent {
    fn from(part: ComponentArg) -> Self {
        match part {
            ComponentArg::Healer => ControllerComponent::Healer,
            ComponentArg::Lock => ControllerComponent::Lock,
            ComponentArg::Power => ControllerComponent::Power,
            ComponentArg::Remediation => ControllerComponent::Remediation,
            ComponentArg::Web => ControllerComponent::Web,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LockAuthArg {
    /// By token or certificate; the caller needs verb "lock" on rebootlocks.dogwatch.dev
    Kubernetes,
    /// No authentication
    None,
}

impl From<LockAuthArg> for http::LockAuthMode {
    fn from(auth: LockAuthArg) -> Self {
        match auth {
            LockAuthArg::Kubernetes => http::LockAuthMode::Kubernetes,
            LockAuthArg::None => http::LockAuthMode::None,
        }
    }
}

const COMPONENT_NAMES_HINT: &str = "the components are power, remediation, healer, lock and web";

fn parse_component(text: &str) -> Result<ComponentArg, String> {
    match text {
        "healer" => Ok(ComponentArg::Healer),
        "lock" => Ok(ComponentArg::Lock),
        "power" => Ok(ComponentArg::Power),
        "remediation" => Ok(ComponentArg::Remediation),
        "web" => Ok(ComponentArg::Web),
        _ => Err(COMPONENT_NAMES_HINT.to_owned()),
    }
}

fn parse_fleetlock_group(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if text == "*" || (!text.is_empty() && text.chars().all(allowed)) {
        return Ok(text.to_owned());
    }
    Err("write a group with letters, digits, '.' and '-' only, or * for any group".to_owned())
}

fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    match duration::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be greater than 0".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::args::Args;
    use crate::command::DogwatchCommand;

    fn parsed(flags: &[&str]) -> Result<ControllerArgs, String> {
        let words = ["dogwatch", "controller"]
            .into_iter()
            .chain(flags.iter().copied());
        let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
        let DogwatchCommand::Controller(args) = args.command else {
            panic!("these are the words of another command");
        };
        Ok(*args)
    }

    #[test]
    fn an_unknown_component_is_refused_with_the_known_ones() {
        let error = parsed(&["--components", "watchdog"]).unwrap_err();
        assert!(error.contains("--components"), "{error}");
        assert!(
            error.contains("remediation, healer, lock and web"),
            "{error}"
        );
    }

    /// Compares the table in docs/controller.md with the flags and defaults of `--help`.
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
            [ComponentArg::Power, ComponentArg::Healer],
            "what deletes Nodes, and what strangers reach, is asked for"
        );
        assert_eq!(
            parsed(&["--components=lock"]).unwrap().components,
            [ComponentArg::Lock]
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
            ("--web-listen", "9426"),
            ("--web-hosts", ""),
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
