//! What somebody tries against the page, each against the real server. Source: specification §12.1.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test fails as the test does"
)]

mod support;

use std::time::Duration;

use dogwatch_web::{DashboardAccess, DashboardLimits};
use support::{EventReader, OPERATOR_TOKEN, READER_TOKEN, Rig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const READS: [&str; 7] = [
    "/api/view",
    "/api/events",
    "/api/about",
    "/api/explain/node/n1",
    "/api/plan/node/n1",
    "/app.js",
    "/style.css",
];

fn view() -> dogwatch_core::report::FleetView {
    support::fleet::fleet_of(5, jiff::Timestamp::now())
}

async fn loopback() -> Rig {
    Rig::start(DashboardAccess::OneTimeLink, view()).await
}

async fn in_cluster() -> Rig {
    Rig::start(DashboardAccess::ReadOnly, view()).await
}

#[tokio::test]
async fn a_name_that_was_rebound_to_this_address_is_not_answered() {
    let (loopback, cluster) = (loopback().await, in_cluster().await);
    let cookie = loopback.open_link().await;
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.nip.example",
        "localhost.",
    ] {
        for path in READS.into_iter().chain(["/", "/plain"]) {
            let headers = [("Host", host), ("Cookie", cookie.as_str())];
            assert_eq!(
                loopback.get(path, &headers).await.status,
                403,
                "{host} {path}"
            );
            assert_eq!(
                cluster.get(path, &headers).await.status,
                403,
                "{host} {path}"
            );
        }
        let headers = [("Host", host)];
        let link = format!("/?{}", loopback.link_query());
        assert_eq!(loopback.get(&link, &headers).await.status, 403, "{host}");
    }
    let named = [("Host", "dogwatch.example:8443")];
    assert_eq!(cluster.get("/api/view", &named).await.status, 200);
}

#[tokio::test]
async fn a_page_of_another_origin_can_neither_read_nor_act() {
    let rig = loopback().await;
    let cookie = rig.open_link().await;
    let own = format!("http://{}", rig.address);
    let foreign = [
        vec![("Origin", "http://evil.example")],
        vec![("Origin", "null")],
        vec![("Origin", "http://127.0.0.1:1")],
        vec![("Sec-Fetch-Site", "cross-site")],
        vec![("Sec-Fetch-Site", "same-site")],
        vec![("Origin", own.as_str()), ("Sec-Fetch-Site", "cross-site")],
        vec![("Origin", own.as_str()), ("Origin", "http://evil.example")],
    ];
    for headers in &foreign {
        let mut headers = headers.clone();
        headers.push(("Cookie", &cookie));
        for path in READS {
            assert_eq!(
                rig.get(path, &headers).await.status,
                403,
                "{path} {headers:?}"
            );
        }
        headers.push(("Content-Type", "application/json"));
        let answer = rig
            .send("POST", "/api/actions/reboot/n1", &headers, "{}")
            .await;
        assert_eq!(answer.status, 403, "{headers:?}");
    }
    let silent = [
        ("Cookie", cookie.as_str()),
        ("Content-Type", "application/json"),
    ];
    let answer = rig
        .send("POST", "/api/actions/reboot/n1", &silent, "{}")
        .await;
    assert_eq!(answer.status, 403, "a form without an origin");
    assert!(rig.runner.ran.lock().unwrap().is_empty());
    let answer = rig
        .post("/api/actions/reboot/n1", &[("Cookie", &cookie)], "{}")
        .await;
    assert_eq!(answer.status, 200, "the page itself: {answer:?}");
}

