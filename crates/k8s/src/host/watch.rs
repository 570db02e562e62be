//! All hosts, and metal3's own controllers, kept in sight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::bare_metal_host::{API_VERSION, PLURAL};
use dogwatch_core::power::{Host, HostName, OwnerRules};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectList, WatchParams};
use kube::core::Status;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::Instant;

use super::convert::convert;
use super::leaders::{Looked, leaders, look, operator_lease};
use super::object::HostObject;
use super::view::HostView;
use crate::error::{Error, Kind};
use crate::paged::{Paged, Trimmed};
use crate::watch::{Changes, Event, Full, SHORTEST, Selection, Watched, watch};

/// When to look again where nothing can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// How long after it was not there the kind is looked for again.
    pub not_installed: Duration,
    /// How long after a look at a leader's Lease that failed it is tried again.
    pub look_failed: Duration,
}

impl Default for Cadence {
    /// Five minutes, as for policies (specification §9); five seconds, for while it is not known who
    /// lives nothing is done.
    fn default() -> Self {
        Self {
            not_installed: Duration::from_mins(5),
            look_failed: Duration::from_secs(5),
        }
    }
}

/// Keeps a [`HostView`] up to date.
pub struct HostWatch {
    client: Client,
    cadence: Cadence,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    /// Of tokio's clock: the beginning of monotonic times here.
    began: Instant,
    hosts: Sight,
    leases: BoxStream<'static, Event<Lease>>,
    /// A fresh list of leaders' Leases, on its way.
    look: Option<BoxFuture<'static, Looked>>,
    /// Not before this.
    next_look: Duration,
    view: HostView,
}

/// What is told beside the hosts.
#[derive(PartialEq)]
struct Summary {
    synced: bool,
    installed: bool,
    trouble: BTreeMap<&'static str, String>,
    not_believed: BTreeMap<String, String>,
}

enum Sight {
    /// They are watched; whether a list has come since that was begun.
    Open {
        events: BoxStream<'static, Event<Trimmed<Arc<Host>>>>,
        is_listed: bool,
    },
    /// There is no such kind; it is looked for then.
    NotInstalled { until: Instant },
}

enum Change {
    Host(Event<Trimmed<Arc<Host>>>),
    LookForKind,
    Lease(Event<Lease>),
    LookAtLeases,
    Looked(Looked),
}

impl HostWatch {
    /// Watches all hosts; whose they are goes by `rules`. Nothing is sent before [`Self::changed`] is awaited.
    /// `jitter` gives a number in 0..1 for each pause.
    pub fn new(
        client: Client,
        rules: OwnerRules,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self::at(client, rules, Cadence::default(), jitter)
    }

    /// The same, looking again at another cadence.
    pub fn at(
        client: Client,
        rules: OwnerRules,
        cadence: Cadence,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        let pauses = Arc::clone(&jitter);
        let leases = Full(Api::<Lease>::all(client.clone()));
        Self {
            hosts: open(&client, &jitter),
            leases: watch(leases, leaders(), move || pauses()).boxed(),
            client,
            cadence,
            jitter,
            began: Instant::now(),
            look: None,
            next_look: Duration::ZERO,
            view: HostView {
                rules,
                ..HostView::default()
            },
        }
    }

    /// What is seen now.
    pub fn view(&self) -> &HostView {
        &self.view
    }

    /// Waits for the next change, and takes with it whatever else has arrived. The names are of those
    /// hosts that are another, are gone, or have another owner or other hosts at their BMCs; none where
    /// only the rest of the view is another. Losing the future loses nothing.
    pub async fn changed(&mut self) -> BTreeSet<HostName> {
        loop {
            let (before, owners) = (self.summary(), self.view.plain_owner());
            let change = self.next().await;
            let mut names = BTreeSet::new();
            self.take(change, &mut names);
            while let Some(change) = self.next().now_or_never() {
                self.take(change, &mut names);
            }
            if self.view.plain_owner() != owners {
                names.extend(self.view.hosts.keys().cloned());
            }
            if !names.is_empty() || self.summary() != before {
                return names;
            }
        }
    }

    fn summary(&self) -> Summary {
        Summary {
            synced: self.view.synced,
            installed: self.view.installed,
            trouble: self.view.trouble.clone(),
            not_believed: self.view.leaders_not_believed(),
        }
    }

    async fn next(&mut self) -> Change {
        const NEVER: &str = "a watch has no end";
        let due = self.view.operators.look_at(&self.view.rules);
        let due = due.map(|due| self.began + due.max(self.next_look));
        tokio::select! {
            change = next_host(&mut self.hosts) => change,
            event = self.leases.next() => Change::Lease(event.expect(NEVER)),
            looked = async { self.look.as_mut().expect("checked").await }, if self.look.is_some() => {
                Change::Looked(looked)
            }
            () = until(due), if self.look.is_none() => Change::LookAtLeases,
        }
    }

    fn take(&mut self, change: Change, names: &mut BTreeSet<HostName>) {
        match change {
            Change::Host(event) => self.take_host(event, names),
            Change::LookForKind => self.hosts = open(&self.client, &self.jitter),
            Change::Lease(event) => self.take_lease(event),
            Change::LookAtLeases => self.look = Some(look(self.client.clone(), self.began)),
            Change::Looked(looked) => self.take_look(looked),
        }
    }

