//! Watches Machines, Metal3Machines, the pauses of Clusters, requests and backups.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::label;
use dogwatch_core::remediation::{
    InfraMachine, MachineApi, ObservedMachine, PowerRequest, StoredBackup,
};
use futures::FutureExt as _;
use kube::Client;

use super::apply_event::{apply_backup_event, apply_cluster_event, apply_object_event};
use super::backup::{self, BackupEntry};
use super::kind::{
    CLUSTER_API_CLUSTER, CLUSTER_API_MACHINE, METAL3_MACHINE, OPENSHIFT_MACHINE, OptionalKind,
    POWER_REMEDIATION,
};
use super::machine::{ObservedCluster, parse_cluster, parse_infra_machine, parse_machine};
use super::optional_watch::{OptionalWatch, OptionalWatchEvent};
use super::request::parse_request;
use super::view::RemediationWatchView;
use crate::error::ApiErrorKind;
use crate::informer::{InformerEvent, JitterFunction, KindInformer, KindRecheck};
use crate::paged::TrimmedObject;
use crate::watch::ObjectSelection;

/// Pause after a kind was found missing, as for hosts and policies.
pub const NOT_INSTALLED_RECHECK: Duration = Duration::from_mins(5);

/// Keeps a [`RemediationWatchView`] up to date.
pub struct RemediationWatch {
    openshift: OptionalWatch<Arc<ObservedMachine>>,
    cluster_api: OptionalWatch<Arc<ObservedMachine>>,
    infra: OptionalWatch<Arc<InfraMachine>>,
    clusters: OptionalWatch<ObservedCluster>,
    requests: OptionalWatch<Arc<PowerRequest>>,
    /// Backups of deleted Nodes; `None`: not watched.
    backups: Option<KindInformer<String, Option<Arc<StoredBackup>>>>,
    /// The kinds that were listed or found missing.
    known: BTreeSet<&'static str>,
    view: RemediationWatchView,
}

enum RemediationWatchChange {
    Machine(MachineApi, OptionalWatchEvent<Arc<ObservedMachine>>),
    Infra(OptionalWatchEvent<Arc<InfraMachine>>),
    Cluster(OptionalWatchEvent<ObservedCluster>),
    Request(OptionalWatchEvent<Arc<PowerRequest>>),
    Backup(InformerEvent<String, Option<Arc<StoredBackup>>>),
}

impl RemediationWatch {
    /// Watches all namespaces, and the backups in Dogwatch's namespace `home` if one is given.
    /// Sends nothing before [`Self::wait_for_change`] is awaited. `jitter` returns a number in 0..1
    /// for each pause.
    pub fn new(
        client: Client,
        home: Option<&str>,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self::with_recheck(client, home, NOT_INSTALLED_RECHECK, jitter)
    }

    /// Like [`Self::new`], but a missing kind is looked for again after `again`.
    pub fn with_recheck(
        client: Client,
        home: Option<&str>,
        again: Duration,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let jitter: JitterFunction = Arc::new(jitter);
        let backups = home.map(|home| watch_backups(&client, home, &jitter));
        let machines = |api: MachineApi| {
            let keep = move |object: &_| Arc::new(parse_machine(object, api));
            OptionalWatch::new(
                client.clone(),
                OptionalKind::of_machine_api(api),
                again,
                Arc::clone(&jitter),
                keep,
            )
        };
        let openshift = machines(MachineApi::OpenShift);
        let cluster_api = machines(MachineApi::ClusterApi);
        let keep = |object: &_| Arc::new(parse_infra_machine(object));
        let infra = OptionalWatch::new(
            client.clone(),
            METAL3_MACHINE,
            again,
            Arc::clone(&jitter),
            keep,
        );
        let clusters = OptionalWatch::new(
            client.clone(),
            CLUSTER_API_CLUSTER,
            again,
            Arc::clone(&jitter),
            parse_cluster,
        );
        let keep = |object: &_| Arc::new(parse_request(object));
        let requests = OptionalWatch::new(client, POWER_REMEDIATION, again, jitter, keep);
        Self {
            openshift,
            cluster_api,
            infra,
            clusters,
            requests,
            backups,
            known: BTreeSet::new(),
            view: RemediationWatchView::default(),
        }
    }

