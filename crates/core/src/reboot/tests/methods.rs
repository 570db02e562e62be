//! Requests that name a method and NodeReboots. Source: specification §10.1.

use dogwatch_api::node_reboot::RebootMethod;

use super::super::*;

#[test]
fn annotations_without_a_method_have_the_text_of_before() {
    let texts = [
        r#"{"reason":"kernel","requester":"ann"}"#,
        r#"{"reason":"","requester":"","notBefore":"2026-11-21T22:00:00Z"}"#,
    ];
    for text in texts {
        let request: RebootRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.method, RebootMethod::Reboot);
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
    }
    let text = r#"{"source":"request","reason":"kernel","requester":"ann"}"#;
    let trigger: RebootTrigger = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&trigger).unwrap(), text);
}

#[test]
fn a_request_names_its_method_and_its_node_reboots() {
    let text = r#"{"reason":"","requester":"ann","method":"PowerCycle","nodeReboots":[{"name":"nr","uid":"u-1"}]}"#;
    let request: RebootRequest = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&request).unwrap(), text);
    let unknown = ParsedAnnotation::<RebootRequest>::from_text(Some(r#"{"method":"Nap"}"#));
    assert!(matches!(unknown, ParsedAnnotation::Bad { .. }));
}
