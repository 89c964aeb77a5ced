"""A table over REST with nothing but Python's standard library.

Usage: rest_example.py BASE_URL
"""

import base64
import json
import sys
import urllib.error
import urllib.request

BASE = sys.argv[1]
passed = failed = 0


def b64(data):
    return base64.b64encode(data).decode()


def call(method, path, body=None, accept="application/json"):
    headers = {"Accept": accept}
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data=body, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def check(name, seen, wanted):
    global passed, failed
    if seen == wanted:
        passed += 1
        print("ok python rest " + name)
    else:
        failed += 1
        print("FAILED python rest %s: %r, wanted %r" % (name, seen, wanted))


def cells(rows):
    return [(base64.b64decode(row["key"]), base64.b64decode(cell["column"]), base64.b64decode(cell["$"]))
            for row in rows for cell in row["Cell"]]


def main():
    schema = {"name": "it_python_rest", "ColumnSchema": [{"name": "f", "VERSIONS": "3"}]}
    check("create", call("PUT", "/it_python_rest/schema", schema)[0], 201)
    rows = [{"key": b64(b"r%d" % n), "Cell": [{"column": b64(b"f:q"), "$": b64(b"value %d" % n)}]} for n in range(100)]
    check("put a hundred rows", call("PUT", "/it_python_rest/any", {"Row": rows})[0], 200)
    status, _, body = call("GET", "/it_python_rest/r7")
    check("get", (status, cells(json.loads(body)["Row"])), (200, [(b"r7", b"f:q", b"value 7")]))
    check("get of one value", call("GET", "/it_python_rest/r7/f:q", accept="application/octet-stream")[2], b"value 7")
    check("get of a row that is not there", call("GET", "/it_python_rest/none")[0], 404)
    check("get of a table that is not there", call("GET", "/it_no_table/r")[0], 404)
    status, headers, _ = call("PUT", "/it_python_rest/scanner", {"batch": 30})
    check("open a scanner", status, 201)
    location = headers["Location"].replace(BASE, "")
    seen = []
    while True:
        status, _, body = call("GET", location)
        if status == 204:
            break
        seen += cells(json.loads(body)["Row"])
    check("scan", (len(seen), seen[0][0], len({cell[0] for cell in seen})), (100, b"r0", 100))
    check("close the scanner", call("DELETE", location)[0], 200)
    status, _, body = call("GET", "/it_python_rest/r1*?limit=3")
    check("stateless scan", [cell[0] for cell in cells(json.loads(body)["Row"])], [b"r1", b"r10", b"r11"])
    put = {"Row": [{"key": b64(b"r7"), "Cell": [{"column": b64(b"f:q"), "$": b64(b"new")},
                                                {"column": b64(b"f:q"), "$": b64(b"not this")}]}]}
    check("check and put that does not match", call("PUT", "/it_python_rest/r7?check=put", put)[0], 304)
    put["Row"][0]["Cell"][1]["$"] = b64(b"value 7")
    check("check and put", call("PUT", "/it_python_rest/r7?check=put", put)[0], 200)
    check("delete", call("DELETE", "/it_python_rest/r7")[0], 200)
    check("get of what was deleted", call("GET", "/it_python_rest/r7")[0], 404)
    check("drop", call("DELETE", "/it_python_rest/schema")[0], 200)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


sys.exit(main())
