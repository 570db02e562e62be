//! Parses the address of a Prometheus: an origin, and the path below which it is served.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use http::Uri;

/// Scheme, host and port of a server: a token is bound to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusOrigin {
    scheme: UrlScheme,
    /// In lower case, an IPv6 address in brackets.
    host: String,
    port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UrlScheme {
    Http,
    Https,
}

impl UrlScheme {
    fn default_port(self) -> u16 {
        match self {
            UrlScheme::Http => 80,
            UrlScheme::Https => 443,
        }
    }

    fn name(self) -> &'static str {
        match self {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        }
    }
}

/// Why a text is no origin that a token may go to. The text is never quoted, because it may contain
/// a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrometheusOriginError {
    /// The text is no address, or has more than scheme, host and port.
    #[error("it {0}")]
    NoAddress(&'static str),
    #[error("write only scheme, host and port, like https://prometheus.monitoring.svc:9090")]
    HasPath,
    /// Without TLS, anybody on the way could read the token.
    #[error("a token is sent over https only")]
    Plain,
}

impl FromStr for PrometheusOrigin {
    type Err = PrometheusOriginError;

    /// `https://HOST[:PORT]`.
    fn from_str(text: &str) -> Result<Self, PrometheusOriginError> {
        let address = PrometheusAddress::parse(text).map_err(PrometheusOriginError::NoAddress)?;
        match (address.origin.is_tls(), address.prefix.is_empty()) {
            (true, true) => Ok(address.origin),
            (false, true | false) => Err(PrometheusOriginError::Plain),
            (true, false) => Err(PrometheusOriginError::HasPath),
        }
    }
}

impl PrometheusOrigin {
    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == UrlScheme::Https
    }

    /// The host as a certificate names it: an IPv6 address without its brackets.
    pub(crate) fn server_name(&self) -> &str {
        let inner = self.host.strip_prefix('[');
        inner
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(&self.host)
    }

    /// Host and port, as the `Host` header and a resolver want them.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for PrometheusOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme.name(), self.host)?;
        if self.port != self.scheme.default_port() {
            write!(formatter, ":{}", self.port)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrometheusAddress {
    origin: PrometheusOrigin,
    /// The path before `/api/v1`: empty, or like `/prometheus`.
    prefix: String,
}

impl PrometheusAddress {
    /// Parses a policy's text. The error continues a sentence about the address.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text
            .parse()
            .map_err(|_| "is not valid: write it like https://prometheus.monitoring.svc:9090")?;
        let scheme = match uri.scheme_str() {
            Some("http") => UrlScheme::Http,
            Some("https") => UrlScheme::Https,
            Some(_) | None => return Err("must begin with http:// or https://"),
        };
        let authority = uri.authority().ok_or("names no host")?;
        if authority.as_str().contains('@') {
            return Err(
                "must not carry a user or password: give the coordinator --prometheus-token-file",
            );
        }
        if uri.query().is_some() || text.contains('#') {
            return Err("must end before '?' or '#'");
        }
        let host = authority.host().to_ascii_lowercase();
        let port = authority.port_u16();
        // The parser drops what is no port, and the query would go to the default port.
        if authority.as_str().len()
            != host.len() + authority.port().map_or(0, |port| port.as_str().len() + 1)
        {
            return Err("has an invalid port");
        }
        Ok(Self {
            origin: PrometheusOrigin {
                scheme,
                host,
                port: port.unwrap_or(scheme.default_port()),
            },
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(crate) fn origin(&self) -> &PrometheusOrigin {
        &self.origin
    }

    /// Path and query of an instant query, now. By GET: proxies that allow only reading let it
    /// pass, and treat POST as a write.
    pub(crate) fn query_path(&self, query: &str) -> String {
        let mut path = format!("{}/api/v1/query?query=", self.prefix);
        for byte in query.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    path.push(char::from(byte));
                }
                other => write!(path, "%{other:02X}").expect("a String takes everything"),
            }
        }
        path
    }
}

impl fmt::Display for PrometheusAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.origin, self.prefix)
    }
}

#[cfg(test)]
mod tests;
