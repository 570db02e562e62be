//! Watches all hosts and metal3's own controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::bare_metal_host::{API_VERSION, PLURAL};
use dogwatch_core::power::{HostName, HostSnapshot, Metal3LeaderLease, OwnerRules};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectList, WatchParams};
use kube::core::Status;
use kube::{Api, Client};
use tokio::time::Instant;

use super::convert::convert_host;
use super::metal3_leaders::{
    LeaderLeasesRead, leader_lease_selection, list_leader_leases, parse_leader_lease,
};
use super::object::HostObject;
use super::view::HostWatchView;
use crate::error::ApiErrorKind;
use crate::informer::{InformerEvent, JitterFunction, KindInformer, KindRecheck};
use crate::paged::{PagedObjects, TrimmedObject};
use crate::watch::{ChangeStream, FullObjects, ObjectSelection, WatchSource};

/// How often a kind or Lease that cannot be watched is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRecheckIntervals {
    /// Pause after the kind was found missing.
    pub not_installed: Duration,
    /// Pause after a failed read of the leaders' Leases.
    pub look_failed: Duration,
}

impl Default for HostRecheckIntervals {
    /// Five minutes, as for policies (specification §9). Five seconds for Leases, because nothing
    /// is done while it is not known whether metal3 runs.
    fn default() -> Self {
        Self {
            not_installed: Duration::from_mins(5),
            look_failed: Duration::from_secs(5),
        }
    }
}

/// Keeps a [`HostWatchView`] up to date.
pub struct HostWatch {
    client: Client,
    cadence: HostRecheckIntervals,
    /// Start of the monotonic times of this watch (tokio's clock).
    began: Instant,
    hosts: KindInformer<HostName, Arc<HostSnapshot>>,
    leases: KindInformer<String, Metal3LeaderLease>,
    /// A running list request for the leaders' Leases.
    look: Option<BoxFuture<'static, LeaderLeasesRead>>,
    /// Earliest time of the next list request.
    next_look: Duration,
    view: HostWatchView,
}

/// The parts of the view that concern no single host.
#[derive(PartialEq)]
struct HostWatchSummary {
    synced: bool,
    installed: bool,
    trouble: BTreeMap<&'static str, String>,
    not_believed: BTreeMap<String, String>,
}

enum HostWatchChange {
    Host(InformerEvent<HostName, Arc<HostSnapshot>>),
    Lease(InformerEvent<String, Metal3LeaderLease>),
    LookAtLeases,
    Looked(LeaderLeasesRead),
}

impl HostWatch {
    /// Watches all hosts; `rules` decide who owns them. Sends nothing before
    /// [`Self::wait_for_changes`] is awaited. `jitter` returns a number in 0..1 for each pause.
    pub fn new(
        client: Client,
        rules: OwnerRules,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self::with_intervals(client, rules, HostRecheckIntervals::default(), jitter)
    }

    /// Like [`Self::new`], with other intervals.
    pub fn with_intervals(
        client: Client,
        rules: OwnerRules,
        cadence: HostRecheckIntervals,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let jitter: JitterFunction = Arc::new(jitter);
        Self {
            hosts: inform_of_hosts(&client, cadence, &jitter),
            leases: KindInformer::new(
                FullObjects(Api::<Lease>::all(client.clone())),
                leader_lease_selection(),
                KindRecheck::AlwaysServed,
                &jitter,
                |lease: &Lease| {
                    let lease = parse_leader_lease(lease);
                    Some((lease.namespace.clone(), lease))
                },
            ),
            client,
            cadence,
            began: Instant::now(),
            look: None,
            next_look: Duration::ZERO,
            view: HostWatchView {
                rules,
                ..HostWatchView::default()
            },
        }
    }

    pub fn current_view(&self) -> &HostWatchView {
        &self.view
    }

    /// Waits for the next change, and applies all other changes that have arrived. Returns the
    /// names of the hosts that changed, are gone, or have another owner or other hosts at their
    /// BMCs; empty if only the rest of the view changed. Cancel-safe.
    pub async fn wait_for_changes(&mut self) -> BTreeSet<HostName> {
        loop {
            let (before, owners) = (self.summarize_view(), self.view.default_owner());
            let change = self.next_change().await;
            let mut names = BTreeSet::new();
            self.apply_change(change, &mut names);
            while let Some(change) = self.next_change().now_or_never() {
                self.apply_change(change, &mut names);
            }
            if self.view.default_owner() != owners {
                names.extend(self.view.hosts.keys().cloned());
            }
            if !names.is_empty() || self.summarize_view() != before {
                return names;
            }
        }
    }

    fn summarize_view(&self) -> HostWatchSummary {
        HostWatchSummary {
            synced: self.view.synced,
            installed: self.view.installed,
            trouble: self.view.errors.clone(),
            not_believed: self.view.untrusted_leaders(),
        }
    }

    async fn next_change(&mut self) -> HostWatchChange {
        let due = self.view.metal3_leaders.next_list_at(&self.view.rules);
        let due = due.map(|due| self.began + due.max(self.next_look));
        tokio::select! {
            // Hosts change most, so they come last.
            biased;
            event = self.leases.next_event() => HostWatchChange::Lease(event),
            looked = async { self.look.as_mut().expect("checked").await }, if self.look.is_some() => {
                HostWatchChange::Looked(looked)
            }
            () = sleep_until_due(due), if self.look.is_none() => HostWatchChange::LookAtLeases,
            event = self.hosts.next_event() => HostWatchChange::Host(event),
        }
    }

