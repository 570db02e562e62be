//! Measures a `dogwatch controller` at which 1,000 hosts wait for the lock: its cost, and the order
//! in which it serves them. It is a process of its own against a real API server, called over HTTP.
//!
//! `WAITERS` sets how many hosts wait, `SERVED` how many of them are served; then the others hang
//! up at once. `HELD_MS` sets for how long each host holds the lock. `DOGWATCH` names a program that
//! is already built.

#![allow(clippy::unwrap_used, reason = "what fails here fails the bench")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dogwatch_testbed::ControlPlane;
use dogwatch_testbed::bench::{find_or_build_program, number_of, print_figure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;

use support::{controller_command, install_manifests, resident_mebibytes};

const WAITERS: usize = 1_000;
const SERVED: usize = 250;
/// A real host holds the lock for minutes. Shorter than 100 ms, the API server's next fresh list of
/// Nodes has to wait: it asks etcd no more often.
const HELD_MS: usize = 250;
const REACH_MEDIAN: Duration = Duration::from_millis(20);
const REACH_LATE: Duration = Duration::from_millis(100);
/// The pause before the memory is read.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let waiters = number_of("WAITERS", WAITERS);
    let served = number_of("SERVED", SERVED.min(waiters));
    let program = find_or_build_program("DOGWATCH", "dogwatch-cli", "dogwatch");
    let plane = ControlPlane::builder().with_controllers([]).start().await;
    let plane = plane.expect("the control plane starts");
    install_manifests(&plane, &program).await;
    let controller = Controller::start(&program, plane.admin_kubeconfig()).await;
    controller.call("lock", "first").await;
    eprintln!(
        "nobody waits: {:.1} MiB",
        resident_mebibytes(&controller.child, "VmRSS:")
    );
    let (told, mut turns) = mpsc::unbounded_channel();
    let mut waiting = WaitingHosts::start(&controller, waiters, told).await;
    tokio::time::sleep(LEFT_ALONE).await;
    controller.report_memory(waiters);
    let mark = plane.audit_mark().await.unwrap();
    controller.call("unlock", "first").await;
    let mut seen: Vec<Turn> = Vec::with_capacity(served);
    while seen.len() < served {
        seen.extend(turns.recv().await);
    }
    let calls = plane.call_times_since(mark).await.unwrap();
    eprint!("the API server's part of {served} turns:\n{calls}");
    waiting.hang_up(&controller).await;
    controller.until_waiting(0).await;
    controller.report_memory(0);
    seen.sort_by_key(|turn| turn.won);
    report(&seen, &waiting.came);
    until_free(&plane).await;
}

struct Turn {
    number: usize,
    /// When the host was answered that it holds the lock.
    won: Instant,
    /// When it asked to unlock.
    leaving: Instant,
    /// When the unlock was answered.
    left: Instant,
}

/// Hosts that wait for the lock, hold it for a while and unlock.
struct WaitingHosts {
    tasks: JoinSet<()>,
    /// When each asked.
    came: Vec<Instant>,
    /// Those that were told that they hold the lock, and have not unlocked.
    holding: Arc<Mutex<BTreeSet<String>>>,
}

impl WaitingHosts {
    /// Starts hosts that ask one after the other.
    async fn start(controller: &Controller, hosts: usize, told: UnboundedSender<Turn>) -> Self {
        let mut waiting = Self {
            tasks: JoinSet::new(),
            came: Vec::with_capacity(hosts),
            holding: Arc::default(),
        };
        let held_for = Duration::from_millis(number_of("HELD_MS", HELD_MS) as u64);
        for number in 0..hosts {
            let (address, told) = (controller.lock.clone(), told.clone());
            let holding = Arc::clone(&waiting.holding);
            waiting.tasks.spawn(async move {
                let host = format!("host-{number}.example");
                call(&address, "lock", &host).await;
                let won = Instant::now();
                holding.lock().unwrap().insert(host.clone());
                tokio::time::sleep(held_for).await;
                let leaving = Instant::now();
                call(&address, "unlock", &host).await;
                let left = Instant::now();
                holding.lock().unwrap().remove(&host);
                // The receiver is dropped once enough hosts were served.
                let _ = told.send(Turn {
                    number,
                    won,
                    leaving,
                    left,
                });
            });
            waiting.came.push(Instant::now());
            controller.until_waiting(number + 1).await;
        }
        waiting
    }

    /// All who wait hang up at once. Who was told that it holds the lock must unlock.
    async fn hang_up(&mut self, controller: &Controller) {
        self.tasks.shutdown().await;
        let holding = std::mem::take(&mut *self.holding.lock().unwrap());
        for host in holding {
            controller.call("unlock", &host).await;
        }
    }
}

