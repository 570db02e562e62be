//! Reads the owner of a client certificate: CN = user, O = groups, as for the API server itself.

use dogwatch_k8s::access::ApiCaller;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

/// The owner of a certificate that was already verified, or why it names nobody.
pub(super) fn parse_certificate_owner(der: &[u8]) -> Result<ApiCaller, String> {
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|_| "your client certificate cannot be read".to_owned())?;
    let subject = certificate.subject();
    let mut names = subject.iter_common_name();
    let name = names
        .next()
        .map(attribute_text)
        .transpose()?
        .unwrap_or_default();
    // With two names, another reader of this certificate might take the other one.
    if name.is_empty() || names.next().is_some() {
        return Err("your client certificate must have one common name (CN), the user".to_owned());
    }
    let groups: Result<Vec<_>, _> = subject.iter_organization().map(attribute_text).collect();
    ApiCaller::from_certificate(name, groups?).map_err(|refused| refused.to_string())
}

fn attribute_text(attribute: &AttributeTypeAndValue<'_>) -> Result<String, String> {
    attribute
        .as_str()
        .map(str::to_owned)
        .map_err(|_| "a name in your client certificate is not text".to_owned())
}
