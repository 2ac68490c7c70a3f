//! Upkeep as JSON, the same whether it runs here or in the owner.

use escurel_access::Caller;
use escurel_core::api::{BrokenChain, RepairPlan, Status, VerifyReport};
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

/// What a repair of the journal found and, unless it was only planned, did.
pub fn repaired(plan: &RepairPlan, planned_only: bool) -> Value {
    let broken = |chain: &BrokenChain| {
        json!({
            "first": chain.first,
            "problem": chain.problem,
            "lost": chain.lost,
            "lost_records": chain.lost_records,
            "set_aside": chain.set_aside,
        })
    };
    json!({
        "repaired": plan.broken.is_some() && !planned_only,
        "records": plan.records,
        "missing_contents": plan.missing_contents,
        "broken": plan.broken.as_ref().map(broken),
    })
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
