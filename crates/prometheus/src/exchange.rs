//! One request on one connection, and then nothing of it is left.
//!
//! Not hyper-util's client: what it adds is a pool of connections, and a question comes every ten
//! seconds at most, for some minutes.

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

use crate::address::{Address, Origin};
use crate::trouble::Trouble;

/// An answer of 10,000 series has about 2 MiB; a coordinator has 8 in all.
const LARGEST_BODY: usize = 4 << 20;
const AGENT: &str = concat!("dogwatch/", env!("CARGO_PKG_VERSION"));

/// A whole answer.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Asks, following no redirect. Dropping it closes the connection.
pub(crate) async fn get(
    address: &Address,
    path: &str,
    tls: Option<Arc<ClientConfig>>,
    token: Option<HeaderValue>,
) -> Result<Reply, Trouble> {
    let request = request(address.origin(), path, token);
    let stream = connect(address.origin(), tls).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(Trouble::Broken)?;
    let mut asked = pin!(async {
        let sent = sender.send_request(request).await;
        whole(sent.map_err(Trouble::Broken)?).await
    });
    tokio::select! {
        biased;
        reply = &mut asked => return reply,
        // How it ended is told to the request.
        _ = connection => {}
    }
    asked.await
}

fn request(origin: &Origin, path: &str, token: Option<HeaderValue>) -> Request<Empty<Bytes>> {
    let mut request = Request::get(path)
        .header(HOST, origin.authority())
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, AGENT)
        .header(CONNECTION, "close");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, token);
    }
    let request = request.body(Empty::new());
    request.expect("made of parts of an address that was understood")
}

async fn connect(
    origin: &Origin,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Box<dyn Stream>, Trouble> {
    let tcp = tcp(origin).await?;
    let Some(tls) = tls else {
        return Ok(Box::new(tcp));
    };
    let name = ServerName::try_from(origin.name()).map_err(|_| Trouble::ServerName)?;
    let connecting = TlsConnector::from(tls).connect(name.to_owned(), tcp);
    Ok(Box::new(connecting.await.map_err(Trouble::Tls)?))
}

/// Every address of the host, IPv6 and IPv4 at the same time.
async fn tcp(origin: &Origin) -> Result<TcpStream, Trouble> {
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
        .map_err(|error| Trouble::Connect(error.into()))
}

async fn whole(response: Response<Incoming>) -> Result<Reply, Trouble> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, LARGEST_BODY).collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => Trouble::Broken(*error),
        Err(other) => {
            debug_assert!(other.is::<LengthLimitError>());
            Trouble::TooLarge(LARGEST_BODY)
        }
    })?;
    Ok(Reply {
        status: head.status,
        headers: head.headers,
        body: body.to_bytes(),
    })
}