    fn take_host(&mut self, event: Event<Trimmed<Arc<Host>>>, names: &mut BTreeSet<HostName>) {
        match event {
            Event::Restarted(all) => self.restart(&all, names),
            Event::Applied(new) => self.put(&new.kept, names),
            Event::Deleted(old) => self.remove(&old.kept.name, names),
            Event::Trouble(error) => return self.host_trouble(&error, names),
        }
        self.view.trouble.remove("baremetalhosts");
    }

    fn restart(&mut self, all: &[Trimmed<Arc<Host>>], names: &mut BTreeSet<HostName>) {
        let there: BTreeSet<&HostName> = all.iter().map(|new| &new.kept.name).collect();
        let gone = self.view.hosts.keys().filter(|name| !there.contains(name));
        for name in gone.cloned().collect::<Vec<_>>() {
            self.remove(&name, names);
        }
        for new in all {
            self.put(&new.kept, names);
        }
        if let Sight::Open { is_listed, .. } = &mut self.hosts {
            *is_listed = true;
        }
        self.view.installed = true;
        self.view.synced = true;
    }

    fn put(&mut self, host: &Arc<Host>, names: &mut BTreeSet<HostName>) {
        let known = self.view.hosts.get(&host.name);
        if known.is_some_and(|known| known == host) {
            return;
        }
        names.insert(host.name.clone());
        let seniority = self.view.seniority(host);
        let sharing = &mut self.view.sharing;
        names.extend(sharing.put(&host.name, seniority, &host.levels));
        self.view.hosts.insert(host.name.clone(), Arc::clone(host));
    }

    fn remove(&mut self, name: &HostName, names: &mut BTreeSet<HostName>) {
        if self.view.hosts.remove(name).is_some() {
            names.insert(name.clone());
            names.extend(self.view.sharing.remove(name));
        }
    }

    /// Hosts that we have seen are not given up for one answer that the kind is not there: a list has
    /// to say it too.
    fn host_trouble(&mut self, error: &Error, names: &mut BTreeSet<HostName>) {
        if error.kind() != Kind::NotFound {
            self.view.trouble.insert("baremetalhosts", error.in_words());
            return;
        }
        let was_listed = matches!(
            self.hosts,
            Sight::Open {
                is_listed: true,
                ..
            }
        );
        let pause = if was_listed {
            SHORTEST
        } else {
            let all: Vec<HostName> = self.view.hosts.keys().cloned().collect();
            for name in all {
                self.remove(&name, names);
            }
            self.view.trouble.remove("baremetalhosts");
            self.view.installed = false;
            self.view.synced = true;
            self.cadence.not_installed
        };
        let spread = (self.jitter)().clamp(0.0, 1.0);
        let until = Instant::now() + pause.mul_f64(0.8 + 0.2 * spread);
        self.hosts = Sight::NotInstalled { until };
    }

    fn take_lease(&mut self, event: Event<Lease>) {
        let now = self.began.elapsed();
        let operators = &mut self.view.operators;
        match event {
            Event::Restarted(all) => {
                operators.listed(all.iter().map(operator_lease).collect(), None, now);
            }
            Event::Applied(lease) => operators.saw(operator_lease(&lease), now),
            Event::Deleted(lease) => operators.gone(&lease.namespace().unwrap_or_default()),
            Event::Trouble(error) => {
                self.view.trouble.insert("leases", error.in_words());
                return;
            }
        }
        self.view.trouble.remove("leases");
    }

    fn take_look(&mut self, (asked, answer): Looked) {
        self.look = None;
        let now = self.began.elapsed();
        match answer {
            Ok(all) => self.view.operators.listed(all, Some(asked), now),
            Err(error) => {
                self.view.trouble.insert("leases", error.in_words());
                self.next_look = now + self.cadence.look_failed;
            }
        }
    }
}

fn open(client: &Client, jitter: &Arc<dyn Fn() -> f64 + Send + Sync>) -> Sight {
    let jitter = Arc::clone(jitter);
    let hosts = IfServed {
        client: client.clone(),
        hosts: Paged {
            api: Api::<HostObject>::all(client.clone()),
            keep: Arc::new(|object: &HostObject| Arc::new(convert(object))),
        },
    };
    Sight::Open {
        events: watch(hosts, Selection::default(), move || jitter()).boxed(),
        is_listed: false,
    }
}

/// Where the kind is not there nobody has rights over it: a list would be answered 403, and not 404.
struct IfServed<W> {
    client: Client,
    hosts: W,
}

impl<W: Watched> Watched for IfServed<W> {
    type Object = W::Object;

    async fn list(&self, params: &ListParams) -> kube::Result<ObjectList<W::Object>> {
        let kinds = self.client.list_api_group_resources(API_VERSION).await?;
        if kinds.resources.iter().any(|it| it.name == PLURAL) {
            return self.hosts.list(params).await;
        }
        let status = Status::failure("there is no kind BareMetalHost", "NotFound").with_code(404);
        Err(kube::Error::Api(status.boxed()))
    }

    async fn watch(&self, params: &WatchParams, version: &str) -> kube::Result<Changes<W::Object>> {
        self.hosts.watch(params, version).await
    }
}

async fn next_host(sight: &mut Sight) -> Change {
    match sight {
        Sight::Open { events, .. } => {
            Change::Host(events.next().await.expect("a watch has no end"))
        }
        Sight::NotInstalled { until } => {
            tokio::time::sleep_until(*until).await;
            Change::LookForKind
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
