//! The coordinator's command line. Source: specification §7.
//!
//! **For:** [`Args`], every flag and its `DOGWATCH_…` variable, as checked values.
//! **May touch:** the command line and the environment.
//! **Promises:** what is wrong is refused here, before anything is touched, naming the flag and
//! what to write instead; [`Args::parse`] then ends the process with code 2.

mod prometheus;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use dogwatch_core::limit::Limit;
use dogwatch_core::name::NodeName;
use dogwatch_core::reboot::OnTimeout;
pub use dogwatch_process::listen::Listen;

pub use self::prometheus::PrometheusArgs;
pub use self::values::Words;
use self::values::{absolute, duration, limit, namespace, node_name, positive, words};
use crate::host::kubelet::KubeletFiles;
use crate::host::reboot::{Method, PID_1, Reboot};
use crate::host::sentinel_command::SentinelCommand;
use crate::log::Format;

/// Takes this node out of service safely, reboots it and brings it back.
///
/// The cluster is chosen as kubectl chooses it: KUBECONFIG, else ~/.kube/config, else the pod's service account.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(name = "dogwatch-coordinator", version)]
pub struct Args {
    /// The Node that this coordinator looks after
    #[arg(long, env = "DOGWATCH_NODE_NAME", value_name = "NAME", value_parser = node_name)]
    pub node_name: NodeName,

    /// Dogwatch's namespace, where its Leases are
    #[arg(long, env = "DOGWATCH_NAMESPACE", value_name = "NAME", default_value = "dogwatch", value_parser = namespace)]
    pub namespace: String,

    /// Who writes this Node and evicts its pods
    #[arg(
        long,
        env = "DOGWATCH_IDENTITY",
        value_name = "WHO",
        default_value = "service-account",
        value_enum
    )]
    pub identity: Identity,

    /// The kubelet's own client certificate, below --host-root, for --identity=kubelet; read again for each request
    #[arg(long, env = "DOGWATCH_KUBELET_CERTIFICATE", value_name = "PATH", default_value = "/var/lib/kubelet/pki/kubelet-client-current.pem", value_parser = absolute)]
    pub kubelet_certificate: PathBuf,

    /// The key of that certificate, below --host-root, where it is in a file of its own
    #[arg(long, env = "DOGWATCH_KUBELET_KEY", value_name = "PATH", value_parser = absolute)]
    pub kubelet_key: Option<PathBuf>,

    /// How many nodes of a group may be out of service at once
    #[arg(long, env = "DOGWATCH_MAX_UNAVAILABLE", value_name = "N|N%", default_value = "1", value_parser = limit)]
    pub max_unavailable: Limit,

    /// A file that asks for a reboot by being there; repeatable, or separated by commas
    #[arg(long, env = "DOGWATCH_SENTINEL", value_name = "PATH", default_value = "/run/reboot-needed", value_delimiter = ',', value_parser = absolute)]
    pub sentinel: Vec<PathBuf>,

    /// A command that exits with 0 when a reboot is needed, with 1 when it is not
    #[arg(long, env = "DOGWATCH_SENTINEL_COMMAND", value_name = "COMMAND", value_parser = words)]
    pub sentinel_command: Option<Words>,

    /// How often the sentinel command is run
    #[arg(long, env = "DOGWATCH_SENTINEL_INTERVAL", value_name = "DURATION", default_value = "1m", value_parser = positive)]
    pub sentinel_interval: Duration,

    /// How long the sentinel command may take
    #[arg(long, env = "DOGWATCH_SENTINEL_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = positive)]
    pub sentinel_timeout: Duration,

    /// How the host is rebooted
    #[arg(
        long,
        env = "DOGWATCH_REBOOT_METHOD",
        value_name = "METHOD",
        default_value = "command",
        value_enum
    )]
    pub reboot_method: RebootMethod,

    /// The command of the method "command": split into words as a shell would split it, run without a shell
    #[arg(long, env = "DOGWATCH_REBOOT_COMMAND", value_name = "COMMAND", default_value = "systemctl reboot", value_parser = words)]
    pub reboot_command: Words,

    /// Where the kernel's boot id is read
    #[arg(long, env = "DOGWATCH_BOOT_ID_FILE", value_name = "PATH", default_value = "/proc/sys/kernel/random/boot_id", value_parser = absolute)]
    pub boot_id_file: PathBuf,

    /// Where the host's root is mounted; sentinels are looked up below it
    #[arg(long, env = "DOGWATCH_HOST_ROOT", value_name = "PATH", default_value = "/", value_parser = absolute)]
    pub host_root: PathBuf,

    /// How long a drain may take
    #[arg(long, env = "DOGWATCH_DRAIN_TIMEOUT", value_name = "DURATION", default_value = "1h", value_parser = positive)]
    pub drain_timeout: Duration,

    /// What happens then: give up and queue again, delete the rest, or reboot anyway
    #[arg(
        long,
        env = "DOGWATCH_ON_DRAIN_TIMEOUT",
        value_name = "WHAT",
        default_value = "abort",
        value_enum
    )]
    pub on_drain_timeout: OnDrainTimeout,

    /// How long the volumes of the drained pods may take to detach; then the reboot goes on
    #[arg(long, env = "DOGWATCH_VOLUME_DETACH_TIMEOUT", value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub volume_detach_timeout: Duration,

    /// How long after the reboot command a new boot is waited for
    #[arg(long, env = "DOGWATCH_REBOOT_TIMEOUT", value_name = "DURATION", default_value = "30m", value_parser = positive)]
    pub reboot_timeout: Duration,

    /// How often the reboot command is run at most
    #[arg(long, env = "DOGWATCH_REBOOT_ATTEMPTS", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub reboot_attempts: u32,

    /// How long the Node must be Ready after the boot before it is uncordoned
    #[arg(long, env = "DOGWATCH_SETTLE", value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub settle: Duration,

    /// What gates of policies need to ask a Prometheus
    #[command(flatten)]
    pub prometheus: PrometheusArgs,

    /// Where /metrics, /healthz and /readyz are served; port 0 is any, "off" is nowhere
    #[arg(
        long,
        env = "DOGWATCH_LISTEN",
        value_name = "HOST:PORT",
        default_value = ":9420"
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

