//! One text that many change at once, with the history that joins their changes.
//!
//! The text is the container [`TEXT`] of a Loro document; nothing else in it is
//! accepted. Invariant: what is sent is taken wholly or not at all, and only as
//! the [`Gate`] has written it anew; after [`Unfit::Damaged`] the document has to
//! be loaded again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loro::{
    EncodedBlobMode, ExportMode, Frontiers, ID, LoroDoc, LoroEncodeError, LoroError, LoroText,
    VersionVector,
};

use crate::gate::Gate;
use crate::merge::{rewrite, words_and_gaps};

/// Name of the text container; clients use the same.
pub const TEXT: &str = "body";

/// A moment in a document's history, in Loro's encoding of frontiers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point(pub Vec<u8>);

impl Point {
    /// The same moment always has the same bytes.
    fn of(frontiers: &Frontiers) -> Point {
        let mut heads: Vec<ID> = frontiers.iter().collect();
        heads.sort_unstable();
        Point(Frontiers::from(heads).encode())
    }
}

/// Why something that was sent is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error("it is not a Loro update: {0}")]
    Unreadable(String),
    #[error("it builds on changes that are not known here")]
    Incomplete,
    #[error("it changes something else than the text `{TEXT}`")]
    Foreign,
    #[error("it is not a change that an editor can make: {0}")]
    Unsound(String),
    /// What was sent may be partly in the document.
    #[error("the document has to be loaded again: {0}")]
    Damaged(String),
}

impl From<LoroError> for Unfit {
    fn from(error: LoroError) -> Unfit {
        Unfit::Unreadable(error.to_string())
    }
}

impl From<LoroEncodeError> for Unfit {
    fn from(error: LoroEncodeError) -> Unfit {
        Unfit::Unreadable(error.to_string())
    }
}

/// A text written over another one.
pub struct Rewritten {
    /// What others need to follow; empty when the text was the same.
    pub update: Vec<u8>,
    /// Where the document has exactly the new text.
    pub point: Point,
}

pub struct Document {
    doc: LoroDoc,
    gate: Gate,
}

impl From<LoroDoc> for Document {
    fn from(doc: LoroDoc) -> Document {
        Document {
            doc,
            gate: Gate::default(),
        }
    }
}

impl Document {
    /// A new history that begins with `text`, written by `peer`.
    ///
    /// # Errors
    /// What Loro says of a text that it cannot hold.
    pub fn new(peer: u64, text: &str) -> Result<Document, Unfit> {
        let doc = LoroDoc::new();
        doc.set_peer_id(peer)?;
        doc.get_text(TEXT).insert(0, text)?;
        doc.commit();
        Ok(doc.into())
    }

    /// # Errors
    /// `Unreadable` for bytes that [`Document::snapshot`] did not make.
    pub fn load(snapshot: &[u8]) -> Result<Document, Unfit> {
        let loaded = catch_unwind(|| LoroDoc::from_snapshot(snapshot));
        let doc = loaded.map_err(|_| Unfit::Unreadable("its decoding failed".to_owned()))??;
        Ok(doc.into())
    }

    pub fn text(&self) -> String {
        self.body().to_string()
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.body().len_utf8()
    }

    pub fn is_empty(&self) -> bool {
        self.body().is_empty()
    }

    /// The moment that holds all changes.
    pub fn here(&self) -> Point {
        Point::of(&self.doc.oplog_frontiers())
    }

    /// How many operations the history has.
    pub fn ops(&self) -> usize {
        self.doc.len_ops()
    }

    /// The text at an earlier moment.
    ///
    /// # Errors
    /// `Unreadable` for a moment that is not in the history.
    pub fn text_at(&self, point: &Point) -> Result<String, Unfit> {
        Ok(self.at(point)?.get_text(TEXT).to_string())
    }

    /// The whole history.
    ///
    /// # Errors
    /// What Loro says.
    pub fn snapshot(&self) -> Result<Vec<u8>, Unfit> {
        Ok(self.doc.export(ExportMode::Snapshot)?)
    }

    /// What somebody lacks who has what the version vector `have` says.
    ///
    /// # Errors
    /// `Unreadable` for bytes that are no version vector.
    pub fn since(&self, have: &[u8]) -> Result<Vec<u8>, Unfit> {
        let have = VersionVector::decode(have)?;
        Ok(self.doc.export(ExportMode::updates(&have))?)
    }

    /// Version vector of the whole history.
    pub fn version(&self) -> Vec<u8> {
        self.doc.oplog_vv().encode()
    }

