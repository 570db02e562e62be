//! Annotations.

/// On a Node: the record of the planned reboot under way (JSON). Source: specification §2.5.
pub const REBOOT: &str = "dogwatch.dev/reboot";
/// On a Node: a request to reboot it (JSON), removed once served. Source: specification §2.1.
pub const REBOOT_REQUESTED: &str = "dogwatch.dev/reboot-requested";
/// On a Node: a person wants the reboot under way stopped (JSON), removed once served.
/// Source: specification §2.4.
pub const ABORT_REQUESTED: &str = "dogwatch.dev/abort-requested";
/// On a Node: the lock API has taken it out of service (JSON). Source: specification §2.7.
pub const API_LOCK: &str = "dogwatch.dev/api-lock";
/// On a Node: how the last planned reboot ended (JSON). Source: specification §2.5.
pub const LAST_REBOOT: &str = "dogwatch.dev/last-reboot";
/// On a Node: leave our cordon in place after the reboot. Source: specification §2.5.
pub const KEEP_CORDONED: &str = "dogwatch.dev/keep-cordoned";
/// On a Node, and as a mark on its BareMetalHost: this reboot was handed over to the power
/// controller (JSON). Source: specification §2.4.
pub const ESCALATED: &str = "dogwatch.dev/escalated";
/// On a BareMetalHost: the Node that it carries. Source: specification §4.1.
pub const NODE: &str = "dogwatch.dev/node";
/// On a Node or a BareMetalHost: by schedule the newest occurrence that has asked it to reboot (JSON).
/// It outlives the request, so that nobody is asked twice. Source: specification §5.
pub const SCHEDULED: &str = "dogwatch.dev/scheduled";
/// On a BareMetalHost: reboot it, once. Source: metal3; specification §3.2.
pub const METAL3_REBOOT: &str = "reboot.metal3.io";
/// On a Lease: the holder's record (JSON), owned by the holder's own field manager.
pub const HOLDER: &str = "dogwatch.dev/holder";
/// On a Lease: whom the last holder called, first one first, separated by commas.
pub const NEXT: &str = "dogwatch.dev/next";
/// On a Lease: how many winners in a row gave it back because too many nodes were out already; a
/// number, absent when the last holder was done. Everybody backs off by it together.
pub const GIVEN_BACK: &str = "dogwatch.dev/given-back";
/// On the Lease of a lock API's replica: the first of those who wait there, by group (JSON), so that
/// the one who leaves finds them. Source: specification §2.7.
pub const WAITING: &str = "dogwatch.dev/waiting";
/// On the same Lease: the hosts that wait longest there, each with the reason (JSON), for people.
pub const WAITING_HOSTS: &str = "dogwatch.dev/waiting-hosts";
/// On a Pod: it is the shadow of a static pod. Source: Kubernetes.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";
/// On a Machine, or on a Node where there is no Machine API: it has to be fenced. Source: metal3's
/// remediation design; OpenShift's and metal3's health checks; specification §4.1.
pub const EXTERNAL_REMEDIATION: &str = "host.metal3.io/external-remediation";
/// On a Machine: the BareMetalHost that carries it, `namespace/name`. Source: metal3.
pub const BARE_METAL_HOST: &str = "metal3.io/BareMetalHost";
/// On a BareMetalHost: the remediator holds it off (JSON). Source: metal3's remediation design;
/// specification §4.1.
pub const MACHINE_REMEDIATION_KEY: &str = "reboot.metal3.io/machine-remediation";
/// On a BareMetalHost: what the key of a `PowerRemediation` begins with; its UID follows.
/// Source: specification §4.2.
pub const POWER_REMEDIATION_PREFIX: &str = "reboot.metal3.io/power-remediation-";
/// On a BareMetalHost: where versions before 0.2 kept labels, annotations, taints and cordon of the Node that was
/// deleted (JSON). It is taken over, or removed.
pub const NODE_BACKUP: &str = "dogwatch.dev/node-backup";
/// On a BareMetalHost: its newest remediation, with the times of its steps (JSON).
pub const REMEDIATION: &str = "dogwatch.dev/remediation";
/// On a BareMetalHost: a person has made sure that it is off (JSON). Source: specification §4.2.
pub const CONFIRMED_OFF: &str = "dogwatch.dev/confirmed-off";
/// On a Node: the remediator has its machine in hand (JSON).
pub const FENCING: &str = "dogwatch.dev/fencing";
/// On a `PowerRemediation`: the Node that it is for. Source: medik8s.
pub const NHC_NODE_NAME: &str = "remediation.medik8s.io/node-name";
/// On a `PowerRemediation`: its health check has given up on it; stop. Source: medik8s.
pub const NHC_TIMED_OUT: &str = "remediation.medik8s.io/nhc-timed-out";
/// On a Machine: health checks leave it alone. Source: Cluster API.
pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
