//! Do files, journal and index agree? Every disagreement names its item.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Entry, Facts};
use escurel_store::{Kind, Record, RootState, Store, StoreError, Uid};
use rayon::prelude::*;

use crate::api::{Finding, Status, VerifyReport};
use crate::builtin::is_builtin;
use crate::facts::digest;
use crate::kb::{self, Core, OpenOptions, Parts};
use crate::progress::Progress;
use crate::tables::Tables;
use crate::view::View;
use crate::{Code, Kb, Refusal, Result, recover};

/// What the journal says of one page.
struct Head {
    version: Option<Record>,
    last: Record,
    deleted: bool,
}

/// Whether outside edits are taken up while we look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Served,
    /// Nobody serves the folder: what differs waits for the next start.
    AtRest,
}

impl Kb {
    /// Compares a folder that nobody serves, and takes nothing up that differs.
    ///
    /// # Errors
    /// `admin_required`, `store_locked`, `folder_not_found`, `io_error`.
    pub fn verify_at_rest(
        folder: &Path,
        options: OpenOptions,
        caller: &Caller,
    ) -> Result<VerifyReport> {
        demand_admin(caller)?;
        let parts = Parts::of(options.paths(folder)?, &options)?;
        let (index, head) = (parts.index.clone(), parts.store.head());
        let noticed = parts.store.warnings().len();
        let (progress, mut report) = (Progress::default(), VerifyReport::default());
        std::fs::create_dir_all(&index)?;
        let recovered = recover::load(&index, &progress);
        let broken = parts.files.as_ref();
        if broken.and_then(|files| kb::broken(files, 0)).is_some() {
            journal_findings(&*parts.store, &mut report);
            return Ok(report);
        }
        if recovered.seq > head {
            journal_findings(&*parts.store, &mut report);
            report.findings.push(Finding {
                part: "journal",
                item: format!("records {} to {}", head + 1, recovered.seq),
                problem: "they are missing: the index was derived from them".into(),
            });
            return Ok(report);
        }
        let core = kb::put_together(parts, recovered, progress)?;
        let compared = core.replay().and_then(|_| core.compare(Moment::AtRest));
        // What was brought up to date is not saved: a start does it better.
        core.sql.close();
        let mut report = compared?;
        let warnings = core.phase().warnings;
        report
            .findings
            .extend(warnings.into_iter().skip(noticed).map(|problem| Finding {
                part: "index",
                item: index.display().to_string(),
                problem,
            }));
        Ok(report)
    }
}

impl Core {
    /// Compares everything with everything. Reads every file, record and object.
    ///
    /// # Errors
    /// `admin_required`, `indexing`.
    pub fn verify(&self, caller: &Caller) -> Result<VerifyReport> {
        self.demand_admin(caller)?;
        if !self.progress.was_ready() && self.readable().is_ok() {
            return Err(Refusal::new(
                Code::Indexing,
                "The folder is still being indexed.",
            ));
        }
        self.compare(Moment::Served)
    }

    fn compare(&self, moment: Moment) -> Result<VerifyReport> {
        self.text.commit(self.lane.state.lock().seq)?;
        let view = self.view.load_full();
        let mut report = VerifyReport {
            pages: live(&view).count() as u64,
            ..VerifyReport::default()
        };
        journal_findings(&*self.store, &mut report);
        self.verify_directory(&view, &mut report.findings);
        self.verify_tables(&view, &mut report.findings);
        self.verify_files(&view, moment, &mut report.findings);
        self.verify_text(&view, &mut report.findings)?;
        self.verify_sql(&view, &mut report.findings)?;
        Ok(report)
    }

    pub(crate) fn demand_admin(&self, caller: &Caller) -> Result<()> {
        demand_admin(caller)
    }

    /// The directory must be what the journal's records add up to.
    fn verify_directory(&self, view: &View, findings: &mut Vec<Finding>) {
        let heads = self.heads(view.seq);
        for (uid, head) in &heads {
            let entry = view.dir.by_uid(*uid);
            if let Some(problem) = directory_problem(head, entry) {
                let path = head.last.path.clone().unwrap_or_default();
                findings.push(Finding {
                    part: "directory",
                    item: path,
                    problem,
                });
            }
        }
        for entry in live(view).filter(|entry| !heads.contains_key(&entry.uid)) {
            let problem = "no journal record has this page".to_owned();
            findings.push(Finding {
                part: "directory",
                item: entry.path.to_string(),
                problem,
            });
        }
    }