    pub fn current_view(&self) -> &RemediationWatchView {
        &self.view
    }

    /// The errors of the watches that are not open now, by kind.
    pub fn present_errors(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let errors = self.view.errors.iter();
        let errors = errors.filter(|(name, _)| !self.is_connected(name));
        errors.map(|(name, words)| (*name, words.as_str()))
    }

    fn is_connected(&self, name: &str) -> bool {
        let optional = [
            (OPENSHIFT_MACHINE, self.openshift.is_connected()),
            (CLUSTER_API_MACHINE, self.cluster_api.is_connected()),
            (METAL3_MACHINE, self.infra.is_connected()),
            (CLUSTER_API_CLUSTER, self.clusters.is_connected()),
            (POWER_REMEDIATION, self.requests.is_connected()),
        ];
        let backups = self.backups.as_ref().map(KindInformer::is_connected);
        let mut kinds = optional.into_iter().map(|(kind, is)| (kind.full_name, is));
        kinds
            .find(|(kind, _)| *kind == name)
            .map_or(backups.unwrap_or(false), |(_, is_connected)| is_connected)
    }

    /// Waits until the view changes, and applies all other changes that have arrived. Cancel-safe.
    pub async fn wait_for_change(&mut self) {
        loop {
            let change = self.next_change().await;
            let mut is_another = self.apply_change(change);
            while let Some(change) = self.next_change().now_or_never() {
                is_another |= self.apply_change(change);
            }
            if is_another {
                return;
            }
        }
    }

    async fn next_change(&mut self) -> RemediationWatchChange {
        tokio::select! {
            biased;
            told = self.requests.next_event() => RemediationWatchChange::Request(told),
            event = next_backup_event(&mut self.backups) => RemediationWatchChange::Backup(event),
            told = self.clusters.next_event() => RemediationWatchChange::Cluster(told),
            told = self.infra.next_event() => RemediationWatchChange::Infra(told),
            told = self.cluster_api.next_event() => RemediationWatchChange::Machine(MachineApi::ClusterApi, told),
            told = self.openshift.next_event() => RemediationWatchChange::Machine(MachineApi::OpenShift, told),
        }
    }

    /// Returns whether the view changed.
    fn apply_change(&mut self, change: RemediationWatchChange) -> bool {
        let view = &mut self.view;
        let (name, news, is_another) = match change {
            RemediationWatchChange::Machine(api, told) => {
                let news = KindNews::of_event(&told);
                let is_another = apply_object_event(
                    &mut view.machines,
                    told,
                    |it| it.name.clone(),
                    |name| name.api == api,
                );
                (
                    OptionalKind::of_machine_api(api).full_name,
                    news,
                    is_another,
                )
            }
            RemediationWatchChange::Infra(told) => {
                let news = KindNews::of_event(&told);
                let is_another =
                    apply_object_event(&mut view.infra, told, |it| it.name.clone(), |_| true);
                (METAL3_MACHINE.full_name, news, is_another)
            }
            RemediationWatchChange::Cluster(told) => {
                let news = KindNews::of_cluster_event(&told);
                let is_another = apply_cluster_event(&mut view.paused_clusters, told);
                (CLUSTER_API_CLUSTER.full_name, news, is_another)
            }
            RemediationWatchChange::Request(told) => {
                let news = KindNews::of_event(&told);
                let is_another =
                    apply_object_event(&mut view.requests, told, |it| it.name.clone(), |_| true);
                (POWER_REMEDIATION.full_name, news, is_another)
            }
            RemediationWatchChange::Backup(event) => {
                let news = KindNews::of_backup_event(&event);
                (
                    backup::FULL_NAME,
                    news,
                    apply_backup_event(&mut view.backups, event),
                )
            }
        };
        self.record_kind_news(name, news) | is_another
    }

