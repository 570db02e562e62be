//! Command-line flags of the control plane's programs.

use crate::{control_plane::ControlPlane, identity::SERVICE_RANGE};

/// The issuer in service accounts' tokens.
const TOKEN_ISSUER: &str = "https://testbed.dogwatch.dev";

impl ControlPlane {
    pub(crate) fn etcd_flags(&self) -> Vec<String> {
        let (client, peer) = (
            loopback_url(self.ports.etcd),
            loopback_url(self.ports.etcd_peer),
        );
        vec![
            format!("--data-dir={}", self.path_in_folder("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // Its data is deleted with it.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    pub(crate) fn api_flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers={}", loopback_url(self.ports.etcd)),
            format!("--secure-port={}", self.ports.api),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", self.path_in_folder("certificates")),
            format!("--tls-cert-file={}", self.path_in_folder("server.crt")),
            format!(
                "--tls-private-key-file={}",
                self.path_in_folder("server.key")
            ),
            format!("--client-ca-file={}", self.path_in_folder("ca.crt")),
            format!("--service-account-issuer={TOKEN_ISSUER}"),
            format!(
                "--service-account-signing-key-file={}",
                self.path_in_folder("accounts.key")
            ),
            format!(
                "--service-account-key-file={}",
                self.path_in_folder("accounts.pub")
            ),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            format!("--token-auth-file={}", self.path_in_folder("tokens.csv")),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            // A DaemonSet that reboots its host is privileged.
            "--allow-privileged=true".to_owned(),
            format!(
                "--audit-policy-file={}",
                self.path_in_folder("audit-policy.json")
            ),
            format!("--audit-log-path={}", self.path_in_folder("audit.log")),
            // There is one server and nobody looks it up; its endpoint would only add noise to the
            // audit log.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        if !self.builder.serves_kubelets {
            // This plugin refuses every pod in a namespace whose default account does not exist
            // yet.
            flags.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        flags.extend(self.builder.api_server_flags.iter().cloned());
        flags
    }

    pub(crate) fn controller_flags(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.admin_kubeconfig().display()),
            format!("--controllers={}", self.builder.controllers.join(",")),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
            // Nobody sends it requests; that it listens shows that its flags were valid.
            format!("--secure-port={}", self.ports.controllers),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", self.path_in_folder("server.crt")),
            format!(
                "--tls-private-key-file={}",
                self.path_in_folder("server.key")
            ),
            // With the default limit (20 a second), a test of many pods would measure that limit.
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            // What pods check the API server's certificate by.
            format!("--root-ca-file={}", self.path_in_folder("ca.crt")),
        ]
    }

    fn path_in_folder(&self, name: &str) -> String {
        self.folder().join(name).display().to_string()
    }
}

fn loopback_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
