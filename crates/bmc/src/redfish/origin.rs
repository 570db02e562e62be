//! Where a BMC is, and what of its links stays there.

use std::fmt;

use dogwatch_core::power::Address;
use http::Uri;

use crate::{Class, Fault};

/// Scheme, host and port: what the credentials are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    tls: bool,
    /// In lower case, an IPv6 address in brackets.
    host: String,
    port: u16,
}

impl Origin {
    /// Of a Redfish address; `None` for the other kinds.
    pub(super) fn of(address: &Address) -> Option<Self> {
        match address {
            Address::Redfish {
                tls, host, port, ..
            } => Some(Self {
                tls: *tls,
                host: bracketed(host),
                port: *port,
            }),
            Address::Ipmi { .. } | Address::Fence { .. } => None,
        }
    }

    /// Path and query of a link, if it does not lead elsewhere: whoever holds a BMC could otherwise have
    /// the password sent to wherever they like.
    ///
    /// # Errors
    /// [`Class::Contradiction`]: it leads to another origin, or is no link.
    pub(super) fn path(&self, link: &str) -> Result<String, Fault> {
        let uri = parse(link)?;
        if !self.is_here(&uri) {
            return Err(elsewhere(&uri));
        }
        Ok(path_of(&uri))
    }

    /// Path and query of a link, taken at this origin whatever host it names: BMCs that are addressed by
    /// name tell where a new session is by their IP address.
    pub(super) fn path_here(link: &str) -> Option<String> {
        let uri = parse(link).ok()?;
        Some(path_of(&uri))
    }

    fn is_here(&self, uri: &Uri) -> bool {
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

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme(), self.host, self.port)
    }
}

fn bracketed(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    if host.contains(':') {
        return format!("[{host}]");
    }
    host
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "http" { 80 } else { 443 }
}

fn parse(link: &str) -> Result<Uri, Fault> {
    let is_path = link.starts_with('/') && !link.starts_with("//");
    let uri = link.parse::<Uri>().ok();
    let uri = uri.filter(|uri| is_path || uri.scheme().is_some());
    uri.ok_or_else(|| Fault::harmless(Class::Contradiction, "it names a link that is none"))
}

fn path_of(uri: &Uri) -> String {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    path.to_owned()
}

fn elsewhere(uri: &Uri) -> Fault {
    let host = uri.host().unwrap_or_default();
    let scheme = uri.scheme_str().unwrap_or_default();
    let message = format!("it links to another origin ({scheme}://{host}), which is not followed");
    Fault::harmless(Class::Contradiction, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(host: &str) -> Origin {
        Origin {
            tls: true,
            host: bracketed(host),
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
            assert_eq!(here.path(link).ok().as_deref(), path, "{link}");
        }
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        let here = origin("fd00::1");
        assert_eq!(here.to_string(), "https://[fd00::1]:443");
        assert_eq!(here.path("https://[fd00::1]/a"), Ok("/a".to_owned()));
    }
}
