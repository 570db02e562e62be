//! A client of the cluster that the environment names, as kubectl would choose it.
//!
//! **May touch:** `KUBECONFIG`, `~/.kube/config` and the pod's service account: the one place in
//! this crate that reads the environment and files.
//! **Promises:** a cluster that is named and cannot be used is an error, never a reason to take
//! another one; nothing is sent; a server that does not answer is given up on after
//! [`CONNECT_PATIENCE`]; no request is repeated behind the caller's back.

mod certificate;

use std::path::PathBuf;
use std::time::Duration;

use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use crate::in_time::InTime;

pub use certificate::connect_by_certificate;

/// How long a TCP and TLS connection may take to come about.
pub const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// How long an idle connection is used again: an API server closes it after 90 s, which a request that is
/// sent at that moment takes for a lost answer.
const KEPT: Duration = Duration::from_secs(80);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing names a cluster.
    #[error(
        "no cluster is named: KUBECONFIG is not set, there is no ~/.kube/config, and this is not a pod"
    )]
    NoCluster,
    /// A kubeconfig is there and cannot be used.
    #[error("the kubeconfig{} cannot be used", file(.path.as_ref()))]
    Kubeconfig {
        /// `~/.kube/config` by its path; `None` is what `KUBECONFIG` names.
        path: Option<PathBuf>,
        /// What is wrong with it.
        #[source]
        source: KubeconfigError,
    },
    /// The context that was asked for needs a kubeconfig, and there is none.
    #[error("context {0:?} is asked for, but there is no kubeconfig: set KUBECONFIG")]
    NoContext(String),
    /// This is a pod, and its service account cannot be used.
    #[error("the pod's service account cannot be used (is automountServiceAccountToken off?)")]
    ServiceAccount(#[source] kube::config::InClusterError),
    /// What was read is no way to reach a server (a bad certificate, a bad address).
    #[error("no connection can be made to {server}")]
    Settings {
        /// The server's address.
        server: String,
        /// What is wrong.
        #[source]
        source: kube::Error,
    },
}

impl ConnectError {
    /// The error and its causes in one line.
    pub fn in_words(&self) -> String {
        crate::error::in_words(self)
    }
}

/// A client, and where it will connect to.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// The server's address, for messages.
    pub server: String,
}

/// A client of the cluster that `KUBECONFIG`, `~/.kube/config` or the pod names.
pub async fn connect() -> Result<Client, ConnectError> {
    connect_to(None).await.map(|connection| connection.client)
}

/// A client of the current context of this kubeconfig, whatever the environment says.
pub async fn connect_by(kubeconfig: &std::path::Path) -> Result<Client, ConnectError> {
    let failed = |source| ConnectError::Kubeconfig {
        path: Some(kubeconfig.to_owned()),
        source,
    };
    let read = Kubeconfig::read_from(kubeconfig).map_err(failed)?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    client_of(config.map_err(failed)?).map(|connection| connection.client)
}

/// The same for a context of the kubeconfig; `None` is its current one.
pub async fn connect_to(context: Option<&str>) -> Result<Connection, ConnectError> {
    client_of(config(context).await?)
}

/// kube's own way from a configuration to a client leaves two things out that we need.
///
/// - `TCP_NODELAY`. Without it the first request on a new connection waits for the server's delayed
///   acknowledgement of the TLS handshake: 40 ms, measured on loopback, of the 10 ms that may pass
///   between a sentinel and the request for the lock.
/// - No retries: kube would repeat each 429, 503 and 504 up to fifteen times by itself. A blocked
///   eviction would come back after minutes, and every count of calls would be wrong. Our loops
///   retry.
fn client_of(config: Config) -> Result<Connection, ConnectError> {
    let server = config.cluster_url.to_string();
    let client = match config.proxy_url.clone() {
        // kube's own client could not do it either, as it is built here, and linking it beside ours
        // costs 80 KB of every coordinator's memory.
        Some(proxy) => Err(kube::Error::ProxyProtocolUnsupported {
            proxy_url: Box::new(proxy),
        }),
        None => direct(config),
    };
    match client {
        Ok(client) => Ok(Connection { client, server }),
        Err(source) => Err(ConnectError::Settings { server, source }),
    }
}

fn direct(config: Config) -> kube::Result<Client> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_PATIENCE));
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(KEPT)
        .build(tls);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(tower::layer::layer_fn(InTime))
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

async fn config(context: Option<&str>) -> Result<Config, ConnectError> {
    let Some((kubeconfig, path)) = kubeconfig()? else {
        return match (context, in_a_pod()) {
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

/// What `KUBECONFIG` names, else `~/.kube/config` where it is there.
fn kubeconfig() -> Result<Option<(Kubeconfig, Option<PathBuf>)>, ConnectError> {
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

/// The variables that the kubelet gives every pod.
fn in_a_pod() -> bool {
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
