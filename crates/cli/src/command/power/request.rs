//! The power operations that a person can request, and their texts.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerOperation {
    /// `spec.online` true.
    On,
    /// `spec.online` false.
    Off,
    Cycle {
        mode: PowerOffMode,
        /// Also on a host that is not provisioned.
        force: bool,
    },
    /// Holds the host off until the key is removed.
    Hold {
        key: String,
        mode: PowerOffMode,
        /// Also on a host that is not provisioned.
        force: bool,
    },
    Release {
        key: String,
    },
}

/// Whether the operating system is asked to shut down first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerOffMode {
    Soft,
    Hard,
    /// Soft, but an annotation that the host already carries is kept with its mode.
    Unspecified,
}

pub struct RequestReason<'a> {
    pub requester: &'a str,
    /// May be empty.
    pub reason: &'a str,
}

impl PowerOperation {
    /// The operation on the host, for an error text.
    pub fn verb_phrase(&self) -> &'static str {
        match self {
            PowerOperation::On => "switch on",
            PowerOperation::Off => "switch off",
            PowerOperation::Cycle { .. } => "reboot",
            PowerOperation::Hold { .. } => "hold off",
            PowerOperation::Release { .. } => "release",
        }
    }

    /// The result; the text follows the host's name.
    pub fn done_text(&self) -> String {
        match self {
            PowerOperation::On => "was requested to be on".into(),
            PowerOperation::Off => "was requested to be off".into(),
            PowerOperation::Cycle { .. } => "was requested to reboot".into(),
            PowerOperation::Hold { key, .. } => {
                format!("was requested to be off until key {key} is released")
            }
            PowerOperation::Release { key } => format!("is no longer kept off by key {key}"),
        }
    }

    /// The result for an Event; the text follows the requester's name.
    pub fn event_text(&self) -> String {
        match self {
            PowerOperation::On => "requested power on".into(),
            PowerOperation::Off => "requested power off".into(),
            PowerOperation::Cycle { .. } => "requested a reboot".into(),
            PowerOperation::Hold { key, .. } => format!("keeps the host off with key {key}"),
            PowerOperation::Release { key } => format!("released key {key}"),
        }
    }

    pub fn cuts_power(&self) -> bool {
        match self {
            PowerOperation::Off | PowerOperation::Cycle { .. } | PowerOperation::Hold { .. } => {
                true
            }
            PowerOperation::On | PowerOperation::Release { .. } => false,
        }
    }
}
