//! What `status --watch` watches: everything, as the dashboard does, or only one part.

use dogwatch_core::explain::FleetSnapshot;
use dogwatch_core::report::FleetEstimate;
use dogwatch_k8s::Error;

use super::StatusScope;
use super::overview::StatusDocument;
use super::watched_status::WatchedStatus;
use crate::cluster::{ConnectedCluster, current_time};
use crate::fleet_feed::FeedSources;

pub enum StatusSource {
    All(Box<FeedSources>),
    Part(Box<WatchedStatus>),
}

impl StatusSource {
    /// Sends no request yet.
    pub fn new(connected: &ConnectedCluster, scope: StatusScope) -> Self {
        if scope.part.is_none() {
            return Self::All(Box::new(FeedSources::new(&connected.fleet)));
        }
        Self::Part(Box::new(WatchedStatus::new(connected, scope)))
    }

    /// Returns at a change, or with what could not be watched and the error. In a status of all parts
    /// only Nodes and Leases are an error; the document says what else cannot be read.
    pub async fn wait_for_change(&mut self) -> Result<(), (&'static str, Error)> {
        match self {
            Self::All(sources) => match sources.wait_for_change().await {
                Err((what, error)) if what == FeedSources::FLEET => {
                    Err(("watch Nodes and Leases", error))
                }
                Ok(()) | Err(_) => Ok(()),
            },
            Self::Part(watched) => watched.wait_for_change().await,
        }
    }

    /// Whether some watch is being retried, so that its success would be no event.
    pub fn has_errors(&self) -> bool {
        match self {
            Self::All(sources) => sources.has_errors(),
            Self::Part(watched) => watched.has_errors(),
        }
    }

    /// The Nodes, Leases and policies as they are known.
    pub fn current_fleet(&self) -> Option<FleetSnapshot> {
        match self {
            Self::All(sources) => sources.current_fleet(),
            Self::Part(watched) => watched.current_fleet(),
        }
    }

    /// `None` until every watch has its first list, or has failed.
    pub async fn current_document(
        &mut self,
        connected: &ConnectedCluster,
        estimate: Option<FleetEstimate>,
    ) -> Option<StatusDocument> {
        match self {
            Self::All(sources) => {
                if !sources.has_first_lists() {
                    return None;
                }
                let seen = sources.take_snapshot();
                let view = seen.build_status_view(estimate, current_time());
                Some(StatusDocument::of_view(view))
            }
            Self::Part(watched) => {
                let status = watched.current_status(connected).await?;
                Some(StatusDocument::of_part(status).with_unreadable(watched.list_unreadable()))
            }
        }
    }
}
