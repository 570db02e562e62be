//! Why a host's power is as it is, and what the power controller waits for.

use crate::reason::reasons;

reasons! {
    /// The reason of a decision about a host's power, of a BMC's fault, or of a power-off.
    pub enum PowerReason {
        /// The power is as `spec.online` and the keys want it.
        AsWanted(Progress),
        /// A reboot annotation has a value that is neither empty, soft nor hard; it is kept and means soft.
        InvalidAnnotationValue(Warning) = "write `{\"mode\":\"hard\"}`",
        /// A reboot annotation without force stands on a host that is not provisioned: not obeyed.
        NotProvisioned(Waiting) = "wait, or add `\"force\": true`",
        /// The host is in a state in which a provisioner switches its power: Dogwatch leaves it alone.
        ProvisionerAtWork(Waiting) = "wait; if the baremetal-operator never comes back and its work is over, set a reboot annotation with `\"force\": true`",
        HeldOff(Progress) = "the writer of each key removes it",
        NotHeld(Progress),
        /// A reboot was requested: `pendingRebootSince` is written.
        RebootRequested(Progress),
        /// The operating system is asked to shut down.
        SoftPowerOff(Progress),
        /// The operating system did not shut down in time; the power is cut.
        SoftPowerOffTimedOut(Warning),
        /// A soft power-off failed twice; the power is cut.
        SoftPowerOffFailed(Warning),
        /// The BMC does not support a soft power-off; the power is cut.
        SoftPowerOffUnsupported(Warning),
        /// `spec.online` is false.
        NotOnline(Progress),
        /// A hard power-off is requested while a soft one is under way.
        HardPowerOffRequested(Progress),
        /// A power-off is no longer wanted, and had not taken effect.
        Withdrawn(Progress),
        PoweringOff(Progress),
        /// A power-off was sent and the host does not read off; it is sent again.
        PowerOffRetried(Warning) = "if this lasts, look at the BMC",
        /// A power-off was answered and the host reads off; a second reading will make it a proof.
        ConfirmingOff(Progress),
        OffConfirmed(Progress),
        PoweringOn(Progress),
        /// A power-on had no effect; it is sent again.
        PowerOnRetried(Warning) = "if this lasts, look at the BMC",
        /// After a power-on the host reads on.
        PoweredOn(Progress),
        /// A host that must be off was found on.
        FoundOn(Warning) = "find out who switched it on",
        /// A host that must be on was found off.
        FoundOff(Warning) = "find out who switched it off",
        /// The BMC says off, but the host's Node shows signs of life: one of them is wrong.
        PowerContradicted(Alarm) =
            "correct the host's BMC address or its link to the Node, or reset the BMC",
        /// A level was given up for the next one.
        GaveUp(Warning),
        PoweredOff(Progress),
        /// Off was confirmed, and the host was off before Dogwatch's power-off.
        AlreadyOff(Progress),
        /// The level in use could not switch the host off; the next one is used.
        NextLevel(Warning) = "repair the BMC",
        /// The BMC may still run a command of unknown end.
        CommandOfUnknownEnd(Waiting),
        /// A command of an earlier leader stands on the host; the BMC is read before anything else.
        TakingOver(Progress),
        BackingOff(Waiting),
        PowerUnknown(Alarm) = "look at condition PowerControlReady",
        /// It is not known yet whether a baremetal-operator lives: nothing is done.
        OwnerNotYetKnown(Progress),
        OwnedByBaremetalOperator(Waiting) =
            "leave this host to the baremetal-operator; or pause the host for it, or name the \
             namespace in --host-namespaces",
        /// The host is detached (metal3): nothing is done.
        Detached(Waiting) = "remove annotation baremetalhost.metal3.io/detached",
        /// `spec.disablePowerOff` is set: the host cannot be held off, and a reboot cannot be proved.
        PowerOffDisabled(Alarm) =
            "unset spec.disablePowerOff, or fence the host by other means",
        NoBMC(Alarm) = "write spec.bmc.address and spec.bmc.credentialsName",
        InvalidBMCAddress(Alarm) =
            "correct the address; docs/hosts.md lists what can be written",
        /// A senior host names the same BMC and keeps it.
        SharedBMC(Alarm) = "correct the address of one of the hosts",
        /// The BMC of a senior host reports the same system UUID.
        SameSystemUUID(Alarm) = "correct the address, or the UUID",
        /// Another machine answers at the BMC's address than before: no power-off is sent to it.
        OtherMachineAnswers(Alarm) = "correct the BMC's address",
        /// A level says off, but the BMC then says that the machine runs: a wrong outlet.
        LevelContradictedByBMC(Alarm) = "correct the outlet in spec.power.levels",
        /// An outlet that Dogwatch switched off is no longer in the host's spec, so nothing switches it on.
        OutletLeftOff(Alarm) = "put the outlet back into spec.power.levels, or switch it on yourself",
        /// A person confirmed that the host is off.
        OffConfirmedByPerson(Progress),
        /// A person's confirmation cannot be read, or lacks a field.
        InvalidConfirmation(Alarm) = "write it with `dogwatch confirm-off`",
        /// A person's confirmation names no key that has stood on the host since.
        ConfirmationWithoutKey(Warning) = "confirm again, if the host is still off",
        /// A person confirmed that the host is off, but a reading says that it runs.
        ConfirmationContradicted(Alarm) = "make sure that it is the right machine",
        SecretNotFound(Alarm) =
            "create the Secret that credentialsName names, in the host's namespace",
        /// The Secret lacks username or password.
        SecretIncomplete(Alarm) = "give the host's Secret a username and a password",
        /// Dogwatch may not read the Secret.
        SecretForbidden(Alarm) =
            "kubectl apply -n NAMESPACE -f deploy/hosts/rbac.yaml",
        Checked(Progress),
        NotCheckedYet(Progress),
        /// The times in the status leave no room for a later one.
        InvalidStatusTimes(Alarm) = "correct the times in status",
        /// The host left the provisioned states; its reboot annotations are removed.
        Deprovisioned(Progress),
        /// The CRD in this cluster drops status fields that Dogwatch writes.
        CRDDropsStatus(Alarm) = "apply what `dogwatch crds --hosts` prints, if metal3 does not need its own CRD",
        /// Name, route or port of the BMC.
        Unreachable(Alarm) =
            "check the address, the network and whether the BMC has power",
        /// The BMC answers and refuses.
        RefusedByBMC(Alarm) =
            "look at the BMC's own log; reset the BMC if the error stays",
        WrongCredentials(Alarm) = "correct username and password in the host's Secret",
        /// The certificate or the protocol version.
        TLSFailed(Alarm) =
            "put the BMC's CA into the Secret as ca.crt, or set disableCertificateVerification",
        /// The BMC answers and does not know this system.
        NoSuchSystem(Alarm) = "correct the system's path in spec.bmc.address",
        /// The BMC knows the system and cannot run this command.
        UnsupportedByBMC(Alarm) = "use another driver, or add a level (a PDU) to the host",
        /// No answer within Dogwatch's deadline.
        BMCTimedOut(Alarm) =
            "reset the BMC if the error stays; a second level (a PDU) covers a BMC that hangs",
        /// An impossible answer of the BMC.
        BMCContradictsItself(Alarm) =
            "update or reset the BMC; Dogwatch does not rely on its answers until then",
    }
}