    /// So must the tables.
    fn verify_tables(&self, view: &View, findings: &mut Vec<Finding>) {
        let mut tables = Tables::default();
        let records = self.store.records(0).map_while(std::result::Result::ok);
        for record in records.take_while(|record| record.seq <= view.seq) {
            tables.apply(&record);
        }
        let differ = tables.differences(&view.tables).into_iter();
        findings.extend(differ.map(|item| Finding {
            part: "tables",
            item,
            problem: "it is not as the journal has it".into(),
        }));
    }

    fn heads(&self, upto: u64) -> HashMap<Uid, Head> {
        let mut heads: HashMap<Uid, Head> = HashMap::new();
        let records = self
            .store
            .records(0)
            .map_while(|r| r.ok())
            .take_while(|r| r.seq <= upto);
        for record in records {
            let Some(uid) = record.uid else { continue };
            let head = heads.entry(uid).or_insert_with(|| Head {
                version: None,
                last: record.clone(),
                deleted: false,
            });
            head.deleted = record.kind == Kind::PageDeleted;
            if record.kind == Kind::PageVersion {
                head.version = Some(record.clone());
            }
            head.last = record;
        }
        heads
    }

    fn verify_files(&self, view: &View, moment: Moment, findings: &mut Vec<Finding>) {
        let entries: Vec<&Arc<Entry>> = live(view).collect();
        findings.par_extend(
            entries
                .par_iter()
                .filter_map(|entry| self.file_problem(entry, moment))
                .map(|(path, problem)| Finding {
                    part: "file",
                    item: path,
                    problem,
                }),
        );
        let scan = self.store.scan();
        if scan.root != RootState::Ok {
            findings.push(Finding {
                part: "file",
                item: ".".into(),
                problem: format!("the folder is not as it was: {:?}", scan.root),
            });
        }
        for file in scan
            .files
            .iter()
            .filter(|file| view.dir.by_path(&file.path).is_none())
        {
            findings.push(Finding {
                part: "file",
                item: file.path.clone(),
                problem: match moment {
                    Moment::Served => "the file is not indexed".into(),
                    Moment::AtRest => "no version has it; serve adopts it as a new page".into(),
                },
            });
        }
    }

    fn file_problem(&self, entry: &Entry, moment: Moment) -> Option<(String, String)> {
        let problem = match self.store.read(&entry.path) {
            Err(error) => format!("cannot be read: {error}"),
            Ok(None) if entry.missing => {
                "the file vanished together with others; its deletion is held until the \
                 file returns or `escurel confirm-deletions`"
                    .to_owned()
            }
            Ok(None) => match moment {
                Moment::Served => "the file is not there".to_owned(),
                Moment::AtRest => {
                    "the file is not there; serve takes the page for deleted".to_owned()
                }
            },
            Ok(Some((bytes, _))) if digest(&bytes) != entry.digest => {
                let version = entry.version;
                match moment {
                    Moment::Served => format!("the file's text is not that of v{version}"),
                    Moment::AtRest => {
                        format!(
                            "the file differs from v{version}; serve adopts it as an outside edit"
                        )
                    }
                }
            }
            Ok(Some((bytes, _))) => {
                let facts = Facts::of(&escurel_md::parse(&entry.path, &bytes, self.layout));
                if facts == *entry.facts {
                    return None;
                }
                return Some((
                    entry.path.to_string(),
                    "the directory's row differs from what the file says".into(),
                ));
            }
        };
        Some((entry.path.to_string(), problem))
    }

    fn verify_text(&self, view: &View, findings: &mut Vec<Finding>) -> Result<()> {
        let indexed: std::collections::HashSet<(u32, u64)> =
            self.text.all_docs()?.into_iter().collect();
        let lacking = live(view).filter(|e| !indexed.contains(&(e.no.0, e.seq)));
        findings.extend(lacking.map(|entry| Finding {
            part: "text_index",
            item: entry.path.to_string(),
            problem: format!("v{} is not in the text index", entry.version),
        }));
        Ok(())
    }

