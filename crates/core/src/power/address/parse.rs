//! Parses BMC addresses.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::scheme::{self, BmcScheme, IPMI_PORT, default_redfish_port};
use super::url_text::{bad_address, parse_query, percent_decode};
use super::{BadBmcAddress, BmcAddress, fence};

struct AddressParts<'a> {
    host: String,
    port: Option<u16>,
    /// Empty, or with a leading `/`.
    path: &'a str,
    query: &'a str,
}

pub(super) fn parse_address(text: &str) -> Result<BmcAddress, BadBmcAddress> {
    check_text(text)?;
    let (scheme, rest) = split_scheme(text)?;
    match scheme {
        BmcScheme::Redfish { vendor, tls } => {
            let rest = parse_parts_with_host(rest)?;
            Ok(BmcAddress::Redfish {
                vendor,
                tls,
                port: rest.port.unwrap_or(default_redfish_port(tls)),
                system: parse_system_path(rest.path)?,
                host: rest.host,
            })
        }
        BmcScheme::Ipmi => parse_ipmi_address(parse_parts_with_host(rest)?),
        BmcScheme::Fence(agent) => {
            let AddressParts {
                host, port, query, ..
            } = parse_parts(rest)?;
            let agent = fence::check_agent(agent)?;
            let options = fence::parse_options(query)?;
            if host.is_empty() && !options.contains_key("plug") {
                return bad_address("there is neither a host nor the option plug");
            }
            Ok(BmcAddress::Fence {
                agent,
                host,
                port,
                options,
            })
        }
    }
}

/// Refuses what no kind of address may contain.
fn check_text(text: &str) -> Result<(), BadBmcAddress> {
    const MAX_ADDRESS_BYTES: usize = 2048;
    if text.is_empty() {
        return bad_address(
            "the address is empty: write one like redfish://192.0.2.1/redfish/v1/Systems/1",
        );
    }
    if text.len() > MAX_ADDRESS_BYTES {
        return bad_address("the address is longer than 2048 bytes");
    }
    if text.contains('@') {
        return bad_address(
            "leave user and password out of the address: they belong in the Secret that credentialsName names",
        );
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return bad_address(
            "leave out blanks and characters that are not ASCII, or percent-encode them",
        );
    }
    // metal3 cuts off what follows '#', and so would address another system.
    if text.contains('#') {
        return bad_address("write '#' as %23");
    }
    Ok(())
}

/// Returns the scheme and what follows its `://` or `:`.
fn split_scheme(text: &str) -> Result<(BmcScheme<'_>, &str), BadBmcAddress> {
    if let Some((name, rest)) = text.split_once("://") {
        let is_scheme = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
        if !is_scheme {
            return bad_address("the text before :// is not a scheme");
        }
        return match find_known_scheme(name) {
            Some(scheme) => Ok((scheme?, rest)),
            None => Err(scheme::unknown_scheme_error(name)),
        };
    }
    let scheme = text.split_once(':').and_then(|(name, rest)| {
        let scheme = find_known_scheme(name)?;
        Some(scheme.map(|scheme| (scheme, rest)))
    });
    scheme.unwrap_or_else(|| parse_without_scheme(text))
}

/// Schemes are accepted in any case; an agent's name keeps its case.
fn find_known_scheme(name: &str) -> Option<Result<BmcScheme<'_>, BadBmcAddress>> {
    let lower = name.to_ascii_lowercase();
    match scheme::find_scheme(&lower)? {
        Ok(BmcScheme::Fence(_)) => Some(Ok(BmcScheme::Fence(&name["fence+".len()..]))),
        Ok(BmcScheme::Redfish { vendor, tls }) => Some(Ok(BmcScheme::Redfish { vendor, tls })),
        Ok(BmcScheme::Ipmi) => Some(Ok(BmcScheme::Ipmi)),
        Err(error) => Some(Err(error)),
    }
}

/// A host alone means IPMI. Like metal3, this refuses an IPv6 address alone, with brackets or not.
fn parse_without_scheme(text: &str) -> Result<(BmcScheme<'_>, &str), BadBmcAddress> {
    let authority = text.split(['/', '?']).next().unwrap_or_default();
    if authority.matches(':').count() > 1 && !authority.contains("]:") {
        return bad_address(
            "write an IPv6 address with its scheme and in brackets, like ipmi://[2001:db8::1]",
        );
    }
    Ok((BmcScheme::Ipmi, text))
}

fn parse_parts_with_host(rest: &str) -> Result<AddressParts<'_>, BadBmcAddress> {
    let rest = parse_parts(rest)?;
    if rest.host.is_empty() {
        return bad_address("there is no host in the address");
    }
    Ok(rest)
}

fn parse_parts(rest: &str) -> Result<AddressParts<'_>, BadBmcAddress> {
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match before.find('/') {
        Some(at) => before.split_at(at),
        None => (before, ""),
    };
    let (host, port) = parse_host_and_port(authority)?;
    Ok(AddressParts {
        host,
        port,
        path,
        query,
    })
}

