//! A client that others wrote.

use rmcp::model::{CallToolRequestParams, ProtocolVersion, ReadResourceRequestParams};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt};
use serde_json::json;

use crate::support::{Place, Server};

#[derive(Clone, Default)]
struct Client;

impl ClientHandler for Client {}

async fn drive(url: String, mode: ClientLifecycleMode) {
    let client = Client
        .serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), mode)
        .await
        .unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert!(tools.iter().any(|tool| tool.name == "search") && tools.len() >= 10);
    let arguments = json!({"q": "renewal"}).as_object().unwrap().clone();
    let found = client
        .call_tool(CallToolRequestParams::new("search").with_arguments(arguments))
        .await
        .unwrap();
    assert_eq!(
        found.structured_content.unwrap()["hits"][0]["page_id"],
        "acme.md"
    );
    let refused = client
        .call_tool(CallToolRequestParams::new("search"))
        .await
        .unwrap();
    assert_eq!(refused.is_error, Some(true));
    assert!(
        client
            .call_tool(CallToolRequestParams::new("nope"))
            .await
            .is_err()
    );
    let resources = client.list_all_resources().await.unwrap();
    let page = resources
        .iter()
        .find(|r| r.uri.ends_with("acme.md"))
        .unwrap();
    let read = client
        .read_resource(ReadResourceRequestParams::new(page.uri.clone()))
        .await
        .unwrap();
    assert_eq!(read.contents.len(), 1);
    client.cancel().await.unwrap();
}

#[test]
fn rmcp_in_both_eras() {
    let place = Place::new();
    let server = Server::start(&place, &[place.vault()]);
    server.wait_ready();
    let url = format!("http://{}/mcp", server.address);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        drive(url.clone(), ClientLifecycleMode::Initialize).await;
        drive(
            url.clone(),
            ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        )
        .await;
    });
}
