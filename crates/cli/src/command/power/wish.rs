//! What a person wants of a host's power, and in which words that is told.

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// `spec.online` true.
    On,
    /// `spec.online` false.
    Off,
    /// One reboot.
    Cycle {
        /// Whether the operating system is asked first.
        mode: Mode,
        /// Also where the host is not provisioned.
        force: bool,
    },
    /// Off until the key is removed.
    Hold {
        /// Whose hold.
        key: String,
        /// Whether the operating system is asked first.
        mode: Mode,
        /// Also where the host is not provisioned.
        force: bool,
    },
    /// The key goes.
    Release {
        /// Whose hold.
        key: String,
    },
}

/// Whether the operating system is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    Soft,
    /// The power is cut at once.
    Hard,
    /// Soft; but what stands there already is as good.
    NotSaid,
}

/// Who asks, and why.
pub struct Words<'a> {
    /// Who.
    pub requester: &'a str,
    /// Why; may be empty.
    pub reason: &'a str,
}

impl Wish {
    /// What is done to the host, for an error.
    pub fn verb(&self) -> &'static str {
        match self {
            Wish::On => "want on",
            Wish::Off => "want off",
            Wish::Cycle { .. } => "reboot",
            Wish::Hold { .. } => "hold off",
            Wish::Release { .. } => "release",
        }
    }

    /// What was done, after the host's name.
    pub fn said(&self) -> String {
        match self {
            Wish::On => "is asked to be on".into(),
            Wish::Off => "is asked to be off".into(),
            Wish::Cycle { .. } => "is asked to reboot".into(),
            Wish::Hold { key, .. } => format!("is asked to be off until key {key} is released"),
            Wish::Release { key } => format!("is held off by key {key} no more"),
        }
    }

    /// The same after the one who did it.
    pub fn event(&self) -> String {
        match self {
            Wish::On => "asked for power on".into(),
            Wish::Off => "asked for power off".into(),
            Wish::Cycle { .. } => "asked for a reboot".into(),
            Wish::Hold { key, .. } => format!("holds the host off by key {key}"),
            Wish::Release { key } => format!("released key {key}"),
        }
    }

    /// Whether it takes the power away.
    pub fn cuts_power(&self) -> bool {
        match self {
            Wish::Off | Wish::Cycle { .. } | Wish::Hold { .. } => true,
            Wish::On | Wish::Release { .. } => false,
        }
    }
}