#[tokio::test]
async fn a_form_of_html_is_not_taken() {
    let rig = loopback().await;
    let cookie = rig.open_link().await;
    let own = format!("http://{}", rig.address);
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-8",
    ] {
        let headers = [
            ("Cookie", cookie.as_str()),
            ("Origin", own.as_str()),
            ("Content-Type", content_type),
        ];
        let answer = rig
            .send("POST", "/api/actions/reboot/n1", &headers, "{}")
            .await;
        assert_eq!(answer.status, 415, "{content_type}");
    }
    assert!(rig.runner.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn without_the_link_nothing_is_shown_and_nothing_is_done() {
    let rig = loopback().await;
    for path in READS.into_iter().chain(["/", "/plain"]) {
        assert_eq!(rig.get(path, &[]).await.status, 401, "{path}");
    }
    assert_eq!(
        rig.post("/api/actions/reboot/n1", &[], "{}").await.status,
        401
    );
    let wrong = "0".repeat(64);
    for query in ["/?token=".to_owned(), format!("/?token={wrong}")] {
        let answer = rig.get(&query, &[]).await;
        assert_eq!(answer.status, 403, "{query}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    for cookie in [
        "dogwatch-1=x".to_owned(),
        format!("dogwatch-{}={wrong}", rig.address.port()),
    ] {
        assert_eq!(
            rig.get("/api/view", &[("Cookie", &cookie)]).await.status,
            401
        );
    }
    assert_eq!(
        rig.get("/api/view", &[("Authorization", "Bearer x")])
            .await
            .status,
        401
    );
    assert!(rig.runner.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_link_works_once_and_its_second_use_ends_the_session() {
    let rig = loopback().await;
    let link = format!("/?{}", rig.link_query());
    let cross_site = [("Sec-Fetch-Site", "cross-site")];
    let first = rig.get(&link, &cross_site).await;
    assert_eq!(first.status, 200, "a link in a chat may be clicked");
    let header = first.header("set-cookie").unwrap();
    assert!(
        header.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{header}"
    );
    assert!(
        first.body.contains("url=/\""),
        "it goes on to an address without the token"
    );
    assert!(!first.body.contains(rig.link_query()));
    let cookie = header.split(';').next().unwrap().to_owned();
    let viewer = [("Cookie", cookie.as_str())];
    assert_eq!(rig.get("/api/view", &viewer).await.status, 200);
    assert_eq!(rig.get(&link, &viewer).await.status, 200, "a reload");
    let second = rig.get(&link, &[]).await;
    assert_eq!(second.status, 403);
    assert_eq!(second.header("set-cookie"), None);
    assert_eq!(
        rig.get("/api/view", &viewer).await.status,
        401,
        "nobody knows who of the two is the right one"
    );
}

#[tokio::test]
async fn in_the_cluster_everybody_looks_and_nobody_acts_without_a_token() {
    let rig = in_cluster().await;
    assert_eq!(rig.get("/api/view", &[]).await.status, 200);
    assert_eq!(rig.get("/api/explain/node/n1", &[]).await.status, 200);
    for header in ["", "Bearer ", "Basic eDp5", "Bearer a b", "bearer"] {
        let answer = rig
            .post("/api/actions/reboot/n1", &[("Authorization", header)], "{}")
            .await;
        assert_eq!(answer.status, 401, "{header}");
    }
    let twice = [("Authorization", "Bearer a"), ("Authorization", "Bearer b")];
    assert_eq!(
        rig.post("/api/actions/reboot/n1", &twice, "{}")
            .await
            .status,
        401
    );
    assert_eq!(
        rig.post("/api/actions/reboot/n1", &[], "{}").await.status,
        401
    );
    let ran = rig.runner.ran.lock().unwrap().len();
    assert_eq!(ran, 1, "the explanation alone");
}

#[tokio::test]
async fn the_token_of_a_reader_does_not_act_and_no_token_is_used_for_another_request() {
    let rig = in_cluster().await;
    let reader = format!("Bearer {READER_TOKEN}");
    let operator = format!("Bearer {OPERATOR_TOKEN}");
    let act = async |token: &str| {
        let headers = [("Authorization", token)];
        rig.post("/api/actions/reboot/n1", &headers, r#"{"reason":"kernel"}"#)
            .await
    };
    let refused = act(&reader).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(act(&operator).await.status, 200);
    assert_eq!(
        act(&reader).await.status,
        403,
        "the operator's token is gone"
    );
    assert_eq!(
        rig.get("/api/explain/node/n1", &[("Authorization", &operator)])
            .await
            .status,
        200
    );
    let ran = rig.runner.ran.lock().unwrap();
    let (_, rights) = ran.last().unwrap();
    assert_eq!(
        *rights,
        dogwatch_web::CommandRights::Process,
        "reads never use a viewer's token"
    );
}

#[tokio::test]
async fn tricks_with_paths_reach_nothing() {
    let rig = in_cluster().await;
    for path in [
        "//",
        "/../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/app.js",
        "/app.js/",
        "//app.js",
        "/APP.JS",
        "/app.js%00",
        "/index.html",
        "/page/app.js",
        "/api",
        "/api/",
        "/api/view/",
        "/api//view",
        "/API/view",
        "/api/explain/node/../../view",
        "/api/explain/node/%2e%2e",
        "/api/explain/secret/dogwatch/x",
        "/api/explain/node/--context=x",
        "/api/explain/node/n1%20--all",
        "/api/explain/host/n1",
        "/api/plan/host/a/b",
        "/api/actions",
        "/api/actions/",
        "/api/actions/unlock/n1",
        "/api/actions/reboot/--all",
        "/api/actions/reboot/n1/n2",
        "/metrics",
        "/healthz",
        "/api/v1/nodes",
    ] {
        for method in ["GET", "POST"] {
            let origin = format!("http://{}", rig.address);
            let headers = [
                ("Origin", origin.as_str()),
                ("Authorization", "Bearer operator-token"),
                ("Content-Type", "application/json"),
            ];
            let answer = rig.send(method, path, &headers, "{}").await;
            assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        }
    }
    for path in ["/?x", "/?token=x", "/app.js?x", "/api/view?fieldSelector=x"] {
        assert_eq!(rig.get(path, &[]).await.status, 400, "{path}");
    }
    for target in [
        "http://evil.example/",
        "http://127.0.0.1:1/api/view",
        "127.0.0.1:22",
    ] {
        let answer = rig.get(target, &[]).await;
        assert_eq!(answer.status, 400, "{target}: {answer:?}");
    }
    assert!(rig.runner.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn other_methods_are_refused_by_name() {
    let rig = in_cluster().await;
    let origin = format!("http://{}", rig.address);
    for method in [
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "TRACE",
        "CONNECTED",
    ] {
        for path in READS {
            let answer = rig.send(method, path, &[("Origin", &origin)], "").await;
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.header("allow"), Some("GET, HEAD"));
        }
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let answer = rig
            .send(method, "/api/actions/reboot/n1", &[("Origin", &origin)], "")
            .await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("POST")),
            "{method}"
        );
    }
    let preflight = rig
        .send(
            "OPTIONS",
            "/api/actions/reboot/n1",
            &[
                ("Origin", "http://evil.example"),
                ("Access-Control-Request-Method", "POST"),
            ],
            "",
        )
        .await;
    assert_eq!(preflight.status, 403);
    assert_eq!(preflight.header("access-control-allow-origin"), None);
    let head = rig.send("HEAD", "/api/view", &[], "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[tokio::test]
async fn large_forms_are_not_read() {
    let rig = in_cluster().await;
    let headers = [("Authorization", "Bearer operator-token")];
    let form = |length: usize| format!("{{\"reason\":\"{}\"}}", "x".repeat(length));
    let announced = rig
        .post("/api/actions/reboot/n1", &headers, &form(5_000))
        .await;
    assert_eq!(announced.status, 413, "{announced:?}");
    let origin = format!("http://{}", rig.address);
    let chunk = "x".repeat(4_000);
    let chunked = format!(
        "POST /api/actions/reboot/n1 HTTP/1.1\r\nHost: {}\r\nOrigin: {origin}\r\nConnection: close\r\nAuthorization: Bearer operator-token\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfa0\r\n{chunk}\r\nfa0\r\n{chunk}\r\n0\r\n\r\n",
        rig.address
    );
    assert_eq!(rig.send_raw(&chunked).await.status, 413);
    let long_header = "x".repeat(40_000);
    assert_eq!(
        rig.get("/api/view", &[("X-Long", &long_header)])
            .await
            .status,
        431
    );
    assert!(rig.runner.ran.lock().unwrap().is_empty());
    let good = rig
        .post("/api/actions/reboot/n1", &headers, &form(500))
        .await;
    assert_eq!(good.status, 200, "{good:?}");
}

/// Limits short enough to wait for.
fn short_limits() -> DashboardLimits {
    DashboardLimits {
        read_timeout: Duration::from_millis(300),
        write_timeout: Duration::from_millis(300),
        streams: 2,
        ..DashboardLimits::default()
    }
}

async fn impatient() -> Rig {
    Rig::start_with(DashboardAccess::ReadOnly, view(), short_limits(), 0).await
}

/// Reads until the server closes the connection.
async fn read_until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let _ = tokio::time::timeout(Duration::from_mins(1), read)
        .await
        .expect("the server closes it");
    bytes
}

#[tokio::test]
async fn a_client_that_sends_slowly_is_cut_off() {
    let rig = impatient().await;
    let mut header = TcpStream::connect(rig.address).await.unwrap();
    header
        .write_all(b"GET /api/view HTTP/1.1\r\nHost: 127")
        .await
        .unwrap();
    read_until_closed(&mut header).await;
    let mut silent = TcpStream::connect(rig.address).await.unwrap();
    read_until_closed(&mut silent).await;
    let mut body = TcpStream::connect(rig.address).await.unwrap();
    let start = format!(
        "POST /api/actions/reboot/n1 HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nAuthorization: Bearer operator-token\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{{\"rea",
        rig.address
    );
    body.write_all(start.as_bytes()).await.unwrap();
    let answer = String::from_utf8(read_until_closed(&mut body).await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(rig.runner.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_viewer_that_does_not_read_is_cut_off_and_its_place_is_free() {
    let rig = impatient().await;
    // Larger than what the kernel buffers on both sides.
    rig.show(support::fleet::fleet_of(20_000, jiff::Timestamp::now()));
    let mut idle = Vec::new();
    for _ in 0..2 {
        let mut reader = EventReader::open(&rig, &[]).await;
        reader.read_until("event: view").await;
        idle.push(reader);
    }
    // Their places become free although neither of them disconnects.
    open_when_there_is_room(&rig).await;
    drop(idle);
}

async fn open_when_there_is_room(rig: &Rig) -> EventReader {
    loop {
        let mut reader = EventReader::open(rig, &[]).await;
        if reader.read_until("\r\n").await.contains("200 OK") {
            return reader;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused_and_pages_are_still_served() {
    let rig = Rig::start_with(
        DashboardAccess::ReadOnly,
        view(),
        DashboardLimits {
            streams: 2,
            ..DashboardLimits::default()
        },
        0,
    )
    .await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut reader = EventReader::open(&rig, &[]).await;
        reader.read_until("event: view").await;
        open.push(reader);
    }
    let third = rig.get("/api/events", &[]).await;
    assert_eq!(
        (third.status, third.header("retry-after")),
        (503, Some("2"))
    );
    assert_eq!(rig.get("/", &[]).await.status, 200);
    assert_eq!(rig.get("/api/view", &[]).await.status, 200);
    drop(open);
    open_when_there_is_room(&rig)
        .await
        .read_until("event: view")
        .await;
}

#[tokio::test]
async fn every_answer_has_the_headers_that_protect_the_page() {
    let rig = loopback().await;
    let cookie = rig.open_link().await;
    let viewer = [("Cookie", cookie.as_str())];
    for path in READS
        .into_iter()
        .filter(|path| *path != "/api/events")
        .chain(["/", "/plain", "/nothing"])
    {
        for headers in [&viewer[..], &[], &[("Host", "evil.example")]] {
            let answer = rig.get(path, headers).await;
            let policy = answer.header("content-security-policy").unwrap();
            for part in [
                "default-src 'none'",
                "script-src 'self'",
                "frame-ancestors 'none'",
                "base-uri 'none'",
                "require-trusted-types-for 'script'",
            ] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            assert!(!policy.contains("unsafe"), "{policy}");
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("x-frame-options", "DENY"),
                ("cache-control", "no-store"),
                ("referrer-policy", "no-referrer"),
                ("cross-origin-resource-policy", "same-origin"),
            ] {
                assert_eq!(answer.header(name), Some(value), "{path} {name}");
            }
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
}

#[tokio::test]
async fn hostile_texts_do_not_become_markup_on_the_page_without_scripts() {
    let view = support::fleet::hostile_fleet(jiff::Timestamp::now());
    let rig = Rig::start(DashboardAccess::ReadOnly, view).await;
    let mut page = rig.get("/plain", &[]).await.body;
    while page.contains("not been read yet") {
        page = rig.get("/plain", &[]).await.body;
    }
    assert!(page.contains("&lt;img src=x"), "the texts are there");
    for markup in ["<img", "<script", "onerror=\"", "\u{202e}", "\u{2066}"] {
        assert!(!page.contains(markup), "{markup}");
    }
}
