//! The page of a kind in `docs/reference`: each field with its type, its limits and its description, as the API server checks and
//! `kubectl explain` shows them.

use std::fmt::Write as _;

use serde_json::Value;

/// Renders the page of a definition; `guide` is the page that explains how the kind is used.
pub fn render_reference_page(definition: &Value, guide: &str) -> String {
    let spec = &definition["spec"];
    let version = &spec["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let kind = text_of(&spec["names"]["kind"]);
    let scope = match text_of(&spec["scope"]) {
        "Namespaced" => "in a namespace",
        _ => "for the whole cluster",
    };
    let mut page = format!(
        "<!-- Made from code: cargo xtask generate -->\n# {kind}\n\n{}\n\n",
        describe_in_prose(schema)
    );
    writeln!(page, "This page lists every field, as the API server checks it. How the kind is used: [{guide}](../{guide}.md).\n").expect(ENDLESS);
    writeln!(page, "| | |\n|---|---|").expect(ENDLESS);
    let group = text_of(&spec["group"]);
    writeln!(
        page,
        "| `apiVersion` | `{group}/{}` |",
        text_of(&version["name"])
    )
    .expect(ENDLESS);
    writeln!(page, "| exists | {scope} |").expect(ENDLESS);
    writeln!(
        page,
        "| names for kubectl | {} |",
        kubectl_names(&spec["names"])
    )
    .expect(ENDLESS);
    for part in ["spec", "status"] {
        let part_schema = &schema["properties"][part];
        if part_schema.is_object() {
            page.push_str(&render_part(part, part_schema));
        }
    }
    let mut rules = Vec::new();
    collect_rules("", schema, &mut rules);
    if !rules.is_empty() {
        writeln!(page, "\n## Rules\n\nThe API server refuses an object that breaks one of these.\n\n| Where | Rule |\n|---|---|").expect(ENDLESS);
        for (path, rule) in rules {
            let place = if path.is_empty() {
                "the object"
            } else {
                &format!("`{path}`")
            };
            writeln!(page, "| {place} | {} |", in_cell(&rule)).expect(ENDLESS);
        }
    }
    page
}

const ENDLESS: &str = "a String takes all";

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn kubectl_names(names: &Value) -> String {
    let mut all = vec![text_of(&names["plural"]), text_of(&names["singular"])];
    all.extend(
        names["shortNames"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text_of),
    );
    let quoted: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn render_part(part: &str, schema: &Value) -> String {
    let mut text = format!(
        "\n## `{part}`\n\n{}\n\n| Field | Type | Meaning |\n|---|---|---|\n",
        describe_in_prose(schema)
    );
    let mut rows = Vec::new();
    collect_fields("", schema, &mut rows);
    for row in rows {
        text.push_str(&row);
    }
    text
}

/// One row for each field below, with its path from `spec` or `status`.
fn collect_fields(path: &str, schema: &Value, rows: &mut Vec<String>) {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .map(text_of)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let below = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let need = if required.contains(&name.as_str()) {
            " **Required.**"
        } else {
            ""
        };
        let meaning = format!(
            "{}{need}{}",
            describe_in_cell(field),
            describe_default(field)
        );
        rows.push(format!(
            "| `{below}` | {} | {} |\n",
            describe_type(field),
            meaning.trim()
        ));
        collect_fields(&below, field, rows);
        collect_fields(&format!("{below}[]"), &field["items"], rows);
        collect_fields(
            &format!("{below}.KEY"),
            &field["additionalProperties"],
            rows,
        );
    }
}

fn describe_type(field: &Value) -> String {
    if field["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    let base = match text_of(&field["type"]) {
        "array" => format!("list of {}", describe_type(&field["items"])),
        "object" if field["additionalProperties"].is_object() => {
            format!(
                "map of string to {}",
                describe_type(&field["additionalProperties"])
            )
        }
        "" => "any".to_owned(),
        other => other.to_owned(),
    };
    let limits = describe_limits(field);
    if limits.is_empty() {
        base
    } else {
        format!("{base}, {limits}")
    }
}

fn describe_limits(field: &Value) -> String {
    let mut limits = Vec::new();
    if let Some(values) = field["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("`{}`", plain_value(value)))
            .collect();
        limits.push(values.join(" or "));
    }
    if field["format"] == "date-time" {
        limits.push("a time (RFC 3339)".to_owned());
    }
    for (least, most, unit) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " entries"),
        ("minProperties", "maxProperties", " entries"),
    ] {
        limits.extend(describe_range(&field[least], &field[most], unit));
    }
    limits.join(", ")
}

fn describe_range(least: &Value, most: &Value, unit: &str) -> Option<String> {
    let (least, most) = (plain_value(least), plain_value(most));
    match (least.as_str(), most.as_str()) {
        ("", "") => None,
        (least, "") => Some(format!("{least} or more{unit}")),
        ("", most) => Some(format!("up to {most}{unit}")),
        (least, most) => Some(format!("{least} to {most}{unit}")),
    }
}

/// Without the quotes of JSON, and without `.0`.
fn plain_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn describe_default(field: &Value) -> String {
    let default = &field["default"];
    if default.is_null() {
        return String::new();
    }
    format!(" Default: `{}`.", in_cell(&plain_value(default)))
}

fn describe_in_prose(schema: &Value) -> String {
    let text = text_of(&schema["description"]);
    escape_angles(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn describe_in_cell(field: &Value) -> String {
    let text = in_cell(text_of(&field["description"]));
    match text.chars().last() {
        None | Some('.') => text,
        Some(_) => text + ".",
    }
}

/// In one line, and without what would end a cell or begin a tag.
fn in_cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape_angles(&line.replace('|', "\\|"))
}

fn escape_angles(text: &str) -> String {
    text.replace('<', "&lt;")
}

/// What each rule says to people; the rule itself where it says nothing.
fn collect_rules(path: &str, schema: &Value, rules: &mut Vec<(String, String)>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let words = match text_of(&rule["message"]) {
            "" => format!("`{}`", text_of(&rule["rule"])),
            message => message.to_owned(),
        };
        rules.push((path.to_owned(), words));
    }
    let join = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        collect_rules(&join(name), field, rules);
    }
    if schema["items"].is_object() {
        collect_rules(&format!("{path}[]"), &schema["items"], rules);
    }
    if schema["additionalProperties"].is_object() {
        collect_rules(&join("KEY"), &schema["additionalProperties"], rules);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_shown_with_its_type_limits_need_default_and_rules() {
        let definition = json!({ "spec": {
            "group": "g", "scope": "Namespaced",
            "names": { "kind": "K", "plural": "ks", "singular": "k" },
            "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": {
                "description": "A kind", "properties": { "spec": {
                    "description": "What is wanted", "required": ["n"],
                    "properties": {
                        "n": { "type": "integer", "minimum": 1.0, "description": "How many <b>|" },
                        "list": { "type": "array", "maxItems": 3, "items": {
                            "type": "object", "properties": { "a": { "type": "string", "enum": ["x", "y"], "default": "x" } },
                            "x-kubernetes-validations": [{ "rule": "r", "message": "a must be so" }],
                        } },
                    },
                } } } } }],
        } });
        let page = render_reference_page(&definition, "guide");
        for line in [
            "| `n` | integer, 1 or more | How many &lt;b>\\|. **Required.** |",
            "| `list` | list of object, up to 3 entries |  |",
            "| `list[].a` | string, `x` or `y` | Default: `x`. |",
            "| `spec.list[]` | a must be so |",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }
}
