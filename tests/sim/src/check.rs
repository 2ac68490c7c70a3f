//! What readers are told, compared with the model and with itself.

use std::collections::{BTreeMap, BTreeSet};

use escurel_core::api::{
    ExpandRequest, Finding, Granularity, InstancesRequest, NeighboursRequest, SearchRequest,
};
use escurel_core::{Chore, Code};
use escurel_md::When;
use escurel_store::{Kind, Store};

use crate::links::{self, Page};
use crate::model::{Moment, Seen, shown};
use crate::step::PAGES;
use crate::text::{IDS, TITLES, word};
use crate::world::{Outcome, World, text};

/// Longer than a vanished file is waited for. Microseconds.
const PATIENCE: i64 = 3_000_000;
/// Words looked for at each check.
const WORDS: usize = 12;
/// Moments of the past looked at, at each check.
const MOMENTS: usize = 2;

impl World {
    pub fn page(&self, path: &str, text: &str) -> Page {
        Page::new(
            path.to_owned(),
            String::new(),
            0,
            text.to_owned(),
            false,
            self.layout,
        )
    }

    /// All pages, as readers see them.
    pub fn pages(&self) -> Outcome<Vec<Page>> {
        let me = self.me();
        let listed = self.kb.list_pages(&me, None, usize::MAX).map_err(text)?;
        let mut pages = Vec::new();
        for page in listed
            .into_iter()
            .filter(|page| !page.page_id.starts_with("builtin:"))
        {
            let found = self.kb.page_text(&me, &page.page_id).map_err(text)?;
            let Some((named, text)) = found.filter(|(named, _)| *named == page) else {
                return Err(format!("{} is listed, but cannot be read", page.page_id));
            };
            pages.push(Page::new(
                named.page_id,
                named.uid,
                named.version,
                text,
                named.missing_on_disk,
                self.layout,
            ));
        }
        Ok(pages)
    }

    /// Takes everything up and decides everything, then compares it with the model.
    pub fn settle(&mut self) -> Outcome<Vec<Page>> {
        let before = self.pages()?;
        self.do_chore(Chore::Scan)?;
        self.clock.advance(PATIENCE);
        self.do_chore(Chore::Settle)?;
        let found = self.files()?;
        self.model.accept(found)?;
        self.model.maybe.clear();
        self.remember_held(&before)?;
        let pages = self.check_reads()?;
        self.check_files(&pages)?;
        self.check_journal()?;
        if !self.cast.bare {
            self.check_verify()?;
            self.check_past()?;
        }
        self.remember(&pages);
        Ok(pages)
    }

    fn do_chore(&self, chore: Chore) -> Outcome {
        self.kb
            .do_chore(&chore)
            .map_err(|refusal| format!("{chore:?}: {refusal}"))
    }

    /// Deletions are held only when nothing is left.
    fn remember_held(&mut self, before: &[Page]) -> Outcome {
        let held: BTreeSet<String> = self
            .pages()?
            .iter()
            .filter(|p| p.held)
            .map(|p| p.uid.clone())
            .collect();
        let news = held.difference(&self.model.held).next();
        if let Some(uid) = news.filter(|_| !self.model.files.is_empty()) {
            return Err(format!("the deletion of {uid} is held, but files are left"));
        }
        let nothing_left = self.model.files.is_empty() && !before.is_empty();
        if nothing_left && held.is_empty() {
            return Err("all files vanished, and all pages with them".into());
        }
        self.model.held = held;
        Ok(())
    }

    /// Readers see exactly the files, and pages whose deletion is held.
    fn check_files(&self, pages: &[Page]) -> Outcome {
        for page in pages.iter().filter(|p| !p.held) {
            let file = self.model.files.get(&page.path);
            let same = file.is_some_and(|file| String::from_utf8_lossy(file) == page.text);
            if !same {
                let (path, version, text) = (&page.path, page.version, &page.text);
                return Err(format!(
                    "{path} v{version} is {text:?}, but its file holds {}",
                    shown(file)
                ));
            }
        }
        let found: BTreeSet<&String> = pages.iter().map(|p| &p.path).collect();
        match self.model.files.keys().find(|path| !found.contains(path)) {
            Some(path) => Err(format!("{path} has a file and is no page")),
            None => Ok(()),
        }
    }

    /// All ways to read agree with a model made from the listed pages alone.
    pub fn check_reads(&self) -> Outcome<Vec<Page>> {
        let pages = self.pages()?;
        self.check_names(&pages)?;
        self.check_edges(&pages)?;
        self.check_instances(&pages)?;
        self.check_search(&pages)?;
        Ok(pages)
    }

