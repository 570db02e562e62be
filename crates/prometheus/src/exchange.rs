//! One HTTP request on one connection, which is closed afterwards.
//!
//! hyper-util's client would add a pool of connections, which is useless here: a query is sent
//! every ten seconds at most, for some minutes.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower::ServiceExt as _;

use crate::address::{PrometheusAddress, PrometheusOrigin};
use crate::query_error::QueryError;

/// An answer of 10,000 series has about 2 MiB; a coordinator has 8 MiB in all.
const MAX_BODY_BYTES: usize = 4 << 20;
const USER_AGENT_VALUE: &str = concat!("dogwatch/", env!("CARGO_PKG_VERSION"));

pub(crate) struct HttpReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Follows no redirect. Dropping the future closes the connection.
pub(crate) async fn get_reply(
    address: &PrometheusAddress,
    path: &str,
    tls: Option<Arc<ClientConfig>>,
    token: Option<HeaderValue>,
) -> Result<HttpReply, QueryError> {
    let request = build_request(address.origin(), path, token);
    let stream = open_connection(address.origin(), tls).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(QueryError::Broken)?;
    let mut asked = pin!(async {
        let sent = sender.send_request(request).await;
        read_whole_reply(sent.map_err(QueryError::Broken)?).await
    });
    tokio::select! {
        biased;
        reply = &mut asked => return reply,
        // The request itself receives the connection's error.
        _ = connection => {}
    }
    asked.await
}

fn build_request(
    origin: &PrometheusOrigin,
    path: &str,
    token: Option<HeaderValue>,
) -> Request<Empty<Bytes>> {
    let mut request = Request::get(path)
        .header(HOST, origin.authority())
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, USER_AGENT_VALUE)
        .header(CONNECTION, "close");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token);
    }
    let request = request.body(Empty::new());
    request.expect("made of parts of an address that was understood")
}

async fn open_connection(
    origin: &PrometheusOrigin,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Box<dyn ByteStream>, QueryError> {
    let tcp = connect_tcp(origin).await?;
    let Some(tls) = tls else {
        return Ok(Box::new(tcp));
    };
    let name = ServerName::try_from(origin.server_name()).map_err(|_| QueryError::ServerName)?;
    let connecting = TlsConnector::from(tls).connect(name.to_owned(), tcp);
    Ok(Box::new(connecting.await.map_err(QueryError::Tls)?))
}

/// Tries every address of the host, IPv6 and IPv4 at the same time.
async fn connect_tcp(origin: &PrometheusOrigin) -> Result<TcpStream, QueryError> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let uri = Uri::builder()
        .scheme("http")
        .authority(origin.authority())
        .path_and_query("/")
        .build()
        .expect("made of parts of an address that was understood");
    let connected = connector.oneshot(uri).await;
    connected
        .map(TokioIo::into_inner)
        .map_err(|error| QueryError::Connect(error.into()))
}

async fn read_whole_reply(response: Response<Incoming>) -> Result<HttpReply, QueryError> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_BODY_BYTES).collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => QueryError::Broken(*error),
        Err(other) => {
            debug_assert!(other.is::<LengthLimitError>());
            QueryError::TooLarge(MAX_BODY_BYTES)
        }
    })?;
    Ok(HttpReply {
        status: head.status,
        headers: head.headers,
        body: body.to_bytes(),
    })
}
