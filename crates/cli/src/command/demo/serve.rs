//! Serves the demo's API on a port and writes a kubeconfig for it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dogwatch_k8s::ClusterConnection;
use dogwatch_sim::demo::Demo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::command::dashboard::{BrowserChoice, LocalDashboard};
use crate::exit::{CliExitCode, CommandFailure};

/// The hints printed when the demo is over.
pub fn after_demo_lines() -> [String; 2] {
    [
        String::new(),
        "the cluster keeps running: docs/learn.md has things to try; Ctrl-C ends it".to_owned(),
    ]
}

/// What works on a real cluster and not in the demo.
const SIMULATED_API_LIMITS: [&str; 3] = [
    "this API is simulated, and differs from a real cluster's:",
    "  it has no access rights: everybody may do everything",
    "  only the demo reaches its BMCs: use dogwatch check hosts --from-status",
];

/// Serves the API until it is dropped.
pub struct DemoApiServer {
    address: SocketAddr,
    kubeconfig: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for DemoApiServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DemoApiServer {
    pub async fn start_serving(
        demo: &Demo,
        address: SocketAddr,
        folder: &Path,
    ) -> Result<Self, CommandFailure> {
        let failed = |what: &str, error: std::io::Error| {
            CommandFailure::new(CliExitCode::Failed, format!("failed to {what}: {error}"))
                .with_next_step("give --serve another HOST:PORT")
        };
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| failed(&format!("listen on {address}"), error))?;
        let bound = listener
            .local_addr()
            .map_err(|error| failed("find the port", error))?;
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_yaml(bound))
            .map_err(|error| failed("write a kubeconfig", error))?;
        Ok(Self {
            address: bound,
            kubeconfig,
            task: tokio::spawn(demo.api_server().clone().serve_http(listener)),
        })
    }

    /// Serves the dashboard until the process ends.
    pub async fn open_dashboard(&self) -> Result<(), CommandFailure> {
        let client = dogwatch_k8s::connect::connect_by_kubeconfig(&self.kubeconfig).await;
        let client = client.map_err(|error| CommandFailure::from_connect_error(&error))?;
        let connection = ClusterConnection {
            client,
            server: format!("http://{}", self.address),
        };
        let dashboard = LocalDashboard::start_for_demo(connection).await?;
        dashboard.announce_link(BrowserChoice::Open)?;
        tokio::spawn(dashboard.serve_until(std::future::pending()));
        Ok(())
    }

    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// The commands that a person can type.
    pub fn usage_lines(&self, demo: &Demo) -> Vec<String> {
        let config = self.kubeconfig.display();
        let mut lines = vec![
            "in another terminal:".to_owned(),
            format!("  export KUBECONFIG={config}"),
            "  kubectl get nodes -w".to_owned(),
            "  dogwatch status --watch".to_owned(),
            "each node's sentinel:".to_owned(),
        ];
        lines.extend(
            demo.sentinel_paths()
                .map(|(node, path)| format!("  {node}  {}", path.display())),
        );
        lines.extend(SIMULATED_API_LIMITS.map(str::to_owned));
        lines.push(String::new());
        lines
    }
}

/// The bearer token is the user's name.
fn kubeconfig_yaml(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: dogwatch-demo\n\
         contexts:\n\
         - name: dogwatch-demo\n\
        \x20 context: {{ cluster: dogwatch-demo, user: person }}\n\
         clusters:\n\
         - name: dogwatch-demo\n\
        \x20 cluster: {{ server: \"http://{address}\" }}\n\
         users:\n\
         - name: person\n\
        \x20 user: {{ token: person }}\n"
    )
}