/// `--identity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Identity {
    /// The coordinator's ServiceAccount, which may evict every pod of the cluster
    ServiceAccount,
    /// The kubelet of this node, which the API server limits to this node (NodeRestriction)
    Kubelet,
}

/// `--reboot-method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RebootMethod {
    /// Runs --reboot-command
    Command,
    /// Asks systemd-logind over D-Bus
    Logind,
    /// Sends SIGRTMIN+5 to PID 1, which is systemd's signal for it
    Signal,
}

/// `--on-drain-timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnDrainTimeout {
    /// Uncordons, gives the lock back and queues again later
    Abort,
    /// Deletes the pods that are left, with their grace
    Delete,
    /// Reboots anyway
    Force,
}

impl From<OnDrainTimeout> for OnTimeout {
    fn from(what: OnDrainTimeout) -> Self {
        match what {
            OnDrainTimeout::Abort => OnTimeout::Abort,
            OnDrainTimeout::Delete => OnTimeout::Delete,
            OnDrainTimeout::Force => OnTimeout::Force,
        }
    }
}

impl Args {
    /// How to reboot this host.
    pub fn reboot(&self) -> Reboot {
        let method = match self.reboot_method {
            RebootMethod::Command => Method::Command(self.reboot_command.0.clone()),
            RebootMethod::Logind => Method::Logind,
            RebootMethod::Signal => Method::Signal,
        };
        Reboot {
            method,
            host_root: self.host_root.clone(),
            init: PID_1,
        }
    }

    /// Where the kubelet's certificate is.
    pub fn kubelet_files(&self) -> KubeletFiles {
        KubeletFiles {
            host_root: self.host_root.clone(),
            certificate: self.kubelet_certificate.clone(),
            key: self.kubelet_key.clone(),
        }
    }

    /// The sentinel command, if there is one.
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
