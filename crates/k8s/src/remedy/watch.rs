//! Machines, Metal3Machines and requests, kept in sight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_api::label;
use dogwatch_core::remedy::{InfraMachine, KeptBackup, Machine, MachineApi, PowerRequest};
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use kube::Client;

use super::backup::{self, Found};
use super::kind::{CLUSTER_API, Kind, METAL3_MACHINE, OPENSHIFT, POWER_REMEDIATION};
use super::machine::{infra_machine, machine};
use super::request::request;
use super::sight::{Sight, Told};
use super::view::RemedyView;
use crate::paged::Trimmed;
use crate::watch::{Event, Selection, watch};

/// How long after it was not there a kind is looked for again, as for hosts and policies.
pub const NOT_INSTALLED: Duration = Duration::from_mins(5);

/// Keeps a [`RemedyView`] up to date.
pub struct RemedyWatch {
    openshift: Sight<Arc<Machine>>,
    cluster_api: Sight<Arc<Machine>>,
    infra: Sight<Arc<InfraMachine>>,
    requests: Sight<Arc<PowerRequest>>,
    /// What is kept of deleted Nodes; `None`: nobody wants to know.
    backups: Option<BoxStream<'static, Event<Trimmed<Found>>>>,
    /// Of which kinds it is known how they stand.
    known: BTreeSet<&'static str>,
    view: RemedyView,
}

enum Change {
    Machine(MachineApi, Told<Arc<Machine>>),
    Infra(Told<Arc<InfraMachine>>),
    Request(Told<Arc<PowerRequest>>),
    Backup(Box<Event<Trimmed<Found>>>),
}

impl RemedyWatch {
    /// Watches all namespaces, and what is kept in Dogwatch's `home`, where one is named. Nothing is sent
    /// before [`Self::changed`] is awaited. `jitter` gives a number in 0..1 for each pause.
    pub fn new(
        client: Client,
        home: Option<&str>,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self::at(client, home, NOT_INSTALLED, jitter)
    }

    /// The same; a kind that was not there is looked for again after `again`.
    pub fn at(
        client: Client,
        home: Option<&str>,
        again: Duration,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        let backups = home.map(|home| backups(&client, home, &jitter));
        let machines = |api: MachineApi| {
            let keep = move |object: &_| Arc::new(machine(object, api));
            Sight::new(
                client.clone(),
                Kind::of(api),
                again,
                Arc::clone(&jitter),
                keep,
            )
        };
        let openshift = machines(MachineApi::OpenShift);
        let cluster_api = machines(MachineApi::ClusterApi);
        let keep = |object: &_| Arc::new(infra_machine(object));
        let infra = Sight::new(
            client.clone(),
            METAL3_MACHINE,
            again,
            Arc::clone(&jitter),
            keep,
        );
        let keep = |object: &_| Arc::new(request(object));
        let requests = Sight::new(client, POWER_REMEDIATION, again, jitter, keep);
        Self {
            openshift,
            cluster_api,
            infra,
            requests,
            backups,
            known: BTreeSet::new(),
            view: RemedyView::default(),
        }
    }

    /// What is seen now.
    pub fn view(&self) -> &RemedyView {
        &self.view
    }

    /// Waits until something is another, and takes with it whatever else has arrived. Losing the
    /// future loses nothing.
    pub async fn changed(&mut self) {
        loop {
            let change = self.next().await;
            let mut is_another = self.take(change);
            while let Some(change) = self.next().now_or_never() {
                is_another |= self.take(change);
            }
            if is_another {
                return;
            }
        }
    }

    async fn next(&mut self) -> Change {
        tokio::select! {
            told = self.openshift.next() => Change::Machine(MachineApi::OpenShift, told),
            told = self.cluster_api.next() => Change::Machine(MachineApi::ClusterApi, told),
            told = self.infra.next() => Change::Infra(told),
            told = self.requests.next() => Change::Request(told),
            event = next_of(&mut self.backups) => Change::Backup(Box::new(event)),
        }
    }

    /// Whether the view is another now.
    fn take(&mut self, change: Change) -> bool {
        let view = &mut self.view;
        let (name, news, is_another) = match change {
            Change::Machine(api, told) => {
                let news = News::of(&told);
                let is_another = take(
                    &mut view.machines,
                    told,
                    |it| it.name.clone(),
                    |name| name.api == api,
                );
                (Kind::of(api).full_name, news, is_another)
            }
            Change::Infra(told) => {
                let news = News::of(&told);
                let is_another = take(&mut view.infra, told, |it| it.name.clone(), |_| true);
                (METAL3_MACHINE.full_name, news, is_another)
            }
            Change::Request(told) => {
                let news = News::of(&told);
                let is_another = take(&mut view.requests, told, |it| it.name.clone(), |_| true);
                (POWER_REMEDIATION.full_name, news, is_another)
            }
            Change::Backup(event) => {
                let news = News::of_backups(&event);
                (
                    backup::FULL_NAME,
                    news,
                    take_backups(&mut view.backups, *event),
                )
            }
        };
        self.note(name, news) | is_another
    }

