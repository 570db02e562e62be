//! Addresses in, requests and origins out.

use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    PrometheusAddress::parse(text).unwrap().to_string()
}

#[test]
fn an_address_is_shown_without_what_says_nothing() {
    for (text, expected) in [
        ("http://prom", "http://prom"),
        ("http://prom:80/", "http://prom"),
        ("HTTPS://Prom.Example:443", "https://prom.example"),
        (
            "https://prom:9090/prometheus/",
            "https://prom:9090/prometheus",
        ),
        ("http://[fd00::1]:9090/a/b", "http://[fd00::1]:9090/a/b"),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn what_is_no_address_of_a_server_is_refused_and_never_quoted() {
    for (text, says) in [
        ("", "write it like"),
        ("prometheus", "begin with http"),
        ("/prometheus", "begin with http"),
        ("ftp://secret", "begin with http"),
        ("https://secret:pass@prom", "user or password"),
        ("https://secret@prom", "user or password"),
        ("https://prom/?secret", "before '?'"),
        ("https://prom/#secret", "before '?'"),
        ("https://prom:99999", "port"),
        ("https://prom:", "port"),
        ("https://prom:secret", "port"),
        ("https://se cret", "write it like"),
        ("https://", "write it like"),
    ] {
        let why = PrometheusAddress::parse(text).unwrap_err();
        assert!(why.contains(says), "{text}: {why}");
        assert!(!why.contains("secret"), "{text}: {why}");
    }
}

#[test]
fn a_token_is_bound_to_an_https_origin_and_to_nothing_more() {
    let origin: PrometheusOrigin = "https://Prom.Example:443/".parse().unwrap();
    assert_eq!(origin.to_string(), "https://prom.example");
    for (text, error) in [
        ("http://prom", PrometheusOriginError::Plain),
        ("http://prom/x", PrometheusOriginError::Plain),
        ("https://prom/x", PrometheusOriginError::HasPath),
    ] {
        assert_eq!(text.parse::<PrometheusOrigin>(), Err(error), "{text}");
    }
    let error = "https://a:b@prom".parse::<PrometheusOrigin>().unwrap_err();
    assert!(matches!(error, PrometheusOriginError::NoAddress(_)));
}

#[test]
fn only_the_same_scheme_host_and_port_are_the_same_origin() {
    let token: PrometheusOrigin = "https://prom.example".parse().unwrap();
    for (text, same) in [
        ("https://prom.example/any/path", true),
        ("https://PROM.example:443", true),
        ("http://prom.example", false),
        ("http://prom.example:443", false),
        ("https://prom.example:444", false),
        ("https://prom.example.", false),
        ("https://prom.example.evil", false),
        ("https://evil/prom.example", false),
        ("https://prom", false),
    ] {
        let address = PrometheusAddress::parse(text).unwrap();
        assert_eq!(*address.origin() == token, same, "{text}");
    }
}

#[test]
fn the_question_goes_below_the_prefix() {
    let path = |text: &str| {
        PrometheusAddress::parse(text)
            .unwrap()
            .query_path("up == 0")
    };
    assert_eq!(path("http://a"), "/api/v1/query?query=up%20%3D%3D%200");
    assert_eq!(
        path("http://a/prometheus/"),
        "/prometheus/api/v1/query?query=up%20%3D%3D%200"
    );
}

#[test]
fn an_ipv6_address_is_named_without_brackets_in_certificates_only() {
    let address = PrometheusAddress::parse("https://[::1]:9090").unwrap();
    assert_eq!(address.origin().server_name(), "::1");
    assert_eq!(address.origin().authority(), "[::1]:9090");
}

proptest! {
    #[test]
    fn no_query_can_leave_its_parameter(query in ".{0,60}") {
        let address = PrometheusAddress::parse("http://a/x").unwrap();
        let path = address.query_path(&query);
        let uri: Uri = path.parse().unwrap();
        prop_assert_eq!(uri.path(), "/x/api/v1/query");
        let written = uri.query().unwrap().strip_prefix("query=").unwrap();
        prop_assert!(!written.contains(['&', '#', '+', '=', '?']));
        prop_assert_eq!(decoded(written), query);
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same_address(text in "https?://[a-z]{1,8}(:[1-9][0-9]{0,3})?(/[a-z]{1,4}){0,3}/?") {
        let address = PrometheusAddress::parse(&text).unwrap();
        prop_assert_eq!(PrometheusAddress::parse(&address.to_string()).unwrap(), address);
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}