    fn check_names(&self, pages: &[Page]) -> Outcome {
        let bare = (0..PAGES).map(|n| format!("s{n}"));
        let ids = (0..IDS).flat_map(|n| {
            [
                format!("id{n}"),
                format!("note::id{n}"),
                format!("person::id{n}"),
            ]
        });
        let titles = (0..TITLES).map(|n| format!("Title {n}"));
        for name in bare.chain(ids).chain(titles) {
            let resolved = self
                .kb
                .resolve(&self.me(), &format!("[[{name}]]"), None)
                .map_err(text)?;
            let told: BTreeSet<String> = resolved
                .page
                .iter()
                .chain(&resolved.candidates)
                .map(|p| p.page_id.clone())
                .collect();
            let expected: BTreeSet<String> =
                links::resolve(pages, &name, None).into_iter().collect();
            if told != expected {
                return Err(format!("[[{name}]] leads to {told:?}, not {expected:?}"));
            }
        }
        Ok(())
    }

    fn check_edges(&self, pages: &[Page]) -> Outcome {
        let edges = links::edges(pages);
        for page in pages {
            let told = self.edges_of(&page.path)?;
            let expected: Vec<_> = edges
                .iter()
                .filter(|(src, dst, _)| *src == page.path || *dst == page.path)
                .cloned()
                .collect();
            if told != expected {
                return Err(format!(
                    "neighbours of {} are {told:?}, not {expected:?}",
                    page.path
                ));
            }
        }
        Ok(())
    }

    fn edges_of(&self, path: &str) -> Outcome<Vec<links::Edge>> {
        let request = NeighboursRequest {
            page_id: path.to_owned(),
            limit: Some(usize::MAX),
            ..NeighboursRequest::default()
        };
        let found = self.kb.neighbours(&self.me(), &request).map_err(text)?;
        let mut edges: Vec<_> = found
            .edges
            .into_iter()
            .map(|e| (e.src_page, e.dst_page, e.relation))
            .collect();
        edges.sort();
        edges.dedup();
        Ok(edges)
    }

    fn check_instances(&self, pages: &[Page]) -> Outcome {
        for skill in ["note", "person"] {
            let told: Vec<String> = self
                .instances(skill, None)?
                .into_iter()
                .map(|(_, path, _)| path)
                .collect();
            let expected: Vec<String> = pages
                .iter()
                .filter(|p| p.read.skill == skill)
                .map(|p| p.path.clone())
                .collect();
            if told != expected {
                return Err(format!(
                    "instances of {skill} are {told:?}, not {expected:?}"
                ));
            }
        }
        Ok(())
    }

    /// Uids, paths and versions.
    fn instances(&self, skill: &str, as_of: Option<String>) -> Outcome<Vec<(String, String, u64)>> {
        let request = InstancesRequest {
            skill_id: skill.to_owned(),
            limit: 500,
            as_of,
            ..InstancesRequest::default()
        };
        match self.kb.list_instances(&self.me(), &request) {
            Ok(found) => Ok(found
                .instances
                .into_iter()
                .map(|row| (row.page.uid, row.page.page_id, row.page.version))
                .collect()),
            Err(refusal) if refusal.code == Code::SkillNotFound => Ok(Vec::new()),
            Err(refusal) => Err(refusal.to_string()),
        }
    }

    fn check_search(&self, pages: &[Page]) -> Outcome {
        for word in self.words(pages) {
            let told: BTreeSet<String> = self
                .found(&word)?
                .into_iter()
                .map(|(path, _)| path)
                .collect();
            let expected: BTreeSet<String> = pages
                .iter()
                .filter(|p| p.read.words.contains(&word))
                .map(|p| p.path.clone())
                .collect();
            if told != expected {
                return Err(format!("{word} is found in {told:?}, not {expected:?}"));
            }
        }
        Ok(())
    }

    /// The newest words of all pages and of texts that are no more.
    fn words(&self, pages: &[Page]) -> Vec<String> {
        let live: BTreeSet<String> = pages.iter().flat_map(|p| p.read.words.clone()).collect();
        let past = self.model.past.values().flatten();
        let all: BTreeSet<String> = past
            .flat_map(|t| crate::text::read(&String::from_utf8_lossy(t)).words)
            .collect();
        let gone = all
            .iter()
            .rev()
            .filter(|w| !live.contains(*w))
            .take(WORDS / 2);
        let gone = gone.cloned();
        live.iter().rev().take(WORDS).cloned().chain(gone).collect()
    }

    /// Paths and scores of the pages with a word, best first.
    fn found(&self, word: &str) -> Outcome<Vec<(String, f32)>> {
        let request = SearchRequest {
            queries: vec![word.to_owned()],
            k: 50,
            granularity: Granularity::Page,
            ..SearchRequest::default()
        };
        let answer = self.kb.search(&self.me(), &request).map_err(text)?;
        Ok(answer
            .hits
            .into_iter()
            .map(|hit| (hit.page.page_id, hit.score))
            .collect())
    }

