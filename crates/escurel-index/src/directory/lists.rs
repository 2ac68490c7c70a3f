//! Ordered lists of instances per skill, and of skill pages.
//!
//! Invariant: a live instance stands in `by_path` of its skill, and in exactly
//! one of `dated` and `undated`.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use escurel_md::{PageType, SkillSchema};

use super::sorted::Sorted;
use super::types::{Cursor, Order, Scope};
use super::{CowVec, Directory};
use crate::{Entry, PageNo};

#[derive(Clone, Default)]
pub(super) struct SkillList {
    by_path: Sorted,
    /// By start of `at`, then path.
    dated: Sorted,
    undated: Sorted,
}

impl SkillList {
    pub fn of(entries: &Entries, mut pages: Vec<PageNo>) -> SkillList {
        let place = |no: &PageNo| entry(entries, *no).map(|e| (&*e.path, e.no));
        pages.sort_by(|a, b| place(a).cmp(&place(b)));
        let by_path = Sorted::of(&pages);
        let at = |no: &PageNo| entry(entries, *no).and_then(|e| at_of(e));
        let (mut dated, undated): (Vec<_>, Vec<_>) =
            pages.into_iter().partition(|no| at(no).is_some());
        // Stable: pages of one moment stay in the order of their paths.
        dated.sort_by_key(at);
        SkillList {
            by_path,
            dated: Sorted::of(&dated),
            undated: Sorted::of(&undated),
        }
    }
}

type Entries = CowVec<Option<Arc<Entry>>>;

fn path_order<'a>(
    entries: &'a Entries,
    key: (&'a str, PageNo),
) -> impl Fn(PageNo) -> Ordering + 'a {
    move |p| entry(entries, p).map_or(Ordering::Less, |e| (&*e.path, e.no).cmp(&key))
}

fn at_order<'a>(
    entries: &'a Entries,
    key: (i64, &'a str, PageNo),
) -> impl Fn(PageNo) -> Ordering + 'a {
    move |p| {
        entry(entries, p).map_or(Ordering::Less, |e| {
            (at_of(e).unwrap_or(i64::MIN), &*e.path, e.no).cmp(&key)
        })
    }
}

fn skill_order<'a>(
    entries: &'a Entries,
    key: (&'a str, &'a str, PageNo),
) -> impl Fn(PageNo) -> Ordering + 'a {
    move |p| entry(entries, p).map_or(Ordering::Less, |e| (&*e.facts.id, &*e.path, e.no).cmp(&key))
}

fn entry(entries: &Entries, no: PageNo) -> Option<&Arc<Entry>> {
    entries.get(no.index()).and_then(Option::as_ref)
}

fn at_of(e: &Entry) -> Option<i64> {
    e.facts.at.map(|w| w.first)
}

/// Whether both stand at the same place of the same lists.
pub(super) fn same_place(a: &Entry, b: &Entry) -> bool {
    let key = |e: &Entry| {
        (
            e.facts.page_type,
            e.facts.skill.clone(),
            e.facts.id.clone(),
            e.path.clone(),
            at_of(e),
        )
    };
    key(a) == key(b)
}

impl Directory {
    /// Takes the page out of its lists; the entries still hold it.
    pub(super) fn unlist(&mut self, e: &Entry) {
        let path = path_order(&self.entries, (&e.path, e.no));
        if e.facts.page_type == PageType::Skill {
            let by_id = skill_order(&self.entries, (&e.facts.id, &e.path, e.no));
            return Arc::make_mut(&mut self.skill_list).remove(e.no, by_id);
        }
        let list = Arc::make_mut(self.lists.slot(&e.facts.skill));
        list.by_path.remove(e.no, &path);
        match at_of(e) {
            Some(at) => list
                .dated
                .remove(e.no, at_order(&self.entries, (at, &e.path, e.no))),
            None => list.undated.remove(e.no, &path),
        }
        if list.by_path.len() == 0 {
            self.lists.remove(&e.facts.skill);
        }
    }

