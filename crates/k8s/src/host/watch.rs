//! Watches all hosts and metal3's own controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::bare_metal_host::{API_VERSION, PLURAL};
use dogwatch_core::backoff::spread_pause;
use dogwatch_core::power::{HostName, HostSnapshot, OwnerRules};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectList, WatchParams};
use kube::core::Status;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use super::convert::convert_host;
use super::metal3_leaders::{
    LeaderLeasesRead, leader_lease_selection, list_leader_leases, parse_leader_lease,
};
use super::object::HostObject;
use super::view::HostWatchView;
use crate::error::{ApiErrorKind, Error};
use crate::paged::{PagedObjects, TrimmedObject};
use crate::watch::{
    ChangeStream, FullObjects, ObjectEvent, ObjectSelection, SHORTEST_RETRY_PAUSE, WatchSource,
    list_and_watch,
};

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
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// Start of the monotonic times of this watch (tokio's clock).
    began: Instant,
    hosts: OptionalHostWatch,
    leases: BoxStream<'static, ObjectEvent<Lease>>,
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

enum OptionalHostWatch {
    /// `is_listed`: a list has arrived since the watch was opened.
    Open {
        events: BoxStream<'static, ObjectEvent<TrimmedObject<Arc<HostSnapshot>>>>,
        is_listed: bool,
    },
    /// The kind is missing; it is looked for again at `until`.
    NotInstalled { until: Instant },
}

enum HostWatchChange {
    Host(ObjectEvent<TrimmedObject<Arc<HostSnapshot>>>),
    LookForKind,
    Lease(ObjectEvent<Lease>),
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
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        let pauses = Arc::clone(&jitter);
        let leases = FullObjects(Api::<Lease>::all(client.clone()));
        Self {
            hosts: open_host_watch(&client, &jitter),
            leases: list_and_watch(leases, leader_lease_selection(), move || pauses()).boxed(),
            client,
            cadence,
            jitter,
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
        const WATCH_NEVER_ENDS: &str = "a watch has no end";
        let due = self.view.metal3_leaders.next_list_at(&self.view.rules);
        let due = due.map(|due| self.began + due.max(self.next_look));
        tokio::select! {
            change = next_host_change(&mut self.hosts) => change,
            event = self.leases.next() => HostWatchChange::Lease(event.expect(WATCH_NEVER_ENDS)),
            looked = async { self.look.as_mut().expect("checked").await }, if self.look.is_some() => {
                HostWatchChange::Looked(looked)
            }
            () = sleep_until_due(due), if self.look.is_none() => HostWatchChange::LookAtLeases,
        }
    }

    fn apply_change(&mut self, change: HostWatchChange, names: &mut BTreeSet<HostName>) {
        match change {
            HostWatchChange::Host(event) => self.apply_host_event(event, names),
            HostWatchChange::LookForKind => {
                self.hosts = open_host_watch(&self.client, &self.jitter);
            }
            HostWatchChange::Lease(event) => self.apply_lease_event(event),
            HostWatchChange::LookAtLeases => {
                self.look = Some(list_leader_leases(self.client.clone(), self.began));
            }
            HostWatchChange::Looked(looked) => self.apply_leader_leases(looked),
        }
    }

    fn apply_host_event(
        &mut self,
        event: ObjectEvent<TrimmedObject<Arc<HostSnapshot>>>,
        names: &mut BTreeSet<HostName>,
    ) {
        match event {
            ObjectEvent::Restarted(all) => self.replace_hosts(&all, names),
            ObjectEvent::Applied(new) => self.store_host(&new.kept, names),
            ObjectEvent::Deleted(old) => self.remove_host(&old.kept.name, names),
            ObjectEvent::Failed(error) => return self.handle_host_error(&error, names),
        }
        self.view.errors.remove("baremetalhosts");
    }

