//! The one runner: every transport, the command line and the tests call it.
//!
//! Decides nothing about pages. Invariant: a handler never sees an argument
//! that its schema does not allow.

use escurel_core::Refusal;
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::once;
use crate::spec::{Scope, Spec};
use crate::tool::Call;
use crate::wire::refusal_json;

#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    #[error("There is no tool {name:?}.{}", hint(.nearest))]
    UnknownTool {
        name: String,
        nearest: Option<String>,
    },
    #[error("Only an administrator may call this tool.")]
    AdminRequired,
    /// Where the contract prints a number.
    #[error("{message}")]
    Rpc {
        code: i64,
        message: String,
        data: Value,
    },
    /// Everything else: a result with `isError`.
    #[error("{0}")]
    Refused(Refusal),
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |n| format!(" Did you mean {n}?"))
}

/// Finds the tool, checks the scope and the arguments, and runs it. The answer is JSON text.
pub fn dispatch(
    catalog: &Catalog,
    cx: &Call<'_>,
    name: &str,
    arguments: Value,
) -> Result<String, DispatchError> {
    let Some(position) = catalog.position(name) else {
        return Err(unknown_tool(catalog, cx, name));
    };
    let entry = &catalog.entries()[position];
    if entry.spec.scope == Scope::Admin && !cx.caller.is_admin() {
        return Err(DispatchError::AdminRequired);
    }
    cx.kb.readable().map_err(DispatchError::Refused)?;
    let params = &catalog.derived(position).params;
    let checked = params.check(&entry.spec, arguments);
    checked
        .and_then(|arguments| once::run(entry, cx, arguments))
        .map_err(|refusal| rendered(&entry.spec, refusal))
}

/// The name is cut: it may be long, and it is echoed.
fn unknown_tool(catalog: &Catalog, cx: &Call<'_>, name: &str) -> DispatchError {
    let visible = catalog.visible(cx.caller).map(|e| e.spec.name);
    let nearest = crate::nearest::nearest(name, visible).map(str::to_owned);
    DispatchError::UnknownTool {
        name: name.chars().take(64).collect(),
        nearest,
    }
}

fn rendered(spec: &Spec, refusal: Refusal) -> DispatchError {
    let fits = |at: Option<&str>| at.is_none() || at == refusal.location.as_deref();
    match spec
        .numbered
        .iter()
        .find(|n| n.code == refusal.code && fits(n.at))
    {
        Some(n) => DispatchError::Rpc {
            code: n.number,
            message: refusal.to_string(),
            data: refusal_json(&refusal),
        },
        None => DispatchError::Refused(refusal),
    }
}

impl DispatchError {
    /// The number for a JSON-RPC error; `None` for an `isError` result.
    pub fn rpc_code(&self) -> Option<i64> {
        match self {
            DispatchError::UnknownTool { .. } => Some(-32602),
            DispatchError::AdminRequired => Some(-32001),
            DispatchError::Rpc { code, .. } => Some(*code),
            DispatchError::Refused(_) => None,
        }
    }

    /// What went wrong, without the code, for those who show that beside it.
    pub fn sentence(&self) -> String {
        let message = self.to_string();
        let data = self.data();
        let code = data["code"].as_str().unwrap_or_default();
        let bare = message
            .strip_prefix(code)
            .and_then(|rest| rest.strip_prefix(": "));
        bare.map(str::to_owned).unwrap_or(message)
    }

    /// `data` of a JSON-RPC error, `_meta["escurel/error"]` of a result.
    pub fn data(&self) -> Value {
        match self {
            DispatchError::UnknownTool { nearest, .. } => {
                let mut data = json!({ "code": "unknown_tool", "retryable": false });
                if let Some(nearest) = nearest {
                    data["candidates"] = json!([nearest]);
                }
                data
            }
            DispatchError::AdminRequired => json!({ "code": "admin_required", "retryable": false }),
            DispatchError::Rpc { data, .. } => data.clone(),
            DispatchError::Refused(refusal) => refusal_json(refusal),
        }
    }
}
