//! Who is who: the API server's certificate, the key that signs service accounts' tokens, and fixed tokens.

use std::{fmt::Write, fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::Error;

/// The token of the administrator (group `system:masters`). No secret: it opens a server on loopback that lives as long
/// as a test.
pub(crate) const ADMIN_TOKEN: &str = "testbed-admin";

/// A user that the API server knows by a fixed token.
#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

/// Writes `ca.crt`, `server.crt`, `server.key`, `accounts.key`, `accounts.pub` and `tokens.csv` into `folder`.
pub(crate) fn write(folder: &Path, users: &[User]) -> Result<(), Error> {
    write_certificates(folder)?;
    let accounts = KeyPair::generate()?;
    write_files(
        folder,
        [
            ("accounts.key", accounts.serialize_pem()),
            ("accounts.pub", accounts.public_key_pem()),
            ("tokens.csv", tokens(users)),
        ],
    )
}

/// Writes `ca.crt`, and what it has signed for loopback: `server.crt` and `server.key`.
pub(crate) fn write_certificates(folder: &Path) -> Result<(), Error> {
    let authority_key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    authority
        .distinguished_name
        .push(DnType::CommonName, "dogwatch testbed");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let authority_certificate = authority.self_signed(&authority_key)?;

    let server_key = KeyPair::generate()?;
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    let server_certificate =
        server.signed_by(&server_key, &Issuer::new(authority, authority_key))?;
    write_files(
        folder,
        [
            ("ca.crt", authority_certificate.pem()),
            ("server.crt", server_certificate.pem()),
            ("server.key", server_key.serialize_pem()),
        ],
    )
}

fn write_files(folder: &Path, files: [(&str, String); 3]) -> Result<(), Error> {
    for (name, content) in files {
        let path = folder.join(name);
        fs::write(&path, content).map_err(Error::io("write", path))?;
    }
    Ok(())
}

/// The API server's `--token-auth-file`: token, user, uid, groups.
fn tokens(users: &[User]) -> String {
    let mut lines = format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n");
    for User {
        token,
        name,
        groups,
    } in users
    {
        writeln!(lines, "{token},{name},{name},\"{}\"", groups.join(","))
            .expect("a String takes all");
    }
    lines
}
