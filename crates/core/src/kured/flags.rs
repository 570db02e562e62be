//! All flags of kured, and their translation.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingOutcome {
    /// Dogwatch has a setting with the same meaning.
    Same,
    /// Dogwatch has a similar setting; the row says how it differs.
    Differs,
    /// Dogwatch has no such setting; the row says why, or what to use instead.
    NoEqual,
    /// The value is invalid, or kured has no such flag.
    NotUnderstood,
}

impl SettingOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            SettingOutcome::Same => "same",
            SettingOutcome::Differs => "differs",
            SettingOutcome::NoEqual => "no equal",
            SettingOutcome::NotUnderstood => "NOT UNDERSTOOD",
        }
    }
}

/// How kured parses a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KuredValueKind {
    /// `--flag` alone is true.
    Bool,
    One,
    /// Values between commas; repeatable.
    Slice,
    /// One value each; repeatable, and never read from the environment.
    Array,
}

#[derive(Debug, Clone, Copy)]
pub struct KuredFlag {
    /// Without the dashes.
    pub name: &'static str,
    pub(super) shape: KuredValueKind,
    pub outcome: SettingOutcome,
    /// The new setting, how it differs, or what to do instead.
    pub instead: &'static str,
    /// Whether its value must not be shown.
    pub(super) secret: bool,
}

const fn plain_flag(
    name: &'static str,
    shape: KuredValueKind,
    fate: SettingOutcome,
    instead: &'static str,
) -> KuredFlag {
    KuredFlag {
        name,
        shape,
        outcome: fate,
        instead,
        secret: false,
    }
}

const fn secret_flag(name: &'static str, instead: &'static str) -> KuredFlag {
    KuredFlag {
        secret: true,
        ..plain_flag(name, KuredValueKind::One, SettingOutcome::NoEqual, instead)
    }
}

const NO_NOTIFICATIONS: &str = "no messages are sent: each step is an Event, a Node condition and a metric; let your monitoring notify on those";
const NO_MESSAGE_TEMPLATES: &str =
    "no messages are sent, so they have no templates; Events say the same";

use KuredValueKind::{Array, Bool, One, Slice};
use SettingOutcome::{Differs, NoEqual, Same};

