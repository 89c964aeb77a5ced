//! Requests of the REST gateway.

use crate::Target;

/// Paths, headers, filters and bodies.
pub const REST: Target = Target {
    name: "rest",
    about: "what a REST request says as a path, an Accept header, a filter in JSON, and a body in XML, JSON and protobuf",
    max_len: 4096,
    words: &["<CellSet>", "<Row key=\"", "\"column\":\"", "<Scanner batch=\"", "\"ColumnSchema\":[", "%2F", "*/", "&#"],
    seeds,
    run: ::rest::decode_anything,
};

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "/t/r1,r2/f:a,h:/0,50?v=3",
        "/t/_w==/Zjpx",
        "/t/r%2F*/f:q",
        "text/html;q=0.5, application/json",
        r#"{"Row":[{"key":"cjE=","Cell":[{"column":"ZjpxMQ==","timestamp":7,"$":"dmFsdWU="}]}]}"#,
        r#"<CellSet><Row key="cjE="><Cell column="ZjpxMQ==" timestamp="7">dmFsdWU=</Cell></Row></CellSet>"#,
        r#"{"name":"t","ColumnSchema":[{"name":"f","VERSIONS":"3"}]}"#,
        r#"<TableSchema name="t"><ColumnSchema name="h" COMPRESSION="NONE"/></TableSchema>"#,
        r#"<Scanner batch="5" startRow="cjI=" maxVersions="1"><column>Zjph</column><filter>{}</filter></Scanner>"#,
        r#"{"batch":7,"startRow":"cjE=","endRow":"cjI=","column":["Zjph"]}"#,
        r#"{"type":"FilterList","op":"MUST_PASS_ONE","filters":[{"type":"PrefixFilter","value":"bQ=="}]}"#,
        r#"<NamespaceProperties><properties><entry key="a" value="b"/></properties></NamespaceProperties>"#,
    ];
    let mut seeds: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).into();
    // A CellSet in protobuf: a row with one cell.
    seeds.push(b"\x0a\x14\x0a\x02r1\x12\x0e\x12\x03f:q\x18\x07\x22\x05value".to_vec());
    seeds
}
