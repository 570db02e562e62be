//! Requests that must leave before a moment, or not at all.

use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::Request;
use tokio::time::Instant;
use tower::{BoxError, Service};

/// An extension of a request: it does not leave once this moment has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until(pub(crate) Instant);

#[derive(Debug, thiserror::Error)]
#[error("it was too late to send it")]
struct TooLate;

/// Looks at [`Until`] as the last thing before a connection gets the request. Whoever asks looks before, but then
/// the request goes through a queue and a task of the client's own, and this process may be stopped at any step.
#[derive(Debug, Clone)]
pub(crate) struct InTime<S>(pub(crate) S);

impl<S, B> Service<Request<B>> for InTime<S>
where
    S: Service<Request<B>, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<S::Future, Ready<Result<S::Response, BoxError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let until = request.extensions().get::<Until>();
        if until.is_some_and(|Until(until)| Instant::now() >= *until) {
            return Either::Right(ready(Err(TooLate.into())));
        }
        Either::Left(self.0.call(request))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_request_leaves_before_its_moment_and_not_from_then_on() {
        let mut service = InTime(tower::service_fn(|_: Request<()>| async {
            Ok::<_, BoxError>(())
        }));
        let now = Instant::now();
        let hour = Duration::from_hours(1);
        for (until, leaves) in [
            (None, true),
            (Some(now + hour), true),
            (Some(now), false),
            (now.checked_sub(Duration::from_nanos(1)), false),
        ] {
            let mut request = Request::new(());
            if let Some(until) = until {
                request.extensions_mut().insert(Until(until));
            }
            let answer = service.ready().await.unwrap().call(request).await;
            assert_eq!(answer.is_ok(), leaves, "{until:?}");
        }
    }
}
