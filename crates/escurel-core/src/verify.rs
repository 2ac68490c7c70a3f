//! Do files, journal and index agree? Every disagreement names its item.

use std::collections::HashMap;
use std::sync::Arc;

use escurel_access::Caller;
use escurel_index::{Entry, Facts};
use escurel_store::{Kind, Record, RootState, Uid};
use rayon::prelude::*;

use crate::api::{Finding, Status, VerifyReport};
use crate::builtin::is_builtin;
use crate::facts::digest;
use crate::kb::Core;
use crate::view::View;
use crate::{Code, Refusal, Result};

/// What the journal says of one page.
struct Head {
    version: Option<Record>,
    last: Record,
    deleted: bool,
}

impl Core {
    /// Compares everything with everything. Reads every file, record and object.
    ///
    /// # Errors
    /// `admin_required`, `indexing`.
    pub fn verify(&self, caller: &Caller) -> Result<VerifyReport> {
        self.demand_admin(caller)?;
        if !self.phase().ready {
            return Err(Refusal::new(
                Code::Indexing,
                "The folder is still being indexed.",
            ));
        }
        self.text.commit(self.lane.state.lock().seq)?;
        let view = self.view.load_full();
        let mut report = VerifyReport {
            pages: live(&view).count() as u64,
            ..VerifyReport::default()
        };
        self.verify_journal(&mut report);
        self.verify_directory(&view, &mut report.findings);
        self.verify_files(&view, &mut report.findings);
        self.verify_text(&view, &mut report.findings)?;
        self.verify_sql(&view, &mut report.findings)?;
        Ok(report)
    }

    pub(crate) fn demand_admin(&self, caller: &Caller) -> Result<()> {
        if caller.is_admin() {
            return Ok(());
        }
        Err(Refusal::new(
            Code::AdminRequired,
            format!("{} is not an administrator.", caller.subject),
        ))
    }

    fn verify_journal(&self, report: &mut VerifyReport) {
        let journal = self.store.verify_journal();
        report.records = journal.records;
        report.objects = journal.objects;
        if journal.clean() && journal.head < self.store.head() {
            let item = format!("records {} to {}", journal.head + 1, self.store.head());
            report.findings.push(Finding {
                part: "journal",
                item,
                problem: "a segment is missing".into(),
            });
        }
        for finding in journal.findings {
            let part = if finding.object.is_some() {
                "object"
            } else {
                "journal"
            };
            report.findings.push(Finding {
                part,
                item: item(&finding),
                problem: finding.detail,
            });
        }
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

    fn verify_files(&self, view: &View, findings: &mut Vec<Finding>) {
        let entries: Vec<&Arc<Entry>> = live(view).collect();
        findings.par_extend(
            entries
                .par_iter()
                .filter_map(|entry| self.file_problem(entry))
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
                problem: "the file is not indexed".into(),
            });
        }
    }

    fn file_problem(&self, entry: &Entry) -> Option<(String, String)> {
        let problem = match self.store.read(&entry.path) {
            Err(error) => format!("cannot be read: {error}"),
            Ok(None) if entry.missing => return None,
            Ok(None) => "the file is not there".to_owned(),
            Ok(Some((bytes, _))) if digest(&bytes) != entry.digest => {
                format!("the file's text is not that of v{}", entry.version)
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
