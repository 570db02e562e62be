//! Parses the short form of a policy.

use jiff::civil::DateTime;
use jiff::tz::TimeZoneDatabase;
use jiff::{Timestamp, Zoned};
use serde_json::{Map, Value, json};

use super::line_words::LineWords;

/// Parses `NAME [nodes=…] [max=…] …`: the name, and a JSON merge patch of the `spec`.
pub(super) fn parse_policy(words: &mut LineWords) -> Result<(String, Value), String> {
    let name = words.next_word("the policy's name")?;
    let mut spec = Map::new();
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            put_field(&mut spec, field, value);
        }
    };
    set("nodeSelector", words.read_option("nodes", parse_selector)?);
    set("priority", words.read_option("priority", parse_number)?);
    set("maxUnavailable", words.take_option("max").map(limit_value));
    set(
        "maxUnavailableNodes",
        words.read_option("max-nodes", parse_number)?,
    );
    set("topologyKey", words.take_option("zones").map(text_or_null));
    set(
        "minInterval",
        words.take_option("min-interval").map(text_or_null),
    );
    set("windows", parse_windows(words)?);
    set("paused", parse_pause(words)?);
    set("gates", parse_gates(words)?);
    for (word, field) in TEXT_FIELDS {
        set(field, words.take_option(word).map(text_or_null));
    }
    set(
        "reboot.attempts",
        words.read_option("reboot-attempts", parse_number)?,
    );
    set(
        "reboot.acceptSoft",
        words.read_option("accept-soft", parse_bool)?,
    );
    set(
        "reboot.muteNVSentinel",
        words.read_option("mute-nvsentinel", parse_bool)?,
    );
    set(
        "drain.exclude",
        words.read_option("exclude", parse_selector)?,
    );
    set(
        "return.gates",
        words.take_option("return-gates").as_deref().map(list_value),
    );
    set("return.ready", parse_ready_checks(words)?);
    Ok((name, Value::Object(spec)))
}

/// Options whose value goes unchanged into a field.
const TEXT_FIELDS: [(&str, &str); 8] = [
    ("drain-timeout", "drain.timeout"),
    ("on-drain-timeout", "drain.onTimeout"),
    ("reboot-timeout", "reboot.timeout"),
    ("settle", "return.settle"),
    ("gate-timeout", "return.gateTimeout"),
    ("on-gate-timeout", "return.onGateTimeout"),
    ("ready-timeout", "return.readyTimeout"),
    ("on-ready-timeout", "return.onReadyTimeout"),
];

fn put_field(spec: &mut Map<String, Value>, field: &str, value: Value) {
    match field.split_once('.') {
        None => spec.insert(field.to_owned(), value),
        Some((outer, inner)) => spec
            .entry(outer)
            .or_insert_with(|| json!({}))
            .as_object_mut()
            .expect("only objects are put there")
            .insert(inner.to_owned(), value),
    };
}

/// `none` removes a field.
fn text_or_null(word: String) -> Value {
    if word == "none" {
        Value::Null
    } else {
        word.into()
    }
}

fn limit_value(word: String) -> Value {
    word.parse::<u32>()
        .map_or_else(|_| text_or_null(word), Value::from)
}

fn parse_bool(word: &str) -> Result<Value, String> {
    let value: bool = word
        .parse()
        .map_err(|_| format!("{word:?} is neither true nor false"))?;
    Ok(value.into())
}

fn parse_number(word: &str) -> Result<Value, String> {
    if word == "none" {
        return Ok(Value::Null);
    }
    let number: i32 = word
        .parse()
        .map_err(|_| format!("{word:?} is not a number"))?;
    Ok(number.into())
}

fn list_value(word: &str) -> Value {
    match word {
        "all" => Value::Null,
        "none" => json!([]),
        names => names.split(',').collect(),
    }
}

