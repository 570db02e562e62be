//! Reasons: one CamelCase word each, the same in conditions, Events, metrics, history and docs.
//! The fault classes of BMCs are reasons as well: [`super::FaultClass::reason`].

/// The power is as `spec.online` and the keys want it.
pub const AS_WANTED: &str = "AsWanted";
/// A reboot annotation has a value that is neither empty, soft nor hard; it is kept and means soft.
pub const INVALID_ANNOTATION: &str = "InvalidAnnotationValue";
/// A reboot annotation without force stands on a host that is not provisioned: not obeyed.
pub const NOT_PROVISIONED: &str = "NotProvisioned";
pub const HELD_OFF: &str = "HeldOff";
pub const NOT_HELD: &str = "NotHeld";
/// A reboot was requested: `pendingRebootSince` is written.
pub const REBOOT_REQUESTED: &str = "RebootRequested";
/// The operating system is asked to shut down.
pub const SOFT_POWER_OFF: &str = "SoftPowerOff";
/// The operating system did not shut down in time; the power is cut.
pub const SOFT_TIMED_OUT: &str = "SoftPowerOffTimedOut";
/// A soft power-off failed twice; the power is cut.
pub const SOFT_FAILED: &str = "SoftPowerOffFailed";
/// The BMC does not support a soft power-off; the power is cut.
pub const SOFT_UNSUPPORTED: &str = "SoftPowerOffUnsupported";
/// `spec.online` is false.
pub const NOT_ONLINE: &str = "NotOnline";
/// A hard power-off is requested while a soft one is under way.
pub const HARD_REQUESTED: &str = "HardPowerOffRequested";
/// A power-off is no longer wanted, and had not taken effect.
pub const WITHDRAWN: &str = "Withdrawn";
pub const POWERING_OFF: &str = "PoweringOff";
/// A power-off was sent and the host does not read off; it is sent again.
pub const POWER_OFF_RETRIED: &str = "PowerOffRetried";
/// A power-off was answered and the host reads off; a second reading will make it a proof.
pub const CONFIRMING: &str = "ConfirmingOff";
pub const OFF_CONFIRMED: &str = "OffConfirmed";
pub const POWERING_ON: &str = "PoweringOn";
/// A power-on had no effect; it is sent again.
pub const POWER_ON_RETRIED: &str = "PowerOnRetried";
/// After a power-on the host reads on.
pub const POWERED_ON: &str = "PoweredOn";
/// A host that must be off was found on.
pub const FOUND_ON: &str = "FoundOn";
/// A host that must be on was found off.
pub const FOUND_OFF: &str = "FoundOff";
/// The BMC says off, but the host's Node shows signs of life: one of them is wrong.
pub const POWER_CONTRADICTED: &str = "PowerContradicted";
/// A level was given up for the next one.
pub const GAVE_UP: &str = "GaveUp";
pub const POWERED_OFF: &str = "PoweredOff";
/// Off was confirmed, and the host was off before Dogwatch's power-off.
pub const ALREADY_OFF: &str = "AlreadyOff";
/// The level in use could not switch the host off; the next one is used.
pub const NEXT_LEVEL: &str = "NextLevel";
/// The BMC may still run a command of unknown end.
pub const SETTLING: &str = "CommandOfUnknownEnd";
/// A command of an earlier leader stands on the host; the BMC is read before anything else.
pub const TAKING_OVER: &str = "TakingOver";
pub const BACKING_OFF: &str = "BackingOff";
pub const POWER_UNKNOWN: &str = "PowerUnknown";
/// It is not known yet whether a baremetal-operator lives: nothing is done.
pub const OWNER_UNKNOWN: &str = "OwnerNotYetKnown";
pub const OTHER_CONTROLLER: &str = "OwnedByBaremetalOperator";
/// The host is detached (metal3): nothing is done.
pub const DETACHED: &str = "Detached";
/// `spec.disablePowerOff` is set: the host cannot be held off, and a reboot cannot be proved.
pub const POWER_OFF_DISABLED: &str = "PowerOffDisabled";
pub const NO_BMC: &str = "NoBMC";
pub const INVALID_ADDRESS: &str = "InvalidBMCAddress";
/// A senior host names the same BMC and keeps it.
pub const SHARED_BMC: &str = "SharedBMC";
/// The BMC of a senior host reports the same system UUID.
pub const SAME_SYSTEM: &str = "SameSystemUUID";
/// A level says off, but the BMC then says that the machine runs: a wrong outlet.
pub const LEVEL_CONTRADICTED: &str = "LevelContradictedByBMC";
/// A person confirmed that the host is off.
pub const CONFIRMED_BY_PERSON: &str = "OffConfirmedByPerson";
/// A person's confirmation cannot be read, or lacks a field.
pub const INVALID_CONFIRMATION: &str = "InvalidConfirmation";
/// A person's confirmation names no key that has stood on the host since.
pub const CONFIRMATION_WITHOUT_KEY: &str = "ConfirmationWithoutKey";
/// A person confirmed that the host is off, but a reading says that it runs.
pub const CONFIRMATION_CONTRADICTED: &str = "ConfirmationContradicted";
pub const NO_SECRET: &str = "SecretNotFound";
/// The Secret lacks username or password.
pub const BAD_SECRET: &str = "SecretIncomplete";
/// Dogwatch may not read the Secret.
pub const SECRET_FORBIDDEN: &str = "SecretForbidden";
pub const CHECKED: &str = "Checked";
pub const NOT_CHECKED: &str = "NotCheckedYet";
/// The times in the status leave no room for a later one.
pub const INVALID_TIMES: &str = "InvalidStatusTimes";
/// The host left the provisioned states; its reboot annotations are removed.
pub const DEPROVISIONED: &str = "Deprovisioned";
/// The CRD in this cluster drops status fields that Dogwatch writes.
pub const CRD_TOO_OLD: &str = "CRDDropsStatus";
