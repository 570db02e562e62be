//! Known differences of the embedded server, each with its reason. Any other difference is a bug.
//!
//! Not tested, because Dogwatch does not use it and the embedded server does not build it:
//! selectors with `<` and `>`; unknown fields and other types of built-in kinds in requests without
//! the parameter `fieldValidation`; cost limits of CEL rules; YAML and protobuf; a client's own `metadata.generation` on kinds that count none; a client's
//! `deletionTimestamp`. The admission plugins that are switched off on the real server are listed
//! in `servers`.

use serde_json::Value;

/// A known difference.
struct Difference {
    /// Removes the difference from an answer.
    forgive: fn(&mut Value),
    /// Why the difference is acceptable.
    why: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        forgive: |answer| {
            each_field(answer, "columnDefinitions", |columns| {
                without(columns, "description");
            });
        },
        why: "the columns' descriptions are the documentation of the fields, and kubectl does not show them in a table",
    },
    Difference {
        forgive: |answer| {
            each_field(answer, "causes", |causes| {
                let causes = causes.as_array_mut().into_iter();
                causes.for_each(|causes| causes.sort_by_key(Value::to_string));
            });
        },
        why: "the real server tells the managers in the way in the order of a Go map",
    },
    Difference {
        forgive: |answer| {
            each_field(answer, "causes", |causes| {
                causes.as_array_mut().into_iter().for_each(Vec::dedup);
            });
        },
        why: "the real server's validation finds the same fault several times over",
    },
    Difference {
        forgive: |answer| {
            each_field(answer, "message", |message| {
                cut(message, "previously negative)");
            });
        },
        why: "behind it the real server prints two Go structs and their difference",
    },
    Difference {
        forgive: |answer| {
            each_field(answer, "message", |message| {
                cut(message, "continue key is not valid");
            });
        },
        why: "a token is opaque, and so is what is wrong with it",
    },
    Difference {
        forgive: |answer| {
            each_field(answer, "message", |message| {
                if !message.to_string().contains("strict decoding error") {
                    cut(message, "cannot be handled as a");
                }
            });
        },
        why: "the rest names Go types and a line of the real server's source",
    },
    Difference {
        forgive: |answer| {
            let of_a_patch = answer["message"]
                .as_str()
                .is_some_and(|message| message.starts_with(" \"\" is invalid: patch: "));
            if of_a_patch {
                cut(&mut answer["message"], " is invalid: patch: ");
                answer["details"] = Value::Null;
            }
        },
        why: "the message shows the whole object, with its times and versions",
    },
    Difference {
        forgive: |answer| {
            each_field(answer, "message", |message| {
                cut(message, ": expected numeric (int or float), got ");
            });
        },
        why: "the rest is a Go struct",
    },
    Difference {
        forgive: |answer| {
            if answer["apiVersion"] == "events.k8s.io/v1" || answer["kind"] == "Event" {
                each_field(answer, "managedFields", |fields| *fields = Value::Null);
            }
        },
        why: "an Event has one spelling in each of two groups; we keep its owners in that of the core group",
    },
    Difference {
        forgive: |answer| {
            answer
                .as_array_mut()
                .into_iter()
                .for_each(remove_repeated_bookmarks);
        },
        why: "the real server asks every second for the bookmark that ends the initial events; \
              if it was sent in between, another one follows",
    },
];

/// Removes the known differences from an answer.
pub fn forgive(body: &mut Value) {
    for difference in DIFFERENCES {
        assert!(!difference.why.is_empty());
        (difference.forgive)(body);
    }
}

/// Removes the bookmarks behind the one that ends the initial events, up to the next change.
fn remove_repeated_bookmarks(events: &mut Vec<Value>) {
    let mut is_repeated = false;
    events.retain(|event| {
        let is_bookmark = event["type"] == "BOOKMARK";
        let is_removed = is_repeated && is_bookmark;
        is_repeated = is_bookmark && (is_repeated || ends_initial_events(event));
        !is_removed
    });
}

fn ends_initial_events(event: &Value) -> bool {
    event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
}

/// Calls `act` on every field of that name, at any depth.
pub fn each_field(value: &mut Value, name: &str, act: fn(&mut Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == name {
                    act(value);
                } else {
                    each_field(value, name, act);
                }
            }
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| each_field(value, name, act)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without(list: &mut Value, field: &str) {
    for item in list.as_array_mut().into_iter().flatten() {
        item.as_object_mut().and_then(|item| item.remove(field));
    }
}

/// Cuts the text after `last`.
fn cut(text: &mut Value, last: &str) {
    let found = text.as_str().and_then(|text| text.find(last));
    if let (Some(at), Value::String(text)) = (found, text) {
        text.truncate(at + last.len());
    }
}