/// Waits until the lock that the departed hosts held is free again.
async fn until_free(plane: &ControlPlane) {
    let get = "get lease dogwatch-default-0 -n dogwatch -o jsonpath={.spec.holderIdentity}";
    let words: Vec<&str> = get.split(' ').collect();
    let look = async { while plane.run_kubectl(&words, "").await.unwrap() != "" {} };
    let free = tokio::time::timeout(PATIENCE, look).await;
    print_figure(
        "locks left behind by hosts that hung up",
        if free.is_ok() { "none" } else { "one" },
        "none",
        free.is_ok(),
    );
}

struct Controller {
    child: Child,
    lock: String,
    metrics: String,
}

impl Controller {
    /// Starts a controller and waits until it serves.
    async fn start(program: &Path, kubeconfig: &Path) -> Self {
        let mut child = controller_command(program, kubeconfig)
            .args(["--components=lock", "--lock-auth=none"])
            .arg("--lock-listen=127.0.0.1:0")
            .spawn()
            .expect("it was built");
        let log = child.stderr.take().expect("asked for above");
        let serves = tokio::time::timeout(PATIENCE, addresses(log));
        let (lock, metrics) = serves.await.expect("it serves");
        Self {
            child,
            lock,
            metrics,
        }
    }

    async fn call(&self, what: &str, host: &str) {
        call(&self.lock, what, host).await;
    }

    async fn until_waiting(&self, hosts: usize) {
        let line = format!("\ndogwatch_lock_requests_waiting {hosts}\n");
        let request = "GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n";
        let look = async { while !exchange(&self.metrics, request).await.contains(&line) {} };
        let seen = tokio::time::timeout(PATIENCE, look).await;
        assert!(seen.is_ok(), "never saw {hosts} wait");
    }

    fn report_memory(&self, waiters: usize) {
        let (now, most) = (
            resident_mebibytes(&self.child, "VmRSS:"),
            resident_mebibytes(&self.child, "VmHWM:"),
        );
        print_figure(
            &format!("controller's RSS, {waiters} wait for the lock"),
            &format!("{now:.1} MiB, most {most:.1} MiB"),
            "<= 64 MiB",
            most <= 64.0,
        );
    }
}

/// The addresses of the lock API and of the metrics. The rest of the log is read and dropped.
async fn addresses(log: ChildStderr) -> (String, String) {
    let mut lines = BufReader::new(log).lines();
    let (mut lock, mut metrics) = (None, None);
    while lock.is_none() || metrics.is_none() {
        let line = lines.next_line().await.unwrap().expect("it goes on");
        let line: Value = serde_json::from_str(&line).unwrap();
        let address = line["address"].as_str().map(str::to_owned);
        match line["message"].as_str() {
            Some("serves the lock API") => lock = address,
            Some(said) if said.starts_with("serves /metrics") => metrics = address,
            Some(_) | None => {}
        }
    }
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    lock.zip(metrics).expect("both were seen")
}

/// Asks for the lock, or unlocks, and waits for the 200.
async fn call(address: &str, what: &str, host: &str) {
    let body = format!("hostname={host}");
    let request = format!(
        "POST /api/v1/{what} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(address, &request).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 "),
        "{what} {host}: {answer}"
    );
}

async fn exchange(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn report(turns: &[Turn], came: &[Instant]) {
    let pairs = || turns.windows(2);
    let twice = pairs().filter(|pair| pair[1].won < pair[0].leaving).count();
    print_figure(
        "hosts that held the lock beside another one",
        &format!("{twice} of {}", turns.len()),
        "0",
        twice == 0,
    );
    let worst = worst_inversion(turns, came);
    print_figure(
        "worst inversion at one replica",
        &format!("{worst:.1?}"),
        "none",
        worst == Duration::ZERO,
    );
    let mut taken: Vec<Duration> = pairs()
        .map(|pair| pair[1].won.saturating_duration_since(pair[0].left))
        .collect();
    taken.sort();
    let at = |part: usize| taken[(taken.len() - 1) * part / 100];
    print_figure(
        &format!(
            "unlock answered → the next host answered, {} wait",
            came.len()
        ),
        &format!(
            "median {:.1?}, p99 {:.1?}, most {:.1?}",
            at(50),
            at(99),
            at(100)
        ),
        "median 20 ms, p99 100 ms",
        at(50) <= REACH_MEDIAN && at(99) <= REACH_LATE,
    );
}

/// The longest time by which a host asked after one that was served later.
fn worst_inversion(turns: &[Turn], came: &[Instant]) -> Duration {
    let mut latest = came[0];
    let early = turns.iter().map(|turn| {
        latest = latest.max(came[turn.number]);
        latest - came[turn.number]
    });
    early.max().unwrap_or_default()
}
