//! Decodes the few small messages that kubectl sends as protobuf into JSON.
//!
//! kubectl's typed clients encode `DeleteOptions` and `Eviction` (`drain`) and reviews (`auth can-i`,
//! `auth whoami`) in Kubernetes' protobuf, and do not retry in JSON when that is refused. Field
//! numbers are those of `generated.proto` in `k8s.io/apimachinery` (meta/v1, runtime) and
//! `k8s.io/api` (policy/v1, authorization/v1, authentication/v1); they never change. Any other
//! message stays as it is, and is refused like every other body that is not JSON.

use serde_json::{Map, Value, json};

/// The prefix of every message.
const PROTOBUF_MAGIC: &[u8] = b"k8s\0";
/// The media type of Kubernetes' protobuf.
pub(crate) const PROTOBUF_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The message as JSON; None for any other message.
pub(crate) fn decode_to_json(body: &[u8]) -> Option<Value> {
    let envelope = ProtobufMessage::parse_message(body.strip_prefix(PROTOBUF_MAGIC)?)?;
    let kind = envelope.message_field(1)?;
    let (version, kind) = (kind.text_field(1)?, kind.text_field(2)?);
    let raw = envelope.message_field(2)?;
    let mut value = match kind.as_str() {
        "DeleteOptions" => decode_delete_options(&raw),
        "Eviction" => json!({
            "metadata": decode_object_meta(&raw.message_field(1).unwrap_or_default()),
            "deleteOptions": raw.message_field(2).map(|options| decode_delete_options(&options)),
        }),
        "SelfSubjectReview" => json!({}),
        "SelfSubjectRulesReview" => {
            let spec = raw.message_field(2).unwrap_or_default();
            json!({ "spec": spec.named_texts(&[(1, "namespace")]) })
        }
        "SelfSubjectAccessReview" => {
            let spec = raw.message_field(2).unwrap_or_default();
            json!({ "spec": decode_access_spec(&spec) })
        }
        _ => return None,
    };
    value["apiVersion"] = version.into();
    value["kind"] = kind.into();
    Some(value)
}

fn decode_object_meta(meta: &ProtobufMessage<'_>) -> Value {
    json!({ "name": meta.text_field(1).unwrap_or_default(), "namespace": meta.text_field(3).unwrap_or_default() })
}

fn decode_access_spec(spec: &ProtobufMessage<'_>) -> Value {
    const RESOURCE: [(u64, &str); 7] = [
        (1, "namespace"),
        (2, "verb"),
        (3, "group"),
        (4, "version"),
        (5, "resource"),
        (6, "subresource"),
        (7, "name"),
    ];
    let mut value = Map::new();
    if let Some(resource) = spec.message_field(1) {
        let texts = resource.named_texts(&RESOURCE);
        value.insert("resourceAttributes".into(), texts);
    }
    if let Some(path) = spec.message_field(2) {
        let texts = path.named_texts(&[(1, "path"), (2, "verb")]);
        value.insert("nonResourceAttributes".into(), texts);
    }
    value.into()
}

fn decode_delete_options(options: &ProtobufMessage<'_>) -> Value {
    let mut value = Map::new();
    if let Some(seconds) = options.number_field(1) {
        value.insert("gracePeriodSeconds".into(), seconds.into());
    }
    if let Some(preconditions) = options.message_field(2) {
        let mut texts = Map::new();
        texts.extend(
            preconditions
                .text_field(1)
                .map(|uid| ("uid".to_owned(), uid.into())),
        );
        let version = preconditions.text_field(2);
        texts.extend(version.map(|version| ("resourceVersion".to_owned(), version.into())));
        value.insert("preconditions".into(), texts.into());
    }
    if let Some(policy) = options.text_field(4) {
        value.insert("propagationPolicy".into(), policy.into());
    }
    let dry_run: Vec<Value> = options.text_fields(5).map(Value::from).collect();
    if !dry_run.is_empty() {
        value.insert("dryRun".into(), dry_run.into());
    }
    value.into()
}

