//! A folder of pages that a test edits, and the knowledge base over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use escurel_access::Caller;
use escurel_core::api::*;
use escurel_core::{Kb, OpenOptions};
use escurel_store::Env;

pub struct Vault {
    pub dir: tempfile::TempDir,
}

impl Vault {
    /// `files`: (path, text).
    pub fn new(files: &[(&str, &str)]) -> Vault {
        let vault = Vault {
            dir: tempfile::tempdir().unwrap(),
        };
        files
            .iter()
            .for_each(|(path, text)| vault.write(path, text));
        vault
    }

    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("notes")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn options(&self) -> OpenOptions {
        OpenOptions {
            cache_home: Some(self.dir.path().join("cache")),
            ..OpenOptions::default()
        }
    }

    pub fn open(&self) -> Arc<Kb> {
        self.open_with(self.options())
    }

    pub fn open_with(&self, options: OpenOptions) -> Arc<Kb> {
        fs::create_dir_all(self.folder()).unwrap();
        let kb = Kb::open(&self.folder(), options).unwrap();
        assert!(
            kb.wait_ready(&mut |_| {}),
            "indexing ended: {:?}",
            kb.phase().warnings
        );
        kb
    }

    pub fn index(&self) -> PathBuf {
        self.folder().join(".escurel/index")
    }

    pub fn journal(&self) -> PathBuf {
        self.folder().join(".escurel/journal")
    }
}

pub fn me() -> Caller {
    Caller::local()
}

/// The best passages.
pub fn search(kb: &Kb, query: &str) -> SearchAnswer {
    let request = SearchRequest {
        queries: vec![query.to_owned()],
        k: 5,
        ..SearchRequest::default()
    };
    kb.search(&me(), &request).unwrap()
}

/// Paths of the hits of a page search, best first.
pub fn found(kb: &Kb, query: &str) -> Vec<String> {
    let request = SearchRequest {
        queries: vec![query.to_owned()],
        k: 20,
        granularity: Granularity::Page,
        ..SearchRequest::default()
    };
    kb.search(&me(), &request)
        .unwrap()
        .hits
        .into_iter()
        .map(|hit| hit.page.page_id)
        .collect()
}

pub fn text_of(kb: &Kb, page_id: &str) -> Option<String> {
    kb.page_text(&me(), page_id).unwrap().map(|(_, text)| text)
}

pub fn page(kb: &Kb, page_id: &str) -> Option<PageRef> {
    kb.page_text(&me(), page_id).unwrap().map(|(page, _)| page)
}

/// Waits until `probe` is true; the message tells what never came.
pub fn eventually(what: &str, probe: impl FnMut() -> bool) {
    within(Duration::from_secs(10), what, probe);
}

pub fn within(limit: Duration, what: &str, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !probe() {
        assert!(Instant::now() < end, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn verify_clean(kb: &Kb) {
    let report = kb.verify(&me()).unwrap();
    assert_eq!(
        report.findings,
        [],
        "{} pages, {} records",
        report.pages,
        report.records
    );
}

/// Every page with its text, version and outgoing links: what a reader can tell of a folder.
pub fn everything(kb: &Kb) -> Vec<String> {
    let pages = kb.list_pages(&me(), None, usize::MAX).unwrap();
    let all = pages.iter().map(|page| {
        let request = NeighboursRequest {
            page_id: page.page_id.clone(),
            limit: Some(usize::MAX),
            ..Default::default()
        };
        let edges = kb.neighbours(&me(), &request).unwrap().edges;
        let edges: Vec<_> = edges
            .iter()
            .map(|e| {
                format!(
                    "{}->{} {:?} {:?}",
                    e.src_page, e.dst_page, e.relation, e.dst_anchor
                )
            })
            .collect();
        format!(
            "{} {} v{} {:?} {edges:?}",
            page.page_id,
            page.uid,
            page.version,
            text_of(kb, &page.page_id)
        )
    });
    all.collect()
}

pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let target = to.join(item.file_name());
        if item.file_type().unwrap().is_dir() {
            copy_tree(&item.path(), &target);
        } else if item.file_type().unwrap().is_file() {
            fs::copy(item.path(), target).unwrap();
        }
    }
}

/// This instant, as callers write it; nothing else happens in it.
pub fn now() -> String {
    let gap = Duration::from_millis(15);
    std::thread::sleep(gap);
    let micros = Env::system().clock.now_micros();
    std::thread::sleep(gap);
    jiff::Timestamp::from_microsecond(micros)
        .unwrap()
        .to_string()
}
