//! The answers of Apache HBase's REST server to a corpus of requests (`tests/golden/rest/record.py`), and ours: protobuf, XML and values byte by
//! byte, JSON by value, errors by status.

use crate::http::{Response, Rest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const ANSWERS: &str = include_str!("../../../tests/golden/rest/answers.jsonl");

/// Requests that we answer otherwise, with our status and the reason.
fn ours(method: &str, path: &str, status: u16) -> Option<u16> {
    match (method, path) {
        // A path or body that cannot be read is the client's fault; Apache's server answers some with 500.
        ("GET", "/g/r00/f:a/x" | "/g/r00?v=x" | "/g/r00/,f") | ("PUT", "/g/r00") if status == 500 => Some(400),
        // No rows are no rows, whether for want of a table or of keys; Apache's server ends in a NullPointerException.
        ("GET", "/none/multiget?row=r00") => Some(404),
        _ => None,
    }
}

struct Exchange {
    line: usize,
    value: Value,
}

impl Exchange {
    fn text(&self, name: &str) -> &str {
        self.value[name].as_str().unwrap_or_default()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        STANDARD.decode(self.text(name)).expect("base64")
    }

    async fn ask(&self, rest: &Rest, scanner: &str) -> Response {
        let path = self.text("path").replace("{scanner}", scanner);
        let headers = self.value["headers"].as_object().expect("headers").iter();
        let headers: Vec<String> =
            headers.map(|(name, value)| format!("{name}: {}", value.as_str().expect("text"))).collect();
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        rest.request(&format!("{} {path}", self.text("method")), &headers, &self.bytes("body")).await
    }

    /// What is wrong with our answer; nothing if it is theirs.
    fn difference(&self, answer: &Response) -> Option<String> {
        let status = self.value["status"].as_u64().unwrap_or_default() as u16;
        let wanted = ours(self.text("method"), self.text("path"), status).unwrap_or(status);
        let theirs = self.bytes("answer");
        let say = |what: &str, theirs: &[u8]| {
            let (method, path, headers) = (self.text("method"), self.text("path"), &self.value["headers"]);
            let theirs = String::from_utf8_lossy(theirs).into_owned();
            Some(format!(
                "line {}: {method} {path} {headers}: {what}\n  theirs {status} {theirs}\n  ours   {} {}",
                self.line,
                answer.status,
                answer.text()
            ))
        };
        if answer.status != wanted {
            return say("status", &theirs);
        }
        if status >= 300 {
            return None;
        }
        let kind = self.text("type");
        if !theirs.is_empty() && answer.header("content-type") != Some(kind) {
            return say("content type", &theirs);
        }
        let same = match kind {
            "application/json" if !theirs.is_empty() => {
                let [theirs, ours] = [&theirs, &answer.body].map(|body| serde_json::from_slice::<Value>(body).ok());
                theirs == ours
            }
            _ => theirs == answer.body,
        };
        if same { None } else { say("body", &theirs) }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_apache_hbase() {
    let rest = Rest::start(&[]).await;
    let mut scanner = "/g/scanner/none".to_owned();
    let mut differences = Vec::new();
    let mut count = 0;
    for (at, line) in ANSWERS.lines().enumerate() {
        let exchange = Exchange { line: at + 1, value: serde_json::from_str(line).expect("JSON") };
        let answer = exchange.ask(&rest, &scanner).await;
        if let Some(location) = answer.header("location").filter(|location| location.contains("/scanner/")) {
            scanner = location.replace("http://gateway", "");
        }
        differences.extend(exchange.difference(&answer));
        count += 1;
    }
    rest.stop().await;
    assert!(count >= 500, "{count} exchanges");
    assert!(differences.is_empty(), "{} of {count} differ\n{}", differences.len(), differences.join("\n"));
}
