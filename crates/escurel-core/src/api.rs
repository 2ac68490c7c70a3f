//! What callers ask and what they get: plain values, no wire format.

use std::collections::BTreeSet;
use std::sync::Arc;

pub use escurel_md::Issue;
use escurel_md::{PageType, SkillSchema, Wikilink};
pub use escurel_search::Why;
pub use escurel_store::{BrokenChain, RepairPlan};
use serde_json::{Map, Value};

/// Names a page: its path, uid and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRef {
    /// The page's path, the canonical `page_id` on the wire.
    pub page_id: String,
    pub uid: String,
    /// The page's id.
    pub slug: String,
    pub skill: String,
    pub page_type: PageType,
    pub title: String,
    /// Version of the text, `v<n>` on the wire.
    pub version: u64,
    pub last_written_by: Option<String>,
    /// The file vanished together with many others; the text comes from the journal.
    pub missing_on_disk: bool,
    /// What is shown is being typed and in no version yet.
    pub uncommitted: bool,
}

/// A session on a page that is edited live.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    pub session: String,
    /// Names the history that the page's changes are part of.
    pub lineage: String,
    pub head_version: u64,
    /// Loro export: everything, or what the caller lacked.
    pub snapshot: Vec<u8>,
}

/// Somebody who hears of a page's changes.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Names the listener.
    pub peer: u64,
    pub lineage: String,
    pub head_version: u64,
    /// Loro export: everything, or what the caller lacked.
    pub update: Vec<u8>,
    /// The text, for listeners that want it.
    pub text: Option<String>,
}

/// A change that was taken.
#[derive(Clone, Debug)]
pub struct ChangeAck {
    /// The number that the next commit gets.
    pub merged_version: u64,
    pub text: Option<String>,
}

/// What became of a session.
#[derive(Clone, Debug)]
pub struct ClosedSession {
    /// False: it is still open, and `issues` say why.
    pub ok: bool,
    pub page_id: String,
    pub final_version: u64,
    pub issues: Vec<Issue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Granularity {
    #[default]
    Block,
    Page,
}

#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// One to eight phrasings; several are fused into one ranking.
    pub queries: Vec<String>,
    pub k: usize,
    pub granularity: Granularity,
    pub page_type: Option<PageType>,
    pub skill: Option<String>,
    pub filter: Option<Map<String, Value>>,
    pub page_id: Option<String>,
    pub as_of: Option<String>,
    pub scenario: Option<String>,
}

#[derive(Clone, Debug)]
pub struct SearchAnswer {
    pub hits: Vec<SearchHit>,
    pub lanes: Vec<LaneState>,
    /// How parts of the query were understood, when that is not obvious.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct LaneState {
    pub lane: &'static str,
    /// `fresh`, `lagging` or `off`.
    pub state: &'static str,
    pub detail: Option<String>,
}