    fn verify_sql(&self, view: &View, findings: &mut Vec<Finding>) -> Result<()> {
        let duck = self.sql.at(view.seq)?;
        for (no, problem) in duck.differences(&view.dir)? {
            let entry = view.dir.get(no);
            if entry.is_some_and(|e| is_builtin(&e.path)) {
                continue;
            }
            let item =
                entry.map_or_else(|| format!("page number {}", no.0), |e| e.path.to_string());
            findings.push(Finding {
                part: "sql_index",
                item,
                problem,
            });
        }
        Ok(())
    }

    /// Derives the whole index again. Only while nobody serves the folder: see [`crate::Kb::forget_index`].
    ///
    /// # Errors
    /// `admin_required`, `store_locked`.
    pub fn rebuild(&self, caller: &Caller, _progress: &mut dyn FnMut(&Status)) -> Result<Status> {
        self.demand_admin(caller)?;
        let why =
            "The folder is being served; its index can only be derived again while it is not.";
        Err(Refusal::new(Code::StoreLocked, why))
    }

    /// Lets held deletions happen; answers how many.
    pub fn confirm_deletions(&self, caller: &Caller) -> Result<u64> {
        self.demand_admin(caller)?;
        self.delete_missing(&caller.subject)
    }

    /// The journal as JSON lines that independent verifiers accept; answers how many.
    pub fn export_journal(&self, caller: &Caller, out: &mut dyn std::io::Write) -> Result<u64> {
        self.demand_admin(caller)?;
        Ok(escurel_store::export(&*self.store, out)?)
    }
}

pub(crate) fn demand_admin(caller: &Caller) -> Result<()> {
    if caller.is_admin() {
        return Ok(());
    }
    Err(Refusal::new(
        Code::AdminRequired,
        format!("{} is not an administrator.", caller.subject),
    ))
}

fn journal_findings(store: &dyn Store, report: &mut VerifyReport) {
    let journal = store.verify_journal();
    report.records = journal.records;
    report.objects = journal.objects;
    let chain = journal.findings.iter().any(|f| f.object.is_none());
    let mut add = |part, item, problem| {
        report.findings.push(Finding {
            part,
            item,
            problem,
        });
    };
    match store.writable() {
        // A record that is gone without a trace in the files that are there.
        Err(StoreError::JournalBroken { seq, detail }) if !chain => {
            add("journal", format!("record {seq}"), detail);
        }
        _ if !chain && journal.head < store.head() => {
            let item = format!("records {} to {}", journal.head + 1, store.head());
            add("journal", item, "a segment is missing".into());
        }
        _ => {}
    }
    for finding in journal.findings {
        let part = if finding.object.is_some() {
            "object"
        } else {
            "journal"
        };
        add(part, item(&finding), finding.detail);
    }
}

fn item(finding: &escurel_store::Finding) -> String {
    let mut item = finding.file.clone();
    if let Some(offset) = finding.offset {
        item += &format!(" at byte {offset}");
    }
    if let Some(seq) = finding.seq {
        item += &format!(", record {seq}");
    }
    if let Some(object) = &finding.object {
        item += &format!(", object {object}");
    }
    item
}

fn live(view: &View) -> impl Iterator<Item = &Arc<Entry>> {
    view.dir.iter().filter(|entry| !is_builtin(&entry.path))
}

fn directory_problem(head: &Head, entry: Option<&Arc<Entry>>) -> Option<String> {
    match (head.deleted, entry) {
        (true, Some(_)) => Some("the journal says it was deleted".into()),
        (true, None) => None,
        // All records of its texts were lost: nobody can say what it was.
        (false, None) if head.version.is_none() => None,
        (false, None) => Some("the journal has it, the directory does not".into()),
        (false, Some(entry)) => {
            let version = head.version.as_ref()?;
            let path = head.last.path.as_deref().unwrap_or_default();
            if *entry.path != *path {
                return Some(format!("the journal has it at {path}"));
            }
            let same = version.version == Some(entry.version)
                && version.content.map(|c| c.object) == Some(entry.object);
            (!same).then(|| {
                format!(
                    "the directory has v{}, the journal v{}",
                    entry.version,
                    version.version.unwrap_or(0)
                )
            })
        }
    }
}
