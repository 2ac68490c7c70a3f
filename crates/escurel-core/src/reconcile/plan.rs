//! Which page is which: decides what became of files that were looked at.
//!
//! Pure. A page keeps its uid through a rename when the file itself is the
//! same (device and inode), or says it is the same (skill and id), or when
//! exactly one page vanished and exactly one appeared with its text.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use escurel_index::{Directory, Entry};
use escurel_store::{Stat, Uid};

use crate::facts::Parsed;

/// A file as it was found.
pub(crate) struct Looked {
    pub path: String,
    pub stat: Stat,
    pub digest: u64,
    /// `None` when the text is the one that the directory has at this path.
    pub changed: Option<Changed>,
}

pub(crate) struct Changed {
    pub bytes: Arc<[u8]>,
    pub parsed: Parsed,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Nothing but the file's stat is new (or it was missing and is back).
    Same(Uid),
    /// New text at the same path.
    Edit(Uid),
    /// The same page at a new path; its text may be new, too.
    Move(Uid),
    /// A page that was deleted a moment ago is back.
    Revive(Uid),
    Adopt,
}

/// One step per looked-at file, in the same order.
///
/// `gone` are live pages whose file is not there; `buried` were deleted a moment ago.
pub(crate) fn plan(
    dir: &Directory,
    looked: &[Looked],
    gone: &[Arc<Entry>],
    buried: &[Arc<Entry>],
) -> Vec<Step> {
    let mut lost = Lost::new(gone, buried);
    let swapped = swapped(dir, looked);
    let kept: Vec<Option<Step>> = looked
        .iter()
        .map(|file| at_its_path(dir, file, &swapped))
        .collect();
    let appeared: Vec<&Looked> = looked
        .iter()
        .zip(&kept)
        .filter(|(_, step)| step.is_none())
        .map(|(f, _)| f)
        .collect();
    let digests = count(appeared.iter().map(|f| f.digest));
    let mut steps = Vec::with_capacity(looked.len());
    for (file, step) in looked.iter().zip(kept) {
        steps.push(step.unwrap_or_else(|| lost.claim(file, digests[&file.digest] == 1)));
    }
    steps
}

fn at_its_path(dir: &Directory, file: &Looked, swapped: &HashMap<&str, Uid>) -> Option<Step> {
    if let Some(uid) = swapped.get(file.path.as_str()) {
        return Some(Step::Move(*uid));
    }
    let entry = dir.by_path(&file.path)?;
    Some(if file.changed.is_none() {
        Step::Same(entry.uid)
    } else {
        Step::Edit(entry.uid)
    })
}

/// Files that changed places among themselves: each holds, unchanged, the text and inode of
/// another, and the file of that one is among them.
fn swapped<'a>(dir: &Directory, looked: &'a [Looked]) -> HashMap<&'a str, Uid> {
    let edited = || looked.iter().filter(|f| f.changed.is_some());
    let known: Vec<(&Looked, &Arc<Entry>)> = edited()
        .filter_map(|f| Some((f, dir.by_path(&f.path)?)))
        .collect();
    if known.len() < 2 {
        return HashMap::new();
    }
    let by_inode: HashMap<_, _> = known
        .iter()
        .filter_map(|(_, e)| Some((inode(&e.stat?), *e)))
        .collect();
    let mut swapped: HashMap<&str, &Entry> = known
        .iter()
        .filter_map(|(file, own)| {
            let other = by_inode.get(&inode(&file.stat))?;
            (other.uid != own.uid && other.digest == file.digest)
                .then_some((file.path.as_str(), &***other))
        })
        .collect();
    loop {
        let all = swapped.len();
        let paths: HashSet<&str> = swapped.keys().copied().collect();
        swapped.retain(|_, other| paths.contains(&*other.path));
        if swapped.len() == all {
            break;
        }
    }
    swapped
        .into_iter()
        .map(|(path, entry)| (path, entry.uid))
        .collect()
}

