//! The demo's API on a port, and the kubeconfig that leads there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dogwatch_sim::demo::Demo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::exit::{Exit, Failure};

/// What can be done once the play is over.
pub fn goes_on() -> [String; 2] {
    [
        String::new(),
        "the cluster goes on: touch a sentinel to reboot a node once more, or end it with Ctrl-C"
            .to_owned(),
    ]
}

/// What works on a cluster and not here.
const LIMITS: [&str; 4] = [
    "this API is simulated, and simpler than a cluster's:",
    "  it validates nothing: use kubectl apply --validate=false; dogwatch simulate --policy FILE checks a policy",
    "  nothing writes the status of policies; there are no access rights, and tokens are not reviewed",
    "  its BMCs are reached from inside the demo only: use dogwatch check hosts --from-status",
];

/// The API, served until this is dropped.
pub struct Serving {
    kubeconfig: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Serving {
    /// Binds the port and writes the kubeconfig.
    pub async fn begin(demo: &Demo, address: SocketAddr, folder: &Path) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| {
            Failure::new(Exit::Failed, format!("failed to {what}: {error}"))
                .next("give --serve another HOST:PORT")
        };
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| failed(&format!("listen on {address}"), error))?;
        let bound = listener
            .local_addr()
            .map_err(|error| failed("find the port", error))?;
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, text(bound))
            .map_err(|error| failed("write a kubeconfig", error))?;
        Ok(Self {
            kubeconfig,
            task: tokio::spawn(demo.server().clone().serve(listener)),
        })
    }

    /// What a person types.
    pub fn how_to(&self, demo: &Demo) -> Vec<String> {
        let config = self.kubeconfig.display();
        let mut lines = vec![
            "in another terminal:".to_owned(),
            format!("  export KUBECONFIG={config}"),
            "  kubectl get nodes -w".to_owned(),
            "  dogwatch status --watch".to_owned(),
            "each node's sentinel:".to_owned(),
        ];
        lines.extend(
            demo.sentinels()
                .map(|(node, path)| format!("  {node}  {}", path.display())),
        );
        lines.extend(LIMITS.map(str::to_owned));
        lines.push(String::new());
        lines
    }
}

/// A kubeconfig; the bearer token is the user's name.
fn text(address: SocketAddr) -> String {
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
