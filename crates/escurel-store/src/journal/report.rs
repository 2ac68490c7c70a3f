//! What a full check of the journal found.

use crate::{ObjectId, hex};

/// One thing that is wrong, and exactly where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Stable: `record_changed`, `chain_broken`, `seq_wrong`, `segment_missing`,
    /// `segment_changed`, `seal_damaged`, `object_missing`, `object_changed`,
    /// `pack_damaged`, `unreadable`.
    pub code: &'static str,
    /// File of the journal, relative to its folder.
    pub file: String,
    pub offset: Option<u64>,
    pub seq: Option<u64>,
    pub object: Option<ObjectId>,
    pub detail: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.code, self.file)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        if let Some(seq) = self.seq {
            write!(f, ", seq {seq}")?;
        }
        if let Some(object) = self.object {
            write!(f, ", object {object}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// The result of walking the chain and every object.
#[derive(Clone, Debug, Default)]
pub struct JournalReport {
    pub records: u64,
    pub objects: u64,
    /// Contents that were erased on purpose.
    pub erased: u64,
    pub head: u64,
    /// `entry_hash` of the last good record.
    pub tip: [u8; 32],
    pub findings: Vec<Finding>,
}

impl JournalReport {
    pub fn clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn tip_hex(&self) -> String {
        hex::encode(&self.tip)
    }
}
