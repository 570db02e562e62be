//! What a keeper asks of the API server. Tests have one of their own that can lose answers.

use std::sync::Arc;

use dogwatch_core::Now;
use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::power::{Host, HostName, SignsOfLife, StatusWrite};
use futures::future::BoxFuture;

use super::links::Secret;

/// Why a write of a host did nothing, or may have done nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WriteError {
    /// The host is not as it was seen any more.
    #[error("it has changed since it was seen")]
    Changed,
    /// It was done, and what was written is not there.
    #[error("{0}")]
    Pruned(String),
    /// There was no answer that tells, or a refusal.
    #[error("{0}")]
    Failed(String),
}

/// Hosts, their Secrets, and Events about them.
pub(super) trait HostStore: Send + Sync + 'static {
    /// Writes the status on the version that was seen, and shows the host as it stands then.
    fn write_status<'a>(
        &'a self,
        host: &'a Host,
        write: &'a StatusWrite,
        conditions: &'a [Write],
        now: Now,
    ) -> BoxFuture<'a, Result<Host, WriteError>>;

    /// Removes annotations on the version that was seen, and shows the host as it stands then.
    fn remove_annotations<'a>(
        &'a self,
        host: &'a Host,
        names: &'a [String],
    ) -> BoxFuture<'a, Result<Host, WriteError>>;

    /// Reads it afresh. `None`: there is no such host. The error is for the log.
    fn read<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, Result<Option<Host>, String>>;

    /// Reads a Secret by name.
    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Secret>;

    /// Reads the Leases of the Nodes that the host carries. The error is for the log.
    fn signs_of_life<'a>(
        &'a self,
        host: &'a Arc<Host>,
    ) -> BoxFuture<'a, Result<SignsOfLife, String>>;

    /// Says an Event about the host. The error is for the log.
    fn say<'a>(
        &'a self,
        host: &'a Host,
        event: &'a Event,
        now: Now,
    ) -> BoxFuture<'a, Result<(), String>>;
}
