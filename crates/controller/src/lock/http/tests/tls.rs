//! Certificates: the server's, the clients', and replaced ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dogwatch_core::fleetlock::FleetlockGroups;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tempfile::TempDir;

use super::curl::{Curl, curl, run};
use super::rig::{LOOPBACK, Rig, config, within};
use crate::lock::http::{
    LockApiConfig, LockApiDeps, LockApiServer, LockApiStartError, LockAuthMode, NoRequestMetrics,
    TlsFiles,
};

/// An authority and the certificates that it has signed, as PEM files.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.crt"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { folder, issuer }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a server's certificate, at `NAME.crt` and `NAME.key`.
    fn server(&self, name: &str) {
        let names = vec!["127.0.0.1".to_owned()];
        self.sign(name, &CertificateParams::new(names).unwrap());
    }

    /// Makes a client's certificate with these common names and organizations.
    fn client(&self, name: &str, users: &[&str], groups: &[&str]) {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for user in users {
            params.distinguished_name.push(DnType::CommonName, *user);
        }
        for group in groups {
            params
                .distinguished_name
                .push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(name, &params);
    }

    fn sign(&self, name: &str, params: &CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path(&format!("{name}.crt")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn config(&self) -> LockApiConfig {
        self.server("server");
        let mut config = config(LockAuthMode::Kubernetes);
        config.tls = Some(TlsFiles {
            certificate: self.path("server.crt"),
            key: self.path("server.key"),
            client_authority: Some(self.path("ca.crt")),
        });
        config.limits.reread = Duration::from_millis(20);
        config
    }

    async fn lock(&self, rig: &Rig, host: &str, more: &[&str]) -> Result<Curl, String> {
        let authority = text(&self.path("ca.crt"));
        let url = format!("https://{}/api/v1/lock", rig.address);
        let form = format!("hostname={host}");
        let arguments = ["--cacert", &authority, "--data", &form, &url];
        run(&[&arguments, more].concat()).await
    }

    async fn lock_as(&self, rig: &Rig, host: &str, client: &str) -> Result<Curl, String> {
        let (crt, key) = (
            self.path(&format!("{client}.crt")),
            self.path(&format!("{client}.key")),
        );
        self.lock(rig, host, &["--cert", &text(&crt), "--key", &text(&key)])
            .await
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_client_certificate_says_who_asks() {
    let ours = Authority::new();
    let foreign = Authority::new();
    let rig = Rig::start(ours.config()).await;
    ours.client("alice", &["alice"], &["nodes"]);
    ours.client("bob", &["bob"], &[]);
    ours.client("nameless", &[], &["system:masters"]);
    foreign.client("alice", &["alice"], &[]);
    assert_eq!(ours.lock_as(&rig, "n1", "alice").await.unwrap().status, 200);
    assert_eq!(
        ours.lock_as(&rig, "foreign", "alice").await.unwrap().status,
        403
    );
    let bob = ours.lock_as(&rig, "n1", "bob").await.unwrap();
    assert_eq!(bob.status, 403, "{}", bob.body);
    assert!(
        bob.body.contains("user \"bob\" may not lock n1"),
        "{}",
        bob.body
    );
    assert_eq!(
        ours.lock_as(&rig, "n1", "nameless").await.unwrap().status,
        401
    );
    let (crt, key) = (
        text(&foreign.path("alice.crt")),
        text(&foreign.path("alice.key")),
    );
    assert!(
        ours.lock(&rig, "n1", &["--cert", &crt, "--key", &key])
            .await
            .is_err()
    );
    assert_eq!(ours.lock(&rig, "n1", &[]).await.unwrap().status, 401);
    let token = ["--header", "authorization: bearer of-alice"];
    assert_eq!(ours.lock(&rig, "n1", &token).await.unwrap().status, 200);
    let (crt, key) = (text(&ours.path("alice.crt")), text(&ours.path("alice.key")));
    let both = [
        "--cert",
        &crt,
        "--key",
        &key,
        "--header",
        "authorization: bearer nobodys",
    ];
    assert_eq!(
        ours.lock(&rig, "n1", &both).await.unwrap().status,
        401,
        "the token goes before"
    );
}

/// An authority for hosts must not be able to sign for an administrator, a kubelet or a
/// ServiceAccount.
#[tokio::test]
async fn a_client_certificate_names_nobody_of_kubernetes_itself() {
    let ours = Authority::new();
    let rig = Rig::start(ours.config()).await;
    let nobody = [""; 0];
    let admin = "system:serviceaccount:kube-system:admin";
    for (file, user, groups) in [
        ("masters", "alice", &["nodes", "system:masters"][..]),
        ("nodes", "alice", &["system:nodes"][..]),
        ("kubelet", "system:node:n1", &nobody[..]),
        ("account", admin, &nobody[..]),
    ] {
        ours.client(file, &[user], groups);
        let answer = ours.lock_as(&rig, "n1", file).await.unwrap();
        assert_eq!(answer.status, 401, "{file}: {}", answer.body);
        assert!(answer.body.contains("of Kubernetes itself"), "{file}");
    }
    assert_eq!(*rig.lock.asked.lock().unwrap(), []);
}

#[tokio::test]
async fn new_certificates_are_used_without_a_restart_and_bad_ones_are_not() {
    let old = Authority::new();
    let new = Authority::new();
    let config = old.config();
    let rig = Rig::start(config).await;
    let token = ["--header", "authorization: Bearer of-alice"];
    assert_eq!(old.lock(&rig, "n1", &token).await.unwrap().status, 200);
    fs::write(old.path("server.key"), "half a file").unwrap();
    for _ in 0..3 {
        assert_eq!(old.lock(&rig, "n1", &token).await.unwrap().status, 200);
    }
    new.server("server");
    for file in ["server.crt", "server.key"] {
        fs::copy(new.path(file), old.path(file)).unwrap();
    }
    let taken = async { while new.lock(&rig, "n1", &token).await.is_err() {} };
    within("the new certificate", taken).await;
    assert!(old.lock(&rig, "n1", &token).await.is_err());
}

#[tokio::test]
async fn a_client_that_is_killed_while_it_waits_leaves_nothing_over_tls_either() {
    let authority = Authority::new();
    let rig = Rig::start(authority.config()).await;
    let token = ["--header", "authorization: Bearer of-alice"];
    let held = authority.lock(&rig, "n1", &token).await.unwrap();
    assert_eq!(held.status, 200);
    let ca = text(&authority.path("ca.crt"));
    let url = format!("https://{}/api/v1/lock", rig.address);
    let waits = ["--cacert", &ca, "--data", "hostname=n2", &url];
    let mut waits = curl(&[&waits[..], &token].concat()).spawn().unwrap();
    rig.lock
        .until("waits", |state| state.queue.len() == 1)
        .await;
    waits.kill().await.unwrap();
    rig.lock
        .until("gives up", |state| state.queue.is_empty())
        .await;
}

#[tokio::test]
async fn fleetlock_asks_for_no_client_certificate() {
    let authority = Authority::new();
    let mut config = authority.config();
    config.fleetlock = Some(LOOPBACK.parse().unwrap());
    config.fleetlock_groups = FleetlockGroups::new(["default"]);
    let rig = Rig::start(config).await;
    let url = format!("https://{}/v1/pre-reboot", rig.fleetlock.unwrap());
    let ca = text(&authority.path("ca.crt"));
    let body = r#"{"client_params":{"id":"a","group":"default"}}"#;
    let held = run(&[
        "--cacert",
        &ca,
        "--header",
        "fleet-lock-protocol: true",
        "--data",
        body,
        &url,
    ])
    .await;
    assert_eq!(held.unwrap().status, 200);
}

fn parts() -> LockApiDeps {
    LockApiDeps {
        service: Arc::new(super::semaphore::Semaphore::new(1)),
        access: Arc::new(super::rig::Alice),
        record: Arc::new(NoRequestMetrics),
    }
}

async fn refused(config: LockApiConfig) -> String {
    match LockApiServer::bind(config, parts()).await {
        Ok(_) => panic!("it was served"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn what_is_not_safe_is_not_served() {
    let mut open = config(LockAuthMode::None);
    open.listen = "0.0.0.0:0".parse().unwrap();
    assert!(
        refused(open.clone())
            .await
            .contains("--lock-auth none is for loopback only")
    );
    open.auth = LockAuthMode::Kubernetes;
    let error = refused(open).await;
    assert!(
        error.contains("--lock-listen 0.0.0.0:0 is not on loopback"),
        "{error}"
    );
    let mut fleetlock = config(LockAuthMode::None);
    fleetlock.fleetlock = Some("[::]:0".parse().unwrap());
    let error = refused(fleetlock.clone()).await;
    assert!(error.contains("needs --fleetlock-groups"), "{error}");
    fleetlock.fleetlock_groups = FleetlockGroups::new(["default"]);
    let error = refused(fleetlock).await;
    assert!(
        error.contains("--fleetlock-listen [::]:0 is not on loopback"),
        "{error}"
    );
    // With TLS and authentication any address is allowed; without authentication it still is not.
    let authority = Authority::new();
    let mut safe = authority.config();
    safe.listen = "0.0.0.0:0".parse().unwrap();
    assert!(LockApiServer::bind(safe.clone(), parts()).await.is_ok());
    safe.auth = LockAuthMode::None;
    assert!(refused(safe).await.contains("for loopback only"));
}

#[tokio::test]
async fn files_that_are_no_certificates_are_named_at_the_start() {
    let authority = Authority::new();
    let mut config = authority.config();
    fs::write(authority.path("server.crt"), "nothing").unwrap();
    assert!(
        refused(config.clone())
            .await
            .ends_with("server.crt contains no certificate in PEM format")
    );
    authority.server("server");
    authority.server("other");
    fs::copy(authority.path("other.key"), authority.path("server.key")).unwrap();
    assert!(refused(config.clone()).await.contains("cannot be used"));
    config.tls.as_mut().unwrap().key = authority.path("missing.key");
    assert!(refused(config).await.contains("missing.key"));
}

#[test]
fn flags_for_tls_go_together() {
    let file = || Some(PathBuf::from("file"));
    assert!(matches!(TlsFiles::from_flags(None, None, None), Ok(None)));
    assert!(matches!(
        TlsFiles::from_flags(file(), file(), None),
        Ok(Some(_))
    ));
    let cases = [
        (file(), None, None),
        (None, file(), None),
        (None, None, file()),
        (file(), None, file()),
    ];
    for (certificate, key, authority) in cases {
        let error = TlsFiles::from_flags(certificate, key, authority).unwrap_err();
        assert!(
            matches!(
                error,
                LockApiStartError::HalfTls(_) | LockApiStartError::AuthorityAlone
            ),
            "{error}"
        );
    }
}
