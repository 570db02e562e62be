//! Real counterparts for tests, on loopback: a Kubernetes control plane (etcd, kube-apiserver,
//! kubectl and optionally kube-controller-manager, but no kubelet and no scheduler: a test plays
//! those), helm ([`helm`]), Prometheus ([`prometheus`]), a Redfish emulator ([`sushy`]), a BMC that speaks IPMI
//! ([`ipmi_sim`]), a virtual machine behind one ([`vm`]), and a browser ([`browser`]). Also the CRDs of other
//! projects ([`fixtures`]).
//!
//! It may touch: processes, loopback ports, one temporary folder for each control plane, the
//! project's cache folder (where the programs are built once), and the folder named by
//! `KUBEBUILDER_ASSETS`.
//!
//! It promises:
//! - only Go has to be installed beforehand, and not even that if `KUBEBUILDER_ASSETS` has the
//!   programs;
//! - all processes and files end with the process that started them, however that one ends, `kill
//!   -9` included;
//! - the requests that the API server received can be read from its own audit log.

mod audit;
pub mod bench;
mod binaries;
pub mod browser;
mod builder;
mod cache;
mod cached_artifact;
mod call_times;
mod control_plane;
mod error;
pub mod fixtures;
mod flags;
mod go_program;
pub mod helm;
mod identity;
pub mod ipmi_sim;
mod kubectl;
mod kubernetes_release;
pub mod module_crds;
pub mod monitoring;
mod ports;
mod process_group;
pub mod prometheus;
mod readiness;
pub mod real_node;
mod rights;
mod server_process;
pub mod sushy;
pub mod vm;

use tokio::sync::OnceCell;

pub use audit::{AuditEntry, AuditMark};
pub use binaries::{ControlPlaneBinaries, ControlPlaneProgram};
pub use builder::{ControlPlaneBuilder, WORKLOAD_CONTROLLERS};
pub use cache::cache_dir;
pub use call_times::CallTimes;
pub use control_plane::ControlPlane;
pub use error::Error;
pub use go_program::find_go;
pub use kubectl::TokenPodRef;
pub use kubernetes_release::{KUBERNETES_VARIABLE, KubernetesRelease};
pub use ports::ClosedPort;
pub use rights::{UsedRights, rights_in_manifests, rights_used};

static SHARED_CONTROL_PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

/// The control plane that all tests of this process share; the first call starts it.
///
/// Do not stop or freeze its API: start your own control plane for that.
///
/// # Panics
/// When it cannot be started; the message says what is missing.
pub async fn shared_control_plane() -> &'static ControlPlane {
    match SHARED_CONTROL_PLANE
        .get_or_try_init(ControlPlane::start)
        .await
    {
        Ok(control_plane) => control_plane,
        Err(error) => panic!(
            "the real control plane did not start: {}",
            error::error_chain(&error)
        ),
    }
}