/// `ready-condition=TYPE:STATUS`, `ready-no-taint=KEY`, `ready-resource=NAME`, each any number of
/// times; `ready=none` removes all checks.
fn parse_ready_checks(words: &mut LineWords) -> Result<Option<Value>, String> {
    if words
        .take_option("ready")
        .is_some_and(|word| word == "none")
    {
        return Ok(Some(Value::Null));
    }
    let mut checks = Vec::new();
    while let Some(condition) = words.take_option("ready-condition") {
        let (kind, status) = condition
            .split_once(':')
            .ok_or_else(|| format!("{condition:?} has no status"))?;
        checks.push(json!({ "condition": { "type": kind, "status": status } }));
    }
    while let Some(key) = words.take_option("ready-no-taint") {
        checks.push(json!({ "noTaint": key }));
    }
    while let Some(name) = words.take_option("ready-resource") {
        checks.push(json!({ "resource": name }));
    }
    Ok((!checks.is_empty()).then(|| checks.into()))
}

/// `all`, or `KEY=VALUE,KEY`: labels with that value, labels that exist.
pub(super) fn parse_selector(word: &str) -> Result<Value, String> {
    if word == "none" {
        return Ok(Value::Null);
    }
    let (mut labels, mut there) = (Map::new(), Vec::new());
    for part in word.split(',').filter(|_| word != "all") {
        match part.split_once('=') {
            Some((key, value)) => {
                labels.insert(key.to_owned(), value.into());
            }
            None if part.is_empty() => return Err(format!("{word:?} is not a selector")),
            None => there.push(json!({ "key": part, "operator": "Exists" })),
        }
    }
    let mut selector = Map::new();
    selector.extend((!labels.is_empty()).then(|| ("matchLabels".to_owned(), labels.into())));
    selector.extend((!there.is_empty()).then(|| ("matchExpressions".to_owned(), there.into())));
    Ok(selector.into())
}

fn parse_windows(words: &mut LineWords) -> Result<Option<Value>, String> {
    let mut windows = Vec::new();
    while let Some(word) = words.take_option("window") {
        if word == "none" {
            return Ok(Some(Value::Null));
        }
        windows.push(parse_window(&word)?);
    }
    Ok((!windows.is_empty()).then(|| windows.into()))
}

/// `[Mon,Tue|FREQ=…] [HH:MM-HH:MM] [ZONE] [except=DATE,MM-DD,DATE..DATE]`.
fn parse_window(text: &str) -> Result<Value, String> {
    let mut window = Map::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let times = word
            .split_once('-')
            .filter(|(start, _)| start.contains(':'));
        let (field, value): (&str, Value) = if let Some((start, end)) = times {
            window.insert("end".into(), end.into());
            ("start", start.into())
        } else if word.starts_with("FREQ=") {
            ("rrule", word.into())
        } else if let Some(dates) = word.strip_prefix("except=") {
            ("excludedDates", dates.split(',').collect())
        } else if word.contains('/') || word == "UTC" {
            ("timeZone", word.into())
        } else {
            ("days", word.split(',').collect())
        };
        if window.insert(field.into(), value).is_some() {
            return Err(format!("{field} twice in window {text:?}"));
        }
    }
    Ok(window.into())
}

/// `paused=REASON [until=TIME]`.
fn parse_pause(words: &mut LineWords) -> Result<Option<Value>, String> {
    let Some(reason) = words.take_option("paused") else {
        return Ok(None);
    };
    if reason == "none" {
        return Ok(Some(Value::Null));
    }
    let mut paused = json!({ "reason": reason, "until": null });
    if let Some(until) = words.read_option("until", parse_moment)? {
        paused["until"] = until.timestamp().to_string().into();
    }
    Ok(Some(paused))
}