    /// Applies news of the kind itself. Returns whether the view changed.
    fn record_kind_news(&mut self, name: &'static str, news: KindNews) -> bool {
        let count_kinds = ALL_KINDS.len() + usize::from(self.backups.is_some());
        let view = &mut self.view;
        let before = view.synced;
        let is_another = match news {
            KindNews::Listed(version) => {
                self.known.insert(name);
                view.installed.insert(name, version.clone()) != Some(version)
            }
            KindNews::NotInstalled => {
                self.known.insert(name);
                view.installed.remove(name).is_some()
            }
            KindNews::Known => {
                self.known.insert(name);
                false
            }
            KindNews::Seen => false,
            KindNews::Failed(words) => {
                return view.errors.insert(name, words.clone()) != Some(words);
            }
            KindNews::Denied(words) => {
                let is_first = self.known.insert(name);
                view.synced = self.known.len() == count_kinds;
                return (view.errors.insert(name, words.clone()) != Some(words)) | is_first;
            }
        };
        view.synced = self.known.len() == count_kinds;
        let has_passed = view.errors.remove(name).is_some();
        has_passed || is_another || view.synced != before
    }
}

const ALL_KINDS: [OptionalKind; 5] = [
    OPENSHIFT_MACHINE,
    CLUSTER_API_MACHINE,
    METAL3_MACHINE,
    CLUSTER_API_CLUSTER,
    POWER_REMEDIATION,
];

/// An event of a kind, without its objects.
enum KindNews {
    Listed(String),
    /// Listed; every cluster serves this kind.
    Known,
    NotInstalled,
    Seen,
    Failed(String),
    /// May not be read, and is not waited for.
    Denied(String),
}

impl KindNews {
    fn of_event<T>(told: &OptionalWatchEvent<T>) -> Self {
        match told {
            OptionalWatchEvent::All(version, _) => KindNews::Listed(version.clone()),
            OptionalWatchEvent::Put(_) | OptionalWatchEvent::Gone(_) => KindNews::Seen,
            OptionalWatchEvent::NotInstalled => KindNews::NotInstalled,
            OptionalWatchEvent::Failed(error) => KindNews::Failed(error.error_chain()),
        }
    }

    /// The rights of an older version do not include Clusters. Their pause then has no effect, as in
    /// that version; a failed machine is not left alone because of it.
    fn of_cluster_event<T>(told: &OptionalWatchEvent<T>) -> Self {
        match told {
            OptionalWatchEvent::Failed(error) if error.kind() == ApiErrorKind::Forbidden => {
                KindNews::Denied(error.error_chain())
            }
            OptionalWatchEvent::All(..)
            | OptionalWatchEvent::Put(_)
            | OptionalWatchEvent::Gone(_)
            | OptionalWatchEvent::NotInstalled
            | OptionalWatchEvent::Failed(_) => Self::of_event(told),
        }
    }

    fn of_backup_event<V>(event: &InformerEvent<String, V>) -> Self {
        match event {
            InformerEvent::Listed(_) => KindNews::Known,
            InformerEvent::Applied(..) | InformerEvent::Deleted(_) => KindNews::Seen,
            InformerEvent::NotInstalled => KindNews::NotInstalled,
            InformerEvent::Forbidden(error) | InformerEvent::Failed(error) => {
                KindNews::Failed(error.error_chain())
            }
        }
    }
}

fn watch_backups(
    client: &Client,
    home: &str,
    jitter: &JitterFunction,
) -> KindInformer<String, Option<Arc<StoredBackup>>> {
    KindInformer::new(
        backup::backup_source(client.clone(), home),
        ObjectSelection::by_labels(label::NODE_BACKUP),
        KindRecheck::AlwaysServed,
        jitter,
        |it: &TrimmedObject<BackupEntry>| Some(it.kept.clone()),
    )
}

async fn next_backup_event<V: Send + 'static>(
    backups: &mut Option<KindInformer<String, V>>,
) -> InformerEvent<String, V> {
    match backups {
        Some(backups) => backups.next_event().await,
        None => std::future::pending().await,
    }
}
