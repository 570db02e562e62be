//! Answers as Redfish gives them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, DATE, ETAG, HeaderName, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::seed::short_hash;

/// A document.
pub(super) fn document(code: u16, body: &Value) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body.to_string()));
    *answer.status_mut() = status(code);
    header(&mut answer, CONTENT_TYPE, "application/json");
    answer
}

/// A document with its ETag, in it and beside it.
pub(super) fn tagged(mut body: Value) -> Response<Bytes> {
    let tag = etag(&body);
    body["@odata.etag"] = tag.clone().into();
    let mut answer = document(200, &body);
    header(&mut answer, ETAG, &tag);
    answer
}

/// A document's ETag: another whenever something in it is.
pub(super) fn etag(body: &Value) -> String {
    format!("W/\"{}\"", short_hash(body.to_string().as_bytes()))
}

/// An answer without a body.
pub(super) fn empty(code: u16) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = status(code);
    answer
}

/// An error, or another message, in Redfish's form.
pub(super) fn message(code: u16, id: &str, text: &str) -> Response<Bytes> {
    let info = json!([{ "MessageId": id, "Message": text, "Severity": "Warning" }]);
    let body = json!({ "error": { "code": id, "message": text, "@Message.ExtendedInfo": info } });
    document(code, &body)
}

/// Nothing is there.
pub(super) fn nothing_there() -> Response<Bytes> {
    message(
        404,
        "Base.1.8.ResourceMissingAtURI",
        "there is no such resource",
    )
}

/// Who asks is not known.
pub(super) fn unauthorized() -> Response<Bytes> {
    let text = "the user name, the password or the session is not valid";
    message(401, "Base.1.8.NoValidSession", text)
}

/// An answer that names where to go on.
pub(super) fn at(mut answer: Response<Bytes>, location: &str) -> Response<Bytes> {
    header(&mut answer, LOCATION, location);
    answer
}

/// An answer with its time.
pub(super) fn dated(mut answer: Response<Bytes>, time: Timestamp) -> Response<Bytes> {
    let text = time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    header(&mut answer, DATE, &text);
    header(&mut answer, HeaderName::from_static("odata-version"), "4.0");
    answer
}

/// Sets a header.
pub(super) fn header(answer: &mut Response<Bytes>, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("what a BMC says is plain text");
    answer.headers_mut().insert(name, value);
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("codes are checked where they come in")
}
