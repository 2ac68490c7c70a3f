//! From a link or a spoken name to a page.
//!
//! Candidates are ranked by how they answer to the name; the best rank with a
//! page that exists for the asker decides, and more than one page there is
//! ambiguous. Invariant: a page outside the scope has no influence.

use std::cmp::Ordering;
use std::sync::Arc;

use escurel_md::{LinkKind, PageType, Wikilink, name_key, nfc};
use escurel_store::Uid;
use smallvec::SmallVec;

use super::Directory;
use super::names::{self, folder, join, last_segment, loose, loose_hash, stem, strip_md};
use super::types::{Resolution, Scope};
use crate::{Entry, Facts, LinkFact, PageNo};

/// The parts of a link that decide where it leads.
#[derive(Clone, Copy)]
pub(crate) struct Name<'a> {
    pub kind: LinkKind,
    pub skill: Option<&'a str>,
    pub id: Option<&'a str>,
}

impl<'a> From<&'a LinkFact> for Name<'a> {
    fn from(link: &'a LinkFact) -> Name<'a> {
        Name {
            kind: link.kind,
            skill: link.skill(),
            id: link.id(),
        }
    }
}

/// Where a link stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    pub no: Option<PageNo>,
    pub path: Option<&'a str>,
}

impl<'a> Place<'a> {
    pub fn of(entry: &'a Entry) -> Place<'a> {
        Place {
            no: Some(entry.no),
            path: Some(&entry.path),
        }
    }
}

pub(crate) type Ranked = SmallVec<[(u8, PageNo); 4]>;
type Few = SmallVec<[PageNo; 2]>;

/// Ranks of a bare name, best first. Instances before skill pages.
mod rank {
    pub const ID: u8 = 0;
    pub const RELATIVE_PATH: u8 = 1;
    pub const ROOT_PATH: u8 = 2;
    pub const STEM: u8 = 3;
    pub const STEM_FOLDED: u8 = 4;
    pub const TITLE: u8 = 5;
    pub const TITLE_FOLDED: u8 = 6;
    pub const SKILL: u8 = 7;
    pub const SKILL_FOLDED: u8 = 8;
    /// Equal but for spaces, underscores and dashes.
    pub const LOOSE: u8 = 9;
}

impl Directory {
    pub fn resolve(
        &self,
        link: &Wikilink,
        kind: LinkKind,
        from: Option<&Entry>,
        scope: &Scope<'_>,
    ) -> Resolution {
        let name = Name {
            kind,
            skill: link.skill.as_deref(),
            id: link.id.as_deref(),
        };
        self.lookup(name, from.map(Place::of).unwrap_or_default(), scope)
    }

    /// A `page_id` argument: path, uid, `[[skill::id]]`, then a loose name.
    pub fn find(&self, page_id: &str, scope: &Scope<'_>) -> Resolution {
        let by_uid = || page_id.parse::<Uid>().ok().and_then(|uid| self.by_uid(uid));
        if let Some(entry) = self.by_path(page_id).or_else(by_uid) {
            let pages = self.admit([entry.no].into_iter(), scope, true);
            if !pages.is_empty() {
                return self.resolution(pages);
            }
        }
        let is_link = page_id.contains("::") || page_id.trim_start().starts_with("[[");
        let link = match is_link.then(|| Wikilink::parse(page_id)) {
            Some(Ok(link)) => link,
            _ => Wikilink {
                id: Some(page_id.to_owned()),
                ..Wikilink::default()
            },
        };
        self.resolve(&link, LinkKind::Wikilink, None, scope)
    }

    pub(crate) fn lookup(&self, name: Name<'_>, place: Place<'_>, scope: &Scope<'_>) -> Resolution {
        if name.kind == LinkKind::Asset {
            return Resolution::Missing;
        }
        if name.skill.is_none() && name.id.is_none_or(str::is_empty) {
            let own = place.no.and_then(|no| self.get(no));
            return own.map_or(Resolution::Missing, |e| Resolution::Found(Arc::clone(e)));
        }
        let exact = self.exact(name, place);
        let pages = self.admit(
            exact.iter().copied(),
            scope,
            name.kind == LinkKind::Markdown,
        );
        if !pages.is_empty() {
            return self.resolution(pages);
        }
        for group in self.ranked(name, place).chunk_by(|a, b| a.0 == b.0) {
            let explicit = name.kind == LinkKind::Markdown
                || matches!(group[0].0, rank::RELATIVE_PATH | rank::ROOT_PATH);
            let pages = self.admit(group.iter().map(|(_, no)| *no), scope, explicit);
            if !pages.is_empty() {
                return self.resolution(pages);
            }
        }
        Resolution::Missing
    }

