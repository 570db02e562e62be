//! How the programs are called.

use crate::control_plane::ControlPlane;

/// Service accounts' tokens name it.
const ISSUER: &str = "https://testbed.dogwatch.dev";

impl ControlPlane {
    pub(crate) fn etcd_flags(&self) -> Vec<String> {
        let (client, peer) = (loopback(self.ports.etcd), loopback(self.ports.etcd_peer));
        vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // What it keeps is thrown away with it.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    pub(crate) fn api_flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers={}", loopback(self.ports.etcd)),
            format!("--secure-port={}", self.ports.api),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", self.path("certificates")),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
            format!("--client-ca-file={}", self.path("ca.crt")),
            format!("--service-account-issuer={ISSUER}"),
            format!(
                "--service-account-signing-key-file={}",
                self.path("accounts.key")
            ),
            format!("--service-account-key-file={}", self.path("accounts.pub")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            // It would refuse every pod of a namespace whose default account nobody has made yet.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // A DaemonSet that reboots its host is privileged.
            "--allow-privileged=true".to_owned(),
            format!("--audit-policy-file={}", self.path("audit-policy.json")),
            format!("--audit-log-path={}", self.path("audit.log")),
            format!("--event-ttl={}", self.builder.event_ttl),
            // There is one server and nobody looks it up; its entry would only be noise in the audit log.
            "--endpoint-reconciler-type=none".to_owned(),
        ];
        flags.extend(self.builder.api_server_flags.iter().cloned());
        flags
    }

    pub(crate) fn controller_flags(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.kubeconfig().display()),
            format!("--controllers={}", self.builder.controllers.join(",")),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
            // Nobody asks it for anything; that it listens says that it understood its flags.
            format!("--secure-port={}", self.ports.controllers),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
            // Its own limits (20 a second) would be what a test of many pods measures.
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ]
    }

    fn path(&self, name: &str) -> String {
        self.folder().join(name).display().to_string()
    }
}

fn loopback(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}