    /// Takes changes up. Answers those that were new, as updates to be kept and passed on in this order.
    ///
    /// # Errors
    /// Nothing was taken; after `Damaged` the document has to be loaded again.
    pub fn import(&self, update: &[u8]) -> Result<Vec<Vec<u8>>, Unfit> {
        self.check(update)?;
        let proven = self.gate.prove(&self.doc, update)?;
        let before = self.doc.oplog_vv();
        let taken = self.guarded(|doc| {
            let taken = proven
                .iter()
                .try_for_each(|piece| doc.import(piece).map(drop));
            taken.map_err(|error| match doc.oplog_vv() == before {
                // Places that the text does not have.
                true => Unfit::Unsound(error.to_string()),
                false => Unfit::Damaged(error.to_string()),
            })
        });
        if taken.is_err() {
            self.gate.forget();
        }
        taken.map(|()| proven)
    }

    /// Takes up what was taken before and kept since, all at once: one by one, each change costs
    /// the more the longer the history is.
    ///
    /// # Errors
    /// The document is of no use then.
    pub fn replay(&self, kept: &[Vec<u8>]) -> Result<(), Unfit> {
        self.guarded(|doc| {
            let pending = doc.import_batch(kept)?.pending;
            match pending.is_none_or(|pending| pending.is_empty()) {
                true => Ok(()),
                false => Err(Unfit::Incomplete),
            }
        })
    }

    /// What is written here from now on is written by `peer`.
    ///
    /// # Errors
    /// What Loro says.
    pub fn write_as(&self, peer: u64) -> Result<(), Unfit> {
        Ok(self.doc.set_peer_id(peer)?)
    }

    /// Makes the text say `text`, with as few changes as can be found in bounded time.
    ///
    /// # Errors
    /// What Loro says.
    pub fn set_text(&self, text: &str) -> Result<(), Unfit> {
        rewrite(&self.body(), text, words_and_gaps)?;
        self.doc.commit();
        Ok(())
    }

    /// Writes `text` over what was there at `point`, beside all that came since.
    ///
    /// `peer` must not have written in this document before.
    ///
    /// # Errors
    /// `Unreadable` for a moment that is not in the history.
    pub fn rewrite_at(&self, point: &Point, text: &str, peer: u64) -> Result<Rewritten, Unfit> {
        let branch = self.at(point)?;
        branch.set_peer_id(peer)?;
        let before = branch.oplog_vv();
        rewrite(&branch.get_text(TEXT), text, words_and_gaps)?;
        branch.commit();
        let point = Point::of(&branch.oplog_frontiers());
        if branch.oplog_vv() == before {
            return Ok(Rewritten {
                update: Vec::new(),
                point,
            });
        }
        let update = branch.export(ExportMode::updates(&before))?;
        self.guarded(|doc| Ok(doc.import(&update)?))?;
        Ok(Rewritten { update, point })
    }

    fn body(&self) -> LoroText {
        self.doc.get_text(TEXT)
    }

    fn at(&self, point: &Point) -> Result<LoroDoc, Unfit> {
        let frontiers = Frontiers::decode(&point.0)?;
        Ok(self.doc.fork_at(&frontiers)?)
    }

    /// Looks at an update without taking it.
    fn check(&self, update: &[u8]) -> Result<(), Unfit> {
        let meta = catch_unwind(|| LoroDoc::decode_import_blob_meta(update, true));
        let meta = meta.map_err(|_| Unfit::Unreadable("its header is damaged".to_owned()))??;
        if !matches!(
            meta.mode,
            EncodedBlobMode::Updates | EncodedBlobMode::Snapshot
        ) {
            return Err(Unfit::Unreadable(format!("{} is not accepted", meta.mode)));
        }
        let known = self.doc.oplog_vv();
        let reaches = |(peer, from): (&u64, &i32)| known.get(peer).copied().unwrap_or(0) >= *from;
        match meta.partial_start_vv.iter().all(reaches) {
            true => Ok(()),
            false => Err(Unfit::Incomplete),
        }
    }

    /// What Loro answers; where it gives up, the document is lost.
    fn guarded<T>(&self, work: impl FnOnce(&LoroDoc) -> Result<T, Unfit>) -> Result<T, Unfit> {
        catch_unwind(AssertUnwindSafe(|| work(&self.doc))).unwrap_or_else(|_| {
            abandon(&self.doc);
            Err(Unfit::Damaged("an update broke off".to_owned()))
        })
    }
}

