//! Logs the error of a watch once, until another one comes.

use tracing::warn;

/// The last error of one watch.
#[derive(Debug, Default)]
pub(crate) struct WatchErrorLog(Option<String>);

impl WatchErrorLog {
    /// `message` says what could not be read.
    pub(crate) fn log_change(&mut self, error: Option<&String>, message: &'static str) {
        if self.0.as_ref() == error {
            return;
        }
        if let Some(error) = error {
            warn!(error, "{message}");
        }
        self.0 = error.cloned();
    }
}
