#!/usr/bin/env python3
"""Records what Apache HBase's REST server answers to a corpus of requests, for crates/rest/tests/golden.rs.

    record.py http://127.0.0.1:8080 > answers.jsonl

The server must have no table called g and no namespace gn. One line is one exchange: the request, and the answer's status,
content type and body (base64). `{scanner}` in a path is the place that the last scanner was made at.
"""
import base64
import http.client
import json
import sys
import urllib.parse

XML, JSON, PB, PB2, RAW = ("text/xml", "application/json", "application/x-protobuf", "application/protobuf",
                           "application/octet-stream")
MODELS = (XML, JSON, PB, PB2)


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(tag, body):
    """A protobuf field that is bytes or a message."""
    return varint(tag << 3 | 2) + varint(len(body)) + body


def cell_set(media, rows):
    """Rows as `(key, [(column, time, value)])`; a key, column or time may be None."""
    if media == JSON:
        cell = lambda c: {k: v for k, v in (("column", c[0] and b64(c[0])), ("timestamp", c[1]), ("$", b64(c[2]))) if v is not None}
        return json.dumps({"Row": [({"key": b64(k)} if k is not None else {}) | {"Cell": [cell(c) for c in cells]}
                                   for k, cells in rows]}).encode()
    if media == XML:
        attr = lambda name, value: "" if value is None else f' {name}="{value}"'
        cell = lambda c: f'<Cell{attr("column", c[0] and b64(c[0]))}{attr("timestamp", c[1])}>{b64(c[2])}</Cell>'
        row = lambda k, cells: f'<Row{attr("key", None if k is None else b64(k))}>{"".join(map(cell, cells))}</Row>'
        return f'<CellSet>{"".join(row(*r) for r in rows)}</CellSet>'.encode()
    cell = lambda c: field(2, c[0].encode()) + (b"" if c[1] is None else b"\x18" + varint(c[1])) + field(4, c[2].encode())
    return b"".join(field(1, field(1, k.encode()) + b"".join(field(2, cell(c)) for c in cells)) for k, cells in rows)


