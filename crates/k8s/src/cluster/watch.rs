//! Runs the three watches behind one [`ClusterView`].

use std::collections::BTreeMap;
use std::sync::Arc;

use dogwatch_core::name::NodeName;
use dogwatch_core::policy::{ClusterPolicies, Policy};
use dogwatch_core::reboot::ObservedNode;
use futures::FutureExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};

use super::view::{ClusterView, LeaseObject, PolicyObjectState};
use crate::error::{ApiErrorKind, Error};
use crate::informer::{InformerEvent, JitterFunction, KindInformer, KindRecheck};
use crate::lock::TrimmedLeases;
use crate::node::observed_node;
use crate::paged::{PagedObjects, TrimmedObject};
use crate::policy::{PolicyObject, convert_policy_object, unreadable_policies};
use crate::watch::{FullObjects, ObjectSelection};

/// Keeps a [`ClusterView`] up to date.
pub struct ClusterWatch {
    nodes: KindInformer<NodeName, Arc<ObservedNode>>,
    /// `None`: Dogwatch is not installed in the cluster.
    dogwatch: Option<DogwatchInformers>,
    known_policies: BTreeMap<String, KnownPolicy>,
    view: ClusterView,
}

type KnownPolicy = (Policy, Arc<PolicyObjectState>);

/// The watches of what Dogwatch keeps in a cluster where it is installed.
struct DogwatchInformers {
    leases: KindInformer<String, Arc<LeaseObject>>,
    policies: KindInformer<String, KnownPolicy>,
}

enum ClusterChange {
    Node(InformerEvent<NodeName, Arc<ObservedNode>>),
    Lease(InformerEvent<String, Arc<LeaseObject>>),
    Policy(Box<InformerEvent<String, KnownPolicy>>),
}

impl ClusterWatch {
    /// Watches the cluster whose Dogwatch runs in `namespace`. Sends nothing before
    /// [`Self::wait_for_change`] is awaited. `jitter` returns a number in 0..1 for each pause.
    pub fn new(
        client: Client,
        namespace: &str,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Self {
        let jitter: JitterFunction = Arc::new(jitter);
        Self {
            nodes: inform_of_nodes(&client, &jitter),
            dogwatch: Some(DogwatchInformers {
                leases: inform_of_leases(&client, namespace, &jitter),
                policies: inform_of_policies(client, &jitter),
            }),
            known_policies: BTreeMap::new(),
            view: ClusterView::default(),
        }
    }

    /// Watches the Nodes of a cluster in which Dogwatch is not installed: it has no Leases and no
    /// policies there.
    pub fn of_nodes(client: &Client, jitter: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        let jitter: JitterFunction = Arc::new(jitter);
        Self {
            nodes: inform_of_nodes(client, &jitter),
            dogwatch: None,
            known_policies: BTreeMap::new(),
            view: ClusterView {
                policies: ClusterPolicies::Known(Vec::new()),
                ..ClusterView::default()
            },
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
        let Some(dogwatch) = &mut self.dogwatch else {
            return ClusterChange::Node(self.nodes.next_event().await);
        };
        tokio::select! {
            // The one that changes least comes first, so that no other delays it.
            biased;
            event = dogwatch.policies.next_event() => ClusterChange::Policy(Box::new(event)),
            event = dogwatch.leases.next_event() => ClusterChange::Lease(event),
            event = self.nodes.next_event() => ClusterChange::Node(event),
        }
    }

    fn apply_change(&mut self, change: ClusterChange) {
        match change {
            ClusterChange::Node(event) => {
                let error = event.apply_to(&mut self.view.nodes);
                self.record_error("nodes", error);
            }
            ClusterChange::Lease(event) => {
                let error = event.apply_to(&mut self.view.leases);
                self.record_error("leases", error);
            }
            ClusterChange::Policy(event) => self.apply_policy(*event),
        }
        let dogwatch = self.dogwatch.as_ref();
        let is_rest_synced =
            dogwatch.is_none_or(|it| it.leases.is_synced() && it.policies.is_synced());
        self.view.synced = self.nodes.is_synced() && is_rest_synced;
    }

    /// If the kind is not installed, there are no policies; if it is forbidden, they are
    /// unreadable.
    fn apply_policy(&mut self, event: InformerEvent<String, KnownPolicy>) {
        let refused = match &event {
            InformerEvent::Forbidden(error) => unreadable_policies(error),
            // A second answer has to confirm that the kind is gone or forbidden.
            InformerEvent::Failed(error)
                if error.kind() == ApiErrorKind::NotFound || error.is_denied() =>
            {
                return;
            }
            InformerEvent::Failed(_)
            | InformerEvent::Listed(_)
            | InformerEvent::Applied(..)
            | InformerEvent::Deleted(_)
            | InformerEvent::NotInstalled => None,
        };
        let error = event.apply_to(&mut self.known_policies);
        if refused.is_none() && error.is_some() {
            return self.record_error("policies", error);
        }
        self.record_error("policies", None);
        let known = &self.known_policies;
        let objects = known.iter();
        let objects = objects.map(|(name, (_, object))| (name.clone(), Arc::clone(object)));
        self.view.policy_objects = objects.collect();
        let policies = known.values().map(|(policy, _)| policy.clone());
        let policies = ClusterPolicies::Known(policies.collect());
        self.view.policies = refused.unwrap_or(policies);
    }

    fn record_error(&mut self, what: &'static str, error: Option<Error>) {
        match error {
            Some(error) => self.view.errors.insert(what, error.error_chain()),
            None => self.view.errors.remove(what),
        };
    }
}

/// A Node has 10 KiB and more, mostly image names; the trimmed Node has a fifth of that. A Node
/// whose name the API server would not have accepted is ignored.
fn inform_of_nodes(
    client: &Client,
    jitter: &JitterFunction,
) -> KindInformer<NodeName, Arc<ObservedNode>> {
    let nodes = PagedObjects {
        api: Api::<Node>::all(client.clone()),
        keep: Arc::new(|node: &Node| observed_node(node).ok().map(Arc::new)),
    };
    KindInformer::new(
        nodes,
        ObjectSelection::default(),
        KindRecheck::AlwaysServed,
        jitter,
        |node: &TrimmedObject<Option<Arc<ObservedNode>>>| {
            let node = node.kept.clone()?;
            Some((node.name.clone(), node))
        },
    )
}

fn inform_of_leases(
    client: &Client,
    namespace: &str,
    jitter: &JitterFunction,
) -> KindInformer<String, Arc<LeaseObject>> {
    KindInformer::new(
        TrimmedLeases(Api::namespaced(client.clone(), namespace)),
        ObjectSelection::default(),
        KindRecheck::AlwaysServed,
        jitter,
        |lease: &Lease| Some((lease.name_any(), Arc::new(LeaseObject::from_lease(lease)))),
    )
}

fn inform_of_policies(
    client: Client,
    jitter: &JitterFunction,
) -> KindInformer<String, KnownPolicy> {
    KindInformer::new(
        FullObjects(Api::<PolicyObject>::all(client)),
        ObjectSelection::default(),
        KindRecheck::WatchPauses,
        jitter,
        |object: &PolicyObject| {
            let name = object.name_any();
            let policy = convert_policy_object(object);
            Some((
                name,
                (policy, Arc::new(PolicyObjectState::from_object(object))),
            ))
        },
    )
}