#[derive(Debug, Default)]
struct ProtobufMessage<'a>(Vec<(u64, ProtobufField<'a>)>);

#[derive(Debug, Clone, Copy)]
enum ProtobufField<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> ProtobufMessage<'a> {
    /// Parses a whole message; None if it is broken or has a field type that neither message uses.
    fn parse_message(mut bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = read_varint(&mut bytes)?;
            let field = match tag & 7 {
                0 => ProtobufField::Number(read_varint(&mut bytes)?),
                2 => {
                    let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
                    let (field, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    ProtobufField::Bytes(field)
                }
                _ => return None,
            };
            fields.push((tag >> 3, field));
        }
        Some(Self(fields))
    }

    fn bytes_fields(&self, number: u64) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter_map(move |(other, field)| match field {
            ProtobufField::Bytes(bytes) if *other == number => Some(*bytes),
            ProtobufField::Bytes(_) | ProtobufField::Number(_) => None,
        })
    }

    fn text_fields(&self, number: u64) -> impl Iterator<Item = String> {
        self.bytes_fields(number)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn text_field(&self, number: u64) -> Option<String> {
        self.text_fields(number).next()
    }

    /// The texts of these fields, by their names in JSON; empty ones are absent.
    fn named_texts(&self, names: &[(u64, &str)]) -> Value {
        let texts = names.iter().filter_map(|(number, name)| {
            let text = self.text_field(*number)?;
            (!text.is_empty()).then(|| ((*name).to_owned(), Value::from(text)))
        });
        Value::Object(texts.collect())
    }

    fn message_field(&self, number: u64) -> Option<Self> {
        self.bytes_fields(number)
            .next()
            .and_then(Self::parse_message)
    }

    fn number_field(&self, number: u64) -> Option<i64> {
        self.0.iter().find_map(|(other, field)| match field {
            ProtobufField::Number(value) if *other == number => Some(value.cast_signed()),
            ProtobufField::Bytes(_) | ProtobufField::Number(_) => None,
        })
    }
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
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
            PROTOBUF_MAGIC.to_vec(),
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
            decode_to_json(&envelope("v1", "DeleteOptions", &raw)),
            Some(expected)
        );
    }

    #[test]
    fn an_eviction_carries_its_pod_and_its_options() {
        let meta = [field(1, b"web"), field(3, b"default")].concat();
        let raw = [field(1, &meta), field(2, &[1 << 3, 5])].concat();
        let value = decode_to_json(&envelope("policy/v1", "Eviction", &raw)).unwrap();
        assert_eq!(
            value["metadata"],
            json!({ "name": "web", "namespace": "default" })
        );
        assert_eq!(value["deleteOptions"]["gracePeriodSeconds"], 5);
    }

    #[test]
    fn a_review_of_ones_own_access_carries_what_is_asked() {
        let resource = [field(1, b""), field(2, b"delete"), field(5, b"nodes")].concat();
        let raw = [field(1, b""), field(2, &field(1, &resource))].concat();
        let body = envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", &raw);
        let value = decode_to_json(&body).unwrap();
        assert_eq!(
            value["spec"],
            json!({ "resourceAttributes": { "verb": "delete", "resource": "nodes" } })
        );
        let body = envelope("authentication.k8s.io/v1", "SelfSubjectReview", b"");
        assert_eq!(decode_to_json(&body).unwrap()["kind"], "SelfSubjectReview");
    }

    #[test]
    fn what_is_broken_or_another_message_is_nothing() {
        let whole = envelope("v1", "DeleteOptions", &[1 << 3, 30]);
        assert!(decode_to_json(&whole).is_some());
        for end in 0..20 {
            assert_eq!(decode_to_json(&whole[..end]), None, "{end}");
        }
        assert_eq!(decode_to_json(&envelope("v1", "Pod", b"")), None);
        assert_eq!(decode_to_json(b"{}"), None);
    }
}