def corpus():
    """Yields method, path, headers, body."""
    accept = lambda media: {"Accept": media}
    get = lambda path, media: ("GET", path, accept(media), b"")
    put = lambda path, media, body, method="PUT": (method, path, {"Content-Type": media}, body)

    def read(path, media=MODELS):
        for one in media:
            yield get(path, one)

    # Tables.
    yield from read("/g/exists", ("*/*", XML))
    yield from read("/g/schema")
    yield put("/g/schema", JSON, b'{"name":"g","ColumnSchema":[{"name":"f","VERSIONS":"3","BLOCKSIZE":"16384"},{"name":"h"}]}')
    yield put("/g/schema", XML, b'<TableSchema name="g"><ColumnSchema name="h" COMPRESSION="NONE"/><ColumnSchema name="i" TTL="1000000"/></TableSchema>', "POST")
    yield from read("/g/schema", ("text/plain", "*/*") + MODELS)
    yield from read("/", ("text/plain", "*/*") + MODELS)
    yield from read("/g/exists", ("*/*", XML))
    # Writes, in every encoding; each row holds several columns and versions.
    for n, media in enumerate(MODELS):
        for i in range(8):
            key = f"r{n}{i}"
            cells = [("f:a", 10 + i, f"a{i}"), ("f:b", 20, "x" * i * 7), ("h:", 30, "empty qualifier"), ("h:c/d e", 40, "<&>\"'")]
            yield put(f"/g/{key}", media, cell_set(media, [(key, cells)]), "POST" if i % 2 else "PUT")
            yield put(f"/g/{key}", media, cell_set(media, [(key, [("f:a", 100 + i, "newer")])]))
        yield put("/g/any", media, cell_set(media, [(f"m{n}1", [("f:q", 1, "1")]), (f"m{n}2", [("f:q", 2, "2")])]))
        yield put("/g/x", media, cell_set(media, [("y", [("nofamily:q", 1, "1")])]))
        yield put("/g/x", media, cell_set(media, [("y", [("f", 1, "1")])]))
        yield put("/none/x", media, cell_set(media, [("y", [("f:q", 1, "1")])]))
    for media in (XML, JSON):
        yield put("/g/frompath/f:p,f:o", media, cell_set(media, [(None, [(None, 7, "first"), (None, 8, "second")])]))
        yield put("/g/frompath/f:p", media, cell_set(media, [(None, [(None, 7, "first"), (None, 8, "second")])]))
    yield from read("/g/frompath")
    yield ("PUT", "/g/raw/f:q", {"Content-Type": RAW, "X-Timestamp": "77"}, bytes(range(256)))
    yield ("POST", "/g/raw/f:q", {"Content-Type": RAW, "X-Timestamp": "78", "X-Row": "raw2", "X-Column": "h:x"}, b"elsewhere")
    yield ("PUT", "/g/raw/f", {"Content-Type": RAW, "X-Timestamp": "77"}, b"1")
    yield ("PUT", "/g/raw", {"Content-Type": RAW, "X-Timestamp": "77"}, b"1")
    yield ("PUT", "/g/raw/f:q", {"Content-Type": "image/png"}, b"1")
    yield ("PUT", "/g/_w==/Zjpx?e=b64url", {"Content-Type": RAW, "X-Timestamp": "5"}, b"binary key")
    # Reads.
    for n in range(4):
        for i in (0, 3, 7):
            yield from read(f"/g/r{n}{i}")
    for path in ("/g/raw", "/g/raw2", "/g/r00/f:a", "/g/r00/f:a?v=3", "/g/r03/f:a/0,50?v=5", "/g/r03/f:a/50", "/g/r03/f",
                 "/g/r03/h:", "/g/r03/h:c%2Fd%20e", "/g/r03/h:c%2Fd+e", "/g/r03/f:a,h:", "/g/r03/f:none", "/g/none", "/none/r",
                 "/g/r03/nofamily:q", "/g/r0*/f:a", "/g/r0*/f:a?v=2", "/g/r01,r03/", "/g/r01,r03/f:b", "/g/z*/f:a",
                 "/g/_w==/Zjpx?e=b64url", "/g/_w==?e=b64url", "/g/%2Fw==?e=b64basic", "/g/r00/f:a/20,5", "/g/r00?nocache=1",
                 "/g/multiget?row=r00&row=r11", "/g/multiget?row=r00/f:b&row=none", "/g/multiget?row=none",
                 "/g/multiget/f:a?row=r00&row=r31&v=2", "/g/multiget/f:a,h:?row=r00", "/g/multiget?row=cjAw&e=b64url",
                 "/g/multiget?row=r00&filter=ValueFilter(%3D,'binary:newer')", "/none/multiget?row=r00",
                 "/g/multiget?row=r00&filter_b64=S2V5T25seUZpbHRlcigp"):
        yield from read(path)
    for path in ("/g/raw/f:q", "/g/r00/f:a", "/g/r00/f:none", "/g/r00", "/g/r00/f:a,f:b", "/g/r00/h:", "/g/none/f:a", "/none/r/f:q",
                 "/g/r03/f:a/0,50", "/g/r00/f", "/g/r0*/f:a"):
        yield from read(path, ("*/*", RAW))
    # Stateless scans.
    for query in ("", "?limit=3", "?limit=1", "?limit=25", "?startrow=r10&endrow=r13", "?column=f:a&limit=4",
                  "?column=f:a&column=h:&limit=12&maxversions=2", "?batchsize=2&limit=5", "?reversed=true&limit=4",
                  "?starttime=15&endtime=25&limit=4", "?filter=PrefixFilter('r2')", "?filter_b64=S2V5T25seUZpbHRlcigp&limit=2",
                  "?cacheblocks=false&limit=2", "?startrow=zz"):
        yield from read("/g/*" + query)
    for path in ("/g/r0*", "/g/r3*?column=f:b", "/g/nothing*", "/g/r1*?startrow=r15&limit=2"):
        yield from read(path)
    # Stateful scanners.
    for media, body in ((XML, b'<Scanner batch="5"/>'), (JSON, b'{"batch":7,"startRow":"cjE=","endRow":"cjI="}'),
                        (XML, b'<Scanner batch="1000" maxVersions="1" startRow="cjI="><column>Zjph</column></Scanner>'),
                        (PB, field(1, b"r3") + b"\x20\x04"),
                        (JSON, json.dumps({"batch": 9, "filter": json.dumps({"type": "PrefixFilter", "value": b64("m")})}).encode()),
                        (JSON, json.dumps({"batch": 50, "filter": json.dumps({"type": "FilterList", "op": "MUST_PASS_ONE", "filters": [
                            {"type": "RowFilter", "op": "EQUAL", "comparator": {"type": "BinaryComparator", "value": b64("r00")}},
                            {"type": "QualifierFilter", "op": "EQUAL", "comparator": {"type": "SubstringComparator", "value": "C/D"}}]})}).encode()),
                        (JSON, b'{"startTime":15,"endTime":25,"batch":3}')):
        yield put("/g/scanner", media, body, "PUT" if media == XML else "POST")
        for n, one in enumerate((XML, JSON, PB, RAW, PB2, XML)):
            yield get("{scanner}" + ("", "?n=1", "?c=2", "", "?n=2&c=9", "")[n], one)
        yield ("DELETE", "{scanner}", {}, b"")
        yield get("{scanner}", XML)
        yield ("DELETE", "{scanner}", {}, b"")
    yield put("/g/scanner", JSON, b'{"filter":"nonsense"}')
    yield put("/g/scanner", JSON, b'{"filter":"{\\"type\\":\\"NoFilter\\"}"}')
    yield put("/g/scanner", "image/png", b"x")
    # Conditions, appends, increments.
    for n, media in enumerate(MODELS):
        # A row for each: what the server stamps must not come back in an answer.
        one = lambda media, *cells: cell_set(media, [(f"c{n}", list(cells))])
        yield put(f"/g/c{n}", media, one(media, ("f:q", 1, "old")))
        yield put(f"/g/c{n}?check=put", media, one(media, ("f:q", 2, "new"), ("f:q", None, "wrong")))
        yield put(f"/g/c{n}?check=put", media, one(media, ("f:q", 2, "new"), ("f:o", 3, "also"), ("f:q", None, "old")))
        yield put(f"/g/c{n}?check=put", media, one(media, ("f:q", 2, "new")))
        yield put(f"/g/c{n}?check=put", media, one(media, ("f:o", 2, "new"), ("f:q", None, "new")))
        yield from read(f"/g/c{n}", (XML, RAW))
        yield put(f"/g/c{n}?check=delete", media, one(media, ("f:q", None, "wrong")))
        yield put(f"/g/c{n}?check=delete", media, one(media, ("f:o", 3, ""), ("f:q", None, "new")))
        yield from read(f"/g/c{n}", (XML,))
        yield put(f"/g/c{n}?check=delete", media, one(media, ("f:q", None, "new")))
        yield put(f"/g/c{n}?check=append", media, one(media, ("h:p", None, "ab")))
        yield put(f"/g/c{n}?check=increment", media, one(media, ("h:n", None, "5")))
        yield put(f"/g/c{n}?check=increment", media, one(media, ("h:n", None, "x")))
        yield put(f"/g/c{n}?check=nonsense", media, one(media, ("h:n", None, "5")))
        yield put(f"/g/c{n}?check=put", media, cell_set(media, [(f"c{n}", [("f:q", 1, "1")]), ("d", [("f:q", 1, "1")])]))
        yield from read(f"/g/c{n}/h:p", (RAW,))
        yield from read(f"/g/c{n}/h:n", (RAW,))
        yield ("DELETE", f"/g/c{n}/f:q/0", {}, b"")
        yield ("DELETE", f"/g/c{n}/f", {}, b"")
    # Deletes.
    for path in ("/g/r00/f:a/50", "/g/r01/f:a", "/g/r02/f", "/g/r03", "/g/r04/h:,f:b", "/g/none", "/none/r", "/g/r05/nofamily:q"):
        yield ("DELETE", path, {}, b"")
    for i in range(6):
        yield from read(f"/g/r0{i}?v=5")
    # Namespaces.
    yield put("/namespaces/gn", JSON, b'{"properties":{"a":"1"}}', "POST")
    yield put("/namespaces/gn", JSON, b'{"properties":{"a":"1"}}', "POST")
    yield from read("/namespaces/gn", ("text/plain", "*/*") + MODELS)
    yield put("/namespaces/gn", XML, b"<NamespaceProperties><properties><entry><key>b</key><value>2</value></entry></properties></NamespaceProperties>")
    yield from read("/namespaces/gn", (XML, JSON, PB))
    yield put("/namespaces/gm", JSON, b'{"properties":{}}')
    yield from read("/namespaces", ("text/plain",) + MODELS)
    yield from read("/namespaces/default", ("text/plain",) + MODELS)
    yield from read("/namespaces/default/tables", ("text/plain",) + MODELS)
    yield from read("/namespaces/gn/tables", ("text/plain",) + MODELS)
    yield from read("/namespaces/none", (XML,))
    yield from read("/namespaces/none/tables", (XML,))
    yield ("DELETE", "/namespaces/gn", {}, b"")
    yield ("DELETE", "/namespaces/gn", {}, b"")
    # What is wrong.
    for path in ("/g/%zz", "/g", "/g/a*b", "/version/x", "/g/schema/x", "/g/r00/f:a/x", "/g/r00?v=x", "/g/r00/,f", "/g/a*,b/f"):
        yield get(path, XML)
    yield get("/g/r00", "image/png")
    yield ("PATCH", "/g/r00", {}, b"")
    yield ("DELETE", "/g/exists", {}, b"")
    for media, body in ((XML, b"<CellSet>"), (XML, b"x"), (JSON, b"{"), (JSON, b"[]"), (JSON, b'{"Rows":[]}'), (PB, b"\x0a\x7f")):
        yield put("/g/r00", media, body)
    yield ("DELETE", "/g/schema", {}, b"")
    yield ("DELETE", "/g/schema", {}, b"")


def main():
    base = urllib.parse.urlparse(sys.argv[1])
    scanner = "/g/scanner/none"
    for method, path, headers, body in corpus():
        connection = http.client.HTTPConnection(base.hostname, base.port, timeout=60)
        connection.request(method, path.replace("{scanner}", scanner), body, {"Host": "gateway"} | headers)
        answer = connection.getresponse()
        location = answer.getheader("Location")
        if location and "/scanner/" in location:
            scanner = urllib.parse.urlparse(location).path
        print(json.dumps({
            "method": method, "path": path, "headers": headers, "body": b64(body), "status": answer.status,
            "type": answer.getheader("Content-Type"), "answer": b64(answer.read()),
        }))
        connection.close()


main()
