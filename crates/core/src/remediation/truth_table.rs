//! The truth table of metal3's design, unchanged, and the rows that requests need in addition.
//!
//! Source: specification §4.1, §4.2; metal3's remediation design.

use crate::power::CurrentPower;

/// The inputs of the table. It has no rows for an unknown power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TruthTableInputs {
    /// The Node exists. For a request that taints: its workloads are not released yet.
    pub node: bool,
    pub needs_remediation: bool,
    pub power: CurrentPower,
    /// Our key is on the host.
    pub key: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemediationMove {
    Nothing,
    /// Add the reboot key: the host goes off, and stays off.
    AddKey,
    /// Delete the Node or release its workloads, with a proof.
    Release,
    /// Remove the mark, because it is served.
    RemoveNeed,
    /// Remove the reboot key: the host comes back.
    RemoveKey,
}

/// One row: Node exists, needs remediation, powered on, reboot key.
type TruthTableRow = ([u8; 4], RemediationMove);

/// §4.1. Every other combination, `0000` included: nothing.
const ANNOTATION_ROWS: [TruthTableRow; 6] = [
    ([0, 1, 1, 0], RemediationMove::AddKey),
    ([1, 1, 1, 0], RemediationMove::AddKey),
    ([1, 1, 0, 1], RemediationMove::Release),
    ([0, 1, 0, 1], RemediationMove::RemoveNeed),
    ([0, 0, 0, 1], RemediationMove::RemoveKey),
    ([1, 0, 0, 1], RemediationMove::RemoveKey),
];

/// §4.2: the rows that requests need in addition. A host that is off already gets the key, so that
/// it can be proved off; a request that is withdrawn before the host was off removes its key.
const REQUEST_ROWS: [TruthTableRow; 4] = [
    ([0, 1, 0, 0], RemediationMove::AddKey),
    ([1, 1, 0, 0], RemediationMove::AddKey),
    ([0, 0, 1, 1], RemediationMove::RemoveKey),
    ([1, 0, 1, 1], RemediationMove::RemoveKey),
];

/// The move for a marked Machine or Node.
pub fn move_by_annotation(bits: TruthTableInputs) -> RemediationMove {
    look_up(&ANNOTATION_ROWS, bits).unwrap_or(RemediationMove::Nothing)
}

/// The move for a request.
pub fn move_by_request(bits: TruthTableInputs) -> RemediationMove {
    look_up(&ANNOTATION_ROWS, bits)
        .or_else(|| look_up(&REQUEST_ROWS, bits))
        .unwrap_or(RemediationMove::Nothing)
}

fn look_up(rows: &[TruthTableRow], bits: TruthTableInputs) -> Option<RemediationMove> {
    let power = match bits.power {
        CurrentPower::On => 1,
        CurrentPower::Off => 0,
        CurrentPower::Unknown => return None,
    };
    let asked = [
        bits.node.into(),
        bits.needs_remediation.into(),
        power,
        bits.key.into(),
    ];
    let row = rows.iter().find(|(row, _)| *row == asked);
    row.map(|(_, says)| *says)
}
