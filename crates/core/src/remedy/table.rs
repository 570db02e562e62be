//! The design's truth table, to the letter, and the rows that close its holes for requests.
//!
//! Source: specification §4.1, §4.2; metal3's remediation design.

use crate::power::PowerNow;

/// What the table asks. Of an unknown power it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// The Node exists. For a request that taints: its workloads are not released yet.
    pub node: bool,
    /// Somebody wants it remediated.
    pub needs: bool,
    /// Whether the host is powered on.
    pub power: PowerNow,
    /// Our key is on the host.
    pub key: bool,
}

/// What the table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Move {
    /// Nothing, until something changes.
    Nothing,
    /// The reboot key is added: the host goes off, and stays off.
    AddKey,
    /// The Node is deleted, or its workloads are released: on a proof.
    Release,
    /// The need is taken away: it is served.
    RemoveNeed,
    /// The reboot key is removed: the host comes back.
    RemoveKey,
}

/// One row: Node exists, needs remediation, powered on, reboot key.
type Row = ([u8; 4], Move);

/// §4.1. Every other combination, `0000` included: nothing.
const ANNOTATION: [Row; 6] = [
    ([0, 1, 1, 0], Move::AddKey),
    ([1, 1, 1, 0], Move::AddKey),
    ([1, 1, 0, 1], Move::Release),
    ([0, 1, 0, 1], Move::RemoveNeed),
    ([0, 0, 0, 1], Move::RemoveKey),
    ([1, 0, 0, 1], Move::RemoveKey),
];

/// §4.2: the same, and the rows that close its holes. A host that is off already is held, so that it is
/// proved off; a request that is withdrawn before the host went off lets go of it.
const REQUEST: [Row; 4] = [
    ([0, 1, 0, 0], Move::AddKey),
    ([1, 1, 0, 0], Move::AddKey),
    ([0, 0, 1, 1], Move::RemoveKey),
    ([1, 0, 1, 1], Move::RemoveKey),
];

/// What is done for a Machine or a Node that is marked.
pub fn by_annotation(bits: Bits) -> Move {
    look_up(&ANNOTATION, bits).unwrap_or(Move::Nothing)
}

/// What is done for a request.
pub fn by_request(bits: Bits) -> Move {
    look_up(&ANNOTATION, bits)
        .or_else(|| look_up(&REQUEST, bits))
        .unwrap_or(Move::Nothing)
}

fn look_up(rows: &[Row], bits: Bits) -> Option<Move> {
    let power = match bits.power {
        PowerNow::On => 1,
        PowerNow::Off => 0,
        PowerNow::Unknown => return None,
    };
    let asked = [bits.node.into(), bits.needs.into(), power, bits.key.into()];
    let row = rows.iter().find(|(row, _)| *row == asked);
    row.map(|(_, says)| *says)
}
