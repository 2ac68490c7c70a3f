//! Embedding providers against servers that speak their protocols.

use std::time::Duration;

use escurel_search::{
    EmbedError, Embedder, EmbeddingGemma, Gemini, OpenAi, Patience, Purpose, RemoteSettings,
};
use escurel_test_http::{Reply, Request, TestServer};
use serde_json::{Value, json};

const KEY: &str = "sk-very-secret";

fn settings(server: &TestServer) -> RemoteSettings {
    RemoteSettings {
        url: Some(server.url("/v1/")),
        ..RemoteSettings::default()
    }
}

/// A model of three dimensions behind OpenAI's protocol.
fn openai(server: &TestServer) -> OpenAi {
    let settings = RemoteSettings {
        model: Some("local-model".to_owned()),
        dimensions: Some(3),
        api_key: Some(KEY.to_owned()),
        ..settings(server)
    };
    OpenAi::new(&settings).unwrap()
}

/// Vectors in OpenAI's form, the last one first.
fn rows(vectors: &[&[f32]]) -> Reply {
    let row = |(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector});
    let rows: Vec<Value> = vectors.iter().enumerate().map(row).rev().collect();
    Reply::json(&json!({"object": "list", "data": rows, "model": "m", "usage": {}}))
}

/// So many vectors of one length as there are texts.
fn same(request: &Request, dimensions: usize) -> Reply {
    let texts = request.json()["input"].as_array().map_or(0, Vec::len);
    let vector = vec![0.5; dimensions];
    rows(&vec![vector.as_slice(); texts])
}

fn length(vector: &[f32]) -> f32 {
    vector.iter().map(|x| x * x).sum::<f32>().sqrt()
}

fn document(embedder: &dyn Embedder, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
    embedder.embed(texts, Purpose::Document)
}

fn is_refused(error: &EmbedError) -> bool {
    matches!(error, EmbedError::Refused(_))
}