fn inode(stat: &Stat) -> (u64, u64) {
    (stat.dev, stat.ino)
}

fn count(digests: impl Iterator<Item = u64>) -> HashMap<u64, usize> {
    let mut counts = HashMap::new();
    digests.for_each(|digest| *counts.entry(digest).or_insert(0) += 1);
    counts
}

/// Pages without a file that an appeared file may turn out to be.
struct Lost {
    pages: Vec<Option<(Arc<Entry>, bool)>>,
    inodes: HashMap<(u64, u64), usize>,
    identities: HashMap<(String, String), Vec<usize>>,
    digests: HashMap<u64, Vec<usize>>,
}

impl Lost {
    fn new(gone: &[Arc<Entry>], buried: &[Arc<Entry>]) -> Lost {
        let gone = gone.iter().map(|e| (e.clone(), false));
        let buried = buried.iter().map(|e| (e.clone(), true));
        let pages: Vec<_> = gone.chain(buried).collect();
        let mut lost = Lost {
            pages: Vec::new(),
            inodes: HashMap::new(),
            identities: HashMap::new(),
            digests: HashMap::new(),
        };
        for (n, (entry, _)) in pages.iter().enumerate() {
            if let Some(stat) = &entry.stat {
                lost.inodes.insert(inode(stat), n);
            }
            lost.identities
                .entry(identity(&entry.facts.skill, &entry.facts.id))
                .or_default()
                .push(n);
            lost.digests.entry(entry.digest).or_default().push(n);
        }
        lost.pages = pages.into_iter().map(Some).collect();
        lost
    }

    /// `unique`: no other appeared file has the same text.
    fn claim(&mut self, file: &Looked, unique: bool) -> Step {
        let found = self
            .same_path(file)
            .or_else(|| self.same_file(file))
            .or_else(|| self.same_name(file));
        let found = found.or_else(|| self.same_text(file, unique));
        match found.and_then(|n| self.pages.get_mut(n)?.take()) {
            Some((entry, true)) => Step::Revive(entry.uid),
            Some((entry, false)) => Step::Move(entry.uid),
            None => Step::Adopt,
        }
    }

    fn page(&self, n: usize) -> Option<&Arc<Entry>> {
        self.pages.get(n)?.as_ref().map(|(entry, _)| entry)
    }

    fn same_path(&self, file: &Looked) -> Option<usize> {
        (0..self.pages.len()).find(|n| self.page(*n).is_some_and(|e| *e.path == *file.path))
    }

    /// An inode number is used again soon after a deletion, so the text or the size and time must agree, too.
    fn same_file(&self, file: &Looked) -> Option<usize> {
        let n = *self.inodes.get(&inode(&file.stat))?;
        let entry = self.page(n)?;
        let stat = entry.stat?;
        let untouched = stat.size == file.stat.size && stat.mtime_ns == file.stat.mtime_ns;
        (untouched || entry.digest == file.digest).then_some(n)
    }

    /// Only an id that the page itself states says that it is the same page.
    fn same_name(&self, file: &Looked) -> Option<usize> {
        let page = &file.changed.as_ref()?.parsed.page;
        page.frontmatter.get("id")?;
        self.only(self.identities.get(&identity(&page.skill, &page.id))?)
    }

    fn same_text(&self, file: &Looked, unique: bool) -> Option<usize> {
        if !unique || file.stat.size == 0 {
            return None;
        }
        self.only(self.digests.get(&file.digest)?)
    }

    fn only(&self, candidates: &[usize]) -> Option<usize> {
        let mut left = candidates
            .iter()
            .copied()
            .filter(|n| self.page(*n).is_some());
        let first = left.next()?;
        left.next().is_none().then_some(first)
    }
}

fn identity(skill: &str, id: &str) -> (String, String) {
    (skill.to_owned(), id.to_owned())
}
