//! The index as its callers use it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod audience;
mod damage;
mod languages;
mod operators;
mod providers;
mod ranking;
mod spelling;
mod together;

use std::collections::BTreeMap;

use escurel_search::{
    AdmitAll, Answer, Candidates, Doc, DocUnit, Query, Snapshot, TextIndex, UnitBlock,
};

/// A page of plain units.
pub fn page(page: u32, seq: u64, title: &str, units: &[&str]) -> Doc {
    let unit = |text: &&str| DocUnit {
        headings: String::new(),
        text: (*text).to_string(),
        blocks: vec![UnitBlock {
            anchor: "first".into(),
            start: 0,
        }],
    };
    Doc {
        page,
        seq,
        skill: "note".into(),
        title: title.into(),
        units: units.iter().map(unit).collect(),
        ..Doc::default()
    }
}

/// Admits one version of each page.
#[derive(Default, Clone)]
pub struct Live(pub BTreeMap<u32, u64>);

impl Candidates for Live {
    fn admits(&self, page: u32, seq: u64) -> bool {
        self.0.get(&page) == Some(&seq)
    }
}

pub fn ask(snapshot: &Snapshot, text: &str, k: usize, candidates: &dyn Candidates) -> Answer {
    let texts = [text.to_string()];
    let query = Query {
        texts: &texts,
        k,
        by_page: false,
        candidates,
        audience: None,
        only_page: None,
        vectors: None,
        reranker: None,
    };
    snapshot.search(&query).expect("an answer")
}

/// The pages found, best first.
pub fn pages(index: &TextIndex, text: &str) -> Vec<u32> {
    ask(&index.snapshot(), text, 50, &AdmitAll)
        .hits
        .iter()
        .map(|hit| hit.page)
        .collect()
}