/// `gate-pods=SELECTOR`, `gate-query=QUERY`, `gate-alerts=all|firing|only:A|B|ignore:A|B`, each any
/// number of times; `gates=none` removes all gates.
fn parse_gates(words: &mut LineWords) -> Result<Option<Value>, String> {
    if words
        .take_option("gates")
        .is_some_and(|word| word == "none")
    {
        return Ok(Some(Value::Null));
    }
    let url = "http://prometheus.monitoring.svc:9090";
    let mut gates = Vec::new();
    while let Some(pods) = words.read_option("gate-pods", parse_selector)? {
        gates.push(json!({ "pods": { "selector": pods } }));
    }
    while let Some(query) = words.take_option("gate-query") {
        gates.push(json!({ "prometheus": { "url": url, "query": query } }));
    }
    while let Some(alerts) = words.take_option("gate-alerts") {
        let alerts = match alerts.split_once(':') {
            Some(("only", names)) => json!({ "only": names }),
            Some(("ignore", names)) => json!({ "ignore": names }),
            None if alerts == "all" => json!({}),
            None if alerts == "firing" => json!({ "firingOnly": true }),
            Some(_) | None => return Err(format!("gate-alerts={alerts} is not an alert filter")),
        };
        gates.push(json!({ "prometheus": { "url": url, "alerts": alerts } }));
    }
    Ok((!gates.is_empty()).then(|| gates.into()))
}

/// A moment: `2026-03-29 01:30 Europe/Berlin`, or in RFC 3339 form.
pub(super) fn parse_moment(text: &str) -> Result<Zoned, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.to_zoned(jiff::tz::TimeZone::UTC));
    }
    let bad =
        || format!("{text:?} is not a time: write it like \"2026-03-29 01:30 Europe/Berlin\"");
    let (time, zone) = text.rsplit_once(' ').ok_or_else(bad)?;
    let time: DateTime = time.parse().map_err(|_| bad())?;
    let zone = TimeZoneDatabase::bundled().get(zone).map_err(|_| bad())?;
    time.to_zoned(zone).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::line_words::split_words;

    fn spec(line: &str) -> Value {
        let mut words = LineWords::new(split_words(line).unwrap());
        let (name, spec) = parse_policy(&mut words).unwrap();
        words.expect_end().unwrap();
        assert_eq!(name, "p");
        spec
    }

    #[test]
    fn short_words_say_what_the_fields_say() {
        let spec = spec(
            "p nodes=team=a,gpu max=50% window=\"Fri,Sat 22:00-04:00 Europe/Berlin\" window=\"FREQ=MONTHLY;BYDAY=2TU except=2026-12-24\" \
             paused=\"a freeze\" until=\"2026-03-29 03:00 Europe/Berlin\" settle=5s return-gates=Volumes ready-no-taint=a/b ready-condition=Gpu:True ready-timeout=5m gate-pods=app=ci gate-alerts=only:A|B",
        );
        let expected = json!({
            "nodeSelector": { "matchLabels": { "team": "a" }, "matchExpressions": [{ "key": "gpu", "operator": "Exists" }] },
            "maxUnavailable": "50%",
            "windows": [
                { "days": ["Fri", "Sat"], "start": "22:00", "end": "04:00", "timeZone": "Europe/Berlin" },
                { "rrule": "FREQ=MONTHLY;BYDAY=2TU", "excludedDates": ["2026-12-24"] },
            ],
            "paused": { "reason": "a freeze", "until": "2026-03-29T01:00:00Z" },
            "return": {
                "settle": "5s", "gates": ["Volumes"], "readyTimeout": "5m",
                "ready": [{ "condition": { "type": "Gpu", "status": "True" } }, { "noTaint": "a/b" }],
            },
            "gates": [
                { "pods": { "selector": { "matchLabels": { "app": "ci" } } } },
                { "prometheus": { "url": "http://prometheus.monitoring.svc:9090", "alerts": { "only": "A|B" } } },
            ],
        });
        assert_eq!(spec, expected);
        let policy = dogwatch_k8s::policy::convert_policy("p", &spec);
        assert_eq!(policy.problems, Vec::<String>::new());
    }

    #[test]
    fn none_takes_a_field_away() {
        let spec = spec("p window=none paused=none max=none gates=none return-gates=none");
        let expected = json!({
            "windows": null, "paused": null, "maxUnavailable": null, "gates": null, "return": { "gates": [] },
        });
        assert_eq!(spec, expected);
    }
}
