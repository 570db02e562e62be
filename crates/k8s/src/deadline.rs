//! Drops requests that were not sent before their deadline.

use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::Request;
use tokio::time::Instant;
use tower::{BoxError, Service};

/// A request extension: the request is not sent at or after this moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendDeadline(pub(crate) Instant);

#[derive(Debug, thiserror::Error)]
#[error("it was too late to send it")]
struct SendDeadlinePassed;

/// Checks [`SendDeadline`] last, right before a connection takes the request. The caller checks
/// earlier, but then the request passes a queue and a task of the client, and this process may be
/// stopped at any point.
#[derive(Debug, Clone)]
pub(crate) struct SendDeadlineService<S>(pub(crate) S);

impl<S, B> Service<Request<B>> for SendDeadlineService<S>
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
        let until = request.extensions().get::<SendDeadline>();
        if until.is_some_and(|SendDeadline(until)| Instant::now() >= *until) {
            return Either::Right(ready(Err(SendDeadlinePassed.into())));
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
        let mut service = SendDeadlineService(tower::service_fn(|_: Request<()>| async {
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
                request.extensions_mut().insert(SendDeadline(until));
            }
            let answer = service.ready().await.unwrap().call(request).await;
            assert_eq!(answer.is_ok(), leaves, "{until:?}");
        }
    }
}
