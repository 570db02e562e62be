//! Which certificates are accepted, and how old a BMC's TLS may be.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use dogwatch_bmc::redfish::{HttpTransport, RedfishTransport as _, SharedHttpClients};
use dogwatch_bmc::{BmcFault, DriverOptions, FaultClass, PowerReading};
use http::{Request, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, Instant, sleep};

use crate::server::{Authority, Server};
use crate::{SYSTEM, WITHIN, address, driver};

async fn read(port: u16, ca: Option<&str>, verify: bool) -> Result<PowerReading, BmcFault> {
    let driver = driver(
        &address("redfish", port),
        ca,
        verify,
        &DriverOptions::default(),
    )?;
    driver.read_power(WITHIN).await
}

#[tokio::test]
async fn a_certificate_is_from_the_secrets_ca_and_for_the_bmcs_name_or_it_is_not_taken() {
    let authority = Authority::new("our CA");
    let stranger = Authority::new("another CA");
    let both = format!("{}{}", stranger.pem, authority.pem);
    let here = Server::https(&authority, "127.0.0.1").await;
    let elsewhere = Server::https(&authority, "bmc.example").await;
    for (server, ca, verify, is_good) in [
        (&here, Some(authority.pem.as_str()), true, true),
        (&here, Some(both.as_str()), true, true),
        (&here, Some(stranger.pem.as_str()), true, false),
        (&here, None, true, false),
        (&here, None, false, true),
        (&here, Some(stranger.pem.as_str()), false, true),
        (&elsewhere, Some(authority.pem.as_str()), true, false),
        (&elsewhere, None, false, true),
    ] {
        let requests = server.requests();
        match read(server.port, ca, verify).await {
            Ok(reading) => assert!(is_good && reading == PowerReading::On),
            Err(fault) => {
                assert!(!is_good, "{fault}");
                assert_eq!(
                    (fault.class, fault.may_have_run),
                    (FaultClass::Tls, false),
                    "{fault}"
                );
                assert_eq!(server.requests(), requests, "a stranger was told something");
            }
        }
    }
}

#[tokio::test]
async fn a_ca_that_is_none_is_said_before_anything_is_sent() {
    let garbage = "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n";
    for ca in ["", "no certificate", garbage] {
        let fault = read(1, Some(ca), true).await.expect_err("no CA");
        assert_eq!(
            (fault.class, fault.may_have_run),
            (FaultClass::Tls, false),
            "{ca}: {fault}"
        );
        assert!(fault.message.contains("ca.crt"), "{ca}: {fault}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_a_fault_of_tls() {
    let plain = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = plain.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let _ = stream.read_u8().await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let fault = read(port, None, true).await.expect_err("no TLS");
    assert_eq!(
        (fault.class, fault.may_have_run),
        (FaultClass::Tls, false),
        "{fault}"
    );
}

/// Like a BMC from before forward secrecy; rustls cannot connect to it.
#[tokio::test]
async fn a_bmc_that_knows_only_rsa_key_exchange_is_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = OldServer::start(folder.path()).await;
    let ca = std::fs::read(folder.path().join("server.crt")).expect("a certificate");
    let address = address("redfish", old.port);
    let http = HttpTransport::new(&SharedHttpClients::default(), &address, Some(&ca), true)
        .expect("an exchange");
    let request = Request::get(SYSTEM)
        .body(bytes::Bytes::new())
        .expect("a request");
    let response = http.send_request(request, WITHIN).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
    let page = String::from_utf8_lossy(response.body()).into_owned();
    assert!(
        page.contains("TLSv1.2") && page.contains("AES256-SHA"),
        "{page}"
    );
}

/// Runs `openssl s_server`.
struct OldServer {
    port: u16,
    child: Child,
}

impl OldServer {
    async fn start(folder: &Path) -> Self {
        make_rsa_certificate(folder);
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let child = Command::new("openssl")
            .args(["s_server", "-www", "-tls1_2", "-cipher", "AES256-SHA"])
            .args(["-cert", "server.crt", "-key", "server.key"])
            .args(["-accept", &format!("127.0.0.1:{port}")])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl starts");
        let server = Self { port, child };
        let until = Instant::now() + Duration::from_mins(2);
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(Instant::now() < until, "openssl does not listen");
            sleep(Duration::from_millis(20)).await;
        }
        server
    }
}

impl Drop for OldServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_rsa_certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-subj",
            "/CN=old BMC",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ])
        .args(["-out", "server.crt", "-keyout", "server.key"])
        .current_dir(folder)
        .output()
        .expect("openssl runs");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
}
