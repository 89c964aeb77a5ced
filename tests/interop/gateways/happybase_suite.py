"""happybase's own tests against a Thrift 1 gateway.

Usage: happybase_suite.py TEST_API_PY HOST PORT TRANSPORT PROTOCOL

happybase's suite takes host, port and transport from the environment; the protocol is set here. Prints a line "ok NAME" or
"FAILED NAME: why" for each test and a last line with their number.
"""

import importlib.util
import inspect
import os
import sys
import traceback


def main():
    file, host, port, transport, protocol = sys.argv[1:]
    os.environ.update(HAPPYBASE_HOST=host, HAPPYBASE_PORT=port, HAPPYBASE_TRANSPORT=transport)
    spec = importlib.util.spec_from_file_location("test_api", file)
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    suite.connection_kwargs["protocol"] = protocol
    suite.connection_kwargs["port"] = int(port)
    if not hasattr(suite, "assert_raises"):
        import pytest
        suite.assert_raises = pytest.raises
    label = "happybase %s %s" % (transport, protocol)
    passed = failed = 0
    suite.setup_module()
    tests = [(name, test) for name, test in vars(suite).items() if name.startswith("test_") and inspect.isfunction(test)]
    for name, test in tests:
        try:
            test()
        except Exception as error:
            traceback.print_exc()
            print("FAILED %s %s: %r" % (label, name, error))
            failed += 1
        else:
            print("ok %s %s" % (label, name))
            passed += 1
    suite.teardown_module()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
