//! Builds HTTP answers in Redfish's form.

use bytes::Bytes;
use dogwatch_kubesim::seed::short_hash;
use http::header::{CONTENT_TYPE, DATE, ETAG, HeaderName, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) fn json_document(code: u16, body: &Value) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body.to_string()));
    *answer.status_mut() = status_code(code);
    set_header(&mut answer, CONTENT_TYPE, "application/json");
    answer
}

/// Adds an ETag to a document, both in the body and in the header.
pub(super) fn with_etag(mut body: Value) -> Response<Bytes> {
    let tag = document_etag(&body);
    body["@odata.etag"] = tag.clone().into();
    let mut answer = json_document(200, &body);
    set_header(&mut answer, ETAG, &tag);
    answer
}

/// A document's ETag; it changes with any part of the document.
pub(super) fn document_etag(body: &Value) -> String {
    format!("W/\"{}\"", short_hash(body.to_string().as_bytes()))
}

pub(super) fn empty_response(code: u16) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = status_code(code);
    answer
}

/// An error or another message, in Redfish's extended form.
pub(super) fn extended_message(code: u16, id: &str, text: &str) -> Response<Bytes> {
    let info = json!([{ "MessageId": id, "Message": text, "Severity": "Warning" }]);
    let body = json!({ "error": { "code": id, "message": text, "@Message.ExtendedInfo": info } });
    json_document(code, &body)
}

pub(super) fn not_found_response() -> Response<Bytes> {
    extended_message(
        404,
        "Base.1.8.ResourceMissingAtURI",
        "there is no such resource",
    )
}

/// The answer to a client that is not authenticated.
pub(super) fn unauthorized_response() -> Response<Bytes> {
    let text = "the user name, the password or the session is not valid";
    extended_message(401, "Base.1.8.NoValidSession", text)
}

/// Sets `Location`.
pub(super) fn with_location(mut answer: Response<Bytes>, location: &str) -> Response<Bytes> {
    set_header(&mut answer, LOCATION, location);
    answer
}

/// Sets `Date`.
pub(super) fn with_date(mut answer: Response<Bytes>, time: Timestamp) -> Response<Bytes> {
    let text = time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    set_header(&mut answer, DATE, &text);
    set_header(&mut answer, HeaderName::from_static("odata-version"), "4.0");
    answer
}

pub(super) fn set_header(answer: &mut Response<Bytes>, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("what a BMC says is plain text");
    answer.headers_mut().insert(name, value);
}

fn status_code(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("codes are checked where they come in")
}
