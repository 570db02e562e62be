//! Watches hosts on every replica, leader or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_bmc::{Credentials, Password};
use dogwatch_core::Now;
use dogwatch_core::condition::ConditionWrite;
use dogwatch_core::decision::DecisionEvent;
use dogwatch_core::power::{HostName, HostSnapshot, KubeletLeases, OwnerRules, StatusWrite};
use dogwatch_k8s::error::error_chain;
use dogwatch_k8s::host::{self, BmcSecretError, HostClient, HostWatch, HostWatchView};
use dogwatch_runtime::jitter::JitterSource;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};

use super::bmc_connections::BmcSecretState;
use super::host_reconciler::HostInput;
use super::host_store::{HostStore, HostStoreError};
use crate::ControllerContext;

/// The changes since the last time.
#[derive(Debug, Clone, Default)]
pub(super) struct HostChanges {
    /// Hosts by name; `None`: deleted.
    pub(super) hosts: Vec<(HostName, Option<HostInput>)>,
    /// The first lists have arrived.
    pub(super) is_in_sync: bool,
    /// Why some objects cannot be watched now.
    pub(super) trouble: Option<String>,
    /// Leases with the name of metal3's leader Lease in namespaces where Dogwatch does not trust
    /// it: namespace, and holder.
    pub(super) not_believed: BTreeMap<String, String>,
}

/// An endless stream, with an item only after a change.
pub(super) fn watch_hosts(
    context: &ControllerContext,
    owners: OwnerRules,
) -> BoxStream<'static, HostChanges> {
    let jitter = JitterSource::of_process(&context.process);
    let watch = HostWatch::new(context.client.clone(), owners, move || {
        jitter.next_fraction()
    });
    let news = stream::unfold(watch, async |mut watch| {
        let names = watch.wait_for_changes().await;
        Some((host_changes(watch.current_view(), names), watch))
    });
    news.boxed()
}

fn host_changes(view: &HostWatchView, names: BTreeSet<HostName>) -> HostChanges {
    let input = |name: &HostName| {
        let host = view.hosts.get(name)?;
        Some(HostInput {
            host: Arc::clone(host),
            owner: view.owner_of(host),
            shared_with: view.hosts_sharing_bmc(name),
            seniority: view.seniority_of(host),
        })
    };
    let hosts = names.into_iter().map(|name| {
        let input = input(&name);
        (name, input)
    });
    let trouble = view.errors.iter();
    let trouble: Vec<String> = trouble
        .map(|(what, why)| format!("{what}: {why}"))
        .collect();
    HostChanges {
        hosts: hosts.collect(),
        is_in_sync: view.synced,
        trouble: (!trouble.is_empty()).then(|| trouble.join("; ")),
        not_believed: view.untrusted_leaders(),
    }
}

impl HostStore for HostClient {
    fn write_status<'a>(
        &'a self,
        host: &'a HostSnapshot,
        write: &'a StatusWrite,
        conditions: &'a [ConditionWrite],
        _: Now,
    ) -> BoxFuture<'a, Result<HostSnapshot, HostStoreError>> {
        let write = HostClient::write_status(self, host, write, conditions);
        write
            .map(|written| written.map_err(HostStoreError::from))
            .boxed()
    }

    fn remove_annotations<'a>(
        &'a self,
        host: &'a HostSnapshot,
        names: &'a [String],
    ) -> BoxFuture<'a, Result<HostSnapshot, HostStoreError>> {
        let removal = HostClient::remove_annotations(self, host, names);
        removal
            .map(|removed| removed.map_err(HostStoreError::from))
            .boxed()
    }

    fn read_host<'a>(
        &'a self,
        name: &'a HostName,
    ) -> BoxFuture<'a, Result<Option<HostSnapshot>, String>> {
        let read = HostClient::read_host(self, name);
        read.map(|read| read.map_err(|error| error.error_chain()))
            .boxed()
    }

    fn read_secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, BmcSecretState> {
        let secret = HostClient::read_secret(self, namespace, name);
        secret.map(BmcSecretState::from).boxed()
    }

    fn read_signs_of_life<'a>(
        &'a self,
        host: &'a Arc<HostSnapshot>,
    ) -> BoxFuture<'a, Result<KubeletLeases, String>> {
        let read = HostClient::read_signs_of_life(self, host);
        read.map(|read| read.map_err(|error| error.error_chain()))
            .boxed()
    }

    fn report_event<'a>(
        &'a self,
        host: &'a HostSnapshot,
        event: &'a DecisionEvent,
        now: Now,
    ) -> BoxFuture<'a, Result<(), String>> {
        let said = HostClient::write_event(self, host, event, now);
        said.map(|said| said.map_err(|error| error.error_chain()))
            .boxed()
    }
}

impl From<host::HostWriteError> for HostStoreError {
    fn from(error: host::HostWriteError) -> Self {
        match error {
            host::HostWriteError::Changed { .. } => HostStoreError::Changed(error_chain(&error)),
            host::HostWriteError::Pruned(_) => HostStoreError::Pruned(error.to_string()),
            host::HostWriteError::Api(error) => HostStoreError::Failed(error_chain(&error)),
        }
    }
}

impl From<Result<host::BmcSecret, BmcSecretError>> for BmcSecretState {
    fn from(read: Result<host::BmcSecret, BmcSecretError>) -> Self {
        match read {
            Ok(secret) => BmcSecretState::Found {
                version: secret.version,
                credentials: Credentials {
                    username: secret.username,
                    password: Password::new(secret.password),
                    ca: secret.ca,
                },
            },
            Err(BmcSecretError::Missing { reason, message }) => {
                BmcSecretState::Missing { reason, message }
            }
            Err(BmcSecretError::Transient(_)) => BmcSecretState::NotRead,
        }
    }
}
