//! Encodes the newest view once for all viewers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dogwatch_core::report::FleetView;
use tokio::sync::watch;
use tokio::time::Instant;

/// The newest view.
pub type ViewReceiver = watch::Receiver<Arc<FleetView>>;

/// One view as it is sent. Every stream shares these bytes: a thousand viewers of 5,000 nodes cost
/// one copy of 2 MB.
pub(crate) struct EncodedView {
    /// Names this content among all of this process and of others.
    pub(crate) id: String,
    /// The event of the stream, with its frame.
    pub(crate) event: Bytes,
    pub(crate) json: Bytes,
    pub(crate) view: Arc<FleetView>,
}

pub(crate) type EncodedReceiver = watch::Receiver<Option<Arc<EncodedView>>>;

/// Encodes the newest view at once, and each later one whose content differs from the one before,
/// until the source ends.
pub(crate) fn start_encoding(
    mut views: ViewReceiver,
    process: String,
    interval: Duration,
) -> EncodedReceiver {
    let (encoded, receiver) = watch::channel(None);
    let first = views.borrow_and_update().clone();
    publish_if_changed(&encoded, first, &format!("{process}-0"));
    tokio::spawn(encode_changes(views, encoded, process, interval));
    receiver
}

async fn encode_changes(
    mut views: ViewReceiver,
    encoded: watch::Sender<Option<Arc<EncodedView>>>,
    process: String,
    interval: Duration,
) {
    for number in 1_u64.. {
        let next = Instant::now() + interval;
        if views.changed().await.is_err() {
            return;
        }
        tokio::time::sleep_until(next).await;
        let view = views.borrow_and_update().clone();
        publish_if_changed(&encoded, view, &format!("{process}-{number}"));
    }
}

fn publish_if_changed(
    encoded: &watch::Sender<Option<Arc<EncodedView>>>,
    view: Arc<FleetView>,
    id: &str,
) {
    let next = match encode_view(view, id) {
        Ok(next) => next,
        Err(error) => {
            tracing::warn!(%error, "failed to encode the view of the fleet");
            return;
        }
    };
    encoded.send_if_modified(|current| {
        let is_same = current
            .as_ref()
            .is_some_and(|current| timeless_part(&current.json) == timeless_part(&next.json));
        if !is_same {
            *current = Some(Arc::new(next));
        }
        !is_same
    });
}

fn encode_view(view: Arc<FleetView>, id: &str) -> serde_json::Result<EncodedView> {
    let mut event = format!("id: {id}\nevent: view\ndata: ").into_bytes();
    let start = event.len();
    // JSON on one line: serde_json escapes line breaks.
    serde_json::to_writer(&mut event, &*view)?;
    let end = event.len();
    event.extend_from_slice(b"\n\n");
    let event = Bytes::from(event);
    Ok(EncodedView {
        id: id.to_owned(),
        json: event.slice(start..end),
        event,
        view,
    })
}

/// The JSON without what comes before the sentence: the version, and the time at which the view was
/// made, which alone is no change.
fn timeless_part(json: &[u8]) -> &[u8] {
    const SENTENCE: &[u8] = b"\"sentence\"";
    let found = json
        .windows(SENTENCE.len())
        .position(|window| window == SENTENCE);
    &json[found.unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view_at(second: i64, sentence: &str) -> Arc<FleetView> {
        Arc::new(FleetView {
            version: dogwatch_core::report::FLEET_VIEW_VERSION,
            at: jiff::Timestamp::from_second(second).unwrap(),
            sentence: sentence.to_owned(),
            counts: dogwatch_core::report::FleetCounts::default(),
            needs_person: Vec::new(),
            out: Vec::new(),
            waiting: Vec::new(),
            waiting_hosts: Vec::new(),
            groups: Vec::new(),
            nodes: Vec::new(),
            locks: Vec::new(),
            policies: Vec::new(),
            hosts: Vec::new(),
            remediations: Vec::new(),
            schedules: Vec::new(),
            recent: Vec::new(),
            estimate: None,
            unreadable: Vec::new(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_view_is_sent_at_most_once_a_second_and_only_if_it_changed() {
        let (source, views) = watch::channel(view_at(1, "a"));
        let interval = Duration::from_secs(1);
        let mut encoded = start_encoding(views, "p".into(), interval);
        let first = encoded.borrow_and_update().clone().unwrap();
        assert!(
            first
                .event
                .starts_with(b"id: p-0\nevent: view\ndata: {\"version\":1,")
        );
        assert!(first.event.ends_with(b"}\n\n"));
        assert_eq!(first.json.first(), Some(&b'{'));

        let began = Instant::now();
        source.send_replace(view_at(2, "b"));
        source.send_replace(view_at(3, "c\nd"));
        encoded.changed().await.unwrap();
        assert!(began.elapsed() >= interval);
        let second = encoded.borrow_and_update().clone().unwrap();
        assert_eq!(second.view.sentence, "c\nd", "the newest only");
        let lines = second.event.split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(lines, 4, "a line break in a text does not end the event");

        source.send_replace(view_at(9, "c\nd"));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!encoded.has_changed().unwrap(), "only the time differs");
        drop(source);
        assert!(encoded.changed().await.is_err());
    }
}
