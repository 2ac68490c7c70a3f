//! The published state: what every reader works on.
//!
//! A view is immutable and consistent: page directory, text index, live
//! versions and tables all contain the journal exactly up to `seq`.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use escurel_access::Caller;
use escurel_index::{Bitmap, Directory, LinkCounts, PageNo};
use escurel_search::Snapshot;
use escurel_search::vectors::Version;
use parking_lot::Mutex;

use crate::lane::LaneState;
use crate::live::LiveSeqs;
use crate::tables::Tables;

pub(crate) struct View {
    pub dir: Directory,
    pub text: Snapshot,
    pub live: LiveSeqs,
    pub seq: u64,
    pub tables: Tables,
    /// Pages that belong to a scenario; usually none.
    pub scenario_pages: usize,
    /// For an earlier state: the vectors of what has changed since.
    pub past: Option<Past>,
    by_path: OnceLock<Vec<PageNo>>,
    link_counts: OnceLock<LinkCounts>,
    masks: Mutex<HashMap<MaskKey, Arc<Bitmap>>>,
}

/// What a mask was computed from; masks die with their view.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum MaskKey {
    Skill(String),
    SkillPages,
    All,
    Scenario(Option<String>),
    Visible(Box<Caller>, u64),
}

/// What only an earlier state has.
pub(crate) struct Past {
    pub vectors: Vec<Version>,
    /// Its texts that have no vectors.
    pub without: usize,
}

impl View {
    pub fn new(state: &LaneState, text: Snapshot) -> View {
        View {
            dir: state.dir.clone(),
            text,
            live: state.live.clone(),
            seq: state.seq,
            tables: state.tables.clone(),
            scenario_pages: state.scenario_pages,
            past: None,
            by_path: OnceLock::new(),
            link_counts: OnceLock::new(),
            masks: Mutex::default(),
        }
    }

    /// This is an earlier state.
    pub fn of_then(mut self, past: Past) -> View {
        self.past = Some(past);
        self
    }

    /// All pages in the order of their paths; sorted at most once a view.
    pub fn by_path(&self) -> &[PageNo] {
        self.by_path.get_or_init(|| {
            let mut pages: Vec<_> = self.dir.iter().map(|e| (e.path.clone(), e.no)).collect();
            pages.sort_unstable();
            pages.into_iter().map(|(_, no)| no).collect()
        })
    }

    /// Counted at most once a view.
    pub fn link_counts(&self) -> LinkCounts {
        *self.link_counts.get_or_init(|| self.dir.link_counts())
    }

    /// The mask for `key`, computed at most once a view.
    pub fn mask(&self, key: MaskKey, compute: impl FnOnce() -> Bitmap) -> Arc<Bitmap> {
        if let Some(mask) = self.masks.lock().get(&key) {
            return mask.clone();
        }
        let mask = Arc::new(compute());
        self.masks.lock().entry(key).or_insert(mask).clone()
    }
}
