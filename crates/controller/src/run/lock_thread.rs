//! Runs the lock API on a thread of its own, so that strangers' TLS handshakes and forms take no
//! time from the leader's loops.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tracing::warn;

use super::RunError;
use crate::lock::engine::{self, GateChecker, LockEngine};
use crate::lock::http;
use crate::{ControllerContext, StopSignal};

/// How long the engine may take to release locks without an answer; the rest of
/// [`FINISH_TIMEOUT`](super::FINISH_TIMEOUT) is for the answers.
const LOCK_RELEASE_TIMEOUT: Duration = Duration::from_secs(15);

/// How often the thread updates its heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// Starts the thread. The returned future is ready when the lock API has ended.
pub(super) async fn start_lock_thread(
    context: ControllerContext,
    config: http::LockApiConfig,
    gatekeeper: Arc<dyn GateChecker>,
) -> Result<impl Future<Output = ()> + Send, RunError> {
    let (started, starting) = oneshot::channel();
    let (ended, ending) = oneshot::channel::<()>();
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(RunError::Thread)?;
    let thread = std::thread::Builder::new().name("lock".to_owned());
    let work = move || {
        // Dropped when the thread ends, for whatever reason.
        let _ended = ended;
        runtime.block_on(serve_lock(context, config, gatekeeper, started));
    };
    thread.spawn(work).map_err(RunError::Thread)?;
    match starting.await {
        Ok(result) => result?,
        Err(_) => return Err(RunError::Ended("the lock")),
    }
    Ok(async move {
        // Ready when the sender is dropped; nothing is ever sent.
        let _ended = ending.await;
    })
}

async fn serve_lock(
    context: ControllerContext,
    config: http::LockApiConfig,
    gatekeeper: Arc<dyn GateChecker>,
    started: oneshot::Sender<Result<(), http::LockApiStartError>>,
) {
    let engine = start_engine(&context, &config, gatekeeper);
    let server = match bind_server(&context, config, &engine).await {
        Ok(server) => server,
        Err(error) => {
            // `start_lock_thread` waits for this.
            let _told = started.send(Err(error));
            return;
        }
    };
    if started.send(Ok(())).is_err() {
        return;
    }
    tokio::spawn(send_heartbeats(context.clone()));
    serve_until_stopped(server, engine, context.stop.clone()).await;
}

/// Lets `/healthz`, which another thread serves, notice that this thread is stuck.
async fn send_heartbeats(context: ControllerContext) {
    let heart = context.health.heartbeat_of("the lock");
    loop {
        heart.mark_sleeping(Some(HEARTBEAT_INTERVAL));
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}

fn start_engine(
    context: &ControllerContext,
    config: &http::LockApiConfig,
    gatekeeper: Arc<dyn GateChecker>,
) -> LockEngine {
    LockEngine::start(engine::LockEngineSetup {
        client: context.client.clone(),
        namespace: context.namespace.clone(),
        process: context.process.clone(),
        clock: context.clock.clone(),
        flags: context.flags.clone(),
        fleetlock_groups: config.fleetlock_groups.clone(),
        fleetlock_drain: config.fleetlock_drain,
        gate_checker: gatekeeper,
    })
}

async fn bind_server(
    context: &ControllerContext,
    config: http::LockApiConfig,
    engine: &LockEngine,
) -> Result<http::LockApiServer, http::LockApiStartError> {
    let access = http::KubernetesAccess::new(context.client.clone(), config.audiences.clone());
    let parts = http::LockApiDeps {
        service: Arc::new(engine.clone()),
        access: Arc::new(access),
        record: Arc::new(context.metrics.clone()),
    };
    http::LockApiServer::bind(config, parts).await
}

/// Stops both at once: the engine answers waiting requests, and the server writes the answers.
async fn serve_until_stopped(server: http::LockApiServer, engine: LockEngine, stop: StopSignal) {
    let end = async {
        stop.wait_for_stop().await;
        engine.shutdown(LOCK_RELEASE_TIMEOUT).await
    };
    let ((), is_clean) = tokio::join!(server.serve_until(stop.wait_for_stop()), end);
    if !is_clean {
        warn!(
            "this replica did not release all its locks; the healer releases them, because the Lease of this replica is gone"
        );
    }
}
