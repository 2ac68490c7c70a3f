//! Upkeep as JSON, the same whether it runs here or in the owner.

use escurel_access::Caller;
use escurel_core::api::{Status, VerifyReport};
use escurel_core::{Kb, Refusal};
use serde_json::{Value, json};

pub fn verify(kb: &Kb, caller: &Caller) -> Result<Value, Refusal> {
    kb.verify(caller).map(|report| verified(&report))
}

/// What a comparison found.
pub fn verified(report: &VerifyReport) -> Value {
    let finding = |f: &escurel_core::api::Finding| json!({"part": f.part, "item": f.item, "problem": f.problem});
    json!({
        "ok": report.findings.is_empty(),
        "pages": report.pages,
        "records": report.records,
        "objects": report.objects,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

pub fn rebuild(
    kb: &Kb,
    caller: &Caller,
    progress: &mut dyn FnMut(&Status),
) -> Result<Value, Refusal> {
    kb.rebuild(caller, progress).map(|status| summary(&status))
}

pub fn confirm_deletions(kb: &Kb, caller: &Caller) -> Result<Value, Refusal> {
    kb.confirm_deletions(caller)
        .map(|deleted| json!({"deleted": deleted}))
}

/// What is served.
pub fn summary(status: &Status) -> Value {
    json!({
        "pages": status.pages,
        "skills": status.skills,
        "links": status.links,
        "broken_links": status.broken_links,
        "ambiguous_links": status.ambiguous_links,
        "pages_with_issues": status.pages_with_issues,
        "warnings": status.warnings,
    })
}
