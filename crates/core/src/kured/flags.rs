//! Every flag of kured, and what becomes of it.

/// What becomes of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It means the same.
    Same,
    /// It is taken over, and differs in what the row says.
    Differs,
    /// There is nothing like it; the row says why, or what does it instead.
    NoEqual,
    /// It cannot be read, or kured has no such flag.
    NotUnderstood,
}

impl Fate {
    /// In a word or two.
    pub fn words(self) -> &'static str {
        match self {
            Fate::Same => "same",
            Fate::Differs => "differs",
            Fate::NoEqual => "no equal",
            Fate::NotUnderstood => "NOT UNDERSTOOD",
        }
    }
}

/// How kured reads a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `--flag` alone is true.
    Bool,
    /// One value.
    One,
    /// Values between commas; repeatable.
    Slice,
    /// One value each; repeatable, and never read from the environment.
    Array,
}

/// One flag of kured.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    pub(super) shape: Shape,
    /// What becomes of it.
    pub fate: Fate,
    /// What it becomes, how that differs, or what to do instead.
    pub instead: &'static str,
    /// Its value is not to be shown.
    pub(super) secret: bool,
}

const fn flag(name: &'static str, shape: Shape, fate: Fate, instead: &'static str) -> Flag {
    Flag {
        name,
        shape,
        fate,
        instead,
        secret: false,
    }
}

const fn secret(name: &'static str, instead: &'static str) -> Flag {
    Flag {
        secret: true,
        ..flag(name, Shape::One, Fate::NoEqual, instead)
    }
}

const NOTIFY: &str = "no messages are sent: each step is an Event, a Node condition and a metric; let your monitoring notify on those";
const TEMPLATE: &str = "no messages are sent, so they have no templates; Events say the same";

use Fate::{Differs, NoEqual, Same};
use Shape::{Array, Bool, One, Slice};