#[derive(Clone, Debug)]
pub struct SearchHit {
    pub page: PageRef,
    pub anchor: Option<String>,
    pub snippet: String,
    /// Byte ranges of the matched words in `snippet`.
    pub matches: Vec<(u32, u32)>,
    pub score: f32,
    pub why: Why,
    pub frontmatter_excerpt: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub struct Resolved {
    pub parsed: Wikilink,
    pub page: Option<PageRef>,
    /// Set when the name fits several pages.
    pub candidates: Vec<PageRef>,
    /// `None` when the link has no anchor.
    pub anchor_exists: Option<bool>,
    /// For a pinned link: the pin is a known version.
    pub version_exists: Option<bool>,
    /// For a pinned link: the page has moved on since.
    pub newer_exists: bool,
}

#[derive(Clone, Debug, Default)]
pub struct ExpandRequest {
    pub page_id: String,
    pub anchor: Option<String>,
    pub as_of: Option<String>,
    /// A version number, as in a pinned link.
    pub version: Option<u64>,
    pub scenario: Option<String>,
    pub full: bool,
    /// At most this many characters of body; 0 = the default of 40,000.
    pub max_chars: usize,
}

#[derive(Clone, Debug)]
pub struct Expanded {
    pub page: PageRef,
    pub frontmatter: Map<String, Value>,
    pub body: String,
    pub blocks: Vec<ExpandedBlock>,
    pub links: Vec<OutLink>,
    /// Set when `body` is a part: where to go on.
    pub truncated: bool,
    pub next_anchor: Option<String>,
    pub issues: Vec<Issue>,
    /// The page this overlay shadows, with its frontmatter.
    pub shadow: Option<Shadow>,
    /// The text is of an earlier version and a newer one exists.
    pub newer_exists: bool,
}

#[derive(Clone, Debug)]
pub struct Shadow {
    pub base_page_id: String,
    pub pack: String,
    pub base: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub struct ExpandedBlock {
    pub anchor: String,
    pub content: String,
}

#[derive(Clone, Debug)]
pub struct OutLink {
    pub link: Wikilink,
    pub relation: Option<String>,
    /// The page it leads to, if exactly one.
    pub page_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    In,
    Out,
    #[default]
    Both,
}

#[derive(Clone, Debug, Default)]
pub struct NeighboursRequest {
    pub page_id: String,
    pub direction: Direction,
    pub link_skill: Option<String>,
    pub link_skill_in: Option<Vec<String>>,
    /// `<field> <asc|desc>` on the other page's frontmatter.
    pub order_by: Option<String>,
    pub as_of: Option<String>,
    pub scenario: Option<String>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct NeighbourEdge {
    pub src_page: String,
    pub dst_page: String,
    /// Skill of the destination page.
    pub link_skill: String,
    /// Frontmatter key that holds the link; `None` in the body.
    pub relation: Option<String>,
    pub link_version: Option<String>,
    pub dst_anchor: Option<String>,
    pub src_anchor: Option<String>,
    /// Excerpt of the other page's frontmatter.
    pub target_frontmatter_excerpt: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub struct Neighbours {
    pub edges: Vec<NeighbourEdge>,
    /// True when `limit` cut the list.
    pub truncated: bool,
}

#[derive(Clone, Debug)]
pub struct SkillRow {
    pub schema: Arc<SkillSchema>,
    pub page_id: Option<String>,
    pub instances: usize,
    /// The pack page that this overlay shadows.
    pub shadows: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InstanceOrder {
    #[default]
    Id,
    AtAsc,
    AtDesc,
}

#[derive(Clone, Debug, Default)]
pub struct InstancesRequest {
    pub skill_id: String,
    /// Key and the text it must equal.
    pub frontmatter: Option<(String, String)>,
    pub order: InstanceOrder,
    pub limit: usize,
    pub cursor: Option<String>,
    pub as_of: Option<String>,
    pub scenario: Option<String>,
}

#[derive(Clone, Debug)]
pub struct InstanceRow {
    pub page: PageRef,
    /// JSON text of the frontmatter: lists are long, and mostly passed on as they are.
    pub frontmatter: String,
    pub at: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Instances {
    pub instances: Vec<InstanceRow>,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct AncestryRequest {
    pub page_id: String,
    /// True: what this rests on. False: what rests on this.
    pub up: bool,
    pub relations: Vec<String>,
    pub max_hops: Option<u32>,
    pub as_of: Option<String>,
    pub to_page: Option<String>,
}

#[derive(Clone, Debug)]
pub enum Ancestry {
    Walk(Vec<AncestryHop>),
    /// The shortest path, both ends included; `None` when there is none.
    Path(Option<Vec<String>>),
}

#[derive(Clone, Debug)]
pub struct AncestryHop {
    pub page_id: String,
    pub skill: String,
    pub relation: String,
    pub depth: u32,
}

#[derive(Clone, Debug)]
pub enum Report {
    Drift(Vec<DriftRow>),
    Abandoned(Vec<AbandonedRow>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    Drift,
    Abandoned,
}

#[derive(Clone, Debug)]
pub struct DriftRow {
    pub decision_page_id: String,
    pub decision_skill: String,
    pub expectation_page_id: String,
    pub superseding_page_id: String,
    pub decided_at: String,
    pub superseded_at: String,
}

#[derive(Clone, Debug)]
pub struct AbandonedRow {
    pub page_id: String,
    pub skill: String,
    pub via: String,
}

/// How the vector lane is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VectorStatus {
    /// `fresh`, `lagging` or `off`.
    pub state: &'static str,
    /// Why it is not fresh.
    pub reason: Option<String>,
    /// Pages whose live version has no vectors yet.
    pub waiting: u64,
    /// Texts that were embedded since the start.
    pub embedded: u64,
}

/// What is served and how it is doing; the source of the start-up block, `/readyz` and `/metrics`.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub ready: bool,
    /// `indexing`, `ready`, `read_only` (the journal is broken; pages come from their files),
    /// `journal_broken` (it broke meanwhile; reads are refused), `folder_unavailable`, `failed`, `stopping`.
    pub phase: &'static str,
    pub done: u64,
    pub total: u64,
    pub pages: u64,
    pub skills: u64,
    pub links: u64,
    pub broken_links: u64,
    pub ambiguous_links: u64,
    /// Pages with at least one finding, and how many findings are errors.
    pub pages_with_issues: u64,
    pub errors: u64,
    /// Files and folders that could not be looked at, with the reason.
    pub unreadable: Vec<(String, String)>,
    /// Pages whose deletion is held until somebody confirms it.
    pub held_deletions: u64,
    /// Files that vanished a moment ago: deleted or held as soon as it is clear that they stay away.
    pub vanished: u64,
    pub read_only: bool,
    /// Journal head, and how far the views are.
    pub journal_seq: u64,
    pub text_seq: u64,
    pub sql_seq: u64,
    pub vectors: VectorStatus,
    /// Things an operator should know, e.g. an index that was moved aside.
    pub warnings: Vec<String>,
}

impl Status {
    /// Everything an operator should know, a sentence each.
    pub fn notices(&self) -> Vec<String> {
        /// Of files that cannot be read, so many are named.
        const NAMED: usize = 5;
        let mut notices = self.warnings.clone();
        let named = self.unreadable.iter().take(NAMED);
        notices.extend(named.map(|(path, reason)| format!("{path} cannot be read: {reason}")));
        if self.unreadable.len() > NAMED {
            let more = self.unreadable.len() - NAMED;
            notices.push(format!("and {more} more that cannot be read"));
        }
        if self.vanished > 0 {
            notices.push(format!(
                "{} files vanished a moment ago; their pages are kept until it is clear that they stay away",
                self.vanished
            ));
        }
        if self.held_deletions > 0 {
            notices.push(format!(
                "{} files vanished at once; their pages are kept until they return or `escurel confirm-deletions` says so",
                self.held_deletions
            ));
        }
        notices
    }
}

/// Result of comparing files, journal and index.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    pub pages: u64,
    pub records: u64,
    pub objects: u64,
    pub findings: Vec<Finding>,
}

/// One disagreement, naming its item.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// `journal`, `object`, `file`, `directory`, `text_index`, `sql_index` or `index`.
    pub part: &'static str,
    /// Segment and sequence number, object id, path or row.
    pub item: String,
    pub problem: String,
}

/// A page as a caller names it.
#[derive(Clone, Debug, Default)]
pub struct PageName {
    /// Path, uid, `[[skill::id]]` or a loose name.
    pub id: String,
    /// The scenario that the page belongs to. A path or uid needs none.
    pub scenario: Option<String>,
}

impl From<&str> for PageName {
    fn from(id: &str) -> PageName {
        PageName {
            id: id.to_owned(),
            scenario: None,
        }
    }
}

impl From<&String> for PageName {
    fn from(id: &String) -> PageName {
        PageName::from(id.as_str())
    }
}

/// A whole page to create or replace.
#[derive(Clone, Debug, Default)]
pub struct UpdateRequest {
    /// A page, or where a new one goes.
    pub page_id: String,
    /// The scenario that the page belongs to.
    pub scenario: Option<String>,
    pub content: String,
    /// The version that the content was made from; absent for "whatever is there".
    pub base_version: Option<u64>,
    pub dry_run: bool,
}

/// What became smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Changes of live pages that are no longer kept one by one.
    pub ops: u64,
    /// Disk space that is free now.
    pub bytes: u64,
}

/// What is to be removed for good.
#[derive(Clone, Debug)]
pub enum EraseTarget {
    /// A page with all its history, or only some of its earlier versions.
    Page {
        name: PageName,
        versions: BTreeSet<u64>,
    },
    /// The event of this id.
    Event(String),
    /// All messages of a group.
    Chat(String),
    /// All that a person sent, captured or wrote, but what pages say now.
    Subject(String),
}

impl EraseTarget {
    /// The argument that names it.
    pub fn argument(&self) -> &'static str {
        match self {
            EraseTarget::Page { .. } => "page_id",
            EraseTarget::Event(_) => "event_id",
            EraseTarget::Chat(_) => "chat_group_id",
            EraseTarget::Subject(_) => "subject",
        }
    }
}

#[derive(Clone, Debug)]
pub struct EraseRequest {
    pub target: EraseTarget,
    /// Stands in the journal for ever.
    pub reason: String,
    pub dry_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasedAnswer {
    /// Texts that were erased, now or before: versions, events, messages, stored answers.
    pub contents: u64,
    /// Pages that still say what the person wrote: their newest text is the person's.
    pub kept: Vec<String>,
}

/// What became of a write.
#[derive(Clone, Debug, Default)]
pub struct UpdateAnswer {
    /// False: nothing was written, and `issues` say why.
    pub ok: bool,
    pub page_id: String,
    /// The version that holds the text now; 0 where nothing was written.
    pub version: u64,
    /// What others wrote since the base is in it, too.
    pub auto_merged: bool,
    pub issues: Vec<Issue>,
    /// After a conflict, the text that stands.
    pub head_content: Option<String>,
    /// Unified; empty when the text is what it was.
    pub diff: String,
}

/// What became of a page that was to be moved.
#[derive(Clone, Debug, Default)]
pub struct MoveAnswer {
    pub update: UpdateAnswer,
    /// Where the page was.
    pub from: String,
    /// Pages whose links have the new name, the page itself among them.
    pub relinked: Vec<Relinked>,
}

/// A page whose links were given other names.
#[derive(Clone, Debug)]
pub struct Relinked {
    pub page_id: String,
    /// The one that has them.
    pub version: u64,
    pub links: u64,
}

/// A change of one place of a page.
#[derive(Clone, Debug, Default)]
pub struct EditRequest {
    pub page_id: String,
    /// The scenario that the page belongs to.
    pub scenario: Option<String>,
    /// The page must be at this version.
    pub base_version: Option<u64>,
    pub dry_run: bool,
}

/// One state of a page in time.
#[derive(Clone, Debug)]
pub struct VersionInfo {
    pub version: u64,
    /// RFC 3339.
    pub at: String,
    pub by: String,
    /// How it came: write, adopted, disk, restored, page_moved, page_deleted.
    pub origin: String,
    pub path: String,
    /// The page was deleted here.
    pub deleted: bool,
    /// Lines that this version has and the one before had not, and the reverse.
    pub lines_added: usize,
    pub lines_removed: usize,
    /// The text was erased.
    pub erased: bool,
}

/// A page's states, newest first.
#[derive(Clone, Debug)]
pub struct PageHistory {
    pub uid: String,
    pub page_id: String,
    pub versions: Vec<VersionInfo>,
    /// Older ones that were not asked for.
    pub more: bool,
}

/// Who a line comes from.
#[derive(Clone, Debug)]
pub struct BlamedLine {
    pub version: u64,
    pub at: String,
    pub by: String,
    pub text: String,
}

/// An event as somebody hands it in.
#[derive(Clone, Debug, Default)]
pub struct NewEvent {
    /// A new one when absent.
    pub event_id: Option<String>,
    /// Now when absent.
    pub at: Option<String>,
    pub source: Option<String>,
    pub mime: Option<String>,
    /// The skill that knows what to do with it.
    pub label_skill: Option<String>,
    /// The page that it may belong to.
    pub instance_page_id: Option<String>,
    pub title: Option<String>,
    pub body: Option<String>,
    pub provenance: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStatus {
    Inbox,
    Processed,
}

/// An event as it is stored. Texts are absent when they were not given or were erased.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub event_id: String,
    pub at: String,
    pub source: Option<String>,
    pub mime: Option<String>,
    pub label_skill: Option<String>,
    /// Where the page is now or, of a deleted one, was last.
    pub instance_page_id: Option<String>,
    pub status: EventStatus,
    pub title: Option<String>,
    pub body: Option<String>,
    pub provenance: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Absent at the end.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    Delivered,
    /// It failed and is tried again.
    Retrying,
    /// It failed for good.
    Failed,
    /// Too many were waiting.
    Dropped,
}

/// How the notice of one event stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub event_id: String,
    /// When it came to be so.
    pub at: String,
    pub status: DeliveryStatus,
    pub attempts: u32,
    pub http_status: Option<u16>,
    pub error: Option<String>,
    pub next_attempt_at: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Deliveries {
    /// Somebody sends notices.
    pub configured: bool,
    /// The newest event first.
    pub deliveries: Vec<Delivery>,
}

/// A message as somebody hands it in.
#[derive(Clone, Debug, Default)]
pub struct NewMessage {
    pub chat_group_id: String,
    /// A new one when absent.
    pub msg_id: Option<String>,
    pub role: Option<String>,
    pub content: String,
    /// Now when absent.
    pub at: Option<String>,
    pub metadata: Option<Map<String, Value>>,
}

/// A message as it is stored. Texts are absent when they were erased.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub chat_group_id: String,
    pub msg_id: String,
    pub at: String,
    pub author: String,
    pub role: Option<String>,
    pub content: Option<String>,
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, Default)]
pub struct MessagesRequest {
    pub chat_group_id: String,
    /// Both ends count; a date is its whole day.
    pub since: Option<String>,
    pub until: Option<String>,
    pub limit: usize,
    pub cursor: Option<String>,
    pub newest_first: bool,
}

#[derive(Clone, Debug)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    /// Absent at the end.
    pub next_cursor: Option<String>,
}
