//! The stream of views: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dogwatch_runtime::connections::BusyConnectionGuard;
use dogwatch_runtime::stop::StopSignal;
use futures::Stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::OwnedSemaphorePermit;

use crate::feed::{EncodedReceiver, EncodedView};

/// Proxies close connections that are silent for a minute or so; the page says that it is cut off
/// after three of these.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// The browser tries again after this many milliseconds.
const RETRY_FIELD: &str = "retry: 2000\n";

/// Open for as long as the stream is.
pub(crate) struct StreamGuard {
    pub(crate) _permit: OwnedSemaphorePermit,
    /// A stream that waits for a change must not be closed as idle.
    pub(crate) _busy: BusyConnectionGuard,
}

struct EventStream {
    encoded: EncodedReceiver,
    first: Option<Bytes>,
    stop: StopSignal,
    _guard: StreamGuard,
}

/// The newest view at once, unless the viewer has it (`last_id`), and then each new one.
pub(crate) fn event_body(
    mut encoded: EncodedReceiver,
    last_id: Option<&str>,
    stop: StopSignal,
    guard: StreamGuard,
) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + use<>> {
    let is_known = |view: &Arc<EncodedView>| last_id == Some(view.id.as_str());
    let known = encoded.borrow().as_ref().is_some_and(is_known);
    if known {
        encoded.mark_unchanged();
    } else {
        encoded.mark_changed();
    }
    let start = EventStream {
        encoded,
        first: Some(heartbeat_event(RETRY_FIELD)),
        stop,
        _guard: guard,
    };
    StreamBody::new(futures::stream::unfold(start, next_event))
}

async fn next_event(
    mut stream: EventStream,
) -> Option<(Result<Frame<Bytes>, Infallible>, EventStream)> {
    if let Some(first) = stream.first.take() {
        return Some((Ok(Frame::data(first)), stream));
    }
    let event = loop {
        tokio::select! {
            biased;
            () = stream.stop.wait_for_stop() => return None,
            changed = stream.encoded.changed() => {
                // The source of views has ended.
                changed.ok()?;
                let newest = stream.encoded.borrow_and_update().clone();
                if let Some(newest) = newest {
                    break newest.event.clone();
                }
            }
            () = tokio::time::sleep(HEARTBEAT_INTERVAL) => break heartbeat_event(""),
        }
    };
    Some((Ok(Frame::data(event)), stream))
}

/// An event and not a comment: scripts cannot see comments, and the page shows how old its view is
/// by the server's clock.
fn heartbeat_event(more: &str) -> Bytes {
    let now = jiff::Timestamp::now();
    Bytes::from(format!("{more}event: alive\ndata: \"{now}\"\n\n"))
}
