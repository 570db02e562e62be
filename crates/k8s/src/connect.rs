//! Connects to the cluster that the environment names, by kubectl's rules.
//!
//! **May touch:** `KUBECONFIG`, `~/.kube/config` and the pod's service account. No other module of
//! this crate reads the environment or files.
//! **Promises:** if a cluster is named but unusable, that is an error, and no other cluster is
//! tried; connecting sends no request; a connection that is not established within
//! [`CONNECT_TIMEOUT`] fails; no request is retried without the caller's knowledge.

mod certificate;
mod workload;

use std::path::PathBuf;
use std::time::Duration;

use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use crate::deadline::SendDeadlineService;

pub use certificate::connect_by_certificate;
pub use workload::{ContextConnection, KubeconfigRefusal, connect_by_kubeconfig_text};

/// Limit for establishing a TCP and TLS connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an idle connection is kept for reuse. An API server closes it after 90 s; a request
/// that is sent at that moment would look like a lost answer.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(80);

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "no cluster is named: KUBECONFIG is not set, there is no ~/.kube/config, and this is not a pod"
    )]
    NoCluster,
    /// A kubeconfig exists but cannot be used.
    #[error("the kubeconfig{} cannot be used", file(.path.as_ref()))]
    Kubeconfig {
        /// The path of `~/.kube/config`; `None` if `KUBECONFIG` names the file.
        path: Option<PathBuf>,
        #[source]
        source: KubeconfigError,
    },
    /// A context was requested, which needs a kubeconfig, and there is none.
    #[error("context {0:?} was requested, but there is no kubeconfig: set KUBECONFIG")]
    NoContext(String),
    /// We run in a pod, and its service account cannot be used.
    #[error("the pod's service account cannot be used (is automountServiceAccountToken off?)")]
    ServiceAccount(#[source] kube::config::InClusterError),
    /// The configuration was read, but no client can be built from it (a bad certificate, a bad
    /// address).
    #[error("cannot connect to {server}")]
    Settings {
        server: String,
        #[source]
        source: kube::Error,
    },
}

impl ConnectError {
    pub fn error_chain(&self) -> String {
        crate::error::error_chain(self)
    }
}

#[derive(Clone)]
pub struct ClusterConnection {
    pub client: Client,
    pub server: String,
}

/// Connects to the cluster that `KUBECONFIG`, `~/.kube/config` or the pod's service account names.
pub async fn connect() -> Result<Client, ConnectError> {
    connect_to_context(None)
        .await
        .map(|connection| connection.client)
}

/// Connects to the current context of this kubeconfig. The environment is ignored.
pub async fn connect_by_kubeconfig(kubeconfig: &std::path::Path) -> Result<Client, ConnectError> {
    let failed = |source| ConnectError::Kubeconfig {
        path: Some(kubeconfig.to_owned()),
        source,
    };
    let read = Kubeconfig::read_from(kubeconfig).map_err(failed)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    build_connection(config.map_err(failed)?).map(|connection| connection.client)
}

/// Connects to a context of the kubeconfig; `None` is its current one.
pub async fn connect_to_context(context: Option<&str>) -> Result<ClusterConnection, ConnectError> {
    build_connection(load_config(context).await?)
}

/// Connects as the owner of a bearer token, to the cluster that [`connect_to_context`] names. Nothing
/// of the kubeconfig's or the pod's own credentials is used.
pub async fn connect_with_token(
    context: Option<&str>,
    token: &str,
) -> Result<ClusterConnection, ConnectError> {
    let mut config = load_config(context).await?;
    config.auth_info = kube::config::AuthInfo {
        token: Some(token.to_owned().into()),
        ..kube::config::AuthInfo::default()
    };
    build_connection(config)
}

/// kube's own conversion from a configuration to a client lacks two things that we need.
///
/// - `TCP_NODELAY`. Without it, the first request on a new connection waits for the server's
///   delayed acknowledgement of the TLS handshake: 40 ms, measured on loopback, where 10 ms are
///   allowed between a sentinel and the request for the lock.
/// - No retries. kube would repeat each 429, 503 and 504 up to fifteen times: a blocked eviction
///   would return after minutes, and every count of calls would be wrong. Our loops retry.
fn build_connection(config: Config) -> Result<ClusterConnection, ConnectError> {
    let server = config.cluster_url.to_string();
    let client = match config.proxy_url.clone() {
        // kube's own client does not support it either with the features we build, and linking it
        // beside ours costs 80 KB of every coordinator's memory.
        Some(proxy) => Err(kube::Error::ProxyProtocolUnsupported {
            proxy_url: Box::new(proxy),
        }),
        None => build_direct_client(config),
    };
    match client {
        Ok(client) => Ok(ClusterConnection { client, server }),
        Err(source) => Err(ConnectError::Settings { server, source }),
    }
}

fn build_direct_client(config: Config) -> kube::Result<Client> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .build(tls);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(tower::layer::layer_fn(SendDeadlineService))
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

async fn load_config(context: Option<&str>) -> Result<Config, ConnectError> {
    let Some((kubeconfig, path)) = find_kubeconfig()? else {
        return match (context, is_in_pod()) {
            (Some(context), _) => Err(ConnectError::NoContext(context.to_owned())),
            (None, false) => Err(ConnectError::NoCluster),
            (None, true) => Config::incluster().map_err(ConnectError::ServiceAccount),
        };
    };
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|source| ConnectError::Kubeconfig { path, source })
}

/// The kubeconfig that `KUBECONFIG` names, else `~/.kube/config` if it exists.
fn find_kubeconfig() -> Result<Option<(Kubeconfig, Option<PathBuf>)>, ConnectError> {
    let named =
        Kubeconfig::from_env().map_err(|source| ConnectError::Kubeconfig { path: None, source })?;
    if let Some(kubeconfig) = named {
        return Ok(Some((kubeconfig, None)));
    }
    let Some(path) = std::env::home_dir().map(|home| home.join(".kube").join("config")) else {
        return Ok(None);
    };
    if !path.exists() {
        return Ok(None);
    }
    match Kubeconfig::read_from(&path) {
        Ok(kubeconfig) => Ok(Some((kubeconfig, Some(path)))),
        Err(source) => Err(ConnectError::Kubeconfig {
            path: Some(path),
            source,
        }),
    }
}

/// The kubelet sets these variables in every pod.
fn is_in_pod() -> bool {
    ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]
        .iter()
        .all(|name| std::env::var_os(name).is_some())
}

fn file(path: Option<&PathBuf>) -> String {
    path.map_or_else(
        || " that KUBECONFIG names".to_owned(),
        |path| format!(" {}", path.display()),
    )
}
