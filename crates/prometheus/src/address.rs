//! Where a Prometheus is: an origin, and the path below which it is served.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use http::Uri;

/// Scheme, host and port of a server: what a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    /// In lower case, an IPv6 address in brackets.
    host: String,
    port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// Why a text is no origin that a token may go to. The text is never quoted: there may be a password
/// in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// It is no address at all, or says more than where a server is.
    #[error("it {0}")]
    NoAddress(&'static str),
    /// A path follows.
    #[error("write only scheme, host and port, like https://prometheus.monitoring.svc:9090")]
    HasPath,
    /// Anybody on the way could read the token.
    #[error("a token is sent over https only")]
    Plain,
}

impl FromStr for Origin {
    type Err = OriginError;

    /// `https://HOST[:PORT]`.
    fn from_str(text: &str) -> Result<Self, OriginError> {
        let address = Address::parse(text).map_err(OriginError::NoAddress)?;
        match (address.origin.is_tls(), address.prefix.is_empty()) {
            (true, true) => Ok(address.origin),
            (false, true | false) => Err(OriginError::Plain),
            (true, false) => Err(OriginError::HasPath),
        }
    }
}

impl Origin {
    /// Whether the server speaks TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// The host as a certificate names it: an IPv6 address without its brackets.
    pub(crate) fn name(&self) -> &str {
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

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme.name(), self.host)?;
        if self.port != self.scheme.default_port() {
            write!(formatter, ":{}", self.port)?;
        }
        Ok(())
    }
}

/// The address of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    origin: Origin,
    /// What stands before `/api/v1`: empty, or `/prometheus`.
    prefix: String,
}

impl Address {
    /// Reads what a policy says; what is wrong continues a sentence about the address.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text
            .parse()
            .map_err(|_| "is none: write it like https://prometheus.monitoring.svc:9090")?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
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
        // What is no port is left out by the parser, and the question would go to the default one.
        if authority.as_str().len()
            != host.len() + authority.port().map_or(0, |port| port.as_str().len() + 1)
        {
            return Err("has a port that is none");
        }
        Ok(Self {
            origin: Origin {
                scheme,
                host,
                port: port.unwrap_or(scheme.default_port()),
            },
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Path and query of an instant query, now. By GET: proxies that let people only read let it
    /// pass, and take POST for a write.
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

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.origin, self.prefix)
    }
}

#[cfg(test)]
mod tests;
