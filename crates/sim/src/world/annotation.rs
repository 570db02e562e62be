//! Annotations by which a pod tells its simulated kubelet how it behaves.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

/// How long the pod's containers take to end when told to: a duration such as `1s`. Without it, the
/// kubelet's default. They end at the grace period at the latest, whatever this says.
pub const STOPS_AFTER: &str = "sim.dogwatch.dev/stops-after";
/// How long the pod takes from being seen by its kubelet to being ready: a duration such as `1s`.
pub const STARTS_AFTER: &str = "sim.dogwatch.dev/starts-after";

/// The duration in this annotation of the pod, or the default where there is none, or where it says
/// nothing readable: a pod with a typing error behaves like any other.
pub(crate) fn duration(pod: &Pod, annotation: &str, default: Duration) -> Duration {
    pod.annotations()
        .get(annotation)
        .and_then(|text| dogwatch_core::duration::parse(text).ok())
        .unwrap_or(default)
}
