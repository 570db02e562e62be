//! A server with made-up fleets, and a client that says exactly what it is told.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod fleet;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dogwatch_core::report::FleetView;
use dogwatch_web::{
    CommandOutcome, CommandOutput, CommandRights, CommandRunner, DashboardAccess, DashboardCommand,
    DashboardConfig, DashboardLimits, DashboardServer, HostNames,
};
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

/// The token of a viewer who may only look.
pub const READER_TOKEN: &str = "reader-token";
/// The token of a viewer who may act.
pub const OPERATOR_TOKEN: &str = "operator-token";

/// Answers as the commands do, and remembers what it ran.
#[derive(Default)]
pub struct RecordingRunner {
    pub ran: Mutex<Vec<(DashboardCommand, CommandRights)>>,
    /// What `explain` prints.
    pub explanation: Mutex<String>,
}

impl CommandRunner for RecordingRunner {
    fn run_command(
        &self,
        command: DashboardCommand,
        rights: CommandRights,
    ) -> BoxFuture<'static, CommandOutput> {
        self.ran
            .lock()
            .unwrap()
            .push((command.clone(), rights.clone()));
        let explanation = self.explanation.lock().unwrap().clone();
        let (outcome, text) = match (&command, &rights) {
            (DashboardCommand::Explain { subject }, _) => (
                CommandOutcome::Succeeded,
                format!("{subject}: waiting for 3m: LockHeldByOther\n{explanation}"),
            ),
            (DashboardCommand::Check { node }, _) => (
                CommandOutcome::Blocked,
                format!("{node}: 1 thing blocks a reboot now\n"),
            ),
            (_, CommandRights::Viewer(token)) if token.reveal_secret() != OPERATOR_TOKEN => (
                CommandOutcome::Forbidden,
                "not allowed to request a reboot\n".to_owned(),
            ),
            (other, _) => (
                CommandOutcome::Succeeded,
                format!("done: {}\n", other.to_words().join(" ")),
            ),
        };
        Box::pin(async move { CommandOutput { outcome, text } })
    }
}

/// A running server.
pub struct Rig {
    pub address: SocketAddr,
    pub url: String,
    pub views: watch::Sender<Arc<FleetView>>,
    pub runner: Arc<RecordingRunner>,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Rig {
    pub async fn start(access: DashboardAccess, view: FleetView) -> Self {
        Self::start_with(access, view, DashboardLimits::default(), 0).await
    }

    pub async fn start_with(
        access: DashboardAccess,
        view: FleetView,
        limits: DashboardLimits,
        port: u16,
    ) -> Self {
        let runner = Arc::new(RecordingRunner::default());
        let (views, receiver) = watch::channel(Arc::new(view));
        let config = DashboardConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], port)),
            access,
            hosts: HostNames::with_loopback(["dogwatch.example".to_owned()]).unwrap(),
            command_prefix: vec!["dogwatch".to_owned()],
            limits,
        };
        let commands: Arc<dyn CommandRunner> = Arc::clone(&runner) as _;
        let server = DashboardServer::bind(config, receiver, commands)
            .await
            .unwrap();
        let (address, url) = (server.address(), server.opening_url());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.serve_until(async {
            let _ = stopped.await;
        }));
        Self {
            address,
            url,
            views,
            runner,
            stop: Some(stop),
            task,
        }
    }

    pub fn show(&self, view: FleetView) {
        self.views.send_replace(Arc::new(view));
    }

    /// The part of the link after `/?`.
    pub fn link_query(&self) -> &str {
        self.url.split_once("/?").unwrap().1
    }

    pub async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }

    /// Uses the link. Returns the cookie.
    pub async fn open_link(&self) -> String {
        let answer = self.get(&format!("/?{}", self.link_query()), &[]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers, "").await
    }

    /// A form as the page itself sends it.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let origin = format!("http://{}", self.address);
        let mut all = vec![
            ("Origin", origin.as_str()),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", "application/json"),
        ];
        all.extend(headers);
        self.send("POST", path, &all, body).await
    }

    /// Sends a request with its own Host header unless `headers` have one.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            let _ = write!(request, "Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        if !body.is_empty() {
            let _ = write!(request, "Content-Length: {}\r\n", body.len());
        }
        self.send_raw(&format!("{request}\r\n{body}")).await
    }

    pub async fn send_raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The server may answer, and close, before it has read all.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        let _ = tokio::time::timeout(Duration::from_mins(1), read)
            .await
            .expect("it answers");
        Answer::parse(&bytes)
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_str(), ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0);
        Self {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// An open stream of events.
pub struct EventReader {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl EventReader {
    pub async fn open(rig: &Rig, headers: &[(&str, &str)]) -> Self {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        let mut request = format!("GET /api/events HTTP/1.1\r\nHost: {}\r\n", rig.address);
        for (name, value) in headers {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        stream
            .write_all(format!("{request}\r\n").as_bytes())
            .await
            .unwrap();
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Reads until the text is there; what comes after it is read next. Returns what was read.
    pub async fn read_until(&mut self, wanted: &str) -> String {
        loop {
            let found = self
                .buffer
                .windows(wanted.len())
                .position(|window| window == wanted.as_bytes());
            if let Some(position) = found {
                let rest = self.buffer.split_off(position + wanted.len());
                let read = std::mem::replace(&mut self.buffer, rest);
                return String::from_utf8_lossy(&read).into_owned();
            }
            let mut chunk = vec![0; 16 * 1024];
            let read = self.stream.read(&mut chunk);
            let read = tokio::time::timeout(Duration::from_mins(1), read).await;
            let length = read.expect("the stream goes on").unwrap();
            assert_ne!(length, 0, "the stream ended before {wanted:?}");
            self.buffer.extend_from_slice(&chunk[..length]);
        }
    }

    /// Reads to the end of a view, and keeps nothing of it. Only the last bytes of what arrived are
    /// looked at: a thousand readers in one test have to be quick.
    pub async fn skip_view(&mut self) {
        const VIEW_END: &[u8] = b"}\n\n";
        const MAX_BYTES_AFTER_VIEW: usize = 256;
        loop {
            let start = self.buffer.len().saturating_sub(MAX_BYTES_AFTER_VIEW);
            self.buffer.drain(..start);
            let mut ends = self.buffer.windows(VIEW_END.len());
            if ends.any(|window| window == VIEW_END) {
                self.buffer = Vec::new();
                return;
            }
            let mut chunk = vec![0; 16 * 1024];
            let read = self.stream.read(&mut chunk);
            let read = tokio::time::timeout(Duration::from_mins(1), read).await;
            let length = read.expect("the stream goes on").unwrap();
            assert_ne!(length, 0, "the stream ended before a view");
            self.buffer.extend_from_slice(&chunk[..length]);
        }
    }

    /// Reads until the server ends the stream.
    pub async fn read_to_end(mut self) {
        let mut rest = Vec::new();
        let read = self.stream.read_to_end(&mut rest);
        let _ = tokio::time::timeout(Duration::from_mins(1), read)
            .await
            .expect("it ends");
    }
}
