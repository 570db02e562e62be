//! The two small messages that kubectl sends as protobuf, taken into JSON.
//!
//! kubectl's typed clients (`drain`) encode `DeleteOptions` and `Eviction` in Kubernetes' protobuf
//! and fall back to nothing when that is refused. Field numbers are those of `generated.proto` in
//! `k8s.io/apimachinery` (meta/v1, runtime) and `k8s.io/api` (policy/v1); they never change. Any other
//! message is left as it is, and refused like everything that is no JSON.

use serde_json::{Map, Value, json};

/// What stands before every message.
const MAGIC: &[u8] = b"k8s\0";
/// How Kubernetes names it.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The message as JSON, if it is one of the two.
pub(crate) fn to_json(body: &[u8]) -> Option<Value> {
    let envelope = Message::read(body.strip_prefix(MAGIC)?)?;
    let kind = envelope.message(1)?;
    let (version, kind) = (kind.text(1)?, kind.text(2)?);
    let raw = envelope.message(2)?;
    let mut value = match kind.as_str() {
        "DeleteOptions" => delete_options(&raw),
        "Eviction" => json!({
            "metadata": object_meta(&raw.message(1).unwrap_or_default()),
            "deleteOptions": raw.message(2).map(|options| delete_options(&options)),
        }),
        _ => return None,
    };
    value["apiVersion"] = version.into();
    value["kind"] = kind.into();
    Some(value)
}

fn object_meta(meta: &Message<'_>) -> Value {
    json!({ "name": meta.text(1).unwrap_or_default(), "namespace": meta.text(3).unwrap_or_default() })
}

fn delete_options(options: &Message<'_>) -> Value {
    let mut value = Map::new();
    if let Some(seconds) = options.number(1) {
        value.insert("gracePeriodSeconds".into(), seconds.into());
    }
    if let Some(preconditions) = options.message(2) {
        let mut texts = Map::new();
        texts.extend(
            preconditions
                .text(1)
                .map(|uid| ("uid".to_owned(), uid.into())),
        );
        let version = preconditions.text(2);
        texts.extend(version.map(|version| ("resourceVersion".to_owned(), version.into())));
        value.insert("preconditions".into(), texts.into());
    }
    if let Some(policy) = options.text(4) {
        value.insert("propagationPolicy".into(), policy.into());
    }
    let dry_run: Vec<Value> = options.texts(5).map(Value::from).collect();
    if !dry_run.is_empty() {
        value.insert("dryRun".into(), dry_run.into());
    }
    value.into()
}

/// A message's fields, in their order.
#[derive(Debug, Default)]
struct Message<'a>(Vec<(u64, Field<'a>)>);

#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    /// Reads it whole; nothing if it is broken, or has fields of a kind that neither message has.
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes)?;
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)?),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    let (field, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    Field::Bytes(field)
                }
                _ => return None,
            };
            fields.push((tag >> 3, field));
        }
        Some(Self(fields))
    }

    fn bytes(&self, number: u64) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |(other, field)| match field {
            Field::Bytes(bytes) if *other == number => Some(*bytes),
            Field::Bytes(_) | Field::Number(_) => None,
        })
    }

    fn texts(&self, number: u64) -> impl Iterator<Item = String> {
        self.bytes(number)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn text(&self, number: u64) -> Option<String> {
        self.texts(number).next()
    }

    fn message(&self, number: u64) -> Option<Self> {
        self.bytes(number).next().and_then(Self::read)
    }

    /// An `int64`.
    fn number(&self, number: u64) -> Option<i64> {
        self.0.iter().find_map(|(other, field)| match field {
            Field::Number(value) if *other == number => Some(value.cast_signed()),
            Field::Bytes(_) | Field::Number(_) => None,
        })
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend(bytes);
        field
    }

    fn envelope(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let kind = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
        [
            MAGIC.to_vec(),
            field(1, &kind),
            field(2, raw),
            field(3, b""),
            field(4, b""),
        ]
        .concat()
    }

    #[test]
    fn the_options_of_a_deletion_are_read() {
        let raw = [
            vec![1 << 3, 30],
            field(2, &field(1, b"uid-1")),
            field(5, b"All"),
        ]
        .concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 30,
            "preconditions": { "uid": "uid-1" }, "dryRun": ["All"],
        });
        assert_eq!(
            to_json(&envelope("v1", "DeleteOptions", &raw)),
            Some(expected)
        );
    }

    #[test]
    fn an_eviction_carries_its_pod_and_its_options() {
        let meta = [field(1, b"web"), field(3, b"default")].concat();
        let raw = [field(1, &meta), field(2, &[1 << 3, 5])].concat();
        let value = to_json(&envelope("policy/v1", "Eviction", &raw)).unwrap();
        assert_eq!(
            value["metadata"],
            json!({ "name": "web", "namespace": "default" })
        );
        assert_eq!(value["deleteOptions"]["gracePeriodSeconds"], 5);
    }

    #[test]
    fn what_is_broken_or_another_message_is_nothing() {
        let whole = envelope("v1", "DeleteOptions", &[1 << 3, 30]);
        assert!(to_json(&whole).is_some());
        for end in 0..20 {
            assert_eq!(to_json(&whole[..end]), None, "{end}");
        }
        assert_eq!(to_json(&envelope("v1", "Pod", b"")), None);
        assert_eq!(to_json(b"{}"), None);
    }
}