/// All flags of kured 1.23, in its own order.
pub const FLAGS: [Flag; 43] = [
    flag("node-id", One, Same, "--node-name, which the manifests set"),
    flag(
        "force-reboot",
        Bool,
        Differs,
        "drain.onTimeout: force, where --drain-timeout ends the drain; kured also forces when a call fails, which here is retried until the timeout",
    ),
    flag("metrics-host", One, Same, "--listen=HOST:PORT"),
    flag(
        "metrics-port",
        One,
        Same,
        "--listen=HOST:PORT (default :9420); the metrics have other names, see docs/metrics.md",
    ),
    flag(
        "drain-grace-period",
        One,
        NoEqual,
        "every pod has its own grace, which is kured's default too",
    ),
    flag(
        "drain-pod-selector",
        One,
        Differs,
        "drain.exclude with the opposite selector; the opposite of several requirements is no label selector",
    ),
    flag(
        "skip-wait-for-delete-timeout",
        One,
        NoEqual,
        "a drain waits until each pod is gone; drain.timeout and drain.onTimeout say what happens to one that stays",
    ),
    flag(
        "drain-delay",
        One,
        NoEqual,
        "the drain begins as soon as the node is cordoned, and takes in pods that appear during it",
    ),
    flag(
        "drain-timeout",
        One,
        Differs,
        "drain.timeout; kured's 0 is for ever with the lock held, here it is 1h, then undone, the lock released and tried again later",
    ),
    flag(
        "reboot-delay",
        One,
        NoEqual,
        "the command follows the last check by at most 10s, so that what was checked still holds",
    ),
    flag(
        "reboot-method",
        One,
        Differs,
        "--reboot-method; command is the default here too, in PID 1's namespaces; logind does the same without privileges",
    ),
    flag(
        "period",
        One,
        Differs,
        "a file is noticed at once; a sentinel command is run each --sentinel-interval",
    ),
    flag(
        "ds-namespace",
        One,
        NoEqual,
        "the lock is a Lease in Dogwatch's namespace",
    ),
    flag(
        "ds-name",
        One,
        NoEqual,
        "the lock is a Lease in Dogwatch's namespace",
    ),
    flag(
        "lock-annotation",
        One,
        NoEqual,
        "the lock is a Lease; kured's annotation is neither read nor written",
    ),
    flag(
        "lock-ttl",
        One,
        NoEqual,
        "a lock is never freed by a clock, or each expiry lets one more broken node through: it is broken when its Node is gone, or by `dogwatch unlock --force`",
    ),
    flag(
        "lock-release-delay",
        One,
        NoEqual,
        "the lock goes when the node is really back (return.gates), not after a time; a prometheus gate can ask for more, like `time() - max(node_boot_time_seconds) < 1800` for half an hour between two boots",
    ),
    flag(
        "prometheus-url",
        One,
        Same,
        "gates[].prometheus.url; a user and password in it become the coordinator's --prometheus-token-file and --prometheus-token-origin",
    ),
    flag(
        "alert-filter-regexp",
        One,
        Same,
        "gates[].prometheus.alerts.ignore, or .only with --alert-filter-match-only",
    ),
    flag(
        "alert-filter-match-only",
        Bool,
        Same,
        "gates[].prometheus.alerts.only",
    ),
    flag(
        "alert-firing-only",
        Bool,
        Same,
        "gates[].prometheus.alerts.firingOnly",
    ),
    flag(
        "reboot-sentinel",
        One,
        Differs,
        "--sentinel, by its path on the host; one that survives the reboot it caused does not cause another",
    ),
    flag(
        "prefer-no-schedule-taint",
        One,
        NoEqual,
        "only the cordon keeps pods away; label dogwatch.dev/reboot=waiting is on Nodes that wait",
    ),
    flag(
        "reboot-sentinel-command",
        One,
        Differs,
        "--sentinel-command, with a time limit; kured runs it each minute, and takes every exit code but 0 for no: here only 1 is no, the rest is unknown and reported. Needs a privileged container with hostPID",
    ),
    flag(
        "reboot-command",
        One,
        Differs,
        "--reboot-command; the default is the same. It needs a privileged container with hostPID, as the manifests have it",
    ),
    flag(
        "concurrency",
        One,
        Differs,
        "maxUnavailable; nodes that are not Ready or cordoned by others count too, and control-plane nodes are a group of one of their own",
    ),
    flag(
        "reboot-signal",
        One,
        NoEqual,
        "--reboot-method=signal always sends SIGRTMIN+5 (39), which is kured's default",
    ),
    secret("slack-hook-url", NOTIFY),
    flag("slack-username", One, NoEqual, NOTIFY),
    flag("slack-channel", One, NoEqual, NOTIFY),
    secret("notify-url", NOTIFY),
    flag("message-template-uncordon", One, NoEqual, TEMPLATE),
    flag("message-template-drain", One, NoEqual, TEMPLATE),
    flag("message-template-reboot", One, NoEqual, TEMPLATE),
    flag(
        "blocking-pod-selector",
        Array,
        Same,
        "gates[].pods.selector, one gate each; checked again right before the reboot",
    ),
    flag(
        "reboot-days",
        Slice,
        Same,
        "windows[].days; checked again right before the reboot, and a window that closes undoes a drain",
    ),
    flag("start-time", One, Same, "windows[].start"),
    flag(
        "end-time",
        One,
        Differs,
        "windows[].end; a reboot whose drain.timeout would pass it does not begin",
    ),
    flag("time-zone", One, Same, "windows[].timeZone"),
    flag(
        "annotate-nodes",
        Bool,
        NoEqual,
        "always: annotations dogwatch.dev/reboot and dogwatch.dev/last-reboot, and Node conditions; whoever reads weave.works/… has to read those",
    ),
    flag("log-format", One, Same, "--log-format"),
    flag(
        "pre-reboot-node-labels",
        Slice,
        NoEqual,
        "Node conditions say where a reboot stands (DrainInProgress, MaintenanceInProgress); no labels of yours are set",
    ),
    flag(
        "post-reboot-node-labels",
        Slice,
        NoEqual,
        "condition MaintenanceInProgress turns False with the outcome as reason; no labels of yours are set",
    ),
];