    /// Puts the page into its lists; the entries hold it already.
    pub(super) fn list(&mut self, e: &Entry) {
        let path = path_order(&self.entries, (&e.path, e.no));
        if e.facts.page_type == PageType::Skill {
            let by_id = skill_order(&self.entries, (&e.facts.id, &e.path, e.no));
            return Arc::make_mut(&mut self.skill_list).insert(e.no, by_id);
        }
        let list = Arc::make_mut(self.lists.slot(&e.facts.skill));
        list.by_path.insert(e.no, &path);
        match at_of(e) {
            Some(at) => list
                .dated
                .insert(e.no, at_order(&self.entries, (at, &e.path, e.no))),
            None => list.undated.insert(e.no, &path),
        }
    }

    pub(super) fn skill_pages(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.skill_list.iter().filter_map(|no| self.get(no))
    }

    /// Skill pages of every layer and scenario, by id.
    pub fn skills(&self) -> Vec<&Arc<Entry>> {
        self.skill_pages().collect()
    }

    /// What the skill's page, as `scope` sees it, declares. With several pages
    /// of one id and none above the others, the first by path.
    pub fn schema(&self, skill: &str, scope: &Scope<'_>) -> Option<Arc<SkillSchema>> {
        let pages = self
            .skill_list
            .from(|p| self.get(p).is_some_and(|e| &*e.facts.id < skill));
        let pages = pages
            .filter_map(|no| self.get(no))
            .take_while(|e| &*e.facts.id == skill);
        pages
            .filter(|e| self.effective(e, scope))
            .find_map(|e| e.facts.schema.clone())
    }

    /// Instances of a skill in order, from after the cursor until `take`
    /// breaks. Pages of every layer and scenario come; see [`Directory::seen`].
    pub fn instances(
        &self,
        skill: &str,
        order: Order,
        after: Option<&Cursor>,
        take: &mut dyn FnMut(&Arc<Entry>) -> ControlFlow<()>,
    ) {
        let Some(list) = self.lists.get(skill) else {
            return;
        };
        let mut feed = |pages: &mut dyn Iterator<Item = PageNo>| {
            pages.filter_map(|no| self.get(no)).try_for_each(&mut *take)
        };
        let path = after.map(|c| c.path.as_str());
        let rest_after = |e: &Entry, path: Option<&str>| path.is_some_and(|p| &*e.path <= p);
        let by_path = |list: &Sorted,
                       path: Option<&str>,
                       feed: &mut dyn FnMut(
            &mut dyn Iterator<Item = PageNo>,
        ) -> ControlFlow<()>| {
            feed(&mut list.from(|p| self.get(p).is_some_and(|e| rest_after(e, path))))
        };
        if order == Order::Path {
            let _ = by_path(&list.by_path, path, &mut feed);
            return;
        }
        // A cursor without `at` stands in the undated tail.
        let in_tail = after.is_some_and(|c| c.at.is_none());
        if !in_tail && self.dated(list, order, after, &mut feed).is_break() {
            return;
        }
        let _ = by_path(&list.undated, path.filter(|_| in_tail), &mut feed);
    }

    fn dated(
        &self,
        list: &SkillList,
        order: Order,
        after: Option<&Cursor>,
        feed: &mut dyn FnMut(&mut dyn Iterator<Item = PageNo>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let key = after.and_then(|c| Some((c.at?, c.path.as_str())));
        let place = |p: PageNo| {
            self.get(p)
                .map(|e| (at_of(e).unwrap_or(i64::MIN), &*e.path))
        };
        match order {
            Order::AtDesc => feed(
                &mut list
                    .dated
                    .back_from(|p| key.is_none_or(|k| place(p).is_some_and(|own| own < k))),
            ),
            _ => feed(
                &mut list
                    .dated
                    .from(|p| key.is_some_and(|k| place(p).is_some_and(|own| own <= k))),
            ),
        }
    }

    /// Names of the scenarios that visible pages belong to, in order.
    pub fn scenarios(&self, visible: &dyn Fn(&Entry) -> bool) -> BTreeSet<Arc<str>> {
        let Some(column) = self.columns().get("scenario") else {
            return BTreeSet::new();
        };
        let pages = column.pages().filter_map(|no| self.get(no));
        let seen = pages.filter(|entry| visible(entry));
        seen.filter_map(|entry| entry.facts.scenario.clone())
            .collect()
    }

    /// Instances of a skill, of every layer and scenario.
    pub fn count(&self, skill: &str) -> usize {
        self.lists.get(skill).map_or(0, |l| l.by_path.len())
    }
}
