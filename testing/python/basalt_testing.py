"""A Basalt for tests: started in some milliseconds on free ports, gone with all its data at the end.

    from basalt_testing import Basalt

    with Basalt(thrift=True) as basalt:
        connection = happybase.Connection("localhost", basalt.thrift_port)

or as a fixture of pytest: see `basalt` below. The binary is the one that BASALT_BINARY names, else `basalt` on the PATH.
Needs nothing but Python's own library.
"""

import json
import os
import subprocess


class Basalt:
    """An instance that lives from `start` to `stop`, and no longer than this process."""

    def __init__(self, binary=None, thrift=False, rest=False, settings=None, start_timeout_s=30):
        self._binary = binary or os.environ.get("BASALT_BINARY", "basalt")
        self._settings = dict(settings or {})
        if thrift:
            self._settings.setdefault("basalt.thrift.port", "0")
        if rest:
            self._settings.setdefault("basalt.rest.port", "0")
        self._start_timeout_s = start_timeout_s
        self._process = None
        self._ready = {}

    def start(self):
        """Starts it, and waits until it serves."""
        command = [self._binary, "dev", "--until-stdin-closes"]
        for key, value in self._settings.items():
            command += ["-D", "%s=%s" % (key, value)]
        environment = {name: value for name, value in os.environ.items() if name != "HBASE_CONF_DIR"}
        # It ends when its input is closed: with this process, however that ends.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        line = self._process.stdout.readline()
        if not line:
            process = self._process
            self.stop()
            raise RuntimeError("%s ended before it served: exit status %s" % (command, process.returncode))
        self._ready = json.loads(line)
        return self

    def stop(self):
        """Ends it; its data is gone then."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(self._start_timeout_s)
            self._process.stdout.close()
            self._process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *ignored):
        self.stop()

    @property
    def quorum(self):
        """`host:port` of its ZooKeeper endpoint."""
        return self._ready["quorum"]

    @property
    def zookeeper_port(self):
        return self._ready["zookeeper_port"]

    @property
    def info_port(self):
        """Port of its pages."""
        return self._ready["info_port"]

    @property
    def thrift_port(self):
        """Port of its Thrift 1 gateway; None without one."""
        return self._ready.get("thrift_port")

    @property
    def rest_port(self):
        """Port of its REST gateway; None without one."""
        return self._ready.get("rest_port")

    @property
    def pid(self):
        return self._ready["pid"]


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture(scope="session")
    def basalt():
        """One instance for all tests of a run, with both gateways."""
        with Basalt(thrift=True, rest=True) as instance:
            yield instance
