use escurel_core::api as core;
use escurel_core::{Code, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::{Cli, Effect, Execution, Numbered, Quota, Run, Scope, Spec};
use crate::table::Table;
use crate::tool::{Call, Tool};

/// Reports decisions on outdated ground, or everything that was given up.
///
/// `drift`: decisions whose expectation was superseded after they were taken,
/// each with the page that replaced it; somebody should look at them again.
/// `abandoned`: pages that others supersede or abandon; do not build on them.
#[derive(Deserialize, JsonSchema)]
pub struct ProvenanceReport {
    /// Which report.
    kind: Kind,
    /// Only rows whose page is of this skill.
    skill: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Drift,
    Abandoned,
}

/// The report's rows.
#[derive(Serialize, JsonSchema)]
pub struct ReportAnswer {
    kind: Kind,
    rows: Vec<Row>,
}

/// `drift` has the first six fields, `abandoned` the last three.
#[derive(Default, Serialize, JsonSchema)]
struct Row {
    /// The decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    decision_page_id: Option<String>,
    /// The decision's skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    decision_skill: Option<String>,
    /// What it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    expectation_page_id: Option<String>,
    /// What replaced that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    superseding_page_id: Option<String>,
    /// When the decision was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    decided_at: Option<String>,
    /// When its ground was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    superseded_at: Option<String>,
    /// The page that was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    page_id: Option<String>,
    /// Its skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    skill: Option<String>,
    /// The header key by which it was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", default)]
    via: Option<String>,
}

impl Tool for ProvenanceReport {
    const SPEC: Spec = Spec {
        name: "provenance_report",
        title: "Drift and abandonment",
        aliases: &[],
        scope: Scope::Agent,
        execution: Execution::Deterministic,
        effect: Effect::Read,
        quota: Quota::Query,
        run: Run::Blocking,
        argument_aliases: &[],
        numbered: &[Numbered {
            code: Code::InvalidArgument,
            at: Some("kind"),
            number: -32602,
        }],
        examples: &[
            ("decisions to look at again", r#"{"kind": "drift"}"#),
            (
                "expectations that no longer hold",
                r#"{"kind": "abandoned", "skill": "expectation"}"#,
            ),
        ],
        cli: Cli {
            positional: &["kind"],
            from_file: &[],
            table,
        },
    };
    type Output = ReportAnswer;

    fn call(self, cx: &Call<'_>) -> Result<ReportAnswer, Refusal> {
        let kind = match self.kind {
            Kind::Drift => core::ReportKind::Drift,
            Kind::Abandoned => core::ReportKind::Abandoned,
        };
        let rows = match cx
            .kb
            .provenance_report(cx.caller, kind, self.skill.as_deref())?
        {
            core::Report::Drift(rows) => rows.into_iter().map(Row::from).collect(),
            core::Report::Abandoned(rows) => rows.into_iter().map(Row::from).collect(),
        };
        Ok(ReportAnswer {
            kind: self.kind,
            rows,
        })
    }
}

impl From<core::DriftRow> for Row {
    fn from(r: core::DriftRow) -> Row {
        Row {
            decision_page_id: Some(r.decision_page_id),
            decision_skill: Some(r.decision_skill),
            expectation_page_id: Some(r.expectation_page_id),
            superseding_page_id: Some(r.superseding_page_id),
            decided_at: Some(r.decided_at),
            superseded_at: Some(r.superseded_at),
            ..Row::default()
        }
    }
}

impl From<core::AbandonedRow> for Row {
    fn from(r: core::AbandonedRow) -> Row {
        Row {
            page_id: Some(r.page_id),
            skill: Some(r.skill),
            via: Some(r.via),
            ..Row::default()
        }
    }
}

fn table(answer: &Value) -> Table {
    if answer["kind"] == "abandoned" {
        let columns = [("Page", "/page_id"), ("Skill", "/skill"), ("By", "/via")];
        return Table::of(answer, "/rows", &columns).counted("page", "pages");
    }
    let columns = [
        ("Decided", "/decided_at"),
        ("Decision", "/decision_page_id"),
        ("Rests on", "/expectation_page_id"),
        ("Superseded", "/superseded_at"),
        ("By", "/superseding_page_id"),
    ];
    Table::of(answer, "/rows", &columns).counted("decision", "decisions")
}
