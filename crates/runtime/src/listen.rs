//! `--listen`: the address for metrics and health.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    Off,
    /// A host and port; port 0 is any free one.
    At {
        /// A name or address, without brackets. `None` is all addresses, IPv6 and IPv4.
        host: Option<String>,
        port: u16,
    },
}

/// The text is no listen address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write it like :9420, 127.0.0.1:9420, [::1]:9420 or off")]
pub struct ListenError;

impl FromStr for ListenAddress {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if text == "off" {
            return Ok(ListenAddress::Off);
        }
        let (host, port) = text.rsplit_once(':').ok_or(ListenError)?;
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ListenError);
        }
        Ok(ListenAddress::At {
            host: parse_host(host)?,
            port: port.parse().map_err(|_| ListenError)?,
        })
    }
}

/// An IPv6 address needs its brackets: `::1:9420` would be another address.
fn parse_host(text: &str) -> Result<Option<String>, ListenError> {
    if text.is_empty() {
        return Ok(None);
    }
    let bracketed = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let host = match bracketed {
        Some(address) => address
            .parse::<std::net::Ipv6Addr>()
            .map_err(|_| ListenError)?
            .to_string(),
        None if text.contains([':', '[', ']', '/', ' ']) => return Err(ListenError),
        None => text.to_owned(),
    };
    Ok(Some(host))
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Off => formatter.write_str("off"),
            ListenAddress::At { host: None, port } => write!(formatter, ":{port}"),
            ListenAddress::At {
                host: Some(host),
                port,
            } if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            ListenAddress::At {
                host: Some(host),
                port,
            } => write!(formatter, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_as_it_was_printed() {
        for text in [
            ":9420",
            ":0",
            "127.0.0.1:80",
            "localhost:1",
            "[::1]:65535",
            "off",
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in [
            "",
            "9420",
            ":",
            ":port",
            ":65536",
            ":-1",
            ":+1",
            "::1:9420",
            "[::1]",
            "[x]:1",
            "http://x:1",
            "OFF",
            "a b:1",
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(ListenError), "{text}");
        }
    }
}
