//! The origin of a BMC, and the check that its links stay there.

use std::fmt;

use dogwatch_core::power::BmcAddress;
use http::Uri;

use crate::{BmcFault, FaultClass};

/// Scheme, host and port for which the credentials are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BmcOrigin {
    tls: bool,
    /// In lower case; an IPv6 address in brackets.
    host: String,
    port: u16,
}

impl BmcOrigin {
    /// The origin of a Redfish address; `None` for other kinds of address.
    pub(super) fn from_address(address: &BmcAddress) -> Option<Self> {
        match address {
            BmcAddress::Redfish {
                tls, host, port, ..
            } => Some(Self {
                tls: *tls,
                host: bracket_ipv6(host),
                port: *port,
            }),
            BmcAddress::Ipmi { .. } | BmcAddress::Fence { .. } => None,
        }
    }

    /// Returns path and query of a link that stays at this origin. Otherwise, whoever controls a
    /// BMC could have the password sent to any host.
    ///
    /// # Errors
    /// [`FaultClass::Contradiction`]: the link leads to another origin, or is not a link.
    pub(super) fn path_at_origin(&self, link: &str) -> Result<String, BmcFault> {
        let uri = parse_link(link)?;
        if !self.is_same_origin(&uri) {
            return Err(foreign_origin_fault(&uri));
        }
        Ok(path_and_query(&uri))
    }

    /// Returns path and query of a link, whatever host it names: BMCs that are addressed by name
    /// give the location of a new session with their IP address.
    pub(super) fn path_ignoring_host(link: &str) -> Option<String> {
        let uri = parse_link(link).ok()?;
        Some(path_and_query(&uri))
    }

    fn is_same_origin(&self, uri: &Uri) -> bool {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return uri.scheme().is_none() && uri.authority().is_none();
        };
        let port = authority.port_u16().unwrap_or(default_port(scheme));
        let same_host = authority.host().eq_ignore_ascii_case(&self.host);
        scheme == self.scheme()
            && same_host
            && port == self.port
            && !authority.as_str().contains('@')
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.tls
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

impl fmt::Display for BmcOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme(), self.host, self.port)
    }
}

fn bracket_ipv6(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    if host.contains(':') {
        return format!("[{host}]");
    }
    host
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "http" { 80 } else { 443 }
}

fn parse_link(link: &str) -> Result<Uri, BmcFault> {
    let is_path = link.starts_with('/') && !link.starts_with("//");
    let uri = link.parse::<Uri>().ok();
    let uri = uri.filter(|uri| is_path || uri.scheme().is_some());
    uri.ok_or_else(|| {
        BmcFault::without_effect(
            FaultClass::Contradiction,
            "the BMC's answer contains an invalid link",
        )
    })
}

fn path_and_query(uri: &Uri) -> String {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    path.to_owned()
}

fn foreign_origin_fault(uri: &Uri) -> BmcFault {
    let host = uri.host().unwrap_or_default();
    let scheme = uri.scheme_str().unwrap_or_default();
    let message = format!(
        "the BMC links to another origin ({scheme}://{host}); Dogwatch does not follow such links"
    );
    BmcFault::without_effect(FaultClass::Contradiction, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str) -> BmcOrigin {
        BmcOrigin {
            tls: true,
            host: bracket_ipv6(host),
            port: 443,
        }
    }

    #[test]
    fn a_link_stays_at_its_origin_or_is_refused() {
        let here = origin("BMC.example");
        for (link, path) in [
            ("/redfish/v1/Systems/1", Some("/redfish/v1/Systems/1")),
            ("/a?b=c#d", Some("/a?b=c")),
            ("https://bmc.example/a", Some("/a")),
            ("https://bmc.example:443/a", Some("/a")),
            ("https://BMC.EXAMPLE", Some("/")),
            ("http://bmc.example/a", None),
            ("https://bmc.example:8443/a", None),
            ("https://other.example/a", None),
            ("https://bmc.example@other.example/a", None),
            ("https://someone@bmc.example/a", None),
            ("//other.example/a", None),
            ("Systems/1", None),
            ("", None),
            ("/a b", None),
            ("/a\r\nb", None),
        ] {
            assert_eq!(here.path_at_origin(link).ok().as_deref(), path, "{link}");
        }
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        let here = origin("fd00::1");
        assert_eq!(here.to_string(), "https://[fd00::1]:443");
        assert_eq!(
            here.path_at_origin("https://[fd00::1]/a"),
            Ok("/a".to_owned())
        );
    }
}
