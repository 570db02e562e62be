//! The coordinator's command line. Source: specification §7.
//!
//! **For:** [`Args`], every flag and its `DOGWATCH_…` variable, as checked values.
//! **May touch:** the command line and the environment.
//! **Promises:** a wrong value is refused here, before anything else happens, with the flag's name
//! and what to write instead; [`Args::parse`] then ends the process with code 2.

mod prometheus;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use dogwatch_core::limit::UnavailabilityLimit;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::DrainTimeoutAction;
pub use dogwatch_runtime::listen::ListenAddress;

pub use self::prometheus::PrometheusArgs;
pub use self::values::ShellWords;
use self::values::{
    parse_absolute_path, parse_duration, parse_label_key, parse_limit, parse_namespace,
    parse_node_name, parse_positive_duration, parse_shell_words,
};
use crate::host::kubelet::KubeletFiles;
use crate::host::reboot::{HostRebootMethod, HostRebooter, PID_1};
use crate::host::sentinel_command::SentinelCommand;
use crate::log::LogFormat;

/// Drain and reboot this node safely, and return it to service
///
/// Finds the cluster as kubectl does: KUBECONFIG, else ~/.kube/config, else the pod's service
/// account.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "dogwatch-coordinator", version)]
pub struct Args {
    /// The Node that this coordinator manages
    #[arg(long, env = "DOGWATCH_NODE_NAME", value_name = "NAME", value_parser = parse_node_name)]
    pub node_name: NodeName,

    /// The namespace of Dogwatch and its Leases
    #[arg(long, env = "DOGWATCH_NAMESPACE", value_name = "NAME", default_value = "dogwatch", value_parser = parse_namespace)]
    pub namespace: String,

    /// The identity that writes this Node and evicts its pods
    #[arg(
        long,
        env = "DOGWATCH_IDENTITY",
        value_name = "WHO",
        default_value = "service-account",
        value_enum
    )]
    pub identity: WriterIdentity,

    /// The kubelet's own client certificate, below --host-root, for --identity=kubelet; read for
    /// each request
    #[arg(long, env = "DOGWATCH_KUBELET_CERTIFICATE", value_name = "PATH", default_value = "/var/lib/kubelet/pki/kubelet-client-current.pem", value_parser = parse_absolute_path)]
    pub kubelet_certificate: PathBuf,

    /// The key of that certificate, below --host-root, if it is in a file of its own
    #[arg(long, env = "DOGWATCH_KUBELET_KEY", value_name = "PATH", value_parser = parse_absolute_path)]
    pub kubelet_key: Option<PathBuf>,

    /// How many nodes of a group may be unavailable at once
    #[arg(long, env = "DOGWATCH_MAX_UNAVAILABLE", value_name = "N|N%", default_value = "1", value_parser = parse_limit)]
    pub max_unavailable: UnavailabilityLimit,

    /// A file whose presence requests a reboot; repeatable, or separated by commas
    #[arg(long, env = "DOGWATCH_SENTINEL", value_name = "PATH", default_value = "/run/reboot-needed", value_delimiter = ',', value_parser = parse_absolute_path)]
    pub sentinel: Vec<PathBuf>,

    /// A command that exits with 0 if a reboot is needed, and with 1 if not
    #[arg(long, env = "DOGWATCH_SENTINEL_COMMAND", value_name = "COMMAND", value_parser = parse_shell_words)]
    pub sentinel_command: Option<ShellWords>,

    /// How often the sentinel command is run
    #[arg(long, env = "DOGWATCH_SENTINEL_INTERVAL", value_name = "DURATION", default_value = "1m", value_parser = parse_positive_duration)]
    pub sentinel_interval: Duration,

    /// How long the sentinel command may take
    #[arg(long, env = "DOGWATCH_SENTINEL_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = parse_positive_duration)]
    pub sentinel_timeout: Duration,

    /// How to reboot the host
    #[arg(
        long,
        env = "DOGWATCH_REBOOT_METHOD",
        value_name = "METHOD",
        default_value = "command",
        value_enum
    )]
    pub reboot_method: RebootCommandKind,

    /// The command of method "command"; split into words as a shell would split it, run without a
    /// shell
    #[arg(long, env = "DOGWATCH_REBOOT_COMMAND", value_name = "COMMAND", default_value = "systemctl reboot", value_parser = parse_shell_words)]
    pub reboot_command: ShellWords,

    /// The key of a Node label that asks for a reboot while it is set; removed after the reboot
    #[arg(long, env = "DOGWATCH_REBOOT_REQUEST_LABEL", value_name = "KEY", value_parser = parse_label_key)]
    pub reboot_request_label: Option<String>,

    /// The file with the kernel's boot id
    #[arg(long, env = "DOGWATCH_BOOT_ID_FILE", value_name = "PATH", default_value = "/proc/sys/kernel/random/boot_id", value_parser = parse_absolute_path)]
    pub boot_id_file: PathBuf,

    /// Where the host's root is mounted; sentinels are looked up below it
    #[arg(long, env = "DOGWATCH_HOST_ROOT", value_name = "PATH", default_value = "/", value_parser = parse_absolute_path)]
    pub host_root: PathBuf,

    /// How long a drain may take
    #[arg(long, env = "DOGWATCH_DRAIN_TIMEOUT", value_name = "DURATION", default_value = "1h", value_parser = parse_positive_duration)]
    pub drain_timeout: Duration,

    /// What to do after --drain-timeout: undo the drain and queue again, delete the remaining pods,
    /// or reboot anyway
    #[arg(
        long,
        env = "DOGWATCH_ON_DRAIN_TIMEOUT",
        value_name = "WHAT",
        default_value = "abort",
        value_enum
    )]
    pub on_drain_timeout: OnDrainTimeout,

    /// How long the volumes of the drained pods may take to detach; after that the reboot continues
    #[arg(long, env = "DOGWATCH_VOLUME_DETACH_TIMEOUT", value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    pub volume_detach_timeout: Duration,

    /// How long to wait for a new boot after the reboot command
    #[arg(long, env = "DOGWATCH_REBOOT_TIMEOUT", value_name = "DURATION", default_value = "30m", value_parser = parse_positive_duration)]
    pub reboot_timeout: Duration,

    /// How often the reboot command is run at most
    #[arg(long, env = "DOGWATCH_REBOOT_ATTEMPTS", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub reboot_attempts: u32,

    /// How long the Node must be Ready after the boot before it is uncordoned
    #[arg(long, env = "DOGWATCH_SETTLE", value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub settle: Duration,

    /// Access to the Prometheus servers of the policies' gates
    #[command(flatten)]
    pub prometheus: PrometheusArgs,

    /// The address of /metrics, /healthz and /readyz; port 0 is any free port, "off" disables the
    /// listener
    #[arg(
        long,
        env = "DOGWATCH_LISTEN",
        value_name = "HOST:PORT",
        default_value = ":9420"
    )]
    pub listen: ListenAddress,

    /// The address of /healthz and /readyz for the kubelet; separate from --listen, so that clients
    /// of the metrics cannot block the kubelet's probes; port 0 is any free port, "off" disables
    /// the listener
    #[arg(
        long,
        env = "DOGWATCH_PROBE_LISTEN",
        value_name = "HOST:PORT",
        default_value = ":9421"
    )]
    pub probe_listen: ListenAddress,

    /// A file for the decision log: each decision and each accepted write, one JSON object a line, for
    /// `dogwatch verify-trace`; at most 64 MiB together with the older FILE.1
    #[arg(long, env = "DOGWATCH_DECISION_LOG", value_name = "FILE", value_parser = parse_absolute_path)]
    pub decision_log: Option<PathBuf>,

    /// The format of the log
    #[arg(
        long,
        env = "DOGWATCH_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text",
        value_enum
    )]
    pub log_format: LogFormat,
}