fn parse_host_and_port(authority: &str) -> Result<(String, Option<u16>), BadBmcAddress> {
    if let Some(after) = authority.strip_prefix('[') {
        let Some((address, port)) = after.split_once(']') else {
            return bad_address("the bracket before the IPv6 address is never closed");
        };
        let Ok(address) = address.parse::<Ipv6Addr>() else {
            return bad_address("the text in brackets is not an IPv6 address");
        };
        let port = match port.strip_prefix(':') {
            Some(port) => parse_port(port)?,
            None if port.is_empty() => None,
            None => return bad_address("write ':' and the port after the bracket, or nothing"),
        };
        return Ok((address.to_string(), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => {
            return bad_address("write an IPv6 address in brackets, like ipmi://[2001:db8::1]");
        }
        Some((host, port)) => (host, parse_port(port)?),
        None => (authority, None),
    };
    let host = host.to_ascii_lowercase();
    if host.is_empty() || is_host(&host) {
        return Ok((host, port));
    }
    bad_address("the host is neither an IP address nor a DNS name")
}

/// As in every URL, nothing after the colon means that no port is given.
fn parse_port(text: &str) -> Result<Option<u16>, BadBmcAddress> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if digits && port > 0 => Ok(Some(port)),
        Ok(_) | Err(_) => bad_address(
            "the text after the host's ':' is not a port (1 to 65535), or the text before it is not a scheme",
        ),
    }
}

/// Accepts an IPv4 address or a DNS name. Refuses numbers that are no IPv4 address: a resolver
/// would turn them into one (`10.1` into 10.0.0.1).
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

/// The system that the path names; `None` if the path is empty or the service root. Like metal3,
/// this ignores what follows `?`.
fn parse_system_path(path: &str) -> Result<Option<String>, BadBmcAddress> {
    let trimmed = path.trim_end_matches('/');
    if matches!(trimmed.trim_start_matches('/'), "" | "redfish/v1") {
        return Ok(None);
    }
    let Some(plain) = percent_decode(trimmed) else {
        return bad_address("the system's path is not percent-encoded text");
    };
    // A client would resolve these segments and reach another system.
    if plain.split('/').any(|step| matches!(step, "." | "..")) {
        return bad_address("leave '.' and '..' out of the system's path");
    }
    let is_plain = |byte: u8| !b"\"<>\\^`{|}".contains(&byte);
    if plain.chars().any(char::is_control) || !trimmed.bytes().all(is_plain) {
        return bad_address(
            "the system's path has a character that is not allowed in a URL: percent-encode it",
        );
    }
    Ok(Some(trimmed.to_owned()))
}

const PRIVILEGE_LEVELS: [&str; 4] = ["CALLBACK", "USER", "OPERATOR", "ADMINISTRATOR"];
const DEFAULT_PRIVILEGE: &str = "ADMINISTRATOR";
/// Cipher suites whose answers carry a keyed hash, so that nobody between the controller and the
/// BMC can forge an "off". Excluded: 0 (no authentication), 1, 6 and 15 (no integrity), and 11 to
/// 14 (their MD5 is not a keyed hash). Source: IPMI 2.0 table 22-20; 18 and above belong to
/// vendors.
const SAFE_CIPHER_SUITES: [u8; 10] = [2, 3, 4, 5, 7, 8, 9, 10, 16, 17];
const LAST_STANDARD_CIPHER_SUITE: u8 = 17;

/// Like metal3, this ignores the path and unknown query options.
fn parse_ipmi_address(rest: AddressParts<'_>) -> Result<BmcAddress, BadBmcAddress> {
    let pairs = parse_query(rest.query)?;
    let option = |wanted: &str| {
        let found = pairs.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let privilege =
        option("privilegelevel").map_or(DEFAULT_PRIVILEGE.into(), str::to_ascii_uppercase);
    if !PRIVILEGE_LEVELS.contains(&privilege.as_str()) {
        return bad_address(
            "privilegelevel must be one of CALLBACK, USER, OPERATOR, ADMINISTRATOR",
        );
    }
    let suite = option("ciphersuite").map(|text| text.parse::<u8>().ok());
    let cipher_suite = match suite {
        None => None,
        Some(Some(suite)) if SAFE_CIPHER_SUITES.contains(&suite) => Some(suite),
        Some(Some(suite)) if suite <= LAST_STANDARD_CIPHER_SUITE => {
            return Err(BadBmcAddress(format!(
                "ciphersuite {suite} has no integrity: anybody between the controller and the BMC \
                 could report that the host is off; leave it out to use 17, then 3"
            )));
        }
        Some(_) => {
            return bad_address(
                "ciphersuite must be a number from 0 to 17; leave it out to use 17, then 3",
            );
        }
    };
    Ok(BmcAddress::Ipmi {
        host: rest.host,
        port: rest.port.unwrap_or(IPMI_PORT),
        privilege,
        cipher_suite,
    })
}

/// The query options that differ from the defaults.
pub(super) fn ipmi_query(privilege: &str, cipher_suite: Option<u8>) -> BTreeMap<String, String> {
    let privilege = (privilege != DEFAULT_PRIVILEGE).then(|| privilege.to_owned());
    let suite = cipher_suite.map(|suite| suite.to_string());
    [("privilegelevel", privilege), ("ciphersuite", suite)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