/// Keeps a document for ever whose locks are poisoned: dropping it would give up again.
pub(crate) fn abandon(doc: &LoroDoc) {
    std::mem::forget(doc.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(text: &str) -> (Document, Document) {
        let one = Document::new(1, text).unwrap();
        let other = Document::load(&one.snapshot().unwrap()).unwrap();
        (one, other)
    }

    fn type_at(doc: &Document, peer: u64, at: usize, text: &str) -> Vec<u8> {
        let before = doc.doc.oplog_vv();
        doc.doc.set_peer_id(peer).unwrap();
        doc.body().insert(at, text).unwrap();
        doc.doc.commit();
        doc.doc.export(ExportMode::updates(&before)).unwrap()
    }

    #[test]
    fn changes_of_both_are_in_both() {
        let (one, other) = pair("hello 🌊 world");
        let (a, b) = (type_at(&one, 11, 0, "A "), type_at(&other, 12, 7, "é"));
        assert!(!one.import(&b).unwrap().is_empty() && !other.import(&a).unwrap().is_empty());
        assert_eq!(one.text(), "A hello 🌊é world");
        assert_eq!(one.text(), other.text());
        assert!(
            one.import(&b).unwrap().is_empty(),
            "the same again is nothing new"
        );
        let lacking = one.since(&other.version()).unwrap();
        assert!(other.import(&lacking).unwrap().is_empty());
    }

    #[test]
    fn what_was_kept_makes_the_same_document() {
        let (one, other) = pair("hello 🌊 world");
        let begun = one.snapshot().unwrap();
        let mut kept = Vec::new();
        for turn in 0..20 {
            let typed = type_at(&one, 11, turn, "a");
            let heard = type_at(&other, 12, 2 * turn, "🛶");
            other.import(&typed).unwrap();
            kept.push(typed);
            kept.extend(one.import(&heard).unwrap());
        }
        let again = Document::load(&begun).unwrap();
        again.replay(&kept).unwrap();
        assert_eq!(again.text(), one.text());
        assert_eq!(again.here(), one.here());
        let lacking = Document::load(&begun).unwrap();
        assert!(matches!(lacking.replay(&kept[2..]), Err(Unfit::Incomplete)));
    }

    #[test]
    fn a_text_written_over_an_earlier_one_keeps_what_came_since() {
        let (one, other) = pair("one\ntwo\nthree\n");
        let base = one.here();
        type_at(&one, 11, 0, "typed ");
        let outside = one.rewrite_at(&base, "one\ntwo\nTHREE\n", 99).unwrap();
        assert_eq!(one.text(), "typed one\ntwo\nTHREE\n");
        assert_eq!(one.text_at(&outside.point).unwrap(), "one\ntwo\nTHREE\n");
        assert_eq!(other.import(&outside.update).unwrap().len(), 1);
        assert_eq!(other.text(), "one\ntwo\nTHREE\n");
        let same = one
            .rewrite_at(&outside.point, "one\ntwo\nTHREE\n", 100)
            .unwrap();
        assert!(same.update.is_empty());
    }

    #[test]
    fn a_new_line_stays_whole_beside_what_is_typed_where_it_comes_in() {
        let (one, _) = pair("head\n<out 7>\nrest\n");
        let base = one.here();
        type_at(&one, 11, 6, "typed 🛶 ");
        let text = "head\n<out 21>\n<out 7>\nrest\n";
        let outside = one.rewrite_at(&base, text, 99).unwrap();
        assert_eq!(one.text_at(&outside.point).unwrap(), text);
        assert_eq!(one.text(), "head\n<out 21>\n<typed 🛶 out 7>\nrest\n");
    }

    #[test]
    fn a_long_change_is_taken_and_passed_on_in_pieces() {
        let (one, other) = pair("begin\nend\n");
        let third = Document::load(&one.snapshot().unwrap()).unwrap();
        let text = "🛶 words\n".repeat(20_000);
        let pasted = type_at(&other, 12, 6, &text);
        let pieces = one.import(&pasted).unwrap();
        assert!(pieces.len() > 5, "{}", pieces.len());
        assert_eq!(one.text(), format!("begin\n{text}end\n"));
        assert_eq!((one.here(), one.version()), (other.here(), other.version()));
        for piece in &pieces {
            assert_eq!(third.import(piece).unwrap().len(), 1);
        }
        assert_eq!(third.text(), other.text());
        assert!(one.import(&pasted).unwrap().is_empty());
        let kept = Document::load(&third.snapshot().unwrap()).unwrap();
        assert_eq!(kept.text(), other.text());
    }

    /// A xorshift: the same numbers for the same seed.
    fn dice(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed * 2 + 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % below
        }
    }

    /// Updates with a right checksum behind which something is wrong: as Loro guards what it exports,
    /// XXH32 of all behind byte 20 at byte 16.
    fn forged(valid: &[u8], roll: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
        let mut bytes = valid.to_vec();
        if roll(4) == 0 {
            bytes.truncate(22 + roll(valid.len() - 22));
        }
        for _ in 0..1 + roll(3) {
            let at = 20 + roll(bytes.len() - 20);
            bytes[at] = match roll(3) {
                0 => roll(256) as u8,
                _ => bytes[at] ^ (1 << roll(8)),
            };
        }
        let sum = xxhash_rust::xxh32::xxh32(&bytes[20..], u32::from_le_bytes(*b"LORO"));
        bytes[16..20].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Two replicas that have both typed, and an update of the one that the other lacks.
    fn typists(roll: &mut impl FnMut(usize) -> usize) -> (Document, Vec<u8>) {
        let (one, other) = pair("a 🛶 line\nand 漢字\n");
        for doc in [&one, &other] {
            doc.doc
                .set_peer_id(20 + roll(1000) as u64 * 2 + u64::from(std::ptr::eq(doc, &one)))
                .unwrap();
        }
        let type_some = |doc: &Document, roll: &mut dyn FnMut(usize) -> usize| {
            for _ in 0..1 + roll(4) {
                let (length, body) = (doc.body().len_unicode(), doc.body());
                if roll(3) == 0 && length > 4 {
                    let at = roll(length - 3);
                    body.delete(at, 1 + roll(3)).unwrap();
                } else {
                    body.insert(roll(length + 1), ["x", "🌊🌊", "words\n"][roll(3)])
                        .unwrap();
                }
                doc.doc.commit();
            }
        };
        type_some(&other, roll);
        if roll(2) == 0 {
            one.import(&other.since(&one.version()).unwrap()).unwrap();
            type_some(&other, roll);
        }
        if roll(2) == 0 {
            type_some(&one, roll);
        }
        let update = other.since(&one.version()).unwrap();
        (one, update)
    }

    #[test]
    fn a_forged_update_that_is_taken_breaks_nothing_that_comes_later() {
        let seeds = std::env::var("ESCUREL_FORGED")
            .ok()
            .and_then(|n| n.parse().ok());
        let mut outcomes = [0; 2];
        for seed in 0..seeds.unwrap_or(2_000) {
            let mut roll = dice(seed);
            let (doc, update) = typists(&mut roll);
            let update = forged(&update, &mut roll);
            let before = (doc.text(), doc.version());
            match doc.import(&update) {
                Ok(_) => outcomes[0] += 1,
                Err(Unfit::Damaged(why)) => panic!("seed {seed}: {why}"),
                Err(_) => {
                    assert_eq!((doc.text(), doc.version()), before, "seed {seed}");
                    outcomes[1] += 1;
                }
            }
            let copy = Document::load(&doc.snapshot().unwrap()).unwrap();
            assert_eq!(copy.text(), doc.text(), "seed {seed}");
            let typed = type_at(&copy, 7, copy.body().len_unicode() / 2, "later");
            assert_eq!(doc.import(&typed).unwrap().len(), 1, "seed {seed}");
            assert_eq!(copy.text(), doc.text(), "seed {seed}");
            assert_eq!(doc.text_at(&doc.here()).unwrap(), doc.text(), "seed {seed}");
        }
        assert!(outcomes.iter().all(|n| *n > 0), "{outcomes:?}");
    }

    #[test]
    fn what_is_no_update_of_the_text_is_refused() {
        let (one, other) = pair("text");
        let first = type_at(&other, 12, 0, "a");
        let second = type_at(&other, 12, 0, "b");
        assert!(matches!(one.import(&second), Err(Unfit::Incomplete)));
        assert_eq!(one.text(), "text");
        for bytes in [
            &b""[..],
            b"loro",
            &first[..first.len() - 1],
            &[0xff; 64][..],
        ] {
            assert!(
                matches!(one.import(bytes), Err(Unfit::Unreadable(_))),
                "{bytes:?}"
            );
        }
        let stranger = Document::load(&one.snapshot().unwrap()).unwrap();
        let before = stranger.doc.oplog_vv();
        stranger
            .doc
            .get_map("other")
            .insert("key", "value")
            .unwrap();
        stranger.doc.commit();
        let foreign = stranger.doc.export(ExportMode::updates(&before)).unwrap();
        assert!(matches!(one.import(&foreign), Err(Unfit::Foreign)));
    }
}
