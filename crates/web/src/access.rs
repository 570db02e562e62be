//! Who may use the page, and by which names it is reached.

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Method};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who may look and act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashboardAccess {
    /// `dogwatch dashboard`: who has the one-time link looks and acts with the rights of the
    /// process.
    OneTimeLink,
    /// `dogwatch demo --dashboard`: the same, on a cluster without access rights.
    DemoLink,
    /// In the cluster: everybody who can connect looks with the rights of the process, and acts
    /// with a bearer token of the API server.
    ReadOnly,
}

impl DashboardAccess {
    /// With which rights the page acts, as the end of a sentence.
    pub fn describe_rights(self) -> &'static str {
        match self {
            Self::OneTimeLink => "acts with the rights of your kubeconfig",
            Self::DemoLink => "acts on the demo's cluster, where everybody may do everything",
            Self::ReadOnly => "looks only; actions need your own token",
        }
    }
}

/// The names in a Host header that are answered. A page of somebody else whose name suddenly
/// resolves to this server (DNS rebinding) sends its own name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostNames(Vec<String>);

const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no host name: write it without scheme, port and path, like dogwatch.example.com")]
pub struct HostNameError(String);

impl HostNames {
    /// Loopback's names and these.
    ///
    /// # Errors
    /// The first that is no host name.
    pub fn with_loopback(names: impl IntoIterator<Item = String>) -> Result<Self, HostNameError> {
        let mut all = Vec::new();
        for name in names {
            let name = name.to_ascii_lowercase();
            let is_good = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
            if name.is_empty() || !name.chars().all(is_good) {
                return Err(HostNameError(name));
            }
            all.push(name);
        }
        Ok(Self(all))
    }

    /// Any port: the port of a tunnel (`kubectl port-forward`, `ssh -L`) is the viewer's choice,
    /// and a foreign page cannot choose the name.
    fn contains_authority(&self, authority: &str) -> bool {
        let name = match authority.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => authority,
        };
        let is_this = |known: &str| known.eq_ignore_ascii_case(name);
        LOOPBACK_NAMES.into_iter().any(is_this) || self.0.iter().any(|known| is_this(known))
    }
}

/// Why a request is refused before anything else is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OriginRefusal {
    #[error("the request has no Host header, or more than one")]
    NoHost,
    #[error(
        "this server is not called by that name: use the address that it printed, or name it with --web-hosts"
    )]
    UnknownHost,
    #[error("the request comes from a page of another origin")]
    ForeignOrigin,
    #[error(
        "a request that changes something must come from the page itself: it has no Origin header"
    )]
    NoOrigin,
}

/// Refuses names that are not this server's.
pub(crate) fn check_host(headers: &HeaderMap, names: &HostNames) -> Result<(), OriginRefusal> {
    let host = single_header(headers, &HOST).ok_or(OriginRefusal::NoHost)?;
    if names.contains_authority(host) {
        Ok(())
    } else {
        Err(OriginRefusal::UnknownHost)
    }
}

/// Refuses what a page of another origin makes a browser send. Browsers set both headers
/// themselves; a page cannot change them.
pub(crate) fn check_origin(headers: &HeaderMap, method: &Method) -> Result<(), OriginRefusal> {
    let is_foreign_site = headers
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|site| site != "same-origin" && site != "none");
    if is_foreign_site {
        return Err(OriginRefusal::ForeignOrigin);
    }
    let changes = ![Method::GET, Method::HEAD].contains(method);
    if !headers.contains_key(ORIGIN) {
        return if changes {
            Err(OriginRefusal::NoOrigin)
        } else {
            Ok(())
        };
    }
    let host = single_header(headers, &HOST).ok_or(OriginRefusal::NoHost)?;
    let origin = single_header(headers, &ORIGIN).ok_or(OriginRefusal::ForeignOrigin)?;
    // An ingress may end TLS before this server.
    let own = ["http://", "https://"].into_iter();
    let is_own = own
        .filter_map(|scheme| origin.strip_prefix(scheme))
        .any(|authority| authority.eq_ignore_ascii_case(host));
    if is_own {
        Ok(())
    } else {
        Err(OriginRefusal::ForeignOrigin)
    }
}

/// The header's value if it is there exactly once.
pub(crate) fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_own_names_are_answered() {
        let names = HostNames::with_loopback(["Dogwatch.Example.com".to_owned()]).unwrap();
        for good in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "LOCALHOST:1",
            "[::1]:80",
            "dogwatch.example.com",
            "dogwatch.example.com:443",
        ] {
            assert_eq!(
                check_host(&headers(&[("host", good)]), &names),
                Ok(()),
                "{good}"
            );
        }
        for bad in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "evil.example:127.0.0.1",
            "127.0.0.1:80@evil.example",
            "localhost:80:80",
            "2130706433",
            "127.1",
            "::1",
        ] {
            assert_eq!(
                check_host(&headers(&[("host", bad)]), &names),
                Err(OriginRefusal::UnknownHost),
                "{bad}"
            );
        }
        let two = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert_eq!(check_host(&two, &names), Err(OriginRefusal::NoHost));
        assert_eq!(
            check_host(&headers(&[]), &names),
            Err(OriginRefusal::NoHost)
        );
    }

    #[test]
    fn a_name_is_given_without_scheme_and_port() {
        for bad in ["", "https://a", "a:80", "a/b", "a b", "*"] {
            assert!(HostNames::with_loopback([bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_foreign_page_is_refused_by_either_header() {
        let check = |pairs: &[(&'static str, &'static str)], method: Method| {
            let mut all = vec![("host", "localhost:7000")];
            all.extend(pairs);
            check_origin(&headers(&all), &method)
        };
        let own = [("origin", "http://localhost:7000")];
        assert_eq!(check(&own, Method::POST), Ok(()));
        assert_eq!(check(&[], Method::GET), Ok(()));
        assert_eq!(check(&[("sec-fetch-site", "none")], Method::GET), Ok(()));
        assert_eq!(check(&[], Method::POST), Err(OriginRefusal::NoOrigin));
        assert_eq!(check(&[], Method::DELETE), Err(OriginRefusal::NoOrigin));
        for foreign in [
            ("origin", "http://localhost:7001"),
            ("origin", "http://127.0.0.1:7000"),
            ("origin", "null"),
            ("origin", "http://evil.example"),
            ("origin", "http://localhost:7000.evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            for method in [Method::GET, Method::POST] {
                assert_eq!(
                    check(&[foreign], method),
                    Err(OriginRefusal::ForeignOrigin),
                    "{foreign:?}"
                );
            }
        }
        let contradictory = [own[0], ("sec-fetch-site", "cross-site")];
        assert_eq!(
            check(&contradictory, Method::POST),
            Err(OriginRefusal::ForeignOrigin)
        );
    }
}
