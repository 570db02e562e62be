//! Identities: the API server's certificate, the key that signs service accounts' tokens, and fixed
//! tokens.

use std::{fmt::Write, fs, path::Path};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use crate::Error;

/// The token of the administrator (group `system:masters`). No secret: it opens a server on
/// loopback that lives as long as a test.
pub(crate) const ADMIN_TOKEN: &str = "testbed-admin";

/// The Service `kubernetes`: the first address of [`SERVICE_RANGE`]. Pods on a real node reach the
/// API server by it.
pub(crate) const SERVICE_ADDRESS: &str = "10.0.0.1";
pub(crate) const SERVICE_RANGE: &str = "10.0.0.0/24";

/// A user with a fixed token.
#[derive(Clone, Debug)]
pub(crate) struct TokenUser {
    pub(crate) token: String,
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

/// Writes `ca.crt`, `server.crt`, `server.key`, `accounts.key`, `accounts.pub` and `tokens.csv`
/// into `folder`.
pub(crate) fn write_identity(folder: &Path, users: &[TokenUser]) -> Result<(), Error> {
    write_certificates(folder)?;
    let accounts = KeyPair::generate()?;
    write_files(
        folder,
        [
            ("accounts.key", accounts.serialize_pem()),
            ("accounts.pub", accounts.public_key_pem()),
            ("tokens.csv", render_token_file(users)),
        ],
    )
}

/// Writes `ca.crt` and `ca.key`, and a certificate for loopback that they sign: `server.crt` and
/// `server.key`.
pub(crate) fn write_certificates(folder: &Path) -> Result<(), Error> {
    let authority_key = KeyPair::generate()?;
    let authority = authority_params();
    let path = folder.join("ca.key");
    fs::write(&path, authority_key.serialize_pem()).map_err(Error::io_error("write", path))?;
    let authority_certificate = authority.self_signed(&authority_key)?;

    let server_key = KeyPair::generate()?;
    let names = ["127.0.0.1", "localhost", SERVICE_ADDRESS].map(str::to_owned);
    let server = CertificateParams::new(names.to_vec())?;
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

fn authority_params() -> CertificateParams {
    let mut authority = CertificateParams::default();
    authority
        .distinguished_name
        .push(DnType::CommonName, "dogwatch testbed");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    authority
}

/// A certificate of this user in these groups, and its key, as PEM; signed by the authority in
/// `folder`.
pub(crate) fn client_certificate(
    folder: &Path,
    user: &str,
    groups: &[&str],
) -> Result<String, Error> {
    let path = folder.join("ca.key");
    let key = fs::read_to_string(&path).map_err(Error::io_error("read", path))?;
    sign_client_certificate(user, groups, KeyPair::from_pem(&key)?)
}

/// The same, signed by an authority that nobody trusts.
pub(crate) fn foreign_certificate(user: &str, groups: &[&str]) -> Result<String, Error> {
    sign_client_certificate(user, groups, KeyPair::generate()?)
}

fn sign_client_certificate(
    user: &str,
    groups: &[&str],
    authority_key: KeyPair,
) -> Result<String, Error> {
    let issuer = Issuer::new(authority_params(), authority_key);
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    for group in groups {
        let name = DnType::OrganizationName;
        params.distinguished_name.push(name, *group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(certificate.pem() + &key.serialize_pem())
}

fn write_files(folder: &Path, files: [(&str, String); 3]) -> Result<(), Error> {
    for (name, content) in files {
        let path = folder.join(name);
        fs::write(&path, content).map_err(Error::io_error("write", path))?;
    }
    Ok(())
}

/// The API server's `--token-auth-file`: token, user, uid, groups.
fn render_token_file(users: &[TokenUser]) -> String {
    let mut lines = format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n");
    for TokenUser {
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
