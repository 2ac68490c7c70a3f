//! What strangers send, looked at before the document sees it.
//!
//! Loro takes up some updates that no replica makes: lengths that are not those
//! of the text, moments that are not after what they build on. They break what
//! comes later, here or at a client, and where Loro gives up it may take the
//! process along. So updates first go into a copy that holds history alone, has
//! no transaction and may break; what is found sound there is written anew.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use loro::{
    ContainerID, ContainerType, ExportMode, Frontiers, ID, IdSpan, JsonChange, JsonOp,
    JsonOpContent, JsonTextOp, LoroDoc, VersionRange, VersionVector,
};

use crate::document::{TEXT, Unfit, abandon};

/// Loro's cost of taking up one change is the square of its length: longer ones go in pieces.
const PIECE: i32 = 16 << 10;

/// The copy; made when it is first needed, and again after it broke.
#[derive(Default)]
pub(crate) struct Gate {
    copy: RefCell<Option<LoroDoc>>,
}

impl Gate {
    /// What was let through last was not taken.
    pub fn forget(&self) {
        self.copy.take();
    }

    /// The sound changes of an update that `doc` lacks, in updates of our own; none if it has all of them.
    ///
    /// # Errors
    /// `Unreadable`, `Incomplete`, `Foreign` or `Unsound`.
    pub fn prove(&self, doc: &LoroDoc, update: &[u8]) -> Result<Vec<Vec<u8>>, Unfit> {
        let copy = self.copy.take();
        let copy = copy.map_or_else(|| copy_of(doc), Ok)?;
        match catch_unwind(AssertUnwindSafe(|| pass(&copy, doc, update))) {
            Ok(Ok(proven)) => {
                self.copy.replace(Some(copy));
                Ok(proven)
            }
            Ok(Err(unfit)) => Err(unfit),
            Err(_) => {
                abandon(&copy);
                Err(Unfit::Unsound("Loro cannot read it".to_owned()))
            }
        }
    }
}

/// A detached document has history and no transaction.
fn copy_of(doc: &LoroDoc) -> Result<LoroDoc, Unfit> {
    let copy = LoroDoc::from_snapshot(&doc.export(ExportMode::Snapshot)?)?;
    copy.detach();
    Ok(copy)
}

fn pass(copy: &LoroDoc, doc: &LoroDoc, update: &[u8]) -> Result<Vec<Vec<u8>>, Unfit> {
    let have = doc.oplog_vv();
    let had = copy.oplog_vv();
    if had != have {
        copy.import(&doc.export(ExportMode::updates(&had))?)?;
    }
    let taken = copy.import(update)?;
    if taken.pending.is_some_and(|pending| !pending.is_empty()) {
        return Err(Unfit::Incomplete);
    }
    check_spans(copy, &taken.success)?;
    written_anew(copy, &have, &taken.success)
}

fn written_anew(
    copy: &LoroDoc,
    have: &VersionVector,
    taken: &VersionRange,
) -> Result<Vec<Vec<u8>>, Unfit> {
    let length: i64 = taken
        .iter()
        .map(|(_, (from, to))| i64::from(to - from))
        .sum();
    if length == 0 {
        return Ok(Vec::new());
    }
    if length <= i64::from(PIECE) {
        return Ok(vec![copy.export(ExportMode::updates(have))?]);
    }
    let mut pieces = Vec::new();
    for (peer, (from, to)) in taken.iter() {
        for at in (*from..*to).step_by(PIECE as usize) {
            let span = IdSpan::new(*peer, at, to.min(&at.saturating_add(PIECE)).to_owned());
            pieces.push(copy.export(ExportMode::updates_in_range(vec![span]))?);
        }
    }
    Ok(pieces)
}

/// Proves that the changes in these spans, which the document has, are sound changes of the text.
///
/// # Errors
/// `Foreign` for changes of anything but the characters of the text, `Unsound` for unsound ones.
fn check_spans(doc: &LoroDoc, taken: &VersionRange) -> Result<(), Unfit> {
    let text = ContainerID::new_root(TEXT, ContainerType::Text);
    for (peer, (from, to)) in taken.iter() {
        let mut next = ID::new(*peer, *from);
        for change in doc.export_json_in_id_span(IdSpan::new(*peer, *from, *to)) {
            if change.id != next || !follows(doc, &change) {
                return Err(unsound(next));
            }
            for op in &change.ops {
                if op.container != text {
                    return Err(Unfit::Foreign);
                }
                next.counter = end(doc, op, next)?;
            }
        }
        if next.counter != *to {
            return Err(unsound(next));
        }
    }
    Ok(())
}

/// Is it one moment after the latest of those that it builds on, its author's own last one among them?
fn follows(doc: &LoroDoc, change: &JsonChange) -> bool {
    let moment = |id: &ID| {
        let found = doc.get_change(*id)?;
        let into = u32::try_from(id.counter - found.id.counter).ok()?;
        found.lamport.checked_add(into)
    };
    let moments: Option<Vec<u32>> = change.deps.iter().map(moment).collect();
    let next = moments.and_then(|moments| match moments.into_iter().max() {
        Some(latest) => latest.checked_add(1),
        None => Some(0),
    });
    next == Some(change.lamport) && knows_its_author(doc, change)
}

fn knows_its_author(doc: &LoroDoc, change: &JsonChange) -> bool {
    let ID { peer, counter } = change.id;
    let before = ID::new(peer, counter - 1);
    counter == 0
        || change.deps.contains(&before)
        || doc
            .frontiers_to_vv(&Frontiers::from(change.deps.clone()))
            .is_some_and(|known| known.includes_id(before))
}

/// Where the operation that begins at `at` ends.
fn end(doc: &LoroDoc, op: &JsonOp, at: ID) -> Result<i32, Unfit> {
    let length = match &op.content {
        JsonOpContent::Text(JsonTextOp::Insert { text, .. }) => text.chars().count(),
        JsonOpContent::Text(JsonTextOp::Delete { len, start_id, .. }) => {
            let length = len.unsigned_abs() as usize;
            let known = doc.oplog_vv().get(&start_id.peer).copied().unwrap_or(0);
            let deleted = i32::try_from(length)
                .ok()
                .and_then(|n| start_id.counter.checked_add(n));
            if start_id.counter < 0 || deleted.is_none_or(|deleted| deleted > known) {
                return Err(unsound(at));
            }
            length
        }
        _ => return Err(Unfit::Foreign),
    };
    let end = i32::try_from(length)
        .ok()
        .and_then(|length| at.counter.checked_add(length));
    match end {
        Some(end) if op.counter == at.counter && length > 0 => Ok(end),
        _ => Err(unsound(at)),
    }
}

fn unsound(at: ID) -> Unfit {
    Unfit::Unsound(format!("the change {at} is wrong"))
}