    fn apply_change(&mut self, change: HostWatchChange, names: &mut BTreeSet<HostName>) {
        match change {
            HostWatchChange::Host(event) => self.apply_host_event(event, names),
            HostWatchChange::Lease(event) => self.apply_lease_event(event),
            HostWatchChange::LookAtLeases => {
                self.look = Some(list_leader_leases(self.client.clone(), self.began));
            }
            HostWatchChange::Looked(looked) => self.apply_leader_leases(looked),
        }
    }

    fn apply_host_event(
        &mut self,
        event: InformerEvent<HostName, Arc<HostSnapshot>>,
        names: &mut BTreeSet<HostName>,
    ) {
        match event {
            InformerEvent::Listed(all) => self.replace_hosts(all, names),
            InformerEvent::Applied(_, host) => self.store_host(host, names),
            InformerEvent::Deleted(name) => self.remove_host(&name, names),
            InformerEvent::NotInstalled => {
                self.replace_hosts(Vec::new(), names);
                self.view.installed = false;
            }
            // A second answer has to confirm that the kind is gone.
            InformerEvent::Failed(error) if error.kind() == ApiErrorKind::NotFound => return,
            InformerEvent::Failed(error) | InformerEvent::Forbidden(error) => {
                let error = error.error_chain();
                self.view.errors.insert("baremetalhosts", error);
                return;
            }
        }
        self.view.errors.remove("baremetalhosts");
    }

    fn replace_hosts(
        &mut self,
        all: Vec<(HostName, Arc<HostSnapshot>)>,
        names: &mut BTreeSet<HostName>,
    ) {
        let there: BTreeSet<&HostName> = all.iter().map(|(name, _)| name).collect();
        let gone = self.view.hosts.keys().filter(|name| !there.contains(name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.remove_host(&name, names);
        }
        for (_, host) in all {
            self.store_host(host, names);
        }
        self.view.installed = true;
        self.view.synced = true;
    }

    fn store_host(&mut self, host: Arc<HostSnapshot>, names: &mut BTreeSet<HostName>) {
        let known = self.view.hosts.get(&host.name);
        if known.is_some_and(|known| *known == host) {
            return;
        }
        names.insert(host.name.clone());
        let seniority = self.view.seniority_of(&host);
        let sharing = &mut self.view.sharing;
        names.extend(sharing.put_host(&host.name, seniority, &host.levels));
        self.view.hosts.insert(host.name.clone(), host);
    }

    fn remove_host(&mut self, name: &HostName, names: &mut BTreeSet<HostName>) {
        if self.view.hosts.remove(name).is_some() {
            names.insert(name.clone());
            names.extend(self.view.sharing.remove_host(name));
        }
    }

    fn apply_lease_event(&mut self, event: InformerEvent<String, Metal3LeaderLease>) {
        let now = self.began.elapsed();
        let leaders = &mut self.view.metal3_leaders;
        match event {
            InformerEvent::Listed(all) => {
                let all = all.into_iter().map(|(_, lease)| lease);
                leaders.apply_lease_list(all.collect(), None, now);
            }
            InformerEvent::Applied(_, lease) => leaders.observe_lease(lease, now),
            InformerEvent::Deleted(namespace) => leaders.remove_lease(&namespace),
            InformerEvent::NotInstalled => leaders.apply_lease_list(Vec::new(), None, now),
            InformerEvent::Failed(error) | InformerEvent::Forbidden(error) => {
                self.view.errors.insert("leases", error.error_chain());
                return;
            }
        }
        self.view.errors.remove("leases");
    }

    fn apply_leader_leases(&mut self, (asked, answer): LeaderLeasesRead) {
        self.look = None;
        let now = self.began.elapsed();
        match answer {
            Ok(all) => self
                .view
                .metal3_leaders
                .apply_lease_list(all, Some(asked), now),
            Err(error) => {
                self.view.errors.insert("leases", error.error_chain());
                self.next_look = now + self.cadence.look_failed;
            }
        }
    }
}

fn inform_of_hosts(
    client: &Client,
    cadence: HostRecheckIntervals,
    jitter: &JitterFunction,
) -> KindInformer<HostName, Arc<HostSnapshot>> {
    let hosts = ListIfServed {
        client: client.clone(),
        hosts: PagedObjects {
            api: Api::<HostObject>::all(client.clone()),
            keep: Arc::new(|object: &HostObject| Arc::new(convert_host(object))),
        },
    };
    let recheck = KindRecheck::After {
        not_installed: cadence.not_installed,
        forbidden: None,
    };
    KindInformer::new(
        hosts,
        ObjectSelection::default(),
        recheck,
        jitter,
        |it: &TrimmedObject<Arc<HostSnapshot>>| Some((it.kept.name.clone(), Arc::clone(&it.kept))),
    )
}

/// Checks whether the kind is served before it lists. Without the kind nobody has rights on it, and
/// a list would be answered 403 instead of 404.
#[derive(Clone)]
struct ListIfServed<W> {
    client: Client,
    hosts: W,
}

impl<W: WatchSource> WatchSource for ListIfServed<W> {
    type Object = W::Object;

    async fn list_objects(&self, params: &ListParams) -> kube::Result<ObjectList<W::Object>> {
        let kinds = self.client.list_api_group_resources(API_VERSION).await?;
        if kinds.resources.iter().any(|it| it.name == PLURAL) {
            return self.hosts.list_objects(params).await;
        }
        let status =
            Status::failure("this cluster has no kind BareMetalHost", "NotFound").with_code(404);
        Err(kube::Error::Api(status.boxed()))
    }

    async fn read_version(&self, params: &ListParams) -> kube::Result<String> {
        self.hosts.read_version(params).await
    }

    async fn watch_objects(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<ChangeStream<W::Object>> {
        self.hosts.watch_objects(params, version).await
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
