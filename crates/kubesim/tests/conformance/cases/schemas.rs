//! Custom resources with a schema: types, limits, defaults, unknown fields and CEL rules.

use serde_json::{Value, json};

use crate::step::{Step, apply, delete, get, merge, post, put};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOATS: &str = "/apis/{ns}.example.com/v1/boats";
const BOAT: &str = "/apis/{ns}.example.com/v1/boats/b";

fn schema() -> Value {
    let text = json!({ "type": "string" });
    let keyed = json!({ "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": { "type": "object", "required": ["type"], "properties": { "type": text, "value": { "type": "integer" } } } });
    let spec = json!({
        "size": { "type": "integer", "format": "int32", "minimum": 1, "maximum": 5 },
        "weight": { "type": "number", "minimum": 0, "exclusiveMinimum": true, "multipleOf": 0.5 },
        "flag": { "type": "boolean" },
        "name": { "type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$" },
        "mode": { "type": "string", "enum": ["Soft", "Hard"], "default": "Soft" },
        "at": { "type": "string", "format": "date-time" },
        "until": { "type": "string", "format": "date-time" },
        "share": { "x-kubernetes-int-or-string": true, "maxLength": 4,
            "x-kubernetes-validations": [{ "rule": "type(self) == int ? self >= 1 : self.endsWith('%')", "message": "write a number or a percentage" }] },
        "list": { "type": "array", "minItems": 1, "maxItems": 2, "items": text },
        "ramp": { "type": "array", "maxItems": 5, "items": { "type": "integer" },
            "x-kubernetes-validations": [{ "rule": "self.isSorted()", "message": "write ascending numbers" }] },
        "set": { "type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": text },
        "keyed": keyed,
        "marks": { "type": "object", "maxProperties": 2, "additionalProperties": { "type": "string", "maxLength": 5 } },
        "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "nested": { "type": "object", "default": {}, "properties": { "deep": { "type": "integer", "default": 7 } } },
        "fixed": { "type": "string", "maxLength": 9, "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "this cannot be changed" }] },
        "short": { "type": "string", "maxLength": 9, "x-kubernetes-validations": [
            { "rule": "self.size() < 4", "messageExpression": "'too long: ' + self", "reason": "FieldValueForbidden" },
            { "rule": "self != 'no'" }] },
    });
    let rules = json!([
        { "rule": "!has(self.until) || !has(self.at) || self.until > self.at", "message": "until must be later than at", "fieldPath": ".until" },
        { "rule": "!has(self.name) || self.name != 'hard' || self.mode == 'Hard'", "message": "a hard one is Hard" },
    ]);
    let status = json!({ "type": "object", "properties": { "count": { "type": "integer" }, "phase": { "type": "string", "maxLength": 9 } } });
    json!({ "type": "object", "required": ["spec"], "properties": {
        "spec": { "type": "object", "required": ["size"], "properties": spec, "x-kubernetes-validations": rules },
        "status": status } })
}

fn definition(schema: &Value) -> Value {
    json!({ "metadata": { "name": "boats.{ns}.example.com" }, "spec": { "group": "{ns}.example.com", "scope": "Cluster",
        "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": schema } }] } })
}

fn boat(spec: &Value) -> Value {
    json!({ "apiVersion": "{ns}.example.com/v1", "kind": "Boat", "metadata": { "name": "b" }, "spec": spec })
}

/// The steps, between the definition's creation and its end.
fn with(steps: Vec<Step>) -> Vec<Step> {
    let mut all = vec![
        post(DEFINITIONS, definition(&schema())).apart(),
        get(BOATS).until_served(),
    ];
    all.extend(steps);
    all.push(delete(format!("{DEFINITIONS}/boats.{{ns}}.example.com")).apart());
    all
}

/// A creation that is refused, with this in the message.
fn refused(spec: &Value, says: &'static str) -> Step {
    post(BOATS, boat(spec)).is(422).says(says)
}

/// A creation with one more field, which is refused.
fn refused_field(name: &str, value: &Value, says: &'static str) -> Step {
    let mut spec = json!({ "size": 1 });
    spec[name] = value.clone();
    refused(&spec, says)
}

