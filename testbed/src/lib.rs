//! A real Kubernetes control plane on loopback, for tests: etcd, kube-apiserver, kubectl and, where wanted,
//! kube-controller-manager. There is no kubelet and no scheduler: a test plays those. And a real Prometheus ([`prometheus`]),
//! a Redfish emulator ([`sushy`]), a BMC that speaks IPMI ([`ipmi_sim`]), and a virtual machine behind one ([`vm`]).
//!
//! It may touch: processes, loopback ports, one temporary folder for each control plane, the project's cache folder
//! (where the programs are built once), and the folder named by `KUBEBUILDER_ASSETS`.
//!
//! It promises:
//! - nothing has to be installed beforehand but Go, and not even that where `KUBEBUILDER_ASSETS` has the programs;
//! - every process and every file of theirs goes with the process that started it, however that one ends,
//!   `kill -9` included;
//! - what the API server was really asked can be read from its own audit log.

mod audit;
mod binaries;
mod brood;
mod builder;
mod cache;
mod control_plane;
mod error;
pub mod fixtures;
mod flags;
mod identity;
pub mod ipmi_sim;
mod kubectl;
mod once;
mod ports;
pub mod prometheus;
mod readiness;
mod recipe;
mod rights;
mod service;
pub mod sushy;
pub mod vm;

use tokio::sync::OnceCell;

pub use audit::{AuditEntry, AuditMark};
pub use binaries::{Binaries, Program, kubernetes_version};
pub use builder::{Builder, WORKLOAD_CONTROLLERS};
pub use cache::cache_dir;
pub use control_plane::ControlPlane;
pub use error::Error;
pub use kubectl::PodRef;
pub use ports::ClosedPort;
pub use recipe::find_go;
pub use rights::{UsedRights, rights_in, rights_used};

static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();

/// The control plane that all tests of this process share, started by the first that asks.
///
/// Do not stop or freeze the API of a shared one: start your own for that.
///
/// # Panics
/// When it cannot be started; the message says what is missing.
pub async fn shared() -> &'static ControlPlane {
    match SHARED.get_or_try_init(ControlPlane::start).await {
        Ok(control_plane) => control_plane,
        Err(error) => panic!(
            "the real control plane did not start: {}",
            error::chain(&error)
        ),
    }
}
