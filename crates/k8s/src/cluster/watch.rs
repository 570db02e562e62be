//! Three watches behind one view.

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::policy::{Policies, Policy};
use dogwatch_core::reboot::NodeSeen;
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};

use super::view::{ClusterView, LeaseObject, PolicyStanding};
use crate::error::{Error, Kind};
use crate::lock::Leases;
use crate::node::node_seen;
use crate::paged::{Paged, Trimmed};
use crate::policy::{PolicyObject, convert, unreadable};
use crate::watch::{Event, Full, Selection, watch};

/// Keeps a [`ClusterView`] up to date.
pub struct ClusterWatch {
    client: Client,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    node_events: BoxStream<'static, Event<TrimmedNode>>,
    lease_events: BoxStream<'static, Event<Lease>>,
    policy_events: BoxStream<'static, Event<PolicyObject>>,
    known_policies: BTreeMap<String, Policy>,
    /// A list of policies has come since their watch was begun.
    policies_open: bool,
    listed: Listed,
    view: ClusterView,
}

#[derive(Default)]
struct Listed {
    nodes: bool,
    leases: bool,
    policies: bool,
}

/// `None`: of a name that no API server would accept.
type TrimmedNode = Trimmed<Option<Arc<NodeSeen>>>;

enum Change {
    Node(Event<TrimmedNode>),
    Lease(Event<Lease>),
    Policy(Event<PolicyObject>),
}

impl ClusterWatch {
    /// Watches the cluster whose Dogwatch lives in `namespace`; nothing is sent before
    /// [`Self::changed`] is awaited. `jitter` gives a number in 0..1 for each pause.
    pub fn new(
        client: Client,
        namespace: &str,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let jitter: Arc<dyn Fn() -> f64 + Send + Sync> = Arc::new(jitter);
        let pauses = || {
            let jitter = Arc::clone(&jitter);
            move || jitter()
        };
        let everything = Selection::default;
        // A Node is 10 KiB and more, most of it its images; what is kept of it is a fifth.
        let nodes = Paged {
            api: Api::<Node>::all(client.clone()),
            keep: Arc::new(|node: &Node| node_seen(node).ok().map(Arc::new)),
        };
        let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
        Self {
            node_events: watch(nodes, everything(), pauses()).boxed(),
            lease_events: watch(Leases(leases), everything(), pauses()).boxed(),
            policy_events: policies(&client, &jitter),
            client,
            jitter,
            known_policies: BTreeMap::new(),
            policies_open: false,
            listed: Listed::default(),
            view: ClusterView::default(),
        }
    }

    /// What is seen now.
    pub fn view(&self) -> &ClusterView {
        &self.view
    }

    /// Waits for the next change, and takes with it whatever else has arrived. Losing the future
    /// loses nothing.
    pub async fn changed(&mut self) {
        let change = self.next().await;
        self.take(change);
        while let Some(change) = self.next().now_or_never() {
            self.take(change);
        }
    }

    async fn next(&mut self) -> Change {
        const NEVER: &str = "a watch has no end";
        tokio::select! {
            event = self.node_events.next() => Change::Node(event.expect(NEVER)),
            event = self.lease_events.next() => Change::Lease(event.expect(NEVER)),
            event = self.policy_events.next() => Change::Policy(event.expect(NEVER)),
        }
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Node(event) => self.take_node(event),
            Change::Lease(event) => self.take_lease(event),
            Change::Policy(event) => self.take_policy(event),
        }
        let Listed {
            nodes,
            leases,
            policies,
        } = self.listed;
        self.view.synced = nodes && leases && policies;
    }

    fn take_node(&mut self, event: Event<TrimmedNode>) {
        let nodes = &mut self.view.nodes;
        let entry = |seen: Arc<NodeSeen>| (seen.name.clone(), seen);
        match event {
            Event::Restarted(all) => {
                *nodes = all
                    .into_iter()
                    .filter_map(|it| it.kept)
                    .map(entry)
                    .collect();
                self.listed.nodes = true;
            }
            Event::Applied(node) => nodes.extend(node.kept.map(entry)),
            Event::Deleted(node) => {
                if let Some(seen) = node.kept {
                    nodes.remove(&seen.name);
                }
            }
            Event::Trouble(error) => return self.trouble("nodes", &error),
        }
        self.view.trouble.remove("nodes");
    }

    fn take_lease(&mut self, event: Event<Lease>) {
        let leases = &mut self.view.leases;
        let entry = |lease: &Lease| (lease.name_any(), Arc::new(LeaseObject::of(lease)));
        match event {
            Event::Restarted(all) => {
                *leases = all.iter().map(entry).collect();
                self.listed.leases = true;
            }
            Event::Applied(lease) => leases.extend([entry(&lease)]),
            Event::Deleted(lease) => {
                leases.remove(&lease.name_any());
            }
            Event::Trouble(error) => return self.trouble("leases", &error),
        }
        self.view.trouble.remove("leases");
    }

    fn take_policy(&mut self, event: Event<PolicyObject>) {
        match event {
            Event::Restarted(all) => {
                self.known_policies.clear();
                self.view.policy_objects.clear();
                for object in &all {
                    self.put_policy(object);
                }
                self.policies_open = true;
                self.listed.policies = true;
            }
            Event::Applied(object) => self.put_policy(&object),
            Event::Deleted(object) => {
                let name = object.name_any();
                self.known_policies.remove(&name);
                self.view.policy_objects.remove(&name);
            }
            Event::Trouble(error) => return self.policy_trouble(&error),
        }
        self.view.trouble.remove("policies");
        self.view.policies = Policies::Known(self.known_policies.values().cloned().collect());
    }

    fn put_policy(&mut self, object: &PolicyObject) {
        let name = object.name_any();
        let policy = convert(&name, &object.spec);
        self.known_policies.insert(name.clone(), policy);
        let standing = Arc::new(PolicyStanding::of(object));
        self.view.policy_objects.insert(name, standing);
    }

    /// Not installed is no policies, forbidden is unreadable; both are asked again by the watch's
    /// own pauses. After a list had come it begins anew: a watch that is let in again would not
    /// repeat what stands.
    fn policy_trouble(&mut self, error: &Error) {
        let refused = unreadable(error);
        if refused.is_none() && error.kind() != Kind::NotFound {
            return self.trouble("policies", error);
        }
        if std::mem::take(&mut self.policies_open) {
            self.policy_events = policies(&self.client, &self.jitter);
            return;
        }
        self.known_policies.clear();
        self.view.policy_objects.clear();
        self.view.policies = refused.unwrap_or(Policies::Known(Vec::new()));
        // It is known how things stand, and that is what synced means.
        self.listed.policies = true;
    }

    fn trouble(&mut self, what: &'static str, error: &Error) {
        self.view.trouble.insert(what, error.in_words());
    }
}

fn policies(
    client: &Client,
    jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
) -> BoxStream<'static, Event<PolicyObject>> {
    let jitter = Arc::clone(jitter);
    let all: Api<PolicyObject> = Api::all(client.clone());
    watch(Full(all), Selection::default(), move || jitter()).boxed()
}
