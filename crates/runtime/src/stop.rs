//! Tells all parts of the process to stop.

use tokio::sync::watch;

/// Fires once, when the process stops: components then finish what they have begun, within
/// a limit.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<bool>);

#[derive(Debug)]
pub struct StopTrigger(watch::Sender<bool>);

impl StopSignal {
    pub fn new() -> (StopTrigger, StopSignal) {
        let (sender, receiver) = watch::channel(false);
        (StopTrigger(sender), StopSignal(receiver))
    }

    pub fn is_stopping(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the signal. A dropped [`StopTrigger`] counts as a signal.
    pub async fn wait_for_stop(&self) {
        let mut told = self.0.clone();
        // Only fails when the trigger is dropped.
        let _ = told.wait_for(|told| *told).await;
    }
}

impl StopTrigger {
    pub fn signal_stop(&self) {
        self.0.send_replace(true);
    }
}