pub fn a_value_of_another_type_is_refused() -> Vec<Step> {
    with(vec![
        refused(
            &json!({ "size": "3" }),
            "must be of type integer: \"string\"",
        ),
        refused(&json!({ "size": 1.5 }), "spec.size"),
        refused(&json!({ "size": true }), "spec.size"),
        refused_field("flag", &json!("yes"), "must be of type boolean: \"string\""),
        refused_field("name", &json!(3), "must be of type string: \"integer\""),
        refused_field("list", &json!("a"), "must be of type array: \"string\""),
        refused_field("list", &json!([1]), "spec.list[0]"),
        refused_field("marks", &json!(["a"]), "must be of type object: \"array\""),
        refused_field("marks", &json!({ "a": 1 }), "spec.marks.a"),
        refused_field("share", &json!([1]), "must be of type integer,string"),
        refused_field("at", &json!("soon"), "must be of type date-time: \"soon\""),
        refused_field("at", &json!(3), "spec.at"),
    ])
}

pub fn a_value_beyond_its_limits_is_refused() -> Vec<Step> {
    with(vec![
        refused(&json!({ "size": 0 }), "should be greater than or equal to 1"),
        refused(&json!({ "size": 6 }), "should be less than or equal to 5"),
        refused_field("weight", &json!(0), "should be greater than 0"),
        refused_field("weight", &json!(0.75), "should be a multiple of 0.5"),
        refused_field("name", &json!("a"), "should be at least 2 chars long"),
        refused_field("name", &json!("abcdef"), "may not be more than 5 bytes"),
        refused_field("name", &json!("AB"), "should match '^[a-z]+$'"),
        refused_field("mode", &json!("soft"), "supported values: \"Soft\", \"Hard\""),
        refused_field("list", &json!([]), "should have at least 1 items"),
        refused_field("list", &json!(["a", "b", "c"]), "must have at most 2 items"),
        refused_field("marks", &json!({ "a": "", "b": "", "c": "" }), "must have at most 2 items"),
        refused_field("set", &json!(["a", "b", "a"]), "spec.set[2]: Duplicate value: \"a\""),
        refused_field("keyed", &json!([{ "type": "a" }, { "type": "a" }]), "spec.keyed[1]: Duplicate value"),
        refused_field("keyed", &json!([{ "value": 1 }]), "spec.keyed[0].type: Required value"),
        refused(&json!({}), "spec.size: Required value"),
        post(BOATS, json!({ "apiVersion": "{ns}.example.com/v1", "kind": "Boat", "metadata": { "name": "b" } })).is(422).says("spec: Required value"),
    ])
}

pub fn defaults_are_filled_in_and_owned_by_the_writer() -> Vec<Step> {
    with(vec![
        post(BOATS, boat(&json!({ "size": 1 })))
            .has("/spec/mode", "Soft")
            .has("/spec/nested/deep", 7),
        merge(BOAT, json!({ "spec": { "mode": null } })).has("/spec/mode", "Soft"),
        merge(BOAT, json!({ "spec": { "mode": "Hard" } })).has("/spec/mode", "Hard"),
        delete(BOAT),
        apply("one", BOAT, boat(&json!({ "size": 2 })))
            .is(201)
            .has("/spec/mode", "Soft"),
        apply(
            "one",
            BOAT,
            boat(&json!({ "size": 2, "nested": { "deep": 8 } })),
        )
        .has("/spec/nested/deep", 8),
    ])
}

pub fn unknown_fields_are_dropped_or_refused_as_the_writer_wants() -> Vec<Step> {
    let typo = boat(
        &json!({ "size": 1, "sizes": 2, "free": { "x": 1 }, "keyed": [{ "type": "a", "val": 1 }] }),
    );
    let at = |path: &str, validation: &str| format!("{path}?fieldValidation={validation}");
    with(vec![
        post(at(BOATS, "Strict"), typo.clone())
            .is(400)
            .says("strict decoding error: unknown field \"spec.keyed[0].val\", unknown field \"spec.sizes\""),
        post(at(BOATS, "Loose"), typo.clone()).is(422).says("fieldValidation"),
        post(at(BOATS, "Ignore"), typo.clone())
            .lacks("/spec/sizes")
            .has("/spec/free/x", 1),
        delete(BOAT),
        // Without a parameter, the writer is warned.
        post(BOATS, typo)
            .lacks("/spec/sizes")
            .keep("rv", "/metadata/resourceVersion"),
        merge(at(BOAT, "Strict"), json!({ "spec": { "color": "red" } })).is(422).says("unknown field \"spec.color\""),
        merge(at(BOAT, "Warn"), json!({ "spec": { "color": "red" } })).lacks("/spec/color"),
        put(at(BOAT, "Strict"), json!({ "apiVersion": "{ns}.example.com/v1", "kind": "Boat",
            "metadata": { "name": "b", "resourceVersion": "{rv}" }, "spec": { "size": 1, "color": "red" } })).is(400),
        apply("one", BOAT, boat(&json!({ "color": "red" })))
            .is(500)
            .says(".spec.color: field not declared in schema"),
        apply("one", BOAT, boat(&json!({ "size": "x" }))).is(500).says(".spec.size: expected numeric"),
        post(BOATS, json!({ "apiVersion": "{ns}.example.com/v1", "kind": "Boat", "metadata": { "name": "c", "nam": "x" }, "spec": { "size": 1 } })),
        delete(format!("{BOATS}/c")),
    ])
}

