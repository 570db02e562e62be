//! The reconciler's calls to the API server. Tests have a store of their own that can lose answers.

use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::power::{HostName, HostSnapshot, KubeletLeases, StatusWrite};
use futures::future::BoxFuture;

use super::bmc_connections::BmcSecretState;

/// Why a write of a host did nothing, or may have done nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostStoreError {
    /// The host has changed since it was read, as the API server or a webhook says.
    #[error("{0}")]
    Changed(String),
    /// The write succeeded, but the written fields are missing: the CRD does not know them.
    #[error("{0}")]
    Pruned(String),
    /// No conclusive answer, or a refusal.
    #[error("{0}")]
    Failed(String),
}

pub(super) trait HostStore: Send + Sync + 'static {
    /// Writes the status on the version that was read. Returns the host as it is stored then.
    fn write_status<'a>(
        &'a self,
        host: &'a HostSnapshot,
        write: &'a StatusWrite,
        conditions: &'a [ConditionWrite],
        now: Now,
    ) -> BoxFuture<'a, Result<HostSnapshot, HostStoreError>>;

    /// Removes annotations on the version that was read. Returns the host as it is stored then.
    fn remove_annotations<'a>(
        &'a self,
        host: &'a HostSnapshot,
        names: &'a [String],
    ) -> BoxFuture<'a, Result<HostSnapshot, HostStoreError>>;

    /// `None`: there is no such host. The error is for the log.
    fn read_host<'a>(
        &'a self,
        name: &'a HostName,
    ) -> BoxFuture<'a, Result<Option<HostSnapshot>, String>>;

    fn read_secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, BmcSecretState>;

    /// Reads the kubelet Leases of the Nodes that the host carries. The error is for the log.
    fn read_signs_of_life<'a>(
        &'a self,
        host: &'a Arc<HostSnapshot>,
    ) -> BoxFuture<'a, Result<KubeletLeases, String>>;

    /// Creates an Event about the host. The error is for the log.
    fn report_event<'a>(
        &'a self,
        host: &'a HostSnapshot,
        event: &'a DecisionEvent,
        now: Now,
    ) -> BoxFuture<'a, Result<(), String>>;
}