    fn resolution(&self, pages: Few) -> Resolution {
        let mut found: Vec<Arc<Entry>> = pages
            .iter()
            .filter_map(|no| self.get(*no).cloned())
            .collect();
        if found.len() > 1 {
            found.sort_by(|a, b| (&a.path, a.no).cmp(&(&b.path, b.no)));
            return Resolution::Ambiguous(found);
        }
        found.pop().map_or(Resolution::Missing, Resolution::Found)
    }

    /// Candidates of the best rank only, found without folding any name of a page.
    fn exact(&self, name: Name<'_>, place: Place<'_>) -> Few {
        match name {
            Name {
                kind: LinkKind::Markdown,
                id: Some(path),
                ..
            } => {
                let joined = join(folder(place.path.unwrap_or("")), path);
                joined.map_or(Few::new(), |p| self.at_path(&p))
            }
            Name {
                skill: Some(skill),
                id: Some(id),
                ..
            } if !id.is_empty() => {
                let (skill, id) = (nfc(skill), nfc(id));
                self.named(&id, |f| {
                    is_instance(f) && nfc(&f.skill) == skill && nfc(&f.id) == id
                })
            }
            Name {
                skill: None,
                id: Some(id),
                ..
            } => {
                let id = nfc(id);
                self.named(&id, |f| is_instance(f) && nfc(&f.id) == id)
            }
            _ => Few::new(),
        }
    }

    fn at_path(&self, path: &str) -> Few {
        let as_is = self.by_path(path);
        let page = as_is.or_else(|| self.by_path(&format!("{path}.md")));
        page.map(|e| e.no).into_iter().collect()
    }

    fn named(&self, name: &str, test: impl Fn(&Facts) -> bool) -> Few {
        let pages = self.names.pages(loose_hash(name)).iter().copied();
        pages
            .filter(|no| self.get(*no).is_some_and(|e| test(&e.facts)))
            .collect()
    }

    /// Every page that could answer to the name, best rank first; nobody's
    /// scope applied.
    pub(crate) fn ranked(&self, name: Name<'_>, place: Place<'_>) -> Ranked {
        let Some(asked) = Asked::of(name, place) else {
            return Ranked::new();
        };
        let mut candidates: Few = Few::new();
        for key in &asked.keys {
            candidates.extend_from_slice(self.names.pages(*key));
        }
        candidates.sort_unstable();
        candidates.dedup();
        let rank_of = |no: &PageNo| Some((asked.rank(self.get(*no)?)?, *no));
        let mut ranked: Ranked = candidates.iter().filter_map(rank_of).collect();
        ranked.sort_unstable();
        ranked
    }

