//! Connects to the workload clusters of Cluster API.
//!
//! **For:** the remediator, whose Machines and Nodes may live in two clusters.
//! **May touch:** one Secret per Cluster in the management cluster (get, by name); in the workload
//! cluster the namespace `kube-system` (get), the list of API groups, and the metadata of the
//! coordinators' pods (list).
//! **Promises:** nothing on the disk is read and no program is run because of a kubeconfig; no error
//! text contains a credential; each request ends within [`WORKLOAD_REQUEST_TIMEOUT`].
//!
//! Source: specification §10.5; Cluster API's contract for kubeconfig Secrets.

use std::time::Duration;

use dogwatch_api::{power_remediation, reboot_policy};
use dogwatch_core::remediation::{ObjectName, RemediationReason};
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use crate::connect::{ContextConnection, connect_by_kubeconfig_text};
use crate::error::{ApiErrorKind, Error, with_custom_timeout};
use crate::readable_dates::ReadableApi as _;

/// Limit for one request of this module. Source: Cluster API's cluster cache.
pub const WORKLOAD_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Type of Cluster API's Secrets.
const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";
/// Label of Cluster API's Secrets: the Cluster's name.
pub(crate) const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// The key with the kubeconfig.
const KUBECONFIG_KEY: &str = "value";
/// Selects the pods of `deploy/base/daemonset.yaml`.
const COORDINATOR_PODS: &str = "app.kubernetes.io/name=dogwatch-coordinator";
/// The namespace whose UID identifies a cluster.
const IDENTITY_NAMESPACE: &str = "kube-system";

/// Which Secret has the kubeconfig of a workload cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KubeconfigSecret {
    /// `CLUSTER-dogwatch-kubeconfig`: an account of Dogwatch's own.
    Dogwatch,
    /// `CLUSTER-kubeconfig`, which Cluster API reserves for itself: an administrator.
    ClusterApi,
}

impl KubeconfigSecret {
    pub fn secret_name(self, cluster: &str) -> String {
        match self {
            KubeconfigSecret::Dogwatch => format!("{cluster}-dogwatch-kubeconfig"),
            KubeconfigSecret::ClusterApi => format!("{cluster}-kubeconfig"),
        }
    }
}

/// A workload cluster that answered.
#[derive(Clone)]
pub struct WorkloadConnection {
    pub client: Client,
    /// UID of its namespace `kube-system`.
    pub uid: String,
    /// Whether Dogwatch's kinds are installed there.
    pub has_dogwatch: bool,
    /// Dogwatch's namespace there, if a kubeconfig that was made for Dogwatch names one.
    pub namespace: Option<String>,
    /// Identifies the Secret's content.
    pub secret_version: String,
}

/// Why a workload cluster cannot be used: a reason, and a message that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadClusterError {
    pub reason: RemediationReason,
    pub message: String,
}

impl WorkloadClusterError {
    fn new(reason: RemediationReason, message: String) -> Self {
        Self { reason, message }
    }

    /// A request to the workload cluster failed.
    pub fn from_request(cluster: &ObjectName, what: &str, error: &Error) -> Self {
        let next = match error.kind() {
            ApiErrorKind::Forbidden if error.is_unauthorized() => {
                "renew the credential in the Secret"
            }
            ApiErrorKind::Forbidden => {
                "give the account its rights: dogwatch manifests --workload-cluster"
            }
            ApiErrorKind::NotFound
            | ApiErrorKind::AlreadyExists
            | ApiErrorKind::Conflict
            | ApiErrorKind::Gone
            | ApiErrorKind::Throttled { .. }
            | ApiErrorKind::Refused
            | ApiErrorKind::Transient => "look at its API server, and at the network to it",
        };
        let text = format!(
            "failed to read {what} of workload cluster {cluster}: {}; {next}",
            error.error_chain()
        );
        Self::new(RemediationReason::WorkloadClusterUnreachable, text)
    }
}

