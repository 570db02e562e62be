//! Schema of `spec.gates[]`.

use serde_json::{Value, json};

use super::selector::nonempty_selector_schema;
use super::words::{cel_rule, object_schema, text_schema, with_keyword, with_rules};

pub(super) fn gate_schema() -> Value {
    let pods = object_schema(
        "Open while no pod on the node that is Pending or Running has these labels.",
        &["selector"],
        [(
            "selector",
            nonempty_selector_schema("Which pods, in any namespace."),
        )],
    );
    with_rules(
        object_schema(
            "One check that must be open.",
            &[],
            [("pods", pods), ("prometheus", prometheus_schema())],
        ),
        [cel_rule(
            "has(self.pods) != has(self.prometheus)",
            "write either pods or prometheus",
        )],
    )
}

fn prometheus_schema() -> Value {
    let gate = object_schema(
        "Open while the answer is empty.",
        &["url"],
        [
            ("url", url_schema()),
            (
                "query",
                with_keyword(
                    text_schema("A PromQL expression.", 4096),
                    "minLength",
                    json!(1),
                ),
            ),
            ("alerts", alerts_schema()),
        ],
    );
    with_rules(
        gate,
        [cel_rule(
            "has(self.query) != has(self.alerts)",
            "write either query or alerts",
        )],
    )
}

fn url_schema() -> Value {
    with_rules(
        text_schema(
            "The server's address, like https://prometheus.monitoring.svc:9090. Credentials are \
             given to the coordinator: --prometheus-token-file.",
            1024,
        ),
        [
            cel_rule(
                r"self.matches(r'^https?://[^/?#\s]')",
                "write an address that begins with http:// or https://, like \
                 https://prometheus.monitoring.svc:9090",
            ),
            cel_rule(
                "!self.contains('@')",
                "leave user and password out of the address: give the coordinator --prometheus-token-file",
            ),
            cel_rule(
                r"!self.matches(r'[?#\s]')",
                "leave '?' and '#', the text after them, and blanks out of the address",
            ),
        ],
    )
}

fn alerts_schema() -> Value {
    let firing_only = json!({
        "type": "boolean",
        "description": "Whether pending alerts are ignored (kured's --alert-firing-only). Default: false.",
    });
    object_schema(
        "Open while no alert is active, except ignored ones; {} counts every alert.",
        &[],
        [
            (
                "ignore",
                regex_schema(
                    "A regular expression. Alerts are ignored if any part of their name matches \
                     (kured's --alert-filter-regexp).",
                ),
            ),
            (
                "only",
                regex_schema(
                    "A regular expression. Only alerts count of which any part of the name \
                     matches (kured's --alert-filter-match-only).",
                ),
            ),
            ("firingOnly", firing_only),
        ],
    )
}

/// Prometheus, the API server and kured use the same syntax (RE2).
fn regex_schema(description: &str) -> Value {
    let text = with_keyword(text_schema(description, 512), "minLength", json!(1));
    with_rules(
        text,
        [cel_rule(
            "'a'.matches(self) in [true, false]",
            "write a regular expression (RE2)",
        )],
    )
}
