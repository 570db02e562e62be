//! `spec.gates[]`.

use serde_json::{Value, json};

use super::selector::some;
use super::words::{object, rule, ruled, text, with};

pub(super) fn gate() -> Value {
    let pods = object(
        "Open while no pod on the node that is Pending or Running has these labels.",
        &["selector"],
        [("selector", some("Which pods, in any namespace."))],
    );
    ruled(
        object(
            "One thing that must be so.",
            &[],
            [("pods", pods), ("prometheus", prometheus())],
        ),
        [rule(
            "has(self.pods) != has(self.prometheus)",
            "write either pods or prometheus",
        )],
    )
}

fn prometheus() -> Value {
    let gate = object(
        "Open while the answer is empty.",
        &["url"],
        [
            ("url", url()),
            (
                "query",
                with(text("A PromQL expression.", 4096), "minLength", json!(1)),
            ),
            ("alerts", alerts()),
        ],
    );
    ruled(
        gate,
        [rule(
            "has(self.query) != has(self.alerts)",
            "write either query or alerts",
        )],
    )
}

fn url() -> Value {
    ruled(
        text(
            "The server's address, like https://prometheus.monitoring.svc:9090. What proves who asks \
             is given to the coordinator: --prometheus-token-file.",
            1024,
        ),
        [
            rule(
                r"self.matches(r'^https?://[^/?#\s]')",
                "write an address that begins with http:// or https://, like \
                 https://prometheus.monitoring.svc:9090",
            ),
            rule(
                "!self.contains('@')",
                "leave user and password out of the address: give the coordinator --prometheus-token-file",
            ),
            rule(
                r"!self.matches(r'[?#\s]')",
                "leave out of the address what follows '?' or '#', and blanks",
            ),
        ],
    )
}

fn alerts() -> Value {
    let firing_only = json!({
        "type": "boolean",
        "description": "Whether pending alerts do not count (kured's --alert-firing-only). Default: false.",
    });
    object(
        "Open while no alert is active but those that do not count; {} counts every alert.",
        &[],
        [
            (
                "ignore",
                regex(
                    "Alerts whose names match, anywhere in them, do not count: a regular expression (kured's \
                     --alert-filter-regexp).",
                ),
            ),
            (
                "only",
                regex(
                    "Only alerts whose names match, anywhere in them, count: a regular expression (kured's \
                     --alert-filter-match-only).",
                ),
            ),
            ("firingOnly", firing_only),
        ],
    )
}

/// Prometheus, the API server and kured read the same expressions (RE2).
fn regex(description: &str) -> Value {
    let text = with(text(description, 512), "minLength", json!(1));
    ruled(
        text,
        [rule(
            "'a'.matches(self) in [true, false]",
            "write a regular expression (RE2)",
        )],
    )
}