/// Values of `--identity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WriterIdentity {
    /// The coordinator's ServiceAccount, which may evict every pod of the cluster
    ServiceAccount,
    /// The kubelet of this node, which the API server limits to this node (NodeRestriction)
    Kubelet,
}

/// Values of `--reboot-method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RebootCommandKind {
    /// Run --reboot-command
    Command,
    /// Call systemd-logind over D-Bus
    Logind,
    /// Send SIGRTMIN+5, systemd's signal for a reboot, to PID 1
    Signal,
}

/// Values of `--on-drain-timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnDrainTimeout {
    /// Undo the drain, release the lock and queue again later
    Abort,
    /// Delete the remaining pods with their grace period
    Delete,
    /// Reboot anyway
    Force,
}

impl From<OnDrainTimeout> for DrainTimeoutAction {
    fn from(what: OnDrainTimeout) -> Self {
        match what {
            OnDrainTimeout::Abort => DrainTimeoutAction::Abort,
            OnDrainTimeout::Delete => DrainTimeoutAction::Delete,
            OnDrainTimeout::Force => DrainTimeoutAction::Force,
        }
    }
}

impl Args {
    pub fn host_rebooter(&self) -> HostRebooter {
        let method = match self.reboot_method {
            RebootCommandKind::Command => HostRebootMethod::Command(self.reboot_command.0.clone()),
            RebootCommandKind::Logind => HostRebootMethod::Logind,
            RebootCommandKind::Signal => HostRebootMethod::Signal,
        };
        HostRebooter {
            method,
            host_root: self.host_root.clone(),
            init: PID_1,
        }
    }

    pub fn kubelet_files(&self) -> KubeletFiles {
        KubeletFiles {
            host_root: self.host_root.clone(),
            certificate: self.kubelet_certificate.clone(),
            key: self.kubelet_key.clone(),
        }
    }

    pub fn sentinel_command(&self) -> Option<SentinelCommand> {
        let argv = self.sentinel_command.as_ref()?.0.clone();
        Some(SentinelCommand {
            argv,
            interval: self.sentinel_interval,
            timeout: self.sentinel_timeout,
            host_root: self.host_root.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
