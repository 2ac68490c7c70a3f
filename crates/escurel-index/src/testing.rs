//! Small corpora for tests.

use std::sync::Arc;

use escurel_md::{Layout, parse};
use escurel_store::{ObjectId, Uid};

use crate::{BlockRow, Directory, EntryDraft, Facts, PageNo, Upserted, VersionChange};

/// A directory that is written to page by page, and the versions that went in.
pub(crate) struct Corpus {
    pub dir: Directory,
    pub layout: Layout,
    pub seq: u64,
    pub changes: Vec<VersionChange>,
    pub relink: Vec<PageNo>,
}

impl Corpus {
    pub fn new(layout: Layout) -> Corpus {
        Corpus {
            dir: Directory::new(),
            layout,
            seq: 0,
            changes: Vec::new(),
            relink: Vec::new(),
        }
    }

    pub fn vault(pages: &[(&str, &str)]) -> Corpus {
        Corpus::of(Layout::Vault, pages)
    }

    pub fn tenant(pages: &[(&str, &str)]) -> Corpus {
        Corpus::of(Layout::Tenant, pages)
    }

    fn of(layout: Layout, pages: &[(&str, &str)]) -> Corpus {
        let mut corpus = Corpus::new(layout);
        pages
            .iter()
            .for_each(|(path, text)| drop(corpus.put(path, text)));
        corpus
    }

    /// A path keeps its uid.
    pub fn put(&mut self, path: &str, text: &str) -> Upserted {
        let uid = Uid(u128::from(rapidhash::v3::rapidhash_v3(path.as_bytes())));
        self.put_as(uid, path, text)
    }

    pub fn put_as(&mut self, uid: Uid, path: &str, text: &str) -> Upserted {
        self.seq += 1;
        let page = parse(path, text.as_bytes(), self.layout);
        let facts = Arc::new(Facts::of(&page));
        let version = self.dir.by_uid(uid).map_or(1, |e| e.version + 1);
        let from = 1_000_000 * self.seq.cast_signed();
        let done = self.dir.upsert(EntryDraft {
            uid,
            path: path.into(),
            version,
            seq: self.seq,
            from,
            written_at: from,
            author: "ann".into(),
            stat: None,
            object: ObjectId([7; 32]),
            digest: self.seq,
            bytes: text.len() as u32,
            missing: false,
            facts: Arc::clone(&facts),
        });
        if let Some(old) = done.before.as_ref().filter(|_| done.relink) {
            self.relink
                .extend(self.dir.referrers(&old.facts, &old.path));
        }
        if done.relink {
            self.relink.extend(self.dir.referrers(&facts, path));
        }
        let block = |b: &escurel_md::Block| BlockRow {
            anchor: b.anchor.clone(),
            kind: b.kind,
            line: b.line,
        };
        self.changes.push(VersionChange {
            no: done.no,
            uid,
            version,
            seq: self.seq,
            path: path.into(),
            from,
            at: from,
            actor: "ann".into(),
            origin: "write".into(),
            object: format!("{:064x}", self.seq),
            bytes: text.len() as u64,
            content: Some(facts),
            blocks: page.blocks.iter().map(block).collect(),
        });
        done
    }

    pub fn delete(&mut self, path: &str) {
        let Some(old) = self.dir.by_path(path).cloned() else {
            return;
        };
        self.seq += 1;
        self.dir.remove(old.uid);
        self.relink.extend(self.dir.referrers(&old.facts, path));
        let from = 1_000_000 * self.seq.cast_signed();
        self.changes.push(VersionChange {
            no: old.no,
            uid: old.uid,
            version: old.version + 1,
            seq: self.seq,
            path: path.into(),
            from,
            at: from,
            actor: "ann".into(),
            origin: "write".into(),
            object: String::new(),
            bytes: 0,
            content: None,
            blocks: Vec::new(),
        });
    }

    pub fn no(&self, path: &str) -> PageNo {
        self.dir
            .by_path(path)
            .unwrap_or_else(|| panic!("no page {path}"))
            .no
    }

    pub fn path(&self, no: PageNo) -> String {
        self.dir
            .get(no)
            .map_or_else(|| format!("{no:?}"), |e| e.path.to_string())
    }
}
