//! Reading an address.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::scheme::{self, IPMI_PORT, Scheme, redfish_port};
use super::text::{bad, decoded, pairs};
use super::{Address, BadAddress, fence};

/// What follows the scheme.
struct Rest<'a> {
    host: String,
    port: Option<u16>,
    /// Empty, or with a leading `/`.
    path: &'a str,
    query: &'a str,
}

pub(super) fn parse(text: &str) -> Result<Address, BadAddress> {
    check_text(text)?;
    let (scheme, rest) = split(text)?;
    match scheme {
        Scheme::Redfish { vendor, tls } => {
            let rest = hosted(rest)?;
            Ok(Address::Redfish {
                vendor,
                tls,
                port: rest.port.unwrap_or(redfish_port(tls)),
                system: system(rest.path)?,
                host: rest.host,
            })
        }
        Scheme::Ipmi => ipmi(hosted(rest)?),
        Scheme::Fence(agent) => {
            let Rest {
                host, port, query, ..
            } = rest_of(rest)?;
            let agent = fence::agent(agent)?;
            let options = fence::options(query)?;
            if host.is_empty() && !options.contains_key("plug") {
                return bad("there is neither a host nor the option plug");
            }
            Ok(Address::Fence {
                agent,
                host,
                port,
                options,
            })
        }
    }
}

/// What no address of any kind has.
fn check_text(text: &str) -> Result<(), BadAddress> {
    const LONGEST: usize = 2048;
    if text.is_empty() {
        return bad(
            "the address is empty: write one like redfish://192.0.2.1/redfish/v1/Systems/1",
        );
    }
    if text.len() > LONGEST {
        return bad("the address is longer than 2048 bytes");
    }
    if text.contains('@') {
        return bad(
            "leave user and password out of the address: they belong in the Secret that credentialsName names",
        );
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return bad("leave out blanks and what is not ASCII, or percent-encode it");
    }
    // Cut off, as metal3 does, it would name another system.
    if text.contains('#') {
        return bad("write '#' as %23");
    }
    Ok(())
}

/// The scheme, and what follows its `://` or `:`.
fn split(text: &str) -> Result<(Scheme<'_>, &str), BadAddress> {
    if let Some((name, rest)) = text.split_once("://") {
        let is_scheme = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
        if !is_scheme {
            return bad("what stands before :// is no scheme");
        }
        return match known(name) {
            Some(scheme) => Ok((scheme?, rest)),
            None => Err(scheme::unknown(name)),
        };
    }
    let scheme = text.split_once(':').and_then(|(name, rest)| {
        let scheme = known(name)?;
        Some(scheme.map(|scheme| (scheme, rest)))
    });
    scheme.unwrap_or_else(|| without_scheme(text))
}

/// Schemes are written in any case, and an agent's name in its own.
fn known(name: &str) -> Option<Result<Scheme<'_>, BadAddress>> {
    let lower = name.to_ascii_lowercase();
    match scheme::find(&lower)? {
        Ok(Scheme::Fence(_)) => Some(Ok(Scheme::Fence(&name["fence+".len()..]))),
        Ok(Scheme::Redfish { vendor, tls }) => Some(Ok(Scheme::Redfish { vendor, tls })),
        Ok(Scheme::Ipmi) => Some(Ok(Scheme::Ipmi)),
        Err(error) => Some(Err(error)),
    }
}

/// A host alone is IPMI's. metal3 takes no IPv6 address alone, with brackets or without.
fn without_scheme(text: &str) -> Result<(Scheme<'_>, &str), BadAddress> {
    let authority = text.split(['/', '?']).next().unwrap_or_default();
    if authority.matches(':').count() > 1 && !authority.contains("]:") {
        return bad(
            "write an IPv6 address with its scheme and in brackets, like ipmi://[2001:db8::1]",
        );
    }
    Ok((Scheme::Ipmi, text))
}

fn hosted(rest: &str) -> Result<Rest<'_>, BadAddress> {
    let rest = rest_of(rest)?;
    if rest.host.is_empty() {
        return bad("there is no host in the address");
    }
    Ok(rest)
}

