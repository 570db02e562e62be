//! The annotations that Dogwatch writes or reads.

/// Node: the record of the planned reboot under way (JSON). Source: specification §2.5.
pub const REBOOT: &str = "dogwatch.dev/reboot";
/// Node: a request to reboot it (JSON), removed once served. Source: specification §2.1.
pub const REBOOT_REQUESTED: &str = "dogwatch.dev/reboot-requested";
/// Node: the last NodeReboot that ended while its request might still have been on its way. The write
/// makes that request fail. Source: specification §10.1.
pub const REQUEST_WITHDRAWN: &str = "dogwatch.dev/request-withdrawn";
/// Node: about when its reboot begins, while that is near; the controller's estimate. Source:
/// specification §10.6.
pub const ESTIMATED_START: &str = "dogwatch.dev/estimated-start";
/// Node: a person's request to abort the reboot under way (JSON), removed once served. Source:
/// specification §2.4.
pub const ABORT_REQUESTED: &str = "dogwatch.dev/abort-requested";
/// Node: the lock API has taken it out of service (JSON). Source: specification §2.7.
pub const API_LOCK: &str = "dogwatch.dev/api-lock";
/// RebootPolicy: the time of the halt that a person ended; a later halt has another time. Source:
/// specification §10.4.
pub const ROLLOUT_RESUMED: &str = "dogwatch.dev/rollout-resumed";
/// Node: how the last planned reboot ended (JSON). Source: specification §2.5.
pub const LAST_REBOOT: &str = "dogwatch.dev/last-reboot";
/// Node: keep our cordon after the reboot. Source: specification §2.5.
pub const KEEP_CORDONED: &str = "dogwatch.dev/keep-cordoned";
/// Node: NVSentinel has quarantined it. Source: NVSentinel, ADR-044: an uncordon by anybody cancels
/// the quarantine.
pub const NVSENTINEL_QUARANTINE: &str = "quarantineHealthEvent";
/// Node, and its BareMetalHost: this reboot was handed over to the power controller (JSON). Source:
/// specification §2.4.
pub const ESCALATED: &str = "dogwatch.dev/escalated";
/// BareMetalHost: the Node that it carries. Source: specification §4.1.
pub const NODE: &str = "dogwatch.dev/node";
/// Node or BareMetalHost: for each schedule the newest occurrence that requested a reboot (JSON).
/// It outlives the request, so that no occurrence requests a reboot twice. Source: specification
/// §5.
pub const SCHEDULED: &str = "dogwatch.dev/scheduled";
/// NodeReboot: the appointed time of the RebootSchedule's occurrence that made it.
pub const SCHEDULED_FOR: &str = "dogwatch.dev/scheduled-for";
/// BareMetalHost: reboot it once. Source: metal3; specification §3.2.
pub const METAL3_REBOOT: &str = "reboot.metal3.io";
/// Lease: the holder's record (JSON), owned by the holder's own field manager.
pub const HOLDER: &str = "dogwatch.dev/holder";
/// Lease: the waiting nodes that the last holder named, first in line first, separated by commas.
pub const NEXT_WAITERS: &str = "dogwatch.dev/next";
/// Lease: how many holders in a row gave it back because too many nodes were unavailable already; a
/// number, absent when the last holder released it normally. All waiting nodes back off by it
/// together.
pub const YIELD_COUNT: &str = "dogwatch.dev/given-back";
/// Lease of a replica of the lock API: the first waiting hosts, by group (JSON), so that a holder
/// can name the next in line when it releases the lock. Source: specification §2.7.
pub const WAITING: &str = "dogwatch.dev/waiting";
/// The same Lease: the hosts that wait longest there, each with the reason (JSON), for people.
pub const WAITING_HOSTS: &str = "dogwatch.dev/waiting-hosts";
/// Pod: it mirrors a static pod. Source: Kubernetes.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";
/// Machine, or Node without a Machine API: it has to be remediated. Source: metal3's remediation
/// design; OpenShift's and metal3's health checks; specification §4.1.
pub const EXTERNAL_REMEDIATION: &str = "host.metal3.io/external-remediation";
/// Machine: the BareMetalHost that carries it, `namespace/name`. Source: metal3.
pub const BARE_METAL_HOST: &str = "metal3.io/BareMetalHost";
/// BareMetalHost: the remediator holds it off (JSON). Source: metal3's remediation design;
/// specification §4.1.
pub const MACHINE_REMEDIATION_KEY: &str = "reboot.metal3.io/machine-remediation";
/// BareMetalHost: prefix of the key of a `PowerRemediation`, whose UID follows. Source:
/// specification §4.2.
pub const POWER_REMEDIATION_PREFIX: &str = "reboot.metal3.io/power-remediation-";
/// BareMetalHost: prefix of the key of a `NodeReboot` with method `PowerCycle`, whose UID follows.
/// Source: specification §10.1.
pub const NODE_REBOOT_PREFIX: &str = "reboot.metal3.io/node-reboot-";
/// BareMetalHost: where versions before 0.2 kept labels, annotations, taints and cordon of a
/// deleted Node (JSON). It is taken over, or removed.
pub const NODE_BACKUP: &str = "dogwatch.dev/node-backup";
/// BareMetalHost: its newest remediation, with the times of its steps (JSON).
pub const REMEDIATION: &str = "dogwatch.dev/remediation";
/// BareMetalHost: a person has confirmed that it is off (JSON). Source: specification §4.2.
pub const CONFIRMED_OFF: &str = "dogwatch.dev/confirmed-off";
/// Node: its machine is being remediated (JSON).
pub const FENCING: &str = "dogwatch.dev/fencing";
/// `PowerRemediation`: the Node that it is for. Source: medik8s.
pub const NHC_NODE_NAME: &str = "remediation.medik8s.io/node-name";
/// `PowerRemediation`: its health check has given up on it, so it must stop. Source: medik8s.
pub const NHC_TIMED_OUT: &str = "remediation.medik8s.io/nhc-timed-out";
/// Machine: health checks leave it alone. Source: Cluster API.
pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
