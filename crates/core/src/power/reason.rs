//! Reasons: one CamelCase word each, the same in conditions, Events, metrics, history and docs.
//! The classes of a BMC's faults are reasons as well: [`super::Class::reason`].

/// Power is where spec and keys want it.
pub const AS_WANTED: &str = "AsWanted";
/// A reboot annotation has a value that is neither empty, soft nor hard; it is kept and means soft.
pub const INVALID_ANNOTATION: &str = "InvalidAnnotationValue";
/// A reboot annotation on a host that is not provisioned, without force: not obeyed.
pub const NOT_PROVISIONED: &str = "NotProvisioned";
/// Keys keep the host off.
pub const HELD_OFF: &str = "HeldOff";
/// Nothing keeps it off.
pub const NOT_HELD: &str = "NotHeld";
/// A reboot is asked for: `pendingRebootSince` is written.
pub const REBOOT_REQUESTED: &str = "RebootRequested";
/// The operating system is asked to shut down.
pub const SOFT_POWER_OFF: &str = "SoftPowerOff";
/// It did not within its time; the power is cut.
pub const SOFT_TIMED_OUT: &str = "SoftPowerOffTimedOut";
/// A soft power-off failed twice; the power is cut.
pub const SOFT_FAILED: &str = "SoftPowerOffFailed";
/// The BMC knows no soft power-off; the power is cut.
pub const SOFT_UNSUPPORTED: &str = "SoftPowerOffUnsupported";
/// `spec.online` is false.
pub const NOT_ONLINE: &str = "NotOnline";
/// A hard power-off is asked for while a soft one is under way.
pub const HARD_REQUESTED: &str = "HardPowerOffRequested";
/// What was asked for is no longer wanted, and had not come about.
pub const WITHDRAWN: &str = "Withdrawn";
/// The power is cut.
pub const POWERING_OFF: &str = "PoweringOff";
/// Off was sent and is not seen.
pub const POWER_OFF_RETRIED: &str = "PowerOffRetried";
/// Off was answered and said; two readings make it a proof.
pub const CONFIRMING: &str = "ConfirmingOff";
/// Off is proved.
pub const OFF_CONFIRMED: &str = "OffConfirmed";
/// The host is powered on.
pub const POWERING_ON: &str = "PoweringOn";
/// A power-on did not take; it is sent again.
pub const POWER_ON_RETRIED: &str = "PowerOnRetried";
/// It is seen on.
pub const POWERED_ON: &str = "PoweredOn";
/// A host that must be off was found on.
pub const FOUND_ON: &str = "FoundOn";
/// A host that must be on was found off.
pub const FOUND_OFF: &str = "FoundOff";
/// The BMC says off, and the Node that the host carries gives signs of life: one of them is wrong.
pub const POWER_CONTRADICTED: &str = "PowerContradicted";
/// A level was given up for the next one.
pub const GAVE_UP: &str = "GaveUp";
/// Off was confirmed after a power-off.
pub const POWERED_OFF: &str = "PoweredOff";
/// Off was confirmed, and it was off before our power-off.
pub const ALREADY_OFF: &str = "AlreadyOff";
/// The first level does not do it; the next one is used.
pub const NEXT_LEVEL: &str = "NextLevel";
/// A command of unknown end may still be run.
pub const SETTLING: &str = "CommandOfUnknownEnd";
/// A command of an earlier leader is found; the BMC is read before anything else.
pub const TAKING_OVER: &str = "TakingOver";
/// Waits before the next attempt.
pub const BACKING_OFF: &str = "BackingOff";
/// The power is not known.
pub const POWER_UNKNOWN: &str = "PowerUnknown";
/// It is not known yet whether a baremetal-operator lives: nothing is done.
pub const OWNER_UNKNOWN: &str = "OwnerNotYetKnown";
/// A live baremetal-operator owns the host.
pub const OTHER_CONTROLLER: &str = "OwnedByBaremetalOperator";
/// The host is detached (metal3): nothing is done.
pub const DETACHED: &str = "Detached";
/// `spec.disablePowerOff`: it cannot be held off, and a reboot cannot be proved.
pub const POWER_OFF_DISABLED: &str = "PowerOffDisabled";
/// The host has no BMC.
pub const NO_BMC: &str = "NoBMC";
/// `spec.bmc.address` is none.
pub const INVALID_ADDRESS: &str = "InvalidBMCAddress";
/// Another host named the same BMC first, and keeps it.
pub const SHARED_BMC: &str = "SharedBMC";
/// The BMC of another host told the same system UUID first.
pub const SAME_SYSTEM: &str = "SameSystemUUID";
/// A level says off, and the BMC, asked after it, says that the machine runs: a wrong outlet.
pub const LEVEL_CONTRADICTED: &str = "LevelContradictedByBMC";
/// A person made sure that the host is off.
pub const CONFIRMED_BY_PERSON: &str = "OffConfirmedByPerson";
/// A person's word on the host cannot be read, or lacks something.
pub const INVALID_CONFIRMATION: &str = "InvalidConfirmation";
/// A person's word on the host names no key that stands there since.
pub const CONFIRMATION_OF_NOTHING: &str = "ConfirmationWithoutKey";
/// A person says that the host is off, and a reading says that it runs.
pub const CONFIRMATION_CONTRADICTED: &str = "ConfirmationContradicted";
/// The Secret is not there.
pub const NO_SECRET: &str = "SecretNotFound";
/// The Secret lacks username or password.
pub const BAD_SECRET: &str = "SecretIncomplete";
/// We may not read the Secret.
pub const SECRET_FORBIDDEN: &str = "SecretForbidden";
/// Power control was checked and works.
pub const CHECKED: &str = "Checked";
/// Power control was not checked yet.
pub const NOT_CHECKED: &str = "NotCheckedYet";
/// The times in status leave no room for a later one.
pub const INVALID_TIMES: &str = "InvalidStatusTimes";
/// The host left the provisioned states; its reboot annotations are removed.
pub const DEPROVISIONED: &str = "Deprovisioned";
/// The CRD in this cluster drops what we write.
pub const CRD_TOO_OLD: &str = "CRDDropsStatus";