fn rest_of(rest: &str) -> Result<Rest<'_>, BadAddress> {
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match before.find('/') {
        Some(at) => before.split_at(at),
        None => (before, ""),
    };
    let (host, port) = host_and_port(authority)?;
    Ok(Rest {
        host,
        port,
        path,
        query,
    })
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), BadAddress> {
    if let Some(after) = authority.strip_prefix('[') {
        let Some((address, port)) = after.split_once(']') else {
            return bad("the bracket before the IPv6 address is never closed");
        };
        let Ok(address) = address.parse::<Ipv6Addr>() else {
            return bad("what stands in brackets is no IPv6 address");
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port_of(port)?,
            None if port.is_empty() => None,
            None => return bad("write ':' and the port after the bracket, or nothing"),
        };
        return Ok((address.to_string(), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => {
            return bad("write an IPv6 address in brackets, like ipmi://[2001:db8::1]");
        }
        Some((host, port)) => (host, port_of(port)?),
        None => (authority, None),
    };
    let host = host.to_ascii_lowercase();
    if host.is_empty() || is_host(&host) {
        return Ok((host, port));
    }
    bad("the host is neither an IP address nor a DNS name")
}

/// Nothing after the colon is nothing said, as in every URL.
fn port_of(text: &str) -> Result<Option<u16>, BadAddress> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if digits && port > 0 => Ok(Some(port)),
        Ok(_) | Err(_) => bad(
            "what follows the host's ':' is no port (1 to 65535), or what stands before it no scheme",
        ),
    }
}

/// An IPv4 address, or labels that DNS takes. Numbers that are no address are a slip: a resolver would
/// make one of them (`10.1` is 10.0.0.1).
fn is_host(host: &str) -> bool {
    if host.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    host.len() <= 253
        && host.split('.').all(is_label)
        && !host.rsplit('.').next().is_none_or(is_number)
}

fn is_label(label: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=63).contains(&label.len())
        && label.bytes().all(is_word)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// The system that a path names: none, where it is empty or the service root. What follows `?` is
/// ignored, as metal3 does.
fn system(path: &str) -> Result<Option<String>, BadAddress> {
    let trimmed = path.trim_end_matches('/');
    if matches!(trimmed.trim_start_matches('/'), "" | "redfish/v1") {
        return Ok(None);
    }
    let Some(plain) = decoded(trimmed) else {
        return bad("the system's path is not percent-encoded text");
    };
    // A client would walk them, and end at another system.
    if plain.split('/').any(|step| matches!(step, "." | "..")) {
        return bad("leave '.' and '..' out of the system's path");
    }
    let is_plain = |byte: u8| !b"\"<>\\^`{|}".contains(&byte);
    if plain.chars().any(char::is_control) || !trimmed.bytes().all(is_plain) {
        return bad("the system's path has a character that no URL has: percent-encode it");
    }
    Ok(Some(trimmed.to_owned()))
}

const PRIVILEGES: [&str; 4] = ["CALLBACK", "USER", "OPERATOR", "ADMINISTRATOR"];
const ADMINISTRATOR: &str = "ADMINISTRATOR";
/// Those whose answers carry a keyed hash, so that nobody on the way can make one up. Not so 0 (no
/// authentication), 1, 6 and 15 (no integrity), and 11 to 14, whose MD5 is not a keyed hash: "off" could be told by
/// whoever is between us and the BMC. Source: IPMI 2.0 table 22-20; 18 and more are the makers' own.
const SAFE_SUITES: [u8; 10] = [2, 3, 4, 5, 7, 8, 9, 10, 16, 17];
const LAST_SUITE: u8 = 17;

/// The path is ignored, and what else follows `?`, as metal3 does.
fn ipmi(rest: Rest<'_>) -> Result<Address, BadAddress> {
    let pairs = pairs(rest.query)?;
    let option = |wanted: &str| {
        let found = pairs.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let privilege = option("privilegelevel").map_or(ADMINISTRATOR.into(), str::to_ascii_uppercase);
    if !PRIVILEGES.contains(&privilege.as_str()) {
        return bad("privilegelevel is none of CALLBACK, USER, OPERATOR, ADMINISTRATOR");
    }
    let suite = option("ciphersuite").map(|text| text.parse::<u8>().ok());
    let cipher_suite = match suite {
        None => None,
        Some(Some(suite)) if SAFE_SUITES.contains(&suite) => Some(suite),
        Some(Some(suite)) if suite <= LAST_SUITE => {
            return Err(BadAddress(format!(
                "ciphersuite {suite} has no integrity: anybody between us and the BMC could say that the host is off; leave it out for 17, then 3"
            )));
        }
        Some(_) => {
            return bad("ciphersuite is no number from 0 to 17; leave it out for 17, then 3");
        }
    };
    Ok(Address::Ipmi {
        host: rest.host,
        port: rest.port.unwrap_or(IPMI_PORT),
        privilege,
        cipher_suite,
    })
}

/// What has to be said of an IPMI address that is not so anyway.
pub(super) fn ipmi_query(privilege: &str, cipher_suite: Option<u8>) -> BTreeMap<String, String> {
    let privilege = (privilege != ADMINISTRATOR).then(|| privilege.to_owned());
    let suite = cipher_suite.map(|suite| suite.to_string());
    [("privilegelevel", privilege), ("ciphersuite", suite)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
