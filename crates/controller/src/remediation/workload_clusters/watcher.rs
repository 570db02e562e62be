//! The task of one workload cluster: connects, checks, watches.

use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::remediation::{ObjectName, RemediationReason};
use dogwatch_k8s::cluster::ClusterWatch;
use dogwatch_k8s::workload_cluster::{
    CoordinatorPlace, KubeconfigSecret, WorkloadClusterError, WorkloadConnection,
    WorkloadConnector, find_coordinators, identify_cluster,
};
use dogwatch_runtime::jitter::JitterSource;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tracing::{info, warn};

use super::registry::{ObservedWorkloadCluster, WorkloadAccess, WorkloadRegistry};

/// How often a connected cluster and its Secret are checked. Source: Cluster API's cluster cache.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How often a cluster that could not be reached is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// A cluster that was reached must show its lists within this time.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// The shortest time between two views of one cluster.
const MIN_PUBLISH_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest time between two connections, if the Secret changes all the time.
const MIN_RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// What the tasks of all clusters share.
#[derive(Clone)]
pub(super) struct WorkloadWatchSettings {
    pub(super) connector: WorkloadConnector,
    /// Dogwatch's namespace in a cluster whose kubeconfig names none.
    pub(super) namespace: String,
    pub(super) jitter: JitterSource,
}

/// The task of one cluster.
pub(super) struct WorkloadWatcher {
    name: ObjectName,
    settings: WorkloadWatchSettings,
    registry: WorkloadRegistry,
    check: Arc<Notify>,
}

/// Why a connection ended.
enum ConnectionEnd {
    /// The Secret or the cluster has changed: connects again at once.
    Outdated,
    Failed(WorkloadClusterError),
}

impl WorkloadWatcher {
    pub(super) fn new(
        name: ObjectName,
        settings: WorkloadWatchSettings,
        registry: WorkloadRegistry,
        check: Arc<Notify>,
    ) -> Self {
        Self {
            name,
            settings,
            registry,
            check,
        }
    }

    pub(super) async fn follow_cluster(self) {
        loop {
            let began = Instant::now();
            let pause = match self.connect_and_watch().await {
                ConnectionEnd::Outdated => MIN_RECONNECT_INTERVAL,
                ConnectionEnd::Failed(error) => {
                    self.report_unreadable(&error);
                    RETRY_INTERVAL
                }
            };
            sleep_until(began + pause).await;
        }
    }

    fn report_unreadable(&self, error: &WorkloadClusterError) {
        let (cluster, reason) = (&self.name, error.reason.as_str());
        warn!(%cluster, reason, error = error.message, "a workload cluster cannot be used; retrying");
        let state = ObservedWorkloadCluster::Unreadable(error.reason, error.message.clone());
        self.registry.publish_state(&self.name, state);
    }

    async fn connect_and_watch(&self) -> ConnectionEnd {
        let connector = &self.settings.connector;
        let connection = match connector.connect_to_cluster(&self.name).await {
            Ok(connection) => connection,
            Err(error) => return ConnectionEnd::Failed(error),
        };
        match connector.read_management_uid().await {
            Ok(uid) if uid == connection.uid => self.follow_management(&connection).await,
            Ok(_) => self.watch_nodes(&connection).await,
            Err(error) => {
                let what = "the UID of the management cluster, to compare it with that";
                let error = WorkloadClusterError::from_request(&self.name, what, &error);
                ConnectionEnd::Failed(error)
            }
        }
    }

    /// The kubeconfig names the controller's own cluster: its watches show the Nodes already.
    async fn follow_management(&self, connection: &WorkloadConnection) -> ConnectionEnd {
        self.registry
            .publish_state(&self.name, ObservedWorkloadCluster::IsManagement);
        loop {
            self.wait_for_check(Instant::now() + CHECK_INTERVAL).await;
            if let Some(end) = self.check_connection(connection).await {
                return end;
            }
        }
    }

    async fn watch_nodes(&self, connection: &WorkloadConnection) -> ConnectionEnd {
        let cluster = &self.name;
        if let Some(end) = self.check_namespace(connection).await {
            return end;
        }
        let mut watch = self.open_watch(connection);
        if let Some(end) = self.wait_for_lists(connection, &mut watch).await {
            return end;
        }
        info!(%cluster, nodes = watch.current_view().nodes.len(), "a workload cluster is in sync");
        self.publish_view(connection, &watch);
        let mut next_check = Instant::now() + CHECK_INTERVAL;
        let (mut has_error, mut had_error) = (false, false);
        loop {
            tokio::select! {
                biased;
                () = self.wait_for_check(next_check) => {
                    if let Some(end) = self.check_connection(connection).await {
                        return end;
                    }
                    // What fails since the check before is not passing, and the view grows old.
                    if let Some(end) = self.lasting_watch_error(connection, &watch).filter(|_| had_error) {
                        return end;
                    }
                    had_error = has_error;
                    next_check = Instant::now() + CHECK_INTERVAL;
                }
                () = watch.wait_for_change() => {
                    let fails = !watch.current_view().errors.is_empty();
                    if fails && !has_error {
                        self.check.notify_one();
                    }
                    has_error = fails;
                    self.publish_view(connection, &watch);
                    sleep(MIN_PUBLISH_INTERVAL).await;
                }
            }
        }
    }

