//! Runs the three watches behind one [`ClusterView`].

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::policy::{ClusterPolicies, Policy};
use dogwatch_core::reboot::ObservedNode;
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};

use super::view::{ClusterView, LeaseObject, PolicyObjectState};
use crate::error::{ApiErrorKind, Error};
use crate::lock::TrimmedLeases;
use crate::node::observed_node;
use crate::paged::{PagedObjects, TrimmedObject};
use crate::policy::{PolicyObject, convert_policy, unreadable_policies};
use crate::watch::{FullObjects, ObjectEvent, ObjectSelection, list_and_watch};

/// Keeps a [`ClusterView`] up to date.
pub struct ClusterWatch {
    client: Client,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
    node_events: BoxStream<'static, ObjectEvent<TrimmedNode>>,
    lease_events: BoxStream<'static, ObjectEvent<Lease>>,
    policy_events: BoxStream<'static, ObjectEvent<PolicyObject>>,
    known_policies: BTreeMap<String, Policy>,
    /// The current watch of policies has delivered a list.
    policies_open: bool,
    listed: ListedKinds,
    view: ClusterView,
}

#[derive(Default)]
struct ListedKinds {
    nodes: bool,
    leases: bool,
    policies: bool,
}

/// `None`: the API server would not have accepted the Node's name.
type TrimmedNode = TrimmedObject<Option<Arc<ObservedNode>>>;

enum ClusterChange {
    Node(ObjectEvent<TrimmedNode>),
    Lease(ObjectEvent<Lease>),
    Policy(ObjectEvent<PolicyObject>),
}