    /// Versions of each page grow by one, and all that was acknowledged is there.
    fn check_journal(&self) -> Outcome {
        let mut newest: BTreeMap<String, u64> = BTreeMap::new();
        let mut texts: BTreeMap<(String, u64), Vec<Vec<u8>>> = BTreeMap::new();
        for record in self.store.records(0) {
            let record = record.map_err(text)?;
            let (Some(uid), Kind::PageVersion) = (record.uid, record.kind) else {
                continue;
            };
            let version = record.version.unwrap_or(0);
            let before = newest.insert(uid.to_string(), version).unwrap_or(0);
            if version != before + 1 {
                let path = record.path.unwrap_or_default();
                return Err(format!("v{version} of {path} follows v{before}"));
            }
            let object = record.content.ok_or("a version without a content")?.object;
            let bytes = self.store.object(&object).map_err(text)?;
            texts
                .entry((record.path.unwrap_or_default(), version))
                .or_default()
                .push(bytes);
        }
        for told in &self.model.acknowledged {
            let kept = texts.get(&(told.path.clone(), told.version));
            if !kept.is_some_and(|kept| kept.contains(&told.text)) {
                let lost = shown(Some(&told.text));
                return Err(format!(
                    "v{} of {} was acknowledged as {lost} and is not in the journal",
                    told.version, told.path
                ));
            }
        }
        Ok(())
    }

    fn check_verify(&self) -> Outcome {
        let report = self.kb.verify(&self.me()).map_err(text)?;
        // Pages whose deletion is held are named, and nothing else.
        let held = self.kb.overview().held_deletions;
        let is_held = |f: &Finding| f.part == "file" && f.problem.contains("is held");
        match report.findings.iter().all(is_held) && report.findings.len() as u64 == held {
            true => Ok(()),
            false => Err(format!("verify, {held} held: {:?}", report.findings)),
        }
    }

    /// The newest moments and some older ones are as they were then.
    fn check_past(&self) -> Outcome {
        let moments = &self.model.moments;
        let older = moments.len() / 2;
        let some = moments.iter().rev().take(MOMENTS).chain(moments.get(older));
        for moment in some {
            self.check_moment(moment)?;
        }
        Ok(())
    }

    fn check_moment(&self, moment: &Moment) -> Outcome {
        let at = When::to_rfc3339(moment.at);
        for seen in &moment.pages {
            let request = ExpandRequest {
                page_id: seen.uid.clone(),
                as_of: Some(at.clone()),
                ..ExpandRequest::default()
            };
            let told = self.kb.expand(&self.me(), &request).map_err(text)?;
            let same = told.as_ref().is_some_and(|told| {
                told.page.version == seen.version
                    && told.page.page_id == seen.path
                    && seen.text.ends_with(&told.body)
            });
            if !same {
                let (path, version) = (&seen.path, seen.version);
                let told = told.map(|t| (t.page.page_id, t.page.version, t.body));
                return Err(format!(
                    "at {at}, {path} was v{version}; now it is said to be {told:?}"
                ));
            }
        }
        self.check_instances_then(moment, &at)
    }

    /// Of the pages that still exist and were known already.
    fn check_instances_then(&self, moment: &Moment, at: &str) -> Outcome {
        let live: BTreeSet<String> = self.pages()?.into_iter().map(|p| p.uid).collect();
        let known: BTreeSet<&String> = moment.pages.iter().map(|s| &s.uid).collect();
        for skill in ["note", "person"] {
            let mut expected: Vec<_> = moment
                .pages
                .iter()
                .filter(|s| s.skill == skill && live.contains(&s.uid))
                .map(|s| (s.path.clone(), s.version))
                .collect();
            expected.sort();
            let told: Vec<_> = self
                .instances(skill, Some(at.to_owned()))?
                .into_iter()
                .filter(|(uid, ..)| known.contains(uid))
                .map(|(_, path, version)| (path, version))
                .collect();
            // A skill without a page today is unknown today.
            if told != expected && !told.is_empty() {
                return Err(format!(
                    "instances of {skill} at {at} are said to be {told:?}, they were {expected:?}"
                ));
            }
        }
        Ok(())
    }

    fn remember(&mut self, pages: &[Page]) {
        let seen = |p: &Page| Seen {
            uid: p.uid.clone(),
            path: p.path.clone(),
            version: p.version,
            text: p.text.clone(),
            skill: p.read.skill.clone(),
        };
        self.model.moments.push(Moment {
            at: self.now(),
            pages: pages.iter().map(seen).collect(),
        });
        self.tick();
    }

    /// Answers that a restart, with whatever is left of the index, must not change.
    pub fn fingerprint(&self) -> Outcome<Vec<String>> {
        let pages = self.pages()?;
        let mut lines = Vec::new();
        for page in &pages {
            let snapshots = match self.cast.bare {
                true => Vec::new(),
                false => self
                    .kb
                    .list_snapshots(&self.me(), &page.uid)
                    .map_err(text)?,
            };
            lines.push(format!(
                "{} {} v{} held {} {snapshots:?}",
                page.path, page.uid, page.version, page.held
            ));
        }
        for word in self
            .words(&pages)
            .into_iter()
            .chain([word(0), "Title".to_owned()])
        {
            let mut hits: Vec<String> = self
                .found(&word)?
                .into_iter()
                .map(|(path, score)| format!("{score:.4} {path}"))
                .collect();
            hits.sort();
            lines.push(format!("{word}: {hits:?}"));
        }
        Ok(lines)
    }
}
