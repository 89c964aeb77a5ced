"""The fixture against the real binary. Run by `cargo xtask interop testing`; `python3 -m unittest` here does the same."""

import json
import os
import socket
import unittest
import urllib.request

from basalt_testing import Basalt


def request(port, method, path, body=None):
    url = "http://127.0.0.1:%d%s" % (port, path)
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
        text = answer.read()
        return json.loads(text) if text else None


class BasaltTest(unittest.TestCase):
    def test_it_serves_and_is_gone_afterwards(self):
        with Basalt(rest=True, thrift=True) as basalt:
            socket.create_connection(("127.0.0.1", basalt.zookeeper_port), 10).close()
            socket.create_connection(("127.0.0.1", basalt.thrift_port), 10).close()
            request(basalt.rest_port, "PUT", "/t/schema", {"name": "t", "ColumnSchema": [{"name": "f"}]})
            tables = request(basalt.rest_port, "GET", "/")
            self.assertEqual([table["name"] for table in tables["table"]], ["t"])
            port, pid = basalt.zookeeper_port, basalt.pid
            self.assertTrue(os.path.exists("/proc/%d" % pid))
        self.assertFalse(os.path.exists("/proc/%d" % pid))
        self.assertFalse(os.path.exists("/dev/shm/basalt-dev-%d" % pid))
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", port), 10)

    def test_two_live_side_by_side_and_each_begins_empty(self):
        with Basalt(rest=True) as one, Basalt(rest=True) as other:
            request(one.rest_port, "PUT", "/t/schema", {"name": "t", "ColumnSchema": [{"name": "f"}]})
            self.assertEqual(request(other.rest_port, "GET", "/").get("table", []), [])

    def test_a_binary_that_does_not_start_is_told_of(self):
        with self.assertRaises(RuntimeError):
            Basalt(settings={"hbase.master.port": "none"}).start()


if __name__ == "__main__":
    unittest.main()