    fn open_watch(&self, connection: &WorkloadConnection) -> ClusterWatch {
        let (client, jitter) = (connection.client.clone(), self.settings.jitter.clone());
        let jitter = move || jitter.next_fraction();
        if connection.has_dogwatch {
            ClusterWatch::new(client, self.namespace_in(connection), jitter)
        } else {
            ClusterWatch::of_nodes(&client, jitter)
        }
    }

    /// Dogwatch's namespace in the cluster: its coordinators count the Leases there.
    fn namespace_in<'a>(&'a self, connection: &'a WorkloadConnection) -> &'a str {
        let named = connection.namespace.as_deref();
        named.unwrap_or(&self.settings.namespace)
    }

    /// Budgets count only the Leases of the coordinators' own namespace. `None`: the remediator takes
    /// its Leases there, as far as it can be seen.
    async fn check_namespace(&self, connection: &WorkloadConnection) -> Option<ConnectionEnd> {
        if !connection.has_dogwatch {
            return None;
        }
        let expected = self.namespace_in(connection);
        match find_coordinators(&connection.client, expected).await {
            Ok(CoordinatorPlace::Expected) => None,
            Ok(CoordinatorPlace::Elsewhere { namespace }) => {
                let message = format!(
                    "workload cluster {}: Dogwatch's coordinators there are in namespace {namespace}, and would not \
                     count a Lease in namespace {expected}: use Secret {}, and name {namespace} in the context of \
                     its kubeconfig",
                    self.name,
                    KubeconfigSecret::Dogwatch.secret_name(&self.name.name),
                );
                Some(ConnectionEnd::Failed(WorkloadClusterError {
                    reason: RemediationReason::WorkloadClusterUnreachable,
                    message,
                }))
            }
            Err(error) => {
                let what = "the pods of the coordinators";
                let error = WorkloadClusterError::from_request(&self.name, what, &error);
                Some(ConnectionEnd::Failed(error))
            }
        }
    }

    /// Waits until all lists have arrived; returns why they do not.
    async fn wait_for_lists(
        &self,
        connection: &WorkloadConnection,
        watch: &mut ClusterWatch,
    ) -> Option<ConnectionEnd> {
        let until = Instant::now() + SYNC_TIMEOUT;
        while !watch.current_view().synced {
            let waited = timeout_at(until, watch.wait_for_change()).await;
            let errors = &watch.current_view().errors;
            let first = errors
                .iter()
                .next()
                .filter(|_| !watch.current_view().synced);
            let text = match (first, waited) {
                (Some((kind, error)), _) => format!("failed to read {kind}: {error}"),
                (None, Err(_)) => "its lists did not arrive in time".to_owned(),
                (None, Ok(())) => continue,
            };
            return Some(self.unreadable_lists(connection, &text));
        }
        None
    }

    fn lasting_watch_error(
        &self,
        connection: &WorkloadConnection,
        watch: &ClusterWatch,
    ) -> Option<ConnectionEnd> {
        let (kind, error) = watch.current_view().errors.iter().next()?;
        Some(self.unreadable_lists(connection, &format!("failed to read {kind}: {error}")))
    }

    fn unreadable_lists(&self, connection: &WorkloadConnection, text: &str) -> ConnectionEnd {
        let place = if connection.has_dogwatch {
            format!(
                ". Dogwatch's namespace there is taken to be {}, {}",
                self.namespace_in(connection),
                describe_namespace_source(connection)
            )
        } else {
            String::new()
        };
        let message = format!(
            "workload cluster {}: {text}; look at its API server and at the rights of the account there{place}",
            self.name
        );
        ConnectionEnd::Failed(WorkloadClusterError {
            reason: RemediationReason::WorkloadClusterUnreachable,
            message,
        })
    }

    async fn wait_for_check(&self, at: Instant) {
        tokio::select! {
            biased;
            () = self.check.notified() => {}
            () = sleep_until(at) => {}
        }
    }

    /// Checks the Secret and the cluster; `None`: the connection goes on.
    async fn check_connection(&self, connection: &WorkloadConnection) -> Option<ConnectionEnd> {
        let connector = &self.settings.connector;
        match connector.read_secret_version(&self.name).await {
            Ok(version) if version == connection.secret_version => {}
            Ok(_) => return Some(ConnectionEnd::Outdated),
            Err(error) => return Some(ConnectionEnd::Failed(error)),
        }
        match identify_cluster(&connection.client, &self.name).await {
            Ok((uid, has_dogwatch))
                if uid == connection.uid && has_dogwatch == connection.has_dogwatch =>
            {
                None
            }
            Ok(_) => Some(ConnectionEnd::Outdated),
            Err(error) => Some(ConnectionEnd::Failed(error)),
        }
    }

    fn publish_view(&self, connection: &WorkloadConnection, watch: &ClusterWatch) {
        let access = WorkloadAccess {
            client: connection.client.clone(),
            uid: connection.uid.clone(),
            has_dogwatch: connection.has_dogwatch,
            namespace: self.namespace_in(connection).to_owned(),
            view: Arc::new(watch.current_view().clone()),
        };
        self.registry
            .publish_state(&self.name, ObservedWorkloadCluster::Readable(access));
    }
}

fn describe_namespace_source(connection: &WorkloadConnection) -> &'static str {
    match connection.namespace {
        Some(_) => "which the kubeconfig's context names",
        None => {
            "which is its name here: if it has another name, write that into the context of Dogwatch's own kubeconfig"
        }
    }
}
