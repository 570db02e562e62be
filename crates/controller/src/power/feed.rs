//! What is seen of hosts, all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dogwatch_bmc::{Credentials, Password};
use dogwatch_core::Now;
use dogwatch_core::condition::Write;
use dogwatch_core::decision::Event;
use dogwatch_core::power::{Host, HostName, OwnerRules, SignsOfLife, StatusWrite};
use dogwatch_k8s::error::in_words;
use dogwatch_k8s::host::{self, HostClient, HostView, HostWatch, SecretTrouble};
use dogwatch_process::jitter::Jitter;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};

use super::keeper::Input;
use super::links::Secret;
use super::store::{HostStore, WriteError};
use crate::Context;

/// What is another since the last time.
#[derive(Debug, Clone, Default)]
pub(super) struct News {
    /// Hosts, by name; `None`: it is gone.
    pub(super) hosts: Vec<(HostName, Option<Input>)>,
    /// It is known how things stand.
    pub(super) is_in_sync: bool,
    /// What cannot be seen now.
    pub(super) trouble: Option<String>,
    /// Leases of metal3's leaders' name where none is believed: namespace, and who holds it.
    pub(super) not_believed: BTreeMap<String, String>,
}

/// News for ever, and none without a change.
pub(super) fn watch(context: &Context, owners: OwnerRules) -> BoxStream<'static, News> {
    let jitter = Jitter::of(&context.process);
    let watch = HostWatch::new(context.client.clone(), owners, move || jitter.draw());
    let news = stream::unfold(watch, async |mut watch| {
        let names = watch.changed().await;
        Some((news(watch.view(), names), watch))
    });
    news.boxed()
}

fn news(view: &HostView, names: BTreeSet<HostName>) -> News {
    let input = |name: &HostName| {
        let host = view.hosts.get(name)?;
        Some(Input {
            host: Arc::clone(host),
            owner: view.owner(host),
            shared_with: view.shared_with(name),
            seniority: view.seniority(host),
        })
    };
    let hosts = names.into_iter().map(|name| {
        let input = input(&name);
        (name, input)
    });
    let trouble = view.trouble.iter();
    let trouble: Vec<String> = trouble
        .map(|(what, why)| format!("{what}: {why}"))
        .collect();
    News {
        hosts: hosts.collect(),
        is_in_sync: view.synced,
        trouble: (!trouble.is_empty()).then(|| trouble.join("; ")),
        not_believed: view.leaders_not_believed(),
    }
}

impl HostStore for HostClient {
    fn write_status<'a>(
        &'a self,
        host: &'a Host,
        write: &'a StatusWrite,
        conditions: &'a [Write],
        _: Now,
    ) -> BoxFuture<'a, Result<Host, WriteError>> {
        let write = HostClient::write_status(self, host, write, conditions);
        write
            .map(|written| written.map_err(WriteError::from))
            .boxed()
    }

    fn remove_annotations<'a>(
        &'a self,
        host: &'a Host,
        names: &'a [String],
    ) -> BoxFuture<'a, Result<Host, WriteError>> {
        let removal = HostClient::remove_annotations(self, host, names);
        removal
            .map(|removed| removed.map_err(WriteError::from))
            .boxed()
    }

    fn read<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, Result<Option<Host>, String>> {
        let read = HostClient::read(self, name);
        read.map(|read| read.map_err(|error| error.in_words()))
            .boxed()
    }

    fn secret<'a>(&'a self, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Secret> {
        let secret = HostClient::secret(self, namespace, name);
        secret.map(Secret::from).boxed()
    }

    fn signs_of_life<'a>(
        &'a self,
        host: &'a Arc<Host>,
    ) -> BoxFuture<'a, Result<SignsOfLife, String>> {
        let read = HostClient::signs_of_life(self, host);
        read.map(|read| read.map_err(|error| error.in_words()))
            .boxed()
    }

    fn say<'a>(
        &'a self,
        host: &'a Host,
        event: &'a Event,
        now: Now,
    ) -> BoxFuture<'a, Result<(), String>> {
        let said = HostClient::say(self, host, event, now);
        said.map(|said| said.map_err(|error| error.in_words()))
            .boxed()
    }
}

impl From<host::WriteError> for WriteError {
    fn from(error: host::WriteError) -> Self {
        match error {
            host::WriteError::Changed => WriteError::Changed,
            host::WriteError::Pruned(_) => WriteError::Pruned(error.to_string()),
            host::WriteError::Api(error) => WriteError::Failed(in_words(&error)),
        }
    }
}

impl From<Result<host::Secret, SecretTrouble>> for Secret {
    fn from(read: Result<host::Secret, SecretTrouble>) -> Self {
        match read {
            Ok(secret) => Secret::There {
                version: secret.version,
                credentials: Credentials {
                    username: secret.username,
                    password: Password::new(secret.password),
                    ca: secret.ca,
                },
            },
            Err(SecretTrouble::Missing { reason, message }) => Secret::Missing { reason, message },
            Err(SecretTrouble::NotNow(_)) => Secret::NotRead,
        }
    }
}