    fn replace_hosts(
        &mut self,
        all: &[TrimmedObject<Arc<HostSnapshot>>],
        names: &mut BTreeSet<HostName>,
    ) {
        let there: BTreeSet<&HostName> = all.iter().map(|new| &new.kept.name).collect();
        let gone = self.view.hosts.keys().filter(|name| !there.contains(name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.remove_host(&name, names);
        }
        for new in all {
            self.store_host(&new.kept, names);
        }
        if let OptionalHostWatch::Open { is_listed, .. } = &mut self.hosts {
            *is_listed = true;
        }
        self.view.installed = true;
        self.view.synced = true;
    }

    fn store_host(&mut self, host: &Arc<HostSnapshot>, names: &mut BTreeSet<HostName>) {
        let known = self.view.hosts.get(&host.name);
        if known.is_some_and(|known| known == host) {
            return;
        }
        names.insert(host.name.clone());
        let seniority = self.view.seniority_of(host);
        let sharing = &mut self.view.sharing;
        names.extend(sharing.put_host(&host.name, seniority, &host.levels));
        self.view.hosts.insert(host.name.clone(), Arc::clone(host));
    }

    fn remove_host(&mut self, name: &HostName, names: &mut BTreeSet<HostName>) {
        if self.view.hosts.remove(name).is_some() {
            names.insert(name.clone());
            names.extend(self.view.sharing.remove_host(name));
        }
    }

    /// One answer that the kind is missing does not drop known hosts: a list has to confirm it.
    fn handle_host_error(&mut self, error: &Error, names: &mut BTreeSet<HostName>) {
        if error.kind() != ApiErrorKind::NotFound {
            self.view
                .errors
                .insert("baremetalhosts", error.error_chain());
            return;
        }
        let was_listed = matches!(
            self.hosts,
            OptionalHostWatch::Open {
                is_listed: true,
                ..
            }
        );
        let pause = if was_listed {
            SHORTEST_RETRY_PAUSE
        } else {
            let all: Vec<HostName> = self.view.hosts.keys().cloned().collect();
            for name in all {
                self.remove_host(&name, names);
            }
            self.view.errors.remove("baremetalhosts");
            self.view.installed = false;
            self.view.synced = true;
            self.cadence.not_installed
        };
        let until = Instant::now() + spread_pause(pause, (self.jitter)());
        self.hosts = OptionalHostWatch::NotInstalled { until };
    }

    fn apply_lease_event(&mut self, event: ObjectEvent<Lease>) {
        let now = self.began.elapsed();
        let operators = &mut self.view.metal3_leaders;
        match event {
            ObjectEvent::Restarted(all) => {
                operators.apply_lease_list(all.iter().map(parse_leader_lease).collect(), None, now);
            }
            ObjectEvent::Applied(lease) => operators.observe_lease(parse_leader_lease(&lease), now),
            ObjectEvent::Deleted(lease) => {
                operators.remove_lease(&lease.namespace().unwrap_or_default());
            }
            ObjectEvent::Failed(error) => {
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

fn open_host_watch(
    client: &Client,
    jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
) -> OptionalHostWatch {
    let jitter = Arc::clone(jitter);
    let hosts = ListIfServed {
        client: client.clone(),
        hosts: PagedObjects {
            api: Api::<HostObject>::all(client.clone()),
            keep: Arc::new(|object: &HostObject| Arc::new(convert_host(object))),
        },
    };
    OptionalHostWatch::Open {
        events: list_and_watch(hosts, ObjectSelection::default(), move || jitter()).boxed(),
        is_listed: false,
    }
}

/// Checks whether the kind is served before it lists. Without the kind nobody has rights on it, and
/// a list would be answered 403 instead of 404.
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

    async fn watch_objects(
        &self,
        params: &WatchParams,
        version: &str,
    ) -> kube::Result<ChangeStream<W::Object>> {
        self.hosts.watch_objects(params, version).await
    }
}

async fn next_host_change(sight: &mut OptionalHostWatch) -> HostWatchChange {
    match sight {
        OptionalHostWatch::Open { events, .. } => {
            HostWatchChange::Host(events.next().await.expect("a watch has no end"))
        }
        OptionalHostWatch::NotInstalled { until } => {
            tokio::time::sleep_until(*until).await;
            HostWatchChange::LookForKind
        }
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
