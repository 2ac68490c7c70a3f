//! One text that many change at once, with the history that joins their changes.
//!
//! The text is the container [`TEXT`] of a Loro document; nothing else in it is
//! accepted. Invariant: a change is either wholly in the document or the
//! document says [`Unfit::Damaged`] and has to be loaded again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loro::{
    ContainerID, EncodedBlobMode, ExportMode, Frontiers, ID, LoroDoc, LoroEncodeError, LoroError,
    LoroText, VersionRange, VersionVector,
};

use crate::merge::rewrite;

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
        Ok(Document { doc })
    }

    /// # Errors
    /// `Unreadable` for bytes that [`Document::snapshot`] did not make.
    pub fn load(snapshot: &[u8]) -> Result<Document, Unfit> {
        let loaded = catch_unwind(|| LoroDoc::from_snapshot(snapshot));
        let doc = loaded.map_err(|_| Unfit::Unreadable("its decoding failed".to_owned()))??;
        Ok(Document { doc })
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

    /// Takes changes up; says whether any was new.
    ///
    /// # Errors
    /// Nothing was taken, except after `Damaged` and `Foreign`: then the document has to be loaded again.
    pub fn import(&self, update: &[u8]) -> Result<bool, Unfit> {
        self.check(update)?;
        let taken = catch_unwind(AssertUnwindSafe(|| self.doc.import(update)));
        let status = taken
            .map_err(|_| Unfit::Damaged("an update broke off".to_owned()))?
            .map_err(|error| Unfit::Damaged(error.to_string()))?;
        if status.pending.is_some_and(|pending| !pending.is_empty()) {
            return Err(Unfit::Damaged("an update waits for others".to_owned()));
        }
        if !self.only_text(&status.success) {
            return Err(Unfit::Foreign);
        }
        Ok(!status.success.is_empty())
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
        rewrite(&self.body(), text)?;
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
        rewrite(&branch.get_text(TEXT), text)?;
        branch.commit();
        let point = Point::of(&branch.oplog_frontiers());
        if branch.oplog_vv() == before {
            return Ok(Rewritten {
                update: Vec::new(),
                point,
            });
        }
        let update = branch.export(ExportMode::updates(&before))?;
        self.doc.import(&update)?;
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

    fn only_text(&self, taken: &VersionRange) -> bool {
        let text = ContainerID::new_root(TEXT, loro::ContainerType::Text);
        taken.iter().all(|(peer, (from, to))| {
            let first = ID::new(*peer, *from);
            let length = usize::try_from(to - from).unwrap_or(0);
            let changed = self.doc.get_changed_containers_in(first, length);
            changed.iter().all(|container| *container == text)
        })
    }
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
        assert!(one.import(&b).unwrap() && other.import(&a).unwrap());
        assert_eq!(one.text(), "A hello 🌊é world");
        assert_eq!(one.text(), other.text());
        assert!(!one.import(&b).unwrap(), "the same again is nothing new");
        let lacking = one.since(&other.version()).unwrap();
        assert!(!other.import(&lacking).unwrap());
    }

    #[test]
    fn a_text_written_over_an_earlier_one_keeps_what_came_since() {
        let (one, other) = pair("one\ntwo\nthree\n");
        let base = one.here();
        type_at(&one, 11, 0, "typed ");
        let outside = one.rewrite_at(&base, "one\ntwo\nTHREE\n", 99).unwrap();
        assert_eq!(one.text(), "typed one\ntwo\nTHREE\n");
        assert_eq!(one.text_at(&outside.point).unwrap(), "one\ntwo\nTHREE\n");
        assert!(other.import(&outside.update).unwrap());
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
