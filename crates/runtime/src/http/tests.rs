//! Attacks over real sockets, and what the kubelet and Prometheus notice of them.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// More connections than any listener accepts.
const MANY: usize = 300;

/// Long for an immediate answer, short beside every time limit of the server.
const AT_ONCE: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct Page(usize);

impl HealthSource for Page {
    fn render_metrics(&self) -> String {
        "x".repeat(self.0)
    }
    fn check_health(&self) -> Result<(), String> {
        Ok(())
    }
    fn check_readiness(&self) -> Result<(), String> {
        Err("not yet".to_owned())
    }
}

fn anywhere() -> ListenAddress {
    "127.0.0.1:0".parse().unwrap()
}

fn started(server: HealthServer, page: usize) -> SocketAddr {
    let address = server.address();
    tokio::spawn(server.serve_forever(Page(page)));
    address
}

async fn metrics(page: usize) -> SocketAddr {
    started(
        HealthServer::bind(&anywhere()).await.unwrap().unwrap(),
        page,
    )
}

async fn probes() -> SocketAddr {
    started(
        HealthServer::bind_probes(&anywhere())
            .await
            .unwrap()
            .unwrap(),
        0,
    )
}

async fn ask(address: SocketAddr, path: &str) -> String {
    let asked = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    tokio::time::timeout(AT_ONCE, asked)
        .await
        .expect("an answer at once")
}

async fn idle(address: SocketAddr, count: usize, first: &[u8]) -> Vec<TcpStream> {
    let mut sockets = Vec::new();
    for _ in 0..count {
        let mut socket = TcpStream::connect(address).await.unwrap();
        // The server may have closed it meanwhile; the attacker does not care.
        let _sent = socket.write_all(first).await;
        sockets.push(socket);
    }
    sockets
}

#[tokio::test]
async fn probes_answer_while_hundreds_of_idle_sockets_fill_the_metrics_port() {
    let (metrics, probes) = (metrics(10).await, probes().await);
    let _silent = idle(metrics, MANY, b"").await;
    let _slow = idle(metrics, MANY, b"GET /metrics HTTP/1.1\r\nHos").await;
    assert!(ask(probes, "/healthz").await.starts_with("HTTP/1.1 200 "));
    assert!(ask(probes, "/readyz").await.contains("not yet"));
    // A client of the metrics is served as well: the oldest idle connection is closed for it.
    assert!(ask(metrics, "/metrics").await.ends_with("xxxxxxxxxx"));
}

#[tokio::test]
async fn probes_answer_while_hundreds_of_idle_sockets_fill_their_own_port() {
    let probes = probes().await;
    let _silent = idle(probes, MANY, b"").await;
    for _ in 0..20 {
        let _more = idle(probes, 20, b"GET /healthz HTT").await;
        assert!(ask(probes, "/healthz").await.starts_with("HTTP/1.1 200 "));
    }
}

#[tokio::test]
async fn the_probe_port_tells_no_metrics_and_says_who_does() {
    let answer = ask(probes().await, "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.contains("--listen serves /metrics"), "{answer}");
}

#[tokio::test]
async fn clients_that_never_read_their_answers_hold_up_nobody() {
    let metrics = metrics(1024 * 1024).await;
    let pipelined = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    let _deaf = idle(metrics, 2 * MAX_CONNECTIONS, pipelined.as_bytes()).await;
    let answer = ask(metrics, "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn who_does_not_read_in_time_is_cut_off_and_so_is_who_reads_a_byte_at_a_time() {
    for reads in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let reading = tokio::spawn(async move {
            while reads && client.read_u8().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            std::future::pending::<()>().await;
        });
        let mut timed = TimedStream::new(stream, Duration::from_millis(200));
        let answer = vec![0; 64 * 1024 * 1024];
        let written = timed.write_all(&answer);
        let error = tokio::time::timeout(Duration::from_mins(1), written).await;
        let error = error.expect("it ends by itself").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "reads: {reads}");
        reading.abort();
    }
}

#[tokio::test]
async fn time_to_read_counts_for_each_answer_and_not_for_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let mut timed = TimedStream::new(stream, Duration::from_millis(100));
    for _ in 0..3 {
        timed.write_all(b"answer").await.unwrap();
        timed.flush().await.unwrap();
        let mut read = [0; 6];
        client.read_exact(&mut read).await.unwrap();
        // Longer than the limit, which does not run between two answers.
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

#[tokio::test]
async fn a_port_in_use_names_the_flag_of_its_listener() {
    let taken: ListenAddress = format!("127.0.0.1:{}", probes().await.port())
        .parse()
        .unwrap();
    let error = HealthServer::bind_probes(&taken)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("set --probe-listen to another port"),
        "{error}"
    );
    let error = HealthServer::bind(&taken).await.unwrap_err().to_string();
    assert!(error.contains("set --listen to another port"), "{error}");
}
