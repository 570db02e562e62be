//! The lock's own thread: what strangers cost there (TLS handshakes, forms) takes no time from whoever leads.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tracing::warn;

use super::RunError;
use crate::lock::engine::{self, Engine, Gatekeeper};
use crate::lock::http;
use crate::{Context, Stop};

/// How long the lock may take to give back what was won and not answered; the rest of
/// [`FINISH_WITHIN`](super::FINISH_WITHIN) is for the answers.
const GIVE_BACK_WITHIN: Duration = Duration::from_secs(15);

/// How often the thread says that it turns.
const BEAT: Duration = Duration::from_secs(30);

/// Starts it; what is returned is ready when the lock has ended.
pub(super) async fn start(
    context: Context,
    config: http::Config,
    gatekeeper: Arc<dyn Gatekeeper>,
) -> Result<impl Future<Output = ()> + Send, RunError> {
    let (started, starting) = oneshot::channel();
    let (ended, ending) = oneshot::channel::<()>();
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(RunError::Thread)?;
    let thread = std::thread::Builder::new().name("lock".to_owned());
    let work = move || {
        // Dropped when the thread ends, however it does.
        let _ended = ended;
        runtime.block_on(serve(context, config, gatekeeper, started));
    };
    thread.spawn(work).map_err(RunError::Thread)?;
    match starting.await {
        Ok(result) => result?,
        Err(_) => return Err(RunError::Ended("the lock")),
    }
    Ok(async move {
        // Nothing is ever sent.
        let _ended = ending.await;
    })
}

async fn serve(
    context: Context,
    config: http::Config,
    gatekeeper: Arc<dyn Gatekeeper>,
    started: oneshot::Sender<Result<(), http::StartError>>,
) {
    let engine = engine(&context, &config, gatekeeper);
    let server = match server(&context, config, &engine).await {
        Ok(server) => server,
        Err(error) => {
            // Whoever started it waits for this.
            let _told = started.send(Err(error));
            return;
        }
    };
    if started.send(Ok(())).is_err() {
        return;
    }
    tokio::spawn(beat(context.clone()));
    until_stopped(server, engine, context.stop.clone()).await;
}

/// `/healthz` is served by another thread.
async fn beat(context: Context) {
    let heart = context.board.heart("the lock");
    loop {
        heart.sleeping(Some(BEAT));
        tokio::time::sleep(BEAT).await;
    }
}

fn engine(context: &Context, config: &http::Config, gatekeeper: Arc<dyn Gatekeeper>) -> Engine {
    Engine::start(engine::Setup {
        client: context.client.clone(),
        namespace: context.namespace.clone(),
        process: context.process.clone(),
        clock: context.clock.clone(),
        flags: context.flags.clone(),
        fleetlock_groups: config.fleetlock_groups.clone(),
        fleetlock_drain: config.fleetlock_drain,
        gatekeeper,
    })
}

async fn server(
    context: &Context,
    config: http::Config,
    engine: &Engine,
) -> Result<http::Server, http::StartError> {
    let access = http::KubernetesAccess::new(context.client.clone(), config.audiences.clone());
    let parts = http::Parts {
        service: Arc::new(engine.clone()),
        access: Arc::new(access),
        record: Arc::new(context.metrics.clone()),
    };
    http::Server::bind(config, parts).await
}

/// Both are told at once: the lock answers those that wait, the server writes the answers.
async fn until_stopped(server: http::Server, engine: Engine, stop: Stop) {
    let end = async {
        stop.told().await;
        engine.shutdown(GIVE_BACK_WITHIN).await
    };
    let ((), is_clean) = tokio::join!(server.serve(stop.told()), end);
    if !is_clean {
        warn!(
            "not all of the lock was given back; the healer does it, for this replica's Lease is gone"
        );
    }
}
