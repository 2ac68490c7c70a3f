//! What a schedule consists of, and how a seed makes one.
//!
//! Steps speak of numbers and not of the state, so that a schedule still means
//! something after others of its steps were left out.

use escurel_md::Layout;
use escurel_store::Loss;

use crate::index::{Fate, PARTS};
use crate::rng::Rng;
use crate::text::{Change, IDS, Kind, TITLES};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Put {
        page: u32,
        base: Base,
        change: Change,
        fault: Fault,
    },
    Outside(Outside),
    Chore {
        chore: Work,
        fault: Fault,
    },
    Confirm {
        fault: Fault,
    },
    /// Microseconds.
    Advance(i64),
    Read,
    /// Everything is looked at, decided and compared with the model.
    Settle,
    Restart {
        index: Fate,
        fault: Fault,
    },
    Crash {
        loss: Loss,
        index: Fate,
        /// The next process dies, too, after so many failpoints of its recovery.
        again: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    None,
    Right,
    Stale,
}

/// What another program does to files.
#[derive(Clone, Debug)]
pub(crate) enum Outside {
    Save {
        page: u32,
        change: Change,
    },
    SaveByRename {
        page: u32,
        change: Change,
    },
    Delete {
        page: u32,
    },
    Rename {
        from: u32,
        to: u32,
    },
    Swap {
        one: u32,
        other: u32,
    },
    /// Copies one file over another.
    Copy {
        from: u32,
        to: u32,
    },
    Revert {
        page: u32,
        which: u32,
    },
    DeleteAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Scan,
    Look(u32),
    Settle,
    Fold,
    Save,
}

/// What happens when so many failpoints were passed during a step.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    None,
    Fails { after: u32 },
    Crash { after: u32, loss: Loss, index: Fate },
    Meanwhile { after: u32, outside: Outside },
}

pub(crate) const PAGES: u32 = 9;

/// Where the pages of a schedule are.
pub(crate) fn path(page: u32, layout: Layout) -> String {
    let root = match layout {
        Layout::Vault => "",
        Layout::Tenant => "markdown/instances/",
    };
    match page % PAGES {
        // The name of another page in another folder.
        6 => format!("{root}sub/s1.md"),
        n @ (4 | 5) => format!("{root}sub/s{n}.md"),
        n @ (7 | 8) => format!("{root}sub/deep/s{n}.md"),
        n => format!("{root}s{n}.md"),
    }
}

pub(crate) fn schedule(seed: u64, steps: u32) -> (Layout, Vec<Step>) {
    let mut rng = Rng::new(seed);
    let layout = match rng.one_in(3) {
        true => Layout::Tenant,
        false => Layout::Vault,
    };
    let steps = (0..steps).map(|n| step(&mut rng, n)).collect();
    (layout, steps)
}

fn step(rng: &mut Rng, n: u32) -> Step {
    match rng.below(100) {
        0..30 => Step::Put {
            page: rng.below(PAGES),
            base: rng.pick(&[Base::None, Base::Right, Base::Right, Base::Stale]),
            change: change(rng, n * 8),
            fault: fault(rng, n * 8 + 4, 14),
        },
        30..56 => Step::Outside(outside(rng, n * 8)),
        56..70 => Step::Chore {
            chore: work(rng),
            fault: fault(rng, n * 8 + 4, 8),
        },
        70..73 => Step::Confirm {
            fault: fault(rng, n * 8 + 4, 8),
        },
        73..78 => Step::Advance(i64::from(rng.below(4_000_000))),
        78..82 => Step::Read,
        82..90 => Step::Settle,
        90..94 => Step::Restart {
            index: fate(rng),
            fault: fault(rng, n * 8 + 4, 12),
        },
        _ => Step::Crash {
            loss: loss(rng),
            index: fate(rng),
            again: rng.one_in(3).then(|| rng.below(12)),
        },
    }
}

/// `word`: the first of four that are this step's own.
fn change(rng: &mut Rng, word: u32) -> Change {
    let kind = match rng.below(40) {
        0..12 => Kind::Append,
        12..18 => Kind::Insert,
        18..24 => Kind::Replace,
        24..28 => Kind::Remove,
        28..33 => Kind::Rewrite,
        33..38 => Kind::Anew,
        38 => Kind::Empty,
        _ => Kind::NotUtf8,
    };
    Change {
        kind,
        at: rng.below(16),
        word,
        link: (!rng.one_in(3)).then(|| name(rng)),
        id: (!rng.one_in(3)).then(|| rng.below(IDS)),
        title: rng.below(TITLES),
        person: rng.one_in(3),
    }
}

fn name(rng: &mut Rng) -> String {
    let page = rng.below(PAGES);
    let id = rng.below(IDS);
    match rng.below(7) {
        0 => format!("id{id}"),
        1 => format!("note::id{id}"),
        2 => format!("person::id{id}"),
        3 => format!("Title {}", rng.below(TITLES)),
        4 => format!("note::s{page}"),
        5 => "sub/s1".to_owned(),
        _ => format!("s{page}"),
    }
}

fn outside(rng: &mut Rng, word: u32) -> Outside {
    let page = rng.below(PAGES);
    match rng.below(40) {
        0..14 => Outside::Save {
            page,
            change: change(rng, word),
        },
        14..21 => Outside::SaveByRename {
            page,
            change: change(rng, word),
        },
        21..26 => Outside::Delete { page },
        26..32 => Outside::Rename {
            from: page,
            to: rng.below(PAGES),
        },
        32..34 => Outside::Swap {
            one: page,
            other: rng.below(PAGES),
        },
        34..36 => Outside::Copy {
            from: page,
            to: rng.below(PAGES),
        },
        36..39 => Outside::Revert {
            page,
            which: rng.below(16),
        },
        _ => Outside::DeleteAll,
    }
}

fn work(rng: &mut Rng) -> Work {
    match rng.below(10) {
        0..3 => Work::Scan,
        3..5 => Work::Look(rng.below(PAGES)),
        5..7 => Work::Settle,
        7..9 => Work::Fold,
        _ => Work::Save,
    }
}

fn fault(rng: &mut Rng, word: u32, points: u32) -> Fault {
    let after = rng.below(points);
    match rng.below(20) {
        0..3 => Fault::Crash {
            after,
            loss: loss(rng),
            index: fate(rng),
        },
        3..5 => Fault::Fails { after },
        5..8 => Fault::Meanwhile {
            after,
            outside: outside(rng, word),
        },
        _ => Fault::None,
    }
}

fn loss(rng: &mut Rng) -> Loss {
    match rng.below(6) {
        0..2 => Loss::Kill,
        2..4 => Loss::Power { torn: 0 },
        4 => Loss::Power {
            torn: rng.below(60) as usize + 1,
        },
        _ => Loss::Power {
            torn: rng.below(2_000) as usize + 1,
        },
    }
}

fn fate(rng: &mut Rng) -> Fate {
    match rng.below(24) {
        0..3 => Fate::Deleted,
        3..7 => Fate::Stale(rng.pick(PARTS)),
        7 => Fate::Truncated(rng.pick(PARTS)),
        8 => Fate::Garbled(rng.pick(PARTS)),
        9 | 10 => Fate::Removed(rng.pick(PARTS)),
        _ => Fate::Kept,
    }
}
