//! One copy of the short strings that most pages share: skills, relations,
//! keys, authors.
//!
//! Bounded: past [`MOST`] entries or [`LONGEST`] bytes a string simply gets an
//! allocation of its own, so hostile input cannot fill the table.

use std::sync::{Arc, LazyLock};

use hashbrown::HashSet;
use parking_lot::Mutex;

const MOST: usize = 16_384;
const LONGEST: usize = 64;

static TABLE: LazyLock<Mutex<HashSet<Arc<str>>>> = LazyLock::new(Mutex::default);

pub(crate) fn intern(text: &str) -> Arc<str> {
    if text.len() > LONGEST {
        return Arc::from(text);
    }
    let mut table = TABLE.lock();
    if let Some(known) = table.get(text) {
        return Arc::clone(known);
    }
    let fresh: Arc<str> = Arc::from(text);
    if table.len() < MOST {
        table.insert(Arc::clone(&fresh));
    }
    fresh
}