    /// What is told of the kind itself. Whether that is another now.
    fn note(&mut self, name: &'static str, news: News) -> bool {
        let view = &mut self.view;
        let before = view.synced;
        let is_another = match news {
            News::Listed(version) => {
                self.known.insert(name);
                view.installed.insert(name, version.clone()) != Some(version)
            }
            News::NotInstalled => {
                self.known.insert(name);
                view.installed.remove(name).is_some()
            }
            News::Known => {
                self.known.insert(name);
                false
            }
            News::Seen => false,
            News::Trouble(words) => {
                return view.trouble.insert(name, words.clone()) != Some(words);
            }
        };
        view.synced = self.known.len() == ALL.len() + usize::from(self.backups.is_some());
        let has_passed = view.trouble.remove(name).is_some();
        has_passed || is_another || view.synced != before
    }
}

const ALL: [Kind; 4] = [OPENSHIFT, CLUSTER_API, METAL3_MACHINE, POWER_REMEDIATION];

/// What is told of a kind, its objects apart.
enum News {
    Listed(String),
    /// It was listed; every cluster has it.
    Known,
    NotInstalled,
    Seen,
    Trouble(String),
}

impl News {
    fn of<T>(told: &Told<T>) -> Self {
        match told {
            Told::All(version, _) => News::Listed(version.clone()),
            Told::Put(_) | Told::Gone(_) => News::Seen,
            Told::NotInstalled => News::NotInstalled,
            Told::Trouble(error) => News::Trouble(error.in_words()),
        }
    }

    fn of_backups(event: &Event<Trimmed<Found>>) -> Self {
        match event {
            Event::Restarted(_) => News::Known,
            Event::Applied(_) | Event::Deleted(_) => News::Seen,
            Event::Trouble(error) => News::Trouble(error.in_words()),
        }
    }
}

fn backups(
    client: &Client,
    home: &str,
    jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
) -> BoxStream<'static, Event<Trimmed<Found>>> {
    let (source, jitter) = (backup::source(client.clone(), home), Arc::clone(jitter));
    watch(source, Selection::labels(label::NODE_BACKUP), move || {
        jitter()
    })
    .boxed()
}

async fn next_of<T>(stream: &mut Option<BoxStream<'static, T>>) -> T {
    match stream {
        Some(stream) => stream.next().await.expect("a watch has no end"),
        None => std::future::pending().await,
    }
}

/// Whether anything is another now. One that cannot be read is as if it were not there: it is written over.
fn take_backups(
    backups: &mut BTreeMap<String, Arc<KeptBackup>>,
    event: Event<Trimmed<Found>>,
) -> bool {
    match event {
        Event::Restarted(all) => {
            let all = all.into_iter().map(|it| it.kept);
            let all = all.filter_map(|(host, kept)| Some((host, kept?)));
            let before = std::mem::replace(backups, all.collect());
            before != *backups
        }
        Event::Applied(new) => match new.kept {
            (host, Some(kept)) => put(backups, host, kept),
            (host, None) => backups.remove(&host).is_some(),
        },
        Event::Deleted(old) => backups.remove(&old.kept.0).is_some(),
        Event::Trouble(_) => false,
    }
}

/// Takes in what is told of objects; `is_its` says of a name whether it is of this kind. Whether
/// anything is another now.
fn take<N: Ord + Clone, T: PartialEq>(
    objects: &mut BTreeMap<N, Arc<T>>,
    told: Told<Arc<T>>,
    name: impl Fn(&T) -> N,
    is_its: impl Fn(&N) -> bool,
) -> bool {
    match told {
        Told::All(_, all) => {
            let there: BTreeSet<N> = all.iter().map(|it| name(it)).collect();
            let before = objects.len();
            objects.retain(|name, _| !is_its(name) || there.contains(name));
            let mut is_another = objects.len() != before;
            for object in all {
                is_another |= put(objects, name(&object), object);
            }
            is_another
        }
        Told::Put(object) => put(objects, name(&object), object),
        Told::Gone(object) => objects.remove(&name(&object)).is_some(),
        Told::NotInstalled => {
            let before = objects.len();
            objects.retain(|name, _| !is_its(name));
            objects.len() != before
        }
        Told::Trouble(_) => false,
    }
}

fn put<N: Ord, T: PartialEq>(objects: &mut BTreeMap<N, Arc<T>>, name: N, object: Arc<T>) -> bool {
    if objects.get(&name).is_some_and(|known| *known == object) {
        return false;
    }
    objects.insert(name, object);
    true
}