pub fn rules_are_evaluated_and_their_messages_told() -> Vec<Step> {
    let between = |at: &str, until: &str| json!({ "size": 1, "at": at, "until": until });
    with(vec![
        refused(
            &between("2026-01-02T00:00:00Z", "2026-01-01T23:00:00-01:00"),
            "spec.until: Invalid value: until must be later than at",
        ),
        refused_field(
            "name",
            &json!("hard"),
            "spec: Invalid value: a hard one is Hard",
        ),
        refused_field("share", &json!("half"), "write a number or a percentage"),
        refused_field("share", &json!(0), "write a number or a percentage"),
        refused_field(
            "ramp",
            &json!([2, 1]),
            "spec.ramp: Invalid value: write ascending numbers",
        ),
        refused_field(
            "short",
            &json!("longer"),
            "spec.short: Forbidden: too long: longer",
        ),
        refused_field("short", &json!("no"), "failed rule: self != 'no'"),
        // A fault of the type keeps the rules from being evaluated.
        refused_field(
            "ramp",
            &json!(["b", "a"]),
            "some validation rules were not checked",
        ),
        post(
            BOATS,
            boat(
                &json!({ "size": 1, "share": "50%", "ramp": [1, 1, 2], "at": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:01Z" }),
            ),
        ),
    ])
}

pub fn a_transition_rule_compares_with_the_old_state() -> Vec<Step> {
    with(vec![
        post(BOATS, boat(&json!({ "size": 1, "fixed": "a" }))),
        merge(BOAT, json!({ "spec": { "size": 2 } })).has("/spec/size", 2),
        merge(BOAT, json!({ "spec": { "fixed": "b" } }))
            .is(422)
            .says("spec.fixed: Invalid value: \"b\": this cannot be changed"),
        apply("one", BOAT, boat(&json!({ "fixed": "c" }))).is(409),
        merge(BOAT, json!({ "spec": { "fixed": null } })).lacks("/spec/fixed"),
        merge(BOAT, json!({ "spec": { "fixed": "b" } })).has("/spec/fixed", "b"),
    ])
}

pub fn a_status_is_checked_apart() -> Vec<Step> {
    let status = format!("{BOAT}/status");
    with(vec![
        post(BOATS, boat(&json!({ "size": 1 }))),
        merge(status.as_str(), json!({ "status": { "count": "x" } }))
            .is(422)
            .says("status.count"),
        merge(
            status.as_str(),
            json!({ "status": { "phase": "much too long" } }),
        )
        .is(422)
        .says("status.phase"),
        merge(
            status.as_str(),
            json!({ "status": { "count": 3, "other": 1 } }),
        )
        .has("/status/count", 3)
        .lacks("/status/other"),
    ])
}

pub fn a_dry_run_checks_and_stores_nothing() -> Vec<Step> {
    let dry = format!("{BOATS}?dryRun=All");
    with(vec![
        post(dry.as_str(), boat(&json!({ "size": 9 }))).is(422),
        post(dry.as_str(), boat(&json!({ "size": 1 }))).has("/spec/mode", "Soft"),
        get(BOAT).is(404),
    ])
}

pub fn a_definition_whose_rule_does_not_compile_is_refused() -> Vec<Step> {
    let rule = |rule: &str| {
        let text = json!({ "type": "string", "maxLength": 5, "x-kubernetes-validations": [{ "rule": rule, "message": "m" }] });
        definition(
            &json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "a": text } } } }),
        )
    };
    vec![
        post(DEFINITIONS, rule("self =="))
            .is(422)
            .says("compilation failed")
            .apart(),
        post(DEFINITIONS, rule("self.isBlue()"))
            .is(422)
            .says("compilation failed")
            .apart(),
    ]
}

pub fn the_schema_is_published() -> Vec<Step> {
    let document = "/openapi/v3/apis/{ns}.example.com/v1";
    with(vec![
        get(document)
            .until_served()
            .apart()
            .has("/openapi", "3.0.0"),
        get("/openapi/v3/api/v1").apart().has(
            "/paths/~1api~1v1~1nodes~1{name}/patch/x-kubernetes-group-version-kind",
            json!({ "group": "", "kind": "Node", "version": "v1" }),
        ),
    ])
}