/// All flags of kured 1.23, in its own order.
pub const KURED_FLAGS: [KuredFlag; 43] = [
    plain_flag("node-id", One, Same, "--node-name, which the manifests set"),
    plain_flag(
        "force-reboot",
        Bool,
        Differs,
        "drain.onTimeout: force, where --drain-timeout ends the drain; kured also forces when a call fails, which here is retried until the timeout",
    ),
    plain_flag("metrics-host", One, Same, "--listen=HOST:PORT"),
    plain_flag(
        "metrics-port",
        One,
        Same,
        "--listen=HOST:PORT (default :9420); the metrics have other names: see docs/metrics.md",
    ),
    plain_flag(
        "drain-grace-period",
        One,
        NoEqual,
        "each pod has its own grace period, which is kured's default too",
    ),
    plain_flag(
        "drain-pod-selector",
        One,
        Differs,
        "drain.exclude with the opposite selector; the opposite of several requirements is no label selector",
    ),
    plain_flag(
        "skip-wait-for-delete-timeout",
        One,
        NoEqual,
        "a drain waits until each pod is gone; drain.timeout and drain.onTimeout say what happens to one that stays",
    ),
    plain_flag(
        "drain-delay",
        One,
        NoEqual,
        "the drain begins as soon as the node is cordoned, and takes in pods that appear during it",
    ),
    plain_flag(
        "drain-timeout",
        One,
        Differs,
        "drain.timeout; kured's 0 means no limit, and kured keeps the lock; here the limit is 1h: \
         then Dogwatch undoes the drain, releases the lock and tries again later",
    ),
    plain_flag(
        "reboot-delay",
        One,
        NoEqual,
        "the command follows the last check by at most 10s, so that what was checked still holds",
    ),
    plain_flag(
        "reboot-method",
        One,
        Differs,
        "--reboot-method; command is the default here too, in PID 1's namespaces; logind does the same without privileges",
    ),
    plain_flag(
        "period",
        One,
        Differs,
        "a file is noticed at once; a sentinel command is run each --sentinel-interval",
    ),
    plain_flag(
        "ds-namespace",
        One,
        NoEqual,
        "the lock is a Lease in Dogwatch's namespace",
    ),
    plain_flag(
        "ds-name",
        One,
        NoEqual,
        "the lock is a Lease in Dogwatch's namespace",
    ),
    plain_flag(
        "lock-annotation",
        One,
        NoEqual,
        "the lock is a Lease; kured's annotation is neither read nor written",
    ),
    plain_flag(
        "lock-ttl",
        One,
        NoEqual,
        "a lock never expires, because each expiry could let one more broken node begin; it is \
         freed when its Node no longer exists, or by `dogwatch unlock --force`",
    ),
    plain_flag(
        "lock-release-delay",
        One,
        NoEqual,
        "the lock is released when the node is back in service (return.gates), not after a time; a prometheus gate can \
         require more, like `time() - max(node_boot_time_seconds) < 1800` for half an hour between two boots",
    ),
    plain_flag(
        "prometheus-url",
        One,
        Same,
        "gates[].prometheus.url; a user and password in it become the coordinator's --prometheus-token-file and --prometheus-token-origin",
    ),
    plain_flag(
        "alert-filter-regexp",
        One,
        Same,
        "gates[].prometheus.alerts.ignore, or .only with --alert-filter-match-only",
    ),
    plain_flag(
        "alert-filter-match-only",
        Bool,
        Same,
        "gates[].prometheus.alerts.only",
    ),
    plain_flag(
        "alert-firing-only",
        Bool,
        Same,
        "gates[].prometheus.alerts.firingOnly",
    ),
    plain_flag(
        "reboot-sentinel",
        One,
        Differs,
        "--sentinel, by its path on the host; one that survives the reboot it caused does not cause another",
    ),
    plain_flag(
        "prefer-no-schedule-taint",
        One,
        NoEqual,
        "only the cordon keeps pods away; label dogwatch.dev/reboot=waiting is on Nodes that wait",
    ),
    plain_flag(
        "reboot-sentinel-command",
        One,
        Differs,
        "--sentinel-command, with a time limit; kured runs it each minute and takes every exit \
         code but 0 for \"no\"; here only 1 means \"no\", and any other code is reported as unknown. \
         It needs a privileged container with hostPID",
    ),
    plain_flag(
        "reboot-command",
        One,
        Differs,
        "--reboot-command; the default is the same. It needs a privileged container with hostPID, as the manifests have it",
    ),
    plain_flag(
        "concurrency",
        One,
        Differs,
        "maxUnavailable; nodes that are not Ready or cordoned by others count too, and control-plane nodes are a group of one of their own",
    ),
    plain_flag(
        "reboot-signal",
        One,
        NoEqual,
        "--reboot-method=signal always sends SIGRTMIN+5 (39), which is kured's default",
    ),
    secret_flag("slack-hook-url", NO_NOTIFICATIONS),
    plain_flag("slack-username", One, NoEqual, NO_NOTIFICATIONS),
    plain_flag("slack-channel", One, NoEqual, NO_NOTIFICATIONS),
    secret_flag("notify-url", NO_NOTIFICATIONS),
    plain_flag(
        "message-template-uncordon",
        One,
        NoEqual,
        NO_MESSAGE_TEMPLATES,
    ),
    plain_flag("message-template-drain", One, NoEqual, NO_MESSAGE_TEMPLATES),
    plain_flag(
        "message-template-reboot",
        One,
        NoEqual,
        NO_MESSAGE_TEMPLATES,
    ),
    plain_flag(
        "blocking-pod-selector",
        Array,
        Same,
        "gates[].pods.selector, one gate each; checked again right before the reboot",
    ),
    plain_flag(
        "reboot-days",
        Slice,
        Same,
        "windows[].days; checked again right before the reboot, and a window that closes undoes a drain",
    ),
    plain_flag("start-time", One, Same, "windows[].start"),
    plain_flag(
        "end-time",
        One,
        Differs,
        "windows[].end; a reboot whose drain.timeout would pass it does not begin",
    ),
    plain_flag("time-zone", One, Same, "windows[].timeZone"),
    plain_flag(
        "annotate-nodes",
        Bool,
        NoEqual,
        "always: annotations dogwatch.dev/reboot and dogwatch.dev/last-reboot, and Node \
         conditions; programs that read weave.works/… must read those",
    ),
    plain_flag("log-format", One, Same, "--log-format"),
    plain_flag(
        "pre-reboot-node-labels",
        Slice,
        NoEqual,
        "Node conditions show the progress of a reboot (DrainInProgress, MaintenanceInProgress); \
         Dogwatch sets none of your labels",
    ),
    plain_flag(
        "post-reboot-node-labels",
        Slice,
        NoEqual,
        "condition MaintenanceInProgress becomes False with the outcome as its reason; Dogwatch \
         sets none of your labels",
    ),
];
