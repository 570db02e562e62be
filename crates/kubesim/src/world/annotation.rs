//! Annotations on a pod that tell the simulated kubelet how the pod behaves.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::fmt::friendly::{Spacing, SpanPrinter};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

/// Time that the pod's containers take to end after SIGTERM: a duration such as `1s`. Without it,
/// the kubelet's default. They end at the grace period at the latest.
pub const STOPS_AFTER: &str = "sim.dogwatch.dev/stops-after";
/// Time from the kubelet seeing the pod until the pod is ready: a duration such as `1s`.
pub const STARTS_AFTER: &str = "sim.dogwatch.dev/starts-after";

/// The duration in this annotation of the pod. The default when the annotation is absent or
/// unreadable, so a pod with a typing error behaves like any other.
pub(crate) fn duration_of_pod(pod: &Pod, annotation: &str, default: Duration) -> Duration {
    pod.annotations()
        .get(annotation)
        .and_then(|text| text.parse::<SignedDuration>().ok())
        .and_then(|duration| Duration::try_from(duration).ok())
        .unwrap_or(default)
}

/// The value of an annotation for this duration, such as `1m30s`.
pub(crate) fn format_duration(duration: Duration) -> String {
    SpanPrinter::new()
        .spacing(Spacing::None)
        .unsigned_duration_to_string(&duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_the_durations_of_its_annotations() {
        let read = |text: &str| {
            let mut pod = Pod::default();
            pod.annotations_mut()
                .insert(STOPS_AFTER.into(), text.into());
            duration_of_pod(&pod, STOPS_AFTER, Duration::MAX)
        };
        for text in ["0s", "1s", "500ms", "1s500ms", "1m30s", "1h", "100h"] {
            assert_eq!(format_duration(read(text)), text);
        }
        assert_eq!(read("1.5s"), Duration::from_millis(1500));
        assert_eq!(read("-1s"), Duration::MAX);
        assert_eq!(read("soon"), Duration::MAX);
    }
}
