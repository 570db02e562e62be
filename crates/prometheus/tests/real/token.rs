//! The token goes to one origin, over TLS, and into no reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dogwatch_prometheus::{BearerToken, PrometheusClient, PrometheusSettings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::query;
use crate::served::{EMPTY, Served, Then, whole};

struct Fixture {
    folder: TempDir,
    acceptor: TlsAcceptor,
}

impl Fixture {
    /// A CA in a file, and a certificate of it for loopback.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = authority.self_signed(&authority_key).unwrap().pem();
        fs::write(folder.path().join("ca.crt"), ca).unwrap();
        let key = KeyPair::generate().unwrap();
        let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let issuer = Issuer::new(authority, authority_key);
        let certificate = server.signed_by(&key, &issuer).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        Self {
            folder,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        }
    }

    async fn server(&self, answer: String) -> Served {
        Served::https(self.acceptor.clone(), Then::Answer(answer)).await
    }

    fn token_file(&self) -> PathBuf {
        self.folder.path().join("token")
    }

    /// Asks `url` with a token for `origin`.
    async fn ask(&self, origin: &str, url: &str) -> Vec<String> {
        let settings = PrometheusSettings {
            ca_file: Some(self.folder.path().join("ca.crt")),
            token: Some(BearerToken {
                file: self.token_file(),
                origin: origin.parse().unwrap(),
            }),
            ..PrometheusSettings::default()
        };
        PrometheusClient::new(settings)
            .shut_reasons_of(&query(url, "up"))
            .await
    }
}

fn write(path: &Path, token: &str) {
    fs::write(path, token).unwrap();
}

fn tokens(server: &Served) -> Vec<String> {
    let asked = server.asked();
    let lines = asked.iter().flat_map(|head| head.lines());
    let header = lines.filter_map(|line| line.strip_prefix("authorization: "));
    header.map(str::to_owned).collect()
}

#[tokio::test]
async fn the_token_goes_to_its_origin_and_a_new_one_counts_at_the_next_question() {
    let fixture = Fixture::new();
    let server = fixture.server(whole("200 OK", "", EMPTY)).await;
    let url = format!("{}/prometheus", server.url);
    for token in ["first", "second\n"] {
        write(&fixture.token_file(), token);
        assert_eq!(fixture.ask(&server.url, &url).await, [""; 0]);
    }
    assert_eq!(tokens(&server), ["Bearer first", "Bearer second"]);
}

#[tokio::test]
async fn the_token_goes_to_no_other_origin() {
    let fixture = Fixture::new();
    write(&fixture.token_file(), "secret");
    let server = fixture.server(whole("401 Unauthorized", "", "")).await;
    let plain = Served::http(Then::Answer(whole("200 OK", "", EMPTY))).await;
    let port = server.url.rsplit(':').next().unwrap();
    let plain_port = plain.url.rsplit(':').next().unwrap();
    for (origin, url) in [
        ("https://127.0.0.1:1".to_owned(), &server.url),
        ("https://127.0.0.1".to_owned(), &server.url),
        (format!("https://localhost:{port}"), &server.url),
        (format!("https://127.0.0.1:{plain_port}"), &plain.url),
    ] {
        let shut = fixture.ask(&origin, url).await.join(" ");
        let says_why = shut.contains("is another server");
        assert!(says_why || *url == plain.url, "{shut}");
    }
    assert_eq!((server.asked().len(), plain.asked().len()), (3, 1));
    assert_eq!(tokens(&server), [""; 0]);
    assert_eq!(tokens(&plain), [""; 0]);
}

#[tokio::test]
async fn the_token_goes_along_with_no_redirect() {
    let fixture = Fixture::new();
    write(&fixture.token_file(), "secret");
    let elsewhere = fixture.server(whole("200 OK", "", EMPTY)).await;
    let location = format!("location: {}\r\n", elsewhere.url);
    let server = fixture.server(whole("302 Found", &location, "")).await;
    let shut = fixture.ask(&server.url, &server.url).await.join(" ");
    assert!(
        shut.contains("not follow") && !shut.contains("secret"),
        "{shut}"
    );
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[tokio::test]
async fn a_token_that_is_refused_is_said_and_not_shown() {
    let fixture = Fixture::new();
    write(&fixture.token_file(), "secret");
    let server = fixture
        .server(whole("401 Unauthorized", "", "secret"))
        .await;
    let shut = fixture.ask(&server.url, &server.url).await.join(" ");
    assert!(
        shut.contains("the token of --prometheus-token-file was sent"),
        "{shut}"
    );
    assert!(!shut.contains("secret"), "{shut}");
}

#[tokio::test]
async fn without_its_token_nothing_is_asked() {
    let fixture = Fixture::new();
    let server = fixture.server(whole("200 OK", "", EMPTY)).await;
    let shut = fixture.ask(&server.url, &server.url).await.join(" ");
    assert!(
        shut.contains("--prometheus-token-file") && shut.contains("cannot be read"),
        "{shut}"
    );
    assert_eq!(server.asked(), [""; 0]);
}