/// Reads the kubeconfigs of workload clusters in the management cluster.
#[derive(Clone)]
pub struct WorkloadConnector {
    management: Client,
    which: KubeconfigSecret,
}

impl WorkloadConnector {
    pub fn new(management: Client, which: KubeconfigSecret) -> Self {
        Self { management, which }
    }

    /// UID of the management cluster.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn read_management_uid(&self) -> Result<String, Error> {
        read_cluster_uid(&self.management).await
    }

    /// The version of the Secret now; a connection with another version is outdated.
    ///
    /// # Errors
    /// There is no Secret, or it cannot be read.
    pub async fn read_secret_version(
        &self,
        cluster: &ObjectName,
    ) -> Result<String, WorkloadClusterError> {
        let secret = self.read_secret(cluster).await?;
        Ok(secret_version(&secret))
    }

    /// Reads the Secret, connects, and asks which cluster it is.
    ///
    /// # Errors
    /// [`WorkloadClusterError`] says at which step it failed, and what to do.
    pub async fn connect_to_cluster(
        &self,
        cluster: &ObjectName,
    ) -> Result<WorkloadConnection, WorkloadClusterError> {
        let secret = self.read_secret(cluster).await?;
        let text = self.check_secret(cluster, &secret)?;
        let connected = connect_by_kubeconfig_text(text).await;
        let ContextConnection { client, namespace } = connected.map_err(|refusal| {
            let secret = self.describe_secret(cluster);
            let text = format!("the kubeconfig in {secret} {refusal}: correct it");
            WorkloadClusterError::new(RemediationReason::KubeconfigInvalid, text)
        })?;
        let (uid, has_dogwatch) = identify_cluster(&client, cluster).await?;
        let namespace = match self.which {
            KubeconfigSecret::Dogwatch => namespace,
            // Nobody wrote that context for Dogwatch, and its owner writes it again.
            KubeconfigSecret::ClusterApi => None,
        };
        Ok(WorkloadConnection {
            client,
            uid,
            has_dogwatch,
            namespace,
            secret_version: secret_version(&secret),
        })
    }

    async fn read_secret(&self, cluster: &ObjectName) -> Result<Secret, WorkloadClusterError> {
        let secrets: Api<Secret> = Api::namespaced(self.management.clone(), &cluster.namespace);
        let name = self.which.secret_name(&cluster.name);
        let read = with_custom_timeout(WORKLOAD_REQUEST_TIMEOUT, secrets.get_opt(&name)).await;
        let secret = self.describe_secret(cluster);
        let missing =
            |text: String| WorkloadClusterError::new(RemediationReason::KubeconfigMissing, text);
        match read {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(missing(format!(
                "there is no {secret} with a kubeconfig of workload cluster {cluster}: create it \
                 (dogwatch manifests --workload-cluster)"
            ))),
            Err(error) if error.kind() == ApiErrorKind::Forbidden => Err(missing(format!(
                "the controller may not read {secret}: deploy/workload-clusters gives it that right"
            ))),
            Err(error) => Err(WorkloadClusterError::new(
                RemediationReason::WorkloadClusterUnreachable,
                format!("failed to read {secret}: {}", error.error_chain()),
            )),
        }
    }

    fn check_secret<'a>(
        &self,
        cluster: &ObjectName,
        secret: &'a Secret,
    ) -> Result<&'a [u8], WorkloadClusterError> {
        let invalid = |what: &str| {
            let text = format!("{} {what}", self.describe_secret(cluster));
            WorkloadClusterError::new(RemediationReason::KubeconfigInvalid, text)
        };
        if secret.type_.as_deref() != Some(SECRET_TYPE) {
            return Err(invalid(
                "is not of type cluster.x-k8s.io/secret: create it anew",
            ));
        }
        if secret.labels().get(CLUSTER_NAME_LABEL) != Some(&cluster.name) {
            return Err(invalid(
                "has no label cluster.x-k8s.io/cluster-name with the Cluster's name: set it",
            ));
        }
        let value = secret
            .data
            .as_ref()
            .and_then(|data| data.get(KUBECONFIG_KEY));
        let value = value.ok_or_else(|| invalid("has no key `value` with the kubeconfig"))?;
        Ok(&value.0)
    }

    fn describe_secret(&self, cluster: &ObjectName) -> String {
        let name = self.which.secret_name(&cluster.name);
        format!("Secret {}/{name}", cluster.namespace)
    }
}

