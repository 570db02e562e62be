use serde_json::{Value, json};

use super::{CheckedPart, StructuralSchema};

fn schema() -> StructuralSchema {
    let rule = |rule: &str| json!([{ "rule": rule, "message": rule }]);
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "name": { "type": "string", "maxLength": 3 },
            "level": { "type": "integer", "x-kubernetes-validations": rule("self < 5") },
            "steps": { "type": "array", "items": { "type": "integer", "maximum": 3 } },
            "marks": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"],
                "items": { "type": "object", "properties": {
                    "key": { "type": "string" }, "value": { "type": "integer", "x-kubernetes-validations": rule("self == oldSelf") } } } },
        } } } });
    StructuralSchema::compile_schema(&schema).unwrap()
}

/// The texts of all faults.
fn faults(new: &Value, old: Option<&Value>) -> Vec<String> {
    let object = |spec: &Value| json!({ "metadata": { "name": "x" }, "spec": spec });
    let old = old.map(object);
    let found = schema().validate_object(&object(new), old.as_ref(), CheckedPart::WholeObject);
    let texts = found
        .iter()
        .map(|fault| format!("{}: {}", fault.field, fault.message));
    texts.collect()
}

#[test]
fn what_an_update_leaves_as_it_was_is_not_checked_again() {
    let wrong = json!({ "name": "long", "level": 7, "steps": [9] });
    assert_eq!(faults(&wrong, None).len(), 3);
    assert_eq!(faults(&wrong, Some(&wrong)), Vec::<String>::new());

    let mut changed = wrong.clone();
    changed["steps"] = json!([1]);
    assert_eq!(faults(&changed, Some(&wrong)), Vec::<String>::new());
    changed["level"] = json!(8);
    assert_eq!(
        faults(&changed, Some(&wrong)),
        ["spec.level: Invalid value: 8: self < 5"]
    );
    // The items of such a list have no identity: all of them are new.
    let mut longer = wrong.clone();
    longer["steps"] = json!([9, 1]);
    assert_eq!(faults(&longer, Some(&wrong)).len(), 1);
}

#[test]
fn the_items_of_a_keyed_list_are_compared_by_their_keys() {
    let item = |key: &str, value: i64| json!({ "key": key, "value": value });
    let old = json!({ "marks": [item("a", 1), item("b", 2)] });
    let moved = json!({ "marks": [item("c", 3), item("b", 2), item("a", 1)] });
    assert_eq!(faults(&moved, Some(&old)), Vec::<String>::new());
    let changed = json!({ "marks": [item("b", 1), item("a", 1)] });
    assert_eq!(
        faults(&changed, Some(&old)),
        ["spec.marks[0].value: Invalid value: 1: self == oldSelf"]
    );
}

#[test]
fn a_rule_without_a_value_is_told_as_such() {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object",
        "properties": { "pattern": { "type": "string" }, "list": { "type": "array", "items": { "type": "integer" } } },
        "x-kubernetes-validations": [{ "rule": "!has(self.list) || self.list[3] > 0" }, { "rule": "!has(self.pattern) || 'a'.matches(self.pattern)" }],
    } } });
    let schema = StructuralSchema::compile_schema(&schema).unwrap();
    for spec in [json!({ "list": [1] }), json!({ "pattern": "(" })] {
        let object = json!({ "metadata": {}, "spec": spec });
        let found = schema.validate_object(&object, None, CheckedPart::WholeObject);
        let [fault] = &found[..] else {
            panic!("{found:?}")
        };
        assert!(fault.message.contains("evaluating rule: "), "{fault:?}");
    }
}

#[test]
fn an_optional_old_state_is_there_from_the_first() {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "level": {
        "type": "integer",
        "x-kubernetes-validations": [{ "rule": "self >= oldSelf.orValue(3)", "optionalOldSelf": true }],
    } } } } });
    let schema = StructuralSchema::compile_schema(&schema).unwrap();
    let object = |level: i64| json!({ "metadata": {}, "spec": { "level": level } });
    let count = |new: i64, old: Option<i64>| {
        let old = old.map(object);
        let found = schema.validate_object(&object(new), old.as_ref(), CheckedPart::WholeObject);
        found.len()
    };
    assert_eq!([count(2, None), count(3, None)], [1, 0]);
    assert_eq!([count(4, Some(5)), count(6, Some(5))], [1, 0]);
}

#[test]
fn what_is_not_there_is_refused_with_the_definition() {
    for rule in [
        "self ==",
        "self.isBlue()",
        "quantity(self).isGreaterThan(quantity('1'))",
    ] {
        let schema = json!({ "type": "string", "x-kubernetes-validations": [{ "rule": rule }] });
        let faults = StructuralSchema::compile_schema(&schema).unwrap_err();
        assert!(
            faults[0].message.contains("compilation failed"),
            "{faults:?}"
        );
    }
    let schema = json!({ "type": "string", "pattern": "(" });
    assert!(StructuralSchema::compile_schema(&schema).is_err());
}
