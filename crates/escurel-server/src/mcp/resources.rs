//! Pages as resources: listing, reading, and the cursor between pages of the list.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use escurel_core::api::PageRef;
use escurel_core::{Code, Refusal};
use escurel_tools::refusal_json;
use serde_json::{Value, json};

use super::era::Era;
use super::reply::{Answer, Cache, RpcError, short};
use super::{Context, fixtures, percent};

const PREFIX: &str = "escurel://page/";
const PAGE: usize = 200;
/// Pages change whenever somebody saves a file.
const NEVER: Cache = Cache {
    ttl_ms: 0,
    scope: "private",
};

/// The path after which a listing goes on.
pub fn cursor(cursor: Option<&Value>) -> Result<Option<String>, RpcError> {
    let text = match cursor {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(bad_cursor()),
    };
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad_cursor())?;
    let path = String::from_utf8(bytes).map_err(|_| bad_cursor())?;
    path.strip_prefix("after:")
        .map(|path| Some(path.to_owned()))
        .ok_or_else(bad_cursor)
}

fn bad_cursor() -> RpcError {
    RpcError::invalid_params(
        "cursor_invalid",
        "The cursor was not made by this listing. Start again without a cursor.",
    )
}

pub fn list(cx: Context<'_>, after: Option<&str>) -> Result<Answer, RpcError> {
    let mut pages = cx
        .service
        .kb
        .list_pages(cx.caller, after, PAGE + 1)
        .map_err(|r| refused(&r))?;
    let more = pages.len() > PAGE;
    pages.truncate(PAGE);
    let next = pages
        .last()
        .filter(|_| more)
        .map(|page| URL_SAFE_NO_PAD.encode(format!("after:{}", page.page_id)));
    let mut resources: Vec<Value> = pages.iter().map(resource).collect();
    if cx.service.fixtures && after.is_none() {
        resources.extend(fixtures::resources());
    }
    Ok(Answer::default()
        .with("resources", &resources)
        .maybe("nextCursor", next.as_deref())
        .cached(NEVER))
}

fn resource(page: &PageRef) -> Value {
    json!({
        "uri": uri(&page.page_id),
        "name": page.page_id,
        "title": page.title,
        "description": format!("{} [[{}::{}]]", page.page_type.as_str(), page.skill, page.slug),
        "mimeType": "text/markdown",
    })
}

fn uri(page_id: &str) -> String {
    format!("{PREFIX}{}", percent::encode(page_id))
}

pub fn read(cx: Context<'_>, era: Era, uri: &str) -> Result<Answer, RpcError> {
    if cx.service.fixtures
        && let Some(contents) = fixtures::read(uri)
    {
        return Ok(Answer::default()
            .with("contents", &[contents])
            .cached(NEVER));
    }
    let path = uri
        .strip_prefix(PREFIX)
        .and_then(percent::decode)
        .ok_or_else(|| missing(uri, era))?;
    let found = cx
        .service
        .kb
        .page_text(cx.caller, &path)
        .map_err(|refusal| match refusal.code {
            Code::PageNotFound => missing(uri, era),
            _ => refused(&refusal),
        })?;
    let (page, text) = found.ok_or_else(|| missing(uri, era))?;
    let contents = json!({
        "uri": uri,
        "mimeType": "text/markdown",
        "text": text,
        "_meta": {"escurel/page_id": page.page_id, "escurel/version": format!("v{}", page.version)},
    });
    Ok(Answer::default()
        .with("contents", &[contents])
        .cached(NEVER))
}

fn missing(uri: &str, era: Era) -> RpcError {
    let code = if era == Era::Modern { -32602 } else { -32002 };
    let data = json!({"code": Code::PageNotFound.name(), "retryable": false, "uri": short(uri)});
    RpcError::new(code, format!("There is no resource {}.", short(uri)), data)
}

fn refused(refusal: &Refusal) -> RpcError {
    RpcError::new(-32602, refusal.to_string(), refusal_json(refusal))
}