impl ClusterWatch {
    /// Watches the cluster whose Dogwatch runs in `namespace`. Sends nothing before
    /// [`Self::wait_for_change`] is awaited. `jitter` returns a number in 0..1 for each pause.
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
        let everything = ObjectSelection::default;
        // A Node has 10 KiB and more, mostly image names; the trimmed Node has a fifth of that.
        let nodes = PagedObjects {
            api: Api::<Node>::all(client.clone()),
            keep: Arc::new(|node: &Node| observed_node(node).ok().map(Arc::new)),
        };
        let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
        Self {
            node_events: list_and_watch(nodes, everything(), pauses()).boxed(),
            lease_events: list_and_watch(TrimmedLeases(leases), everything(), pauses()).boxed(),
            policy_events: watch_policy_objects(&client, &jitter),
            client,
            jitter,
            known_policies: BTreeMap::new(),
            policies_open: false,
            listed: ListedKinds::default(),
            view: ClusterView::default(),
        }
    }

    pub fn current_view(&self) -> &ClusterView {
        &self.view
    }

    /// Waits for the next change, and applies all other changes that have arrived. Cancel-safe.
    pub async fn wait_for_change(&mut self) {
        let change = self.next_change().await;
        self.apply_change(change);
        while let Some(change) = self.next_change().now_or_never() {
            self.apply_change(change);
        }
    }

    async fn next_change(&mut self) -> ClusterChange {
        const WATCH_NEVER_ENDS: &str = "a watch has no end";
        tokio::select! {
            event = self.node_events.next() => ClusterChange::Node(event.expect(WATCH_NEVER_ENDS)),
            event = self.lease_events.next() => ClusterChange::Lease(event.expect(WATCH_NEVER_ENDS)),
            event = self.policy_events.next() => ClusterChange::Policy(event.expect(WATCH_NEVER_ENDS)),
        }
    }

    fn apply_change(&mut self, change: ClusterChange) {
        match change {
            ClusterChange::Node(event) => self.apply_node(event),
            ClusterChange::Lease(event) => self.apply_lease(event),
            ClusterChange::Policy(event) => self.apply_policy(event),
        }
        let ListedKinds {
            nodes,
            leases,
            policies,
        } = self.listed;
        self.view.synced = nodes && leases && policies;
    }

    fn apply_node(&mut self, event: ObjectEvent<TrimmedNode>) {
        let nodes = &mut self.view.nodes;
        let entry = |seen: Arc<ObservedNode>| (seen.name.clone(), seen);
        match event {
            ObjectEvent::Restarted(all) => {
                *nodes = all
                    .into_iter()
                    .filter_map(|it| it.kept)
                    .map(entry)
                    .collect();
                self.listed.nodes = true;
            }
            ObjectEvent::Applied(node) => nodes.extend(node.kept.map(entry)),
            ObjectEvent::Deleted(node) => {
                if let Some(seen) = node.kept {
                    nodes.remove(&seen.name);
                }
            }
            ObjectEvent::Failed(error) => return self.record_error("nodes", &error),
        }
        self.view.errors.remove("nodes");
    }

    fn apply_lease(&mut self, event: ObjectEvent<Lease>) {
        let leases = &mut self.view.leases;
        let entry = |lease: &Lease| (lease.name_any(), Arc::new(LeaseObject::from_lease(lease)));
        match event {
            ObjectEvent::Restarted(all) => {
                *leases = all.iter().map(entry).collect();
                self.listed.leases = true;
            }
            ObjectEvent::Applied(lease) => leases.extend([entry(&lease)]),
            ObjectEvent::Deleted(lease) => {
                leases.remove(&lease.name_any());
            }
            ObjectEvent::Failed(error) => return self.record_error("leases", &error),
        }
        self.view.errors.remove("leases");
    }

    fn apply_policy(&mut self, event: ObjectEvent<PolicyObject>) {
        match event {
            ObjectEvent::Restarted(all) => {
                self.known_policies.clear();
                self.view.policy_objects.clear();
                for object in &all {
                    self.store_policy(object);
                }
                self.policies_open = true;
                self.listed.policies = true;
            }
            ObjectEvent::Applied(object) => self.store_policy(&object),
            ObjectEvent::Deleted(object) => {
                let name = object.name_any();
                self.known_policies.remove(&name);
                self.view.policy_objects.remove(&name);
            }
            ObjectEvent::Failed(error) => return self.handle_policy_error(&error),
        }
        self.view.errors.remove("policies");
        self.view.policies =
            ClusterPolicies::Known(self.known_policies.values().cloned().collect());
    }

    fn store_policy(&mut self, object: &PolicyObject) {
        let name = object.name_any();
        let policy = convert_policy(&name, &object.spec);
        self.known_policies.insert(name.clone(), policy);
        let standing = Arc::new(PolicyObjectState::from_object(object));
        self.view.policy_objects.insert(name, standing);
    }

    /// If the kind is not installed, there are no policies; if it is forbidden, they are
    /// unreadable. The watch retries both with its own pauses. If a list had arrived, the watch
    /// restarts: once permitted again, the old one would not repeat the existing objects.
    fn handle_policy_error(&mut self, error: &Error) {
        let refused = unreadable_policies(error);
        if refused.is_none() && error.kind() != ApiErrorKind::NotFound {
            return self.record_error("policies", error);
        }
        if std::mem::take(&mut self.policies_open) {
            self.policy_events = watch_policy_objects(&self.client, &self.jitter);
            return;
        }
        self.known_policies.clear();
        self.view.policy_objects.clear();
        self.view.policies = refused.unwrap_or(ClusterPolicies::Known(Vec::new()));
        // We know that the kind is absent or forbidden, which counts as synced.
        self.listed.policies = true;
    }

    fn record_error(&mut self, what: &'static str, error: &Error) {
        self.view.errors.insert(what, error.error_chain());
    }
}

fn watch_policy_objects(
    client: &Client,
    jitter: &Arc<dyn Fn() -> f64 + Send + Sync>,
) -> BoxStream<'static, ObjectEvent<PolicyObject>> {
    let jitter = Arc::clone(jitter);
    let all: Api<PolicyObject> = Api::all(client.clone());
    list_and_watch(FullObjects(all), ObjectSelection::default(), move || {
        jitter()
    })
    .boxed()
}
