//! Files in, certificates and tokens out.

use std::fs;

use super::*;

fn token(content: &str) -> Result<HeaderValue, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, content).unwrap();
    read_bearer_header(&path).map_err(|trouble| trouble.error_chain())
}

#[test]
fn a_token_is_sent_without_its_line_end_and_is_never_printed() {
    let header = token("abc.def-123\n").unwrap();
    assert_eq!(header.as_bytes(), b"Bearer abc.def-123");
    assert!(!format!("{header:?}").contains("abc"));
}

#[test]
fn what_is_no_token_is_refused_and_not_quoted() {
    for (content, says) in [
        ("", "is empty"),
        (" \n", "is empty"),
        ("secret two", "one word of visible ASCII"),
        ("sec\nret", "one word of visible ASCII"),
        ("sécret", "no valid token"),
    ] {
        let why = token(content).unwrap_err();
        assert!(
            why.contains(says) && why.contains("--prometheus-token-file"),
            "{why}"
        );
        assert!(!why.contains("ret"), "{why}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_flag() {
    let nowhere = Path::new("/nonexistent/file");
    let why = read_bearer_header(nowhere).unwrap_err().error_chain();
    assert!(
        why.contains("--prometheus-token-file /nonexistent/file cannot be read: No such"),
        "{why}"
    );
    let why = build_tls_config(Some(nowhere)).unwrap_err().error_chain();
    assert!(
        why.contains("--prometheus-ca-file /nonexistent/file cannot be read: No such"),
        "{why}"
    );
}

#[test]
fn a_ca_file_must_hold_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    for (content, says) in [
        ("", "contains no certificate"),
        ("hello", "contains no certificate"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "contains an invalid certificate",
        ),
        (
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "not in PEM",
        ),
    ] {
        fs::write(&path, content).unwrap();
        let why = build_tls_config(Some(&path)).unwrap_err().error_chain();
        assert!(why.contains(says), "{content:?}: {why}");
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
    fs::write(&path, certificate.self_signed(&key).unwrap().pem()).unwrap();
    assert!(build_tls_config(Some(&path)).is_ok());
}