/// Asks the cluster for its UID and whether Dogwatch's kinds are installed there.
///
/// # Errors
/// When a request fails.
pub async fn identify_cluster(
    client: &Client,
    cluster: &ObjectName,
) -> Result<(String, bool), WorkloadClusterError> {
    let failed = |what: &'static str| {
        move |error: Error| WorkloadClusterError::from_request(cluster, what, &error)
    };
    let uid = read_cluster_uid(client).await;
    let uid = uid.map_err(failed("namespace kube-system"))?;
    let is_installed = is_dogwatch_installed(client).await;
    Ok((uid, is_installed.map_err(failed("the API groups"))?))
}

/// Where the coordinators of a workload cluster are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoordinatorPlace {
    /// In the expected namespace, or nowhere: they may run without pods, or be installed later.
    Expected,
    /// Only in another one: they would not count a Lease in the expected namespace.
    Elsewhere { namespace: String },
}

/// Looks for the coordinators' pods in the namespace where Dogwatch is expected, and if there are
/// none, everywhere.
///
/// # Errors
/// When a request fails. An account that may not list pods finds none.
pub async fn find_coordinators(client: &Client, expected: &str) -> Result<CoordinatorPlace, Error> {
    let here = Api::namespaced(client.clone(), expected);
    if first_coordinator(here).await?.is_some() {
        return Ok(CoordinatorPlace::Expected);
    }
    let elsewhere = first_coordinator(Api::all(client.clone())).await?;
    let namespace = elsewhere.filter(|namespace| namespace != expected);
    Ok(namespace.map_or(CoordinatorPlace::Expected, |namespace| {
        CoordinatorPlace::Elsewhere { namespace }
    }))
}

/// The namespace of a coordinator's pod.
async fn first_coordinator(pods: Api<Pod>) -> Result<Option<String>, Error> {
    let params = ListParams::default().labels(COORDINATOR_PODS).limit(1);
    let list = pods.list_readable_metadata(&params);
    match with_custom_timeout(WORKLOAD_REQUEST_TIMEOUT, list).await {
        Ok(list) => Ok(list.items.first().and_then(ResourceExt::namespace)),
        Err(error) if error.kind() == ApiErrorKind::Forbidden => Ok(None),
        Err(error) => Err(error),
    }
}

async fn read_cluster_uid(client: &Client) -> Result<String, Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let read = namespaces.get_metadata(IDENTITY_NAMESPACE);
    let found = with_custom_timeout(WORKLOAD_REQUEST_TIMEOUT, read).await?;
    let uid = found.metadata.uid.filter(|uid| !uid.is_empty());
    uid.ok_or_else(|| Error::Unreadable("namespace kube-system has no UID".to_owned()))
}

/// Discovery needs no right of the account.
async fn is_dogwatch_installed(client: &Client) -> Result<bool, Error> {
    let group_version = power_remediation::API_VERSION;
    let read = client.list_api_group_resources(group_version);
    match with_custom_timeout(WORKLOAD_REQUEST_TIMEOUT, read).await {
        Ok(list) => Ok(list
            .resources
            .iter()
            .any(|it| it.name == reboot_policy::PLURAL)),
        Err(error) if error.kind() == ApiErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn secret_version(secret: &Secret) -> String {
    let uid = secret.uid().unwrap_or_default();
    format!("{uid}/{}", secret.resource_version().unwrap_or_default())
}