    /// Candidates as the scope sees them: invisible ones do not exist, others
    /// give way to what replaces them. `explicit`: they were named by path,
    /// which a page of another layer does not change.
    fn admit(
        &self,
        candidates: impl Iterator<Item = PageNo>,
        scope: &Scope<'_>,
        explicit: bool,
    ) -> Few {
        let mut out = Few::new();
        for no in candidates {
            let Some(entry) = self.get(no).filter(|e| in_scope(e, scope)) else {
                continue;
            };
            let seen = self.seen_as(entry, scope);
            if explicit && seen.contains(&no) {
                out.push(no);
            } else {
                out.extend(self.upper_layer(seen));
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Pages of the same type, skill and id that `scope` sees: those of the
    /// named scenario if there are any, and none if that scenario hides them.
    fn seen_as(&self, entry: &Entry, scope: &Scope<'_>) -> Few {
        if self.names.pages(loose_hash(&entry.facts.id)) == [entry.no] {
            let replaced = entry.facts.scenario.is_some() && entry.facts.hidden;
            let alone = in_scope(entry, scope) && !replaced;
            return alone.then_some(entry.no).into_iter().collect();
        }
        let mut group = self.twins(&entry.facts);
        group.retain(|no| self.get(*no).is_some_and(|e| in_scope(e, scope)));
        if scope.scenario.is_some() {
            let overlays = |no: &PageNo| self.get(*no).is_some_and(|e| e.facts.scenario.is_some());
            if group.iter().any(overlays) {
                group.retain(|no| overlays(no));
                group.retain(|no| self.get(*no).is_some_and(|e| !e.facts.hidden));
            }
        }
        group
    }

    /// Without the pages of packs, if a page of the tenant is there as well.
    fn upper_layer(&self, mut group: Few) -> Few {
        let base = |no: &PageNo| self.get(*no).is_some_and(|e| e.facts.is_base_layer());
        if group.len() > 1 && !group.iter().all(base) {
            group.retain(|no| !base(no));
        }
        group
    }

    /// All pages with this type, skill and id, whatever their scenario.
    pub(crate) fn twins(&self, facts: &Facts) -> Few {
        let id = nfc(&facts.id);
        let same = |f: &Facts| {
            f.page_type == facts.page_type && f.skill == facts.skill && nfc(&f.id) == id
        };
        self.named(&id, same)
    }

    /// Whether a read in `scope` shows this page: visible, not of another
    /// scenario, not replaced or hidden by the named one.
    pub fn seen(&self, e: &Entry, scope: &Scope<'_>) -> bool {
        in_scope(e, scope) && {
            let plain = scope.scenario.is_none() || (e.facts.scenario.is_some() && !e.facts.hidden);
            plain || self.seen_as(e, scope).contains(&e.no)
        }
    }

    /// [`Directory::seen`], and no page of the tenant stands over it: what
    /// its typed link leads to.
    pub fn effective(&self, e: &Entry, scope: &Scope<'_>) -> bool {
        in_scope(e, scope) && self.upper_layer(self.seen_as(e, scope)).contains(&e.no)
    }
}

fn is_instance(facts: &Facts) -> bool {
    facts.page_type == PageType::Instance
}

fn in_scope(e: &Entry, scope: &Scope<'_>) -> bool {
    (e.facts.scenario.is_none() || e.facts.scenario.as_deref() == scope.scenario)
        && (scope.visible)(e)
}

/// A name, folded once, to be compared with many pages.
struct Asked<'a> {
    name: Name<'a>,
    keys: names::Keys,
    /// As written and without `.md`.
    id: &'a str,
    plain: &'a str,
    key: String,
    plain_key: String,
    skill_key: Option<String>,
    loose: String,
    /// The path it means from its folder and from the root, with `.md`.
    near: Option<String>,
    root: Option<String>,
}

impl<'a> Asked<'a> {
    fn of(name: Name<'a>, place: Place<'_>) -> Option<Asked<'a>> {
        let id = name.id.filter(|id| !id.is_empty()).or(name.skill)?;
        let plain = strip_md(id);
        let mut keys: names::Keys = [id, plain, stem(id)].into_iter().map(loose_hash).collect();
        if name.kind == LinkKind::Markdown {
            keys = [loose_hash(stem(id))].into_iter().collect();
        }
        let with_md = |path: String| format!("{}.md", strip_md(&path));
        Some(Asked {
            name,
            keys,
            id,
            plain,
            key: name_key(id),
            plain_key: name_key(plain),
            skill_key: name.skill.map(name_key),
            loose: loose(plain),
            near: place.path.and_then(|p| join(folder(p), id)).map(with_md),
            root: join("", id.trim_start_matches('/')).map(with_md),
        })
    }

    fn rank(&self, e: &Entry) -> Option<u8> {
        match (self.name.kind, self.name.skill, self.name.id) {
            (LinkKind::Markdown, ..) => self.path_rank(e),
            (_, Some(_), None | Some("")) => self.skill_rank(e),
            (_, Some(skill), Some(_)) => self.typed_rank(skill, e),
            _ => self.bare_rank(e),
        }
    }

    /// Markdown links: paths only, exact case before folded.
    fn path_rank(&self, e: &Entry) -> Option<u8> {
        let is = |path: &Option<String>| path.as_deref() == Some(&*e.path);
        let folds = |path: &Option<String>| {
            path.as_ref()
                .is_some_and(|p| name_key(p) == name_key(&e.path))
        };
        let tests: [&dyn Fn() -> bool; 4] = [
            &|| is(&self.near),
            &|| folds(&self.near),
            &|| is(&self.root),
            &|| folds(&self.root),
        ];
        tests.iter().position(|t| t()).map(|i| i as u8)
    }

    fn typed_rank(&self, skill: &str, e: &Entry) -> Option<u8> {
        let f = &*e.facts;
        if !is_instance(f) {
            return (skill == "skill" && self.skill_rank(e) == Some(rank::SKILL))
                .then_some(rank::ID);
        }
        if nfc(&f.skill) == nfc(skill) {
            return self.instance_rank(e);
        }
        let folded = Some(name_key(&f.skill)) == self.skill_key;
        folded
            .then(|| self.instance_rank(e))
            .flatten()
            .map(|r| r.max(rank::STEM_FOLDED))
    }

    fn bare_rank(&self, e: &Entry) -> Option<u8> {
        if self.near.as_deref() == Some(&*e.path) {
            return Some(if self.exact_id(e) {
                rank::ID
            } else {
                rank::RELATIVE_PATH
            });
        }
        let named = if is_instance(&e.facts) {
            self.instance_rank(e)
        } else {
            self.skill_rank(e)
        };
        if named != Some(rank::ID) && self.root.as_deref() == Some(&*e.path) {
            return Some(rank::ROOT_PATH);
        }
        named.or_else(|| {
            self.names_of(e)
                .any(|n| loose(n) == self.loose)
                .then_some(rank::LOOSE)
        })
    }

    fn exact_id(&self, e: &Entry) -> bool {
        is_instance(&e.facts) && nfc(&e.facts.id) == nfc(self.id)
    }

    fn instance_rank(&self, e: &Entry) -> Option<u8> {
        let f = &*e.facts;
        if self.exact_id(e) {
            return Some(rank::ID);
        }
        if nfc(&f.id) == nfc(self.plain) || is_path_end(strip_md(&e.path), self.plain) {
            return Some(rank::STEM);
        }
        let id = name_key(&f.id);
        if id == self.key || id == self.plain_key || self.folded_path_end(e) {
            return Some(rank::STEM_FOLDED);
        }
        self.title_rank(e)
    }

    fn title_rank(&self, e: &Entry) -> Option<u8> {
        let f = &*e.facts;
        let mut titles = std::iter::once(&*f.title).chain(f.aliases.iter());
        if titles.any(|t| nfc(t) == nfc(self.id)) {
            return Some(rank::TITLE);
        }
        let mut titles = std::iter::once(&*f.title).chain(f.aliases.iter());
        titles
            .any(|t| name_key(t) == self.key)
            .then_some(rank::TITLE_FOLDED)
    }

    fn skill_rank(&self, e: &Entry) -> Option<u8> {
        let f = &*e.facts;
        if is_instance(f) {
            return None;
        }
        if nfc(&f.id) == nfc(self.id) {
            return Some(rank::SKILL);
        }
        let folded =
            name_key(&f.id) == self.key || self.folded_path_end(e) || self.title_rank(e).is_some();
        folded.then_some(rank::SKILL_FOLDED)
    }

    fn folded_path_end(&self, e: &Entry) -> bool {
        // Cheap before dear: only the last segment decides for most pages.
        name_key(stem(&e.path)) == name_key(last_segment(self.plain))
            && (!self.plain.contains('/')
                || is_path_end(&name_key(strip_md(&e.path)), &self.plain_key))
    }

    fn names_of<'e>(&self, e: &'e Entry) -> impl Iterator<Item = &'e str> {
        [&*e.facts.id, stem(&e.path), &*e.facts.title]
            .into_iter()
            .chain(e.facts.aliases.iter())
    }
}

/// Whether `path` is `end` or ends in `/end`; NFC on both sides.
fn is_path_end(path: &str, end: &str) -> bool {
    let (path, end) = (nfc(path), nfc(end));
    match path.len().cmp(&end.len()) {
        Ordering::Less => false,
        Ordering::Equal => path == end,
        Ordering::Greater => {
            path.ends_with(&*end) && path.as_bytes()[path.len() - end.len() - 1] == b'/'
        }
    }
}