#[test]
fn openai_is_asked_for_all_texts_at_once_and_its_order_is_mended() {
    let server = TestServer::start(|_| rows(&[&[3.0, 0.0, 4.0], &[0.0, 2.0, 0.0]]));
    let vectors = document(&openai(&server), &["one", "two"]).unwrap();
    assert_eq!(vectors, [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]]);
    let asked = &server.requests()[0];
    assert_eq!(
        (asked.method.as_str(), asked.path.as_str()),
        ("POST", "/v1/embeddings")
    );
    assert_eq!(
        asked.json(),
        json!({"model": "local-model", "input": ["one", "two"]})
    );
    assert_eq!(asked.header("authorization"), Some("Bearer sk-very-secret"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
}

#[test]
fn many_texts_are_several_requests() {
    let server = TestServer::start(|request| same(request, 3));
    let openai = openai(&server);
    let texts = vec!["text"; openai.batch() * 2 + 1];
    assert_eq!(document(&openai, &texts).unwrap().len(), texts.len());
    let sizes = server
        .requests()
        .into_iter()
        .map(|r| r.json()["input"].as_array().unwrap().len());
    assert_eq!(
        sizes.collect::<Vec<_>>(),
        [openai.batch(), openai.batch(), 1]
    );
    assert!(document(&openai, &[]).unwrap().is_empty());
}

#[test]
fn a_server_of_ones_own_needs_no_key_and_no_numbers() {
    let reply = json!({"data": [{"embedding": [0.0, 1.0, 0.0]}, {"embedding": [1.0, 0.0, 0.0]}]});
    let server = TestServer::start(move |_| Reply::json(&reply));
    let settings = RemoteSettings {
        model: Some("local-model".to_owned()),
        dimensions: Some(3),
        ..settings(&server)
    };
    let vectors = document(&OpenAi::new(&settings).unwrap(), &["a", "b"]).unwrap();
    assert_eq!(vectors, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]);
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn shorter_vectors_are_asked_for_where_the_model_makes_longer_ones() {
    let server = TestServer::start(|request| {
        let dimensions = request.json()["dimensions"].as_u64().unwrap_or(1536);
        same(request, dimensions as usize)
    });
    let open = |dimensions| {
        OpenAi::new(&RemoteSettings {
            dimensions,
            ..settings(&server)
        })
        .unwrap()
    };
    let (whole, short) = (open(None), open(Some(256)));
    assert_eq!(whole.id(), "openai:text-embedding-3-small@1536");
    assert_eq!(short.id(), "openai:text-embedding-3-small@256");
    for (embedder, dimensions) in [(whole, 1536), (short, 256)] {
        assert_eq!(embedder.dimensions(), dimensions);
        let vectors = document(&embedder, &["text"]).unwrap();
        assert_eq!(vectors[0].len(), dimensions);
        assert!((length(&vectors[0]) - 1.0).abs() < 1e-5);
    }
}

#[test]
fn gemini_is_told_what_texts_are_for() {
    let server = TestServer::start(|request| {
        let requests = request.json()["requests"].as_array().unwrap().len();
        let one = json!({"values": vec![2.0; 768]});
        Reply::json(&json!({"embeddings": vec![one; requests]}))
    });
    let settings = RemoteSettings {
        api_key: Some(KEY.to_owned()),
        ..settings(&server)
    };
    let gemini = Gemini::new(&settings).unwrap();
    assert_eq!(gemini.id(), "gemini:gemini-embedding-001@768");
    let vectors = document(&gemini, &["a", "b"]).unwrap();
    assert_eq!(vectors.len(), 2);
    assert!((length(&vectors[1]) - 1.0).abs() < 1e-5);
    gemini.embed(&["q"], Purpose::Query).unwrap();
    let asked = server.requests();
    assert_eq!(
        asked[0].path,
        "/v1/models/gemini-embedding-001:batchEmbedContents"
    );
    assert_eq!(asked[0].header("x-goog-api-key"), Some(KEY));
    let one = |text: &str, task: &str| {
        json!({
            "model": "models/gemini-embedding-001",
            "content": {"parts": [{"text": text}]},
            "taskType": task,
            "outputDimensionality": 768,
        })
    };
    let documents = ["a", "b"].map(|text| one(text, "RETRIEVAL_DOCUMENT"));
    assert_eq!(asked[0].json(), json!({"requests": documents}));
    assert_eq!(
        asked[1].json(),
        json!({"requests": [one("q", "RETRIEVAL_QUERY")]})
    );
}

#[test]
fn embedding_gemma_knows_its_texts_by_what_stands_before_them() {
    let server = TestServer::start(|request| same(request, 768));
    let gemma = EmbeddingGemma::new(&settings(&server)).unwrap();
    assert_eq!(gemma.id(), "embedding-gemma:embeddinggemma@768");
    document(&gemma, &["Acme\nlate again"]).unwrap();
    gemma.embed(&["who is late?"], Purpose::Query).unwrap();
    let asked = server.requests();
    let body = |input: &str| json!({"model": "embeddinggemma", "input": [input]});
    assert_eq!(
        asked[0].json(),
        body("title: none | text: Acme\nlate again")
    );
    assert_eq!(
        asked[1].json(),
        body("task: search result | query: who is late?")
    );
}

#[test]
fn embedding_gemma_is_cut_to_the_length_that_is_set() {
    let mut whole = vec![0.0f32; 768];
    (whole[0], whole[1], whole[700]) = (3.0, 4.0, 100.0);
    let server = TestServer::start(move |_| rows(&[&whole]));
    let open = |dimensions| {
        let settings = RemoteSettings {
            dimensions: Some(dimensions),
            ..settings(&server)
        };
        EmbeddingGemma::new(&settings)
    };
    for dimensions in [512, 256, 128] {
        let vector = &document(&open(dimensions).unwrap(), &["text"]).unwrap()[0];
        assert_eq!((vector.len(), vector[0], vector[1]), (dimensions, 0.6, 0.8));
    }
    assert!(open(384).is_err());
}

#[test]
fn what_may_pass_is_told_from_what_will_not() {
    let check = |status: u16, retry: bool| {
        let server = TestServer::start(move |_| Reply::status(status));
        let error = document(&openai(&server), &["text"]).unwrap_err();
        assert_eq!(!is_refused(&error), retry, "{status}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    };
    for status in [408, 425, 429, 500, 502, 503, 529] {
        check(status, true);
    }
    for status in [300, 400, 401, 403, 404, 413, 422] {
        check(status, false);
    }
    let gone = TestServer::start(|_| Reply::status(200)).url("/v1");
    let settings = RemoteSettings {
        url: Some(gone),
        ..RemoteSettings::default()
    };
    let error = document(&EmbeddingGemma::new(&settings).unwrap(), &["text"]).unwrap_err();
    assert!(!is_refused(&error), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("embedding-gemma cannot be reached: "),
        "{error}"
    );
}

#[test]
fn a_server_says_when_to_come_back() {
    let check = |status, header: &'static str, expected: Option<u64>| {
        let server =
            TestServer::start(move |_| Reply::status(status).header("retry-after", header));
        let error = document(&openai(&server), &["text"]).unwrap_err();
        assert_eq!(
            error.retry_after(),
            expected.map(Duration::from_secs),
            "{header}"
        );
    };
    check(429, "17", Some(17));
    check(503, "1", Some(1));
    check(429, "999999", Some(600));
    check(429, "Wed, 21 Oct 2026 07:28:00 GMT", None);
    check(400, "17", None);
}

#[test]
fn no_error_holds_a_key_or_a_text() {
    let echo = json!({"error": {"message": format!("Incorrect key {KEY}, got 'page text'")}});
    let check = |status: u16, part: &str| {
        let echo = echo.clone();
        let server = TestServer::start(move |_| Reply::json(&echo).with_status(status));
        let error = document(&openai(&server), &["page text"])
            .unwrap_err()
            .to_string();
        assert!(error.contains(part) && !error.contains(KEY), "{error}");
        error
    };
    check(401, "status 401: Incorrect key …");
    check(403, "status 403");
    for status in [400, 422, 500] {
        let error = check(status, "status");
        assert!(!error.contains("page text"), "{error}");
    }
    let server = TestServer::start(|_| Reply::status(200));
    let settings = RemoteSettings {
        api_key: Some(format!("{KEY}\n")),
        ..settings(&server)
    };
    let error = OpenAi::new(&settings).err().unwrap().to_string();
    assert!(
        error.starts_with("embedding_api_key ") && !error.contains(KEY),
        "{error}"
    );
}

#[test]
fn vectors_of_another_shape_are_refused() {
    let check = |reply: Reply, part: &str| {
        let server = TestServer::start(move |_| reply.clone());
        let error = document(&openai(&server), &["one", "two"]).unwrap_err();
        assert!(
            is_refused(&error) && error.to_string().contains(part),
            "{error}"
        );
    };
    let good: &[f32] = &[1.0, 0.0, 0.0];
    check(rows(&[good]), "1 vectors to 2 texts");
    check(rows(&[good, good, good]), "3 vectors to 2 texts");
    check(
        rows(&[good, &[1.0; 4]]),
        "4 dimensions, and embedding_dimensions is 3",
    );
    check(rows(&[good, &[]]), "0 dimensions");
    check(rows(&[good, &[0.0; 3]]), "no length");
    let twice = json!({"data": [{"index": 0, "embedding": good}, {"index": 0, "embedding": good}]});
    check(Reply::json(&twice), "numbered wrongly");
    check(
        Reply::json(&json!({"data": [{"embedding": ["a"]}]})),
        "not one of embeddings",
    );
    check(Reply::bytes("<html>"), "not one of embeddings");
    check(Reply::status(200), "not one of embeddings");
}

#[test]
fn a_slow_server_costs_a_query_less_patience_than_a_text() {
    let server = TestServer::start(|request| same(request, 3).after(Duration::from_millis(400)));
    let settings = RemoteSettings {
        model: Some("local-model".to_owned()),
        dimensions: Some(3),
        patience: Patience {
            query: Duration::from_millis(50),
            document: Duration::from_secs(20),
        },
        ..settings(&server)
    };
    let openai = OpenAi::new(&settings).unwrap();
    let error = openai.embed(&["q"], Purpose::Query).unwrap_err();
    assert!(
        !is_refused(&error) && error.to_string().contains("no answer in time"),
        "{error}"
    );
    assert_eq!(document(&openai, &["text"]).unwrap().len(), 1);
}

#[test]
fn settings_that_cannot_work_name_their_field() {
    let set = |change: fn(&mut RemoteSettings)| {
        let mut settings = RemoteSettings {
            url: Some("http://127.0.0.1:9/v1".to_owned()),
            api_key: Some(KEY.to_owned()),
            ..RemoteSettings::default()
        };
        change(&mut settings);
        settings
    };
    let field = |settings: &RemoteSettings| OpenAi::new(settings).err().map(|e| e.field);
    let check = |change: fn(&mut RemoteSettings), expected| {
        assert_eq!(
            field(&set(change)),
            expected,
            "{:?}",
            OpenAi::new(&set(change)).err()
        );
    };
    check(|_| {}, None);
    check(
        |s| s.url = Some("127.0.0.1:9".into()),
        Some("embedding_url"),
    );
    check(
        |s| s.url = Some("ftp://a.example".into()),
        Some("embedding_url"),
    );
    check(
        |s| s.url = Some("http://a.example/?x=1".into()),
        Some("embedding_url"),
    );
    check(
        |s| s.model = Some("other".into()),
        Some("embedding_dimensions"),
    );
    check(|s| s.dimensions = Some(4096), Some("embedding_dimensions"));
    check(
        |s| (s.url, s.api_key) = (None, None),
        Some("embedding_api_key"),
    );
    let ada = set(|s| (s.model, s.dimensions) = (Some("text-embedding-ada-002".into()), Some(512)));
    assert_eq!(field(&ada), Some("embedding_dimensions"));
    let gemini = |settings: &RemoteSettings| Gemini::new(settings).err().map(|e| e.field);
    assert_eq!(
        gemini(&set(|s| s.api_key = None)),
        Some("embedding_api_key")
    );
    assert_eq!(
        gemini(&set(|s| s.dimensions = Some(4000))),
        Some("embedding_dimensions")
    );
    assert_eq!(
        gemini(&set(|s| s.model = Some("../x".into()))),
        Some("embedding_model")
    );
    assert_eq!(gemini(&set(|s| s.model = Some("models/m-1".into()))), None);
}
