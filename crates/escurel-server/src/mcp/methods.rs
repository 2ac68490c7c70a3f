//! The methods of the protocol: which there are, and what they answer.

use escurel_tools::Run;
use serde_json::{Map, Value, json};

use super::era::{self, Era};
use super::reply::{Answer, Cache, RpcError, server_info, short};
use super::{Context, fixtures, resources, tools};
use crate::service::Service;

type Params = Map<String, Value>;

/// The tool list changes with the release and with the caller's role only.
const TOOL_LIST: Cache = Cache {
    ttl_ms: 300_000,
    scope: "private",
};
const FIXED: Cache = Cache {
    ttl_ms: 300_000,
    scope: "public",
};

/// Shown to the model by many clients.
pub const INSTRUCTIONS: &str = "A knowledge base of linked markdown pages. Work in a loop: \
`search` with the words of the question; `expand` the page_id of a good hit (with its anchor for one section); \
follow links with `neighbours`; repeat until the pages answer the question, then cite them as [[skill::id]]. \
`list_skills` tells which kinds of pages exist and which fields they have, `list_instances` lists one kind, \
`resolve` turns a [[wikilink]] into a page. Pages are also resources, escurel://page/<path>. \
A failed call names its code, the argument at fault and the next step: change the call, and repeat it unchanged only if it says retryable.";

/// A request whose parameters have the right shape.
pub enum Method {
    Discover,
    Initialize {
        requested: Option<String>,
    },
    Ping,
    ToolsList {
        top_level_labels: bool,
    },
    ToolsCall {
        name: String,
        arguments: Value,
        run: Run,
    },
    ResourcesList {
        after: Option<String>,
    },
    ResourcesRead {
        uri: String,
    },
    TemplatesList,
    PromptsList,
}

impl Method {
    pub fn parse(
        service: &Service,
        era: Era,
        method: &str,
        params: Params,
    ) -> Result<Method, RpcError> {
        Ok(match (method, era) {
            ("server/discover", Era::Modern) => Method::Discover,
            ("initialize", Era::Legacy) => Method::Initialize {
                requested: text(&params, "protocolVersion"),
            },
            ("ping", Era::Legacy) => Method::Ping,
            ("tools/list", _) => {
                no_cursor(&params)?;
                Method::ToolsList {
                    top_level_labels: text(&params, "labels").as_deref() == Some("top_level"),
                }
            }
            ("tools/call", _) => call(service, params)?,
            ("resources/list", _) => Method::ResourcesList {
                after: resources::cursor(params.get("cursor"))?,
            },
            ("resources/read", _) => Method::ResourcesRead {
                uri: required(&params, "uri")?,
            },
            ("resources/templates/list", _) => {
                no_cursor(&params)?;
                Method::TemplatesList
            }
            ("prompts/list", _) => {
                no_cursor(&params)?;
                Method::PromptsList
            }
            ("prompts/get", _) => {
                let name = required(&params, "name")?;
                return Err(RpcError::invalid_params(
                    "prompt_not_found",
                    format!("There is no prompt {}.", short(&name)),
                ));
            }
            _ => return Err(RpcError::method_not_found(method)),
        })
    }

    pub fn run(&self) -> Run {
        match self {
            Method::ToolsCall { run, .. } => *run,
            Method::ResourcesRead { .. } => Run::Blocking,
            _ => Run::Inline,
        }
    }

    pub fn answer(self, cx: Context<'_>, era: Era) -> Result<Answer, RpcError> {
        Ok(match self {
            Method::Discover => discover(),
            Method::Initialize { requested } => initialize(requested.as_deref()),
            Method::Ping => Answer::default(),
            Method::ToolsList { top_level_labels } => tools_list(cx, top_level_labels),
            Method::ToolsCall {
                name, arguments, ..
            } => return tools::call(cx, &name, arguments),
            Method::ResourcesList { after } => return resources::list(cx, after.as_deref()),
            Method::ResourcesRead { uri } => return resources::read(cx, era, &uri),
            Method::TemplatesList => templates(cx),
            Method::PromptsList => Answer::default().with("prompts", &[(); 0]).cached(FIXED),
        })
    }
}

fn call(service: &Service, params: Params) -> Result<Method, RpcError> {
    let name = required(&params, "name")?;
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => json!({}),
        Some(Value::Object(_)) => params.get("arguments").cloned().unwrap_or_default(),
        Some(_) => {
            return Err(RpcError::invalid_params(
                "invalid_argument",
                "params.arguments must be an object.",
            ));
        }
    };
    let run = service.run_of(&name, &arguments);
    Ok(Method::ToolsCall {
        name,
        arguments,
        run,
    })
}

fn capabilities() -> Value {
    json!({"tools": {}, "resources": {}, "prompts": {}})
}

fn discover() -> Answer {
    Answer::default()
        .with("supportedVersions", era::MODERN)
        .with("capabilities", &capabilities())
        .with("instructions", INSTRUCTIONS)
        .cached(FIXED)
}

fn initialize(requested: Option<&str>) -> Answer {
    Answer::default()
        .with("protocolVersion", era::negotiate(requested))
        .with("capabilities", &capabilities())
        .with("serverInfo", &server_info())
        .with("instructions", INSTRUCTIONS)
}

fn tools_list(cx: Context<'_>, top_level_labels: bool) -> Answer {
    let list = cx.service.catalog.list_json(cx.caller, top_level_labels);
    let answer = match cx.service.fixtures {
        true => Answer::default().with_json("tools", &fixtures::extend_tools(&list)),
        false => Answer::default().with_json("tools", &list),
    };
    answer.cached(TOOL_LIST)
}

fn templates(cx: Context<'_>) -> Answer {
    let mut templates = vec![json!({
        "uriTemplate": "escurel://page/{+path}",
        "name": "page",
        "title": "Page by path",
        "description": "The whole text of the page at this path, percent-encoded.",
        "mimeType": "text/markdown",
    })];
    if cx.service.fixtures {
        templates.push(fixtures::template());
    }
    Answer::default()
        .with("resourceTemplates", &templates)
        .cached(FIXED)
}

fn text(params: &Params, key: &str) -> Option<String> {
    params.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn required(params: &Params, key: &str) -> Result<String, RpcError> {
    text(params, key).ok_or_else(|| {
        RpcError::invalid_params(
            "invalid_argument",
            format!("params.{key} must be a string."),
        )
    })
}

/// Lists that fit one page never gave out a cursor.
fn no_cursor(params: &Params) -> Result<(), RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(cursor)) if cursor.is_empty() => Ok(()),
        Some(_) => Err(RpcError::invalid_params(
            "cursor_invalid",
            "This list has one page and no cursor.",
        )),
    }
}
