#!/usr/bin/env python3
"""Records what Apache HBase's Thrift servers answer to a corpus of calls, for crates/thrift/tests/golden.rs.

    record.py 1 Hbase.thrift 127.0.0.1 9090 > thrift1.jsonl
    record.py 2 hbase.thrift 127.0.0.1 9091 > thrift2.jsonl

The servers run without options: buffered, with the binary protocol; the IDL files are in hbase-thrift's jar; thriftpy2 must be there.
There must be no table whose name begins with g, and no namespace gn. One line is one exchange: the method, the call and the
answer as they are on the wire (base64), or for an exception of the IDL its number and the first line
of its message. A call that goes on with a scanner has SCANNER where the number stands that opening it brought.
"""
import base64
import json
import socket
import struct
import sys

import thriftpy2
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.thrift import TApplicationException, TMessageType
from thriftpy2.transport import TMemoryBuffer

SCANNER = 0x7A7B7C7D


def thrift1(idl):
    """Yields method and arguments."""
    T, none = b"g1", {}
    put = lambda column, value: idl.Mutation(column=column, value=value)
    delete = lambda column: idl.Mutation(column=column, isDelete=True)
    family = lambda name, **more: idl.ColumnDescriptor(name=name, **more)

    yield "getThriftServerType", ()
    yield "createTable", (T, [family(b"f:", maxVersions=5), family(b"h", bloomFilterType="ROW", timeToLive=1000000,
                                                                   inMemory=True, blockCacheEnabled=True)])
    yield "createTable", (T, [family(b"f:")])
    yield "createTable", (b"g1 bad", [family(b"f:")])
    yield "createTable", (b"g1x", [])
    yield "createTable", (b"g1y", [family(b"bad:name")])
    yield "createTable", (b"g1z", [family(b"f:", compression="NONSENSE")])
    yield "createTable", (b"g1w", [family(b"f:", bloomFilterType="NONSENSE")])
    for table in (T, b"g1none"):
        yield "getColumnDescriptors", (table,)
        yield "isTableEnabled", (table,)
    yield "getTableNames", ()
    yield "getTableNamesWithIsTableEnabled", ()
    # Writes.
    for i in range(12):
        row = b"r%02d" % i
        yield "mutateRowTs", (T, row, [put(b"f:a", b"a%d" % i), put(b"f:b", b"x" * i * 5), put(b"h:", b"empty")], 10 + i, none)
        yield "mutateRowTs", (T, row, [put(b"f:a", b"newer%d" % i)], 100 + i, none)
    yield "mutateRowsTs", (T, [idl.BatchMutation(row=b"s%d" % i, mutations=[put(b"f:q", b"%d" % i), put(b"h:c d", bytes(range(i, i + 9)))])
                               for i in range(5)], 50, none)
    yield "mutateRowsTs", (T, [idl.BatchMutation(row=b"s1", mutations=[delete(b"f:q"), put(b"f:z", b"z")])], 60, none)
    yield "mutateRowTs", (T, b"r03", [delete(b"f:b")], 70, none)
    yield "mutateRowTs", (T, b"r04", [delete(b"f:")], 71, none)
    yield "mutateRowTs", (T, b"r05", [delete(b"f")], 72, none)
    yield "mutateRowTs", (T, b"r06", [], 73, none)
    yield "mutateRowTs", (T, b"t", [put(b"f:w", b"unlogged")], 80, none)
    yield "mutateRow", (T, b"now", [put(b"f:w", b"1")], none)
    yield "mutateRows", (T, [idl.BatchMutation(row=b"now", mutations=[put(b"f:v", b"2"), delete(b"f:w")])], none)
    for bad in (b"none:q", b"none", b"", b":q", b"f"):
        yield "mutateRowTs", (T, b"u", [put(bad, b"1")], 5, none)
    yield "mutateRowTs", (b"g1none", b"u", [put(b"f:q", b"1")], 5, none)
    yield "mutateRowTs", (T, b"", [put(b"f:q", b"1")], 5, none)
    # Reads.
    for row in (b"r00", b"r03", b"r04", b"r05", b"s1", b"t", b"none", b""):
        for column in (b"f:a", b"f:b", b"f:q", b"h:", b"h:c d", b"f", b"f:", b"none:q"):
            yield "get", (T, row, column, none)
        yield "getRow", (T, row, none)
        yield "getRowTs", (T, row, 51, none)
        yield "getRowWithColumns", (T, row, [b"f:a", b"h:"], none)
        yield "getRowWithColumns", (T, row, [b"f"], none)
        yield "getRowWithColumnsTs", (T, row, [b"f:a", b"f:b"], 105, none)
        yield "getVer", (T, row, b"f:a", 3, none)
        yield "getVerTs", (T, row, b"f:a", 60, 3, none)
    yield "getVer", (T, b"r00", b"f:a", 0, none)
    yield "getVer", (T, b"r00", b"f:a", -1, none)
    yield "getVerTs", (T, b"r00", b"f:a", 0, 3, none)
    yield "getVerTs", (T, b"r00", b"f:a", -5, 3, none)
    yield "getRow", (b"g1none", b"r", none)
    yield "get", (b"g1none", b"r", b"f:q", none)
    yield "getRows", (T, [b"r00", b"none", b"r05"], none)
    yield "getRows", (T, [], none)
    yield "getRowsWithColumns", (T, [b"r00", b"r01"], [b"h:"], none)
    yield "getRowsTs", (T, [b"r00", b"r09"], 90, none)
    yield "getRowsWithColumnsTs", (T, [b"r00", b"r09"], [b"f:a"], 90, none)
    # Conditional writes, counters, appends.
    for value in (b"newer0", b"other", b""):
        yield "checkAndPut", (T, b"r00", b"f:a", value, put(b"f:done", b"yes"), none)
    yield "checkAndPut", (T, b"r00", b"f:absent", None, put(b"f:done2", b"yes"), none)
    yield "checkAndPut", (T, b"r00", b"f:a", None, put(b"f:done3", b"yes"), none)
    yield "checkAndPut", (T, b"r00", b"f", b"x", put(b"f:done3", b"yes"), none)
    for amount in (1, 41, -2, 0, 1 << 62):
        yield "atomicIncrement", (T, b"c", b"f:n", amount)
    yield "atomicIncrement", (T, b"r00", b"f:a", 1)
    yield "atomicIncrement", (T, b"c", b"none:n", 1)
    yield "increment", (idl.TIncrement(table=T, row=b"c2", column=b"f:n", ammount=5),)
    yield "increment", (idl.TIncrement(table=T, row=b"", column=b"f:n", ammount=5),)
    yield "incrementRows", ([idl.TIncrement(table=T, row=b"c2", column=b"f:n", ammount=5)] * 2,)
    yield "atomicIncrement", (T, b"c2", b"f:n", 0)
    # Deletes.
    yield "deleteAllTs", (T, b"r07", b"f:a", 50, none)
    yield "getVer", (T, b"r07", b"f:a", 9, none)
    yield "deleteAll", (T, b"r07", b"f:a", none)
    yield "getVer", (T, b"r07", b"f:a", 9, none)
    yield "deleteAll", (T, b"r08", b"h", none)
    yield "getRow", (T, b"r08", none)
    yield "deleteAllRowTs", (T, b"r09", 50, none)
    yield "getRow", (T, b"r09", none)
    yield "deleteAllRow", (T, b"r10", none)
    yield "getRow", (T, b"r10", none)
    yield "deleteAllRow", (T, b"now", none)
    yield "deleteAllRow", (T, b"c", none)
    yield "deleteAllRow", (T, b"c2", none)
    yield "deleteAllRow", (b"g1none", b"r", none)
    yield "mutateRowTs", (T, b"r00", [delete(b"f:done"), delete(b"f:done2")], 1 << 50, none)
    # Scans.
    opens = [("scannerOpen", (T, b"", [], none)), ("scannerOpen", (T, b"r03", [b"f:a"], none)),
             ("scannerOpenWithStop", (T, b"r02", b"r05", [b"f"], none)), ("scannerOpenWithPrefix", (T, b"s", [], none)),
             ("scannerOpenWithPrefix", (T, b"zz", [], none)), ("scannerOpenTs", (T, b"", [b"f:a"], 60, none)),
             ("scannerOpenWithStopTs", (T, b"r00", b"r09", [b"f:a", b"h:"], 60, none))]
    scan = lambda **more: ("scannerOpenWithScan", (T, idl.TScan(**more), none))
    opens += [scan(), scan(startRow=b"r01", stopRow=b"r04"), scan(columns=[b"f:b"]), scan(timestamp=60), scan(caching=2),
              scan(filterString=b"PrefixFilter('s')"), scan(filterString=b"KeyOnlyFilter()", stopRow=b"r03"), scan(batchSize=2),
              scan(sortColumns=True), scan(reversed=True, startRow=b"r06"), scan(cacheBlocks=False, stopRow=b"r02"),
              scan(filterString=b"ValueFilter(=, 'substring:newer')", sortColumns=True)]
    for method, arguments in opens:
        yield method, arguments
        yield "scannerGet", (SCANNER,)
        yield "scannerGetList", (SCANNER, 3)
        yield "scannerGetList", (SCANNER, 100)
        yield "scannerGetList", (SCANNER, 1)
        yield "scannerClose", (SCANNER,)
    yield "scannerGet", (SCANNER,)
    yield "scannerClose", (SCANNER,)
    yield "scannerGetList", (12345678, 3)
    yield scan(filterString=b"NoSuchFilter()")
    yield scan(filterString=b"PrefixFilter(")
    yield "scannerOpen", (b"g1none", b"", [], none)
    # The end.
    yield "deleteTable", (T,)
    yield "disableTable", (T,)
    yield "disableTable", (T,)
    yield "isTableEnabled", (T,)
    yield "getTableNamesWithIsTableEnabled", ()
    yield "getRow", (T, b"r00", none)
    yield "enableTable", (T,)
    yield "enableTable", (T,)
    yield "disableTable", (T,)
    yield "deleteTable", (T,)
    yield "deleteTable", (T,)
    yield "disableTable", (b"g1none",)
    yield "enableTable", (b"g1none",)
    for table in (b"g1x", b"g1y", b"g1z", b"g1w"):
        yield "disableTable", (table,)
        yield "deleteTable", (table,)
    yield "compact", (b"g1none",)
    yield "majorCompact", (b"g1none",)


def thrift2(idl):
    """Yields method and arguments."""
    T, B, N = b"g2", b"g2big", b"g2none"
    column = lambda family, qualifier=None, at=None: idl.TColumn(family=family, qualifier=qualifier, timestamp=at)
    value = lambda family, qualifier, value, at=None: idl.TColumnValue(family=family, qualifier=qualifier, value=value, timestamp=at)
    put = lambda row, *values, **more: idl.TPut(row=row, columnValues=list(values), **more)
    get = lambda row, **more: idl.TGet(row=row, **more)
    name = lambda qualifier, ns=b"default": idl.TTableName(ns=ns, qualifier=qualifier)
    family = lambda name, **more: idl.TColumnFamilyDescriptor(name=name, **more)
    table = lambda qualifier, *families, **more: idl.TTableDescriptor(tableName=name(qualifier), columns=list(families), **more)

    yield "getThriftServerType", ()
    # Tables and namespaces.
    yield "createTable", (table(T, family(b"f", maxVersions=5), family(b"h")), None)
    yield "createTable", (table(T, family(b"f")), None)
    yield "createTable", (table(B, family(b"f", maxVersions=4)), [b"k", b"p"])
    for more in ({"blockSize": 4096}, {"bloomnFilterType": 2}, {"timeToLive": 86400}, {"inMemory": True}, {"minVersions": 1},
                 {"compressionType": 1}, {"dataBlockEncoding": 3}, {"keepDeletedCells": 1}, {"scope": 1}, {"dfsReplication": 2},
                 {"blockCacheEnabled": False}, {"cacheDataOnWrite": True}, {"compressTags": False},
                 {"attributes": {b"A": b"b"}}, {"configuration": {"hbase.a": "b"}}):
        yield "createTable", (table(b"g2one", family(b"f", **more)), None)
        yield "getTableDescriptor", (name(b"g2one"),)
        yield "disableTable", (name(b"g2one"),)
        yield "deleteTable", (name(b"g2one"),)
    yield "createTable", (table(b"g2 bad", family(b"f")), None)
    yield "createTable", (table(b"g2x"), None)
    yield "createTable", (idl.TTableDescriptor(tableName=name(b"t", b"gnone"), columns=[family(b"f")]), None)
    for one in (T, B, N):
        yield "tableExists", (name(one),)
        yield "isTableEnabled", (name(one),)
        yield "isTableDisabled", (name(one),)
        yield "isTableAvailable", (name(one),)
        yield "getTableDescriptor", (name(one),)
    yield "tableExists", (idl.TTableName(qualifier=T),)
    yield "isTableAvailableWithSplit", (name(B), [b"k", b"p"])
    yield "isTableAvailableWithSplit", (name(B), [b"k"])
    yield "getTableDescriptors", ([name(T), name(B)],)
    yield "getTableDescriptors", ([name(N)],)
    yield "getTableDescriptors", ([],)
    for pattern in ("g2.*", "g2b.*", "none", None):
        yield "getTableNamesByPattern", (pattern, False)
        yield "getTableDescriptorsByPattern", (pattern, False)
    yield "getTableNamesByPattern", ("hbase:.*", True)
    for one in ("default", "gnone"):
        yield "getTableNamesByNamespace", (one,)
        yield "getTableDescriptorsByNamespace", (one,)
        yield "getNamespaceDescriptor", (one,)
    yield "createNamespace", (idl.TNamespaceDescriptor(name="gn", configuration={"a": "1"}),)
    yield "createNamespace", (idl.TNamespaceDescriptor(name="gn"),)
    yield "createNamespace", (idl.TNamespaceDescriptor(name="g n"),)
    yield "getNamespaceDescriptor", ("gn",)
    yield "modifyNamespace", (idl.TNamespaceDescriptor(name="gn", configuration={"b": "2"}),)
    yield "modifyNamespace", (idl.TNamespaceDescriptor(name="gnone"),)
    yield "getNamespaceDescriptor", ("gn",)
    yield "listNamespaces", ()
    yield "listNamespaceDescriptors", ()
    yield "deleteNamespace", ("gn",)
    yield "deleteNamespace", ("gn",)
    yield "addColumnFamily", (name(B), family(b"i", maxVersions=2))
    yield "addColumnFamily", (name(B), family(b"i"))
    yield "modifyColumnFamily", (name(B), family(b"i", maxVersions=3))
    yield "modifyColumnFamily", (name(B), family(b"none"))
    yield "getTableDescriptor", (name(B),)
    yield "deleteColumnFamily", (name(B), b"i")
    yield "deleteColumnFamily", (name(B), b"i")
    # Writes.
    for i in range(12):
        row = b"r%02d" % i
        yield "put", (T, put(row, value(b"f", b"a", b"a%d" % i, 10), value(b"f", b"b", b"x" * i * 5, 11), value(b"h", b"", b"empty", 12)))
        yield "put", (T, put(row, value(b"f", b"a", b"newer%d" % i), timestamp=100 + i))
    yield "putMultiple", (T, [put(b"s%d" % i, value(b"f", b"q", b"%d" % i, 50), value(b"h", b"c d", bytes(range(i, i + 9)), 51))
                              for i in range(5)])
    for durability in range(5):
        yield "put", (T, put(b"d%d" % durability, value(b"f", b"q", b"1", 5), durability=durability))
    yield "put", (T, put(b"attr", value(b"f", b"q", b"1", 5), attributes={b"a": b"b"}))
    yield "put", (T, put(b"", value(b"f", b"q", b"1", 5)))
    yield "put", (T, put(b"u", value(b"none", b"q", b"1", 5)))
    yield "put", (T, put(b"u"))
    yield "put", (N, put(b"u", value(b"f", b"q", b"1", 5)))
    yield "putMultiple", (T, [])
    yield "putMultiple", (T, [put(b"u", value(b"none", b"q", b"1", 5)), put(b"v", value(b"f", b"q", b"1", 5))])
    # Reads.
    for row in (b"r00", b"r03", b"s1", b"none"):
        for more in ({}, {"columns": [column(b"f", b"a")]}, {"columns": [column(b"f")], "maxVersions": 5}, {"timestamp": 11},
                     {"timeRange": idl.TTimeRange(minStamp=0, maxStamp=60)}, {"columns": [column(b"f", b"a", 10)]},
                     {"filterString": b"QualifierFilter(=, 'binary:a')"}, {"cacheBlocks": False}, {"storeLimit": 1},
                     {"storeLimit": 1, "storeOffset": 1}, {"existence_only": True}, {"consistency": 1},
                     {"attributes": {b"a": b"b"}}, {"columns": [column(b"none", b"q")]}, {"filterString": b"Nonsense("},
                     {"maxVersions": 0}):
            yield "get", (T, get(row, **more))
        yield "exists", (T, get(row))
        yield "exists", (T, get(row, columns=[column(b"f", b"b")]))
    yield "get", (T, get(b""))
    yield "get", (N, get(b"r"))
    yield "exists", (N, get(b"r"))
    yield "getMultiple", (T, [get(b"r00"), get(b"none"), get(b"s1", columns=[column(b"f", b"q")])])
    yield "getMultiple", (T, [])
    yield "getMultiple", (T, [get(b"r00", columns=[column(b"none")])])
    yield "existsAll", (T, [get(b"r00"), get(b"none"), get(b"s1")])
    # Conditional writes.
    for expected in (b"newer0", b"other", b"", None):
        yield "checkAndPut", (T, b"r00", b"f", b"a", expected, put(b"r00", value(b"f", b"done", b"yes", 200)))
    yield "checkAndPut", (T, b"r00", b"f", b"absent", None, put(b"r00", value(b"f", b"done2", b"yes", 201)))
    yield "checkAndPut", (T, b"r00", b"f", b"a", b"newer0", put(b"r01", value(b"f", b"done", b"yes", 200)))
    mutations = lambda row, *all: idl.TRowMutations(row=row, mutations=list(all))
    change = lambda row: mutations(row, idl.TMutation(put=put(row, value(b"f", b"m", b"mutated", 300))),
                                   idl.TMutation(deleteSingle=idl.TDelete(row=row, columns=[column(b"f", b"b")], deleteType=1)))
    for op in range(7):
        yield "checkAndMutate", (T, b"r01", b"f", b"a", op, b"newer1", change(b"r01"))
        yield "checkAndMutate", (T, b"r01", b"f", b"a", op, b"a", change(b"r01"))
    yield "checkAndMutate", (T, b"r01", b"f", b"absent", 2, None, change(b"r01"))
    yield "get", (T, get(b"r01"))
    yield "mutateRow", (T, change(b"r02"))
    yield "get", (T, get(b"r02"))
    yield "mutateRow", (T, mutations(b"r02", idl.TMutation(put=put(b"r03", value(b"f", b"q", b"1", 5)))))
    yield "mutateRow", (T, mutations(b"r02"))
    # Counters and appends.
    amount = lambda n, qualifier=b"n", family=b"f": idl.TColumnIncrement(family=family, qualifier=qualifier, amount=n)
    for n in (1, 41, -2):
        yield "increment", (T, idl.TIncrement(row=b"c", columns=[amount(n)], returnResults=False))
    yield "increment", (T, idl.TIncrement(row=b"c", columns=[amount(1, family=b"none")]))
    yield "increment", (T, idl.TIncrement(row=b"r00", columns=[amount(1, b"a")]))
    yield "increment", (T, idl.TIncrement(row=b"c", columns=[]))
    yield "append", (T, idl.TAppend(row=b"ap", columns=[value(b"f", b"q", b"one")], returnResults=False))
    yield "append", (T, idl.TAppend(row=b"ap", columns=[value(b"none", b"q", b"one")]))
    yield "append", (T, idl.TAppend(row=b"ap", columns=[]))
    # Deletes.
    delete = lambda row, **more: idl.TDelete(row=row, **more)
    for kind in range(4):
        row = b"r%02d" % (kind + 4)
        yield "deleteSingle", (T, delete(row, columns=[column(b"f", b"a") if kind < 2 else column(b"f")], deleteType=kind,
                                         **({"timestamp": 60} if kind != 0 else {})))
        yield "get", (T, get(row, maxVersions=5))
    yield "deleteSingle", (T, delete(b"r08", timestamp=60))
    yield "get", (T, get(b"r08", maxVersions=5))
    yield "deleteSingle", (T, delete(b"r09"))
    yield "get", (T, get(b"r09"))
    yield "deleteSingle", (T, delete(b"r10", columns=[column(b"f", b"a", 10)]))
    yield "get", (T, get(b"r10", maxVersions=5))
    yield "deleteSingle", (T, delete(b"r10", columns=[column(b"none", b"a")]))
    yield "deleteSingle", (N, delete(b"r"))
    yield "deleteMultiple", (T, [delete(b"r11"), delete(b"none")])
    yield "deleteMultiple", (T, [])
    yield "deleteMultiple", (T, [delete(b"r11", columns=[column(b"none", b"a")]), delete(b"none")])
    for expected in (b"other", None, b"a3"):
        yield "checkAndDelete", (T, b"r03", b"f", b"a", expected, delete(b"r03", columns=[column(b"f", b"b")], deleteType=1))
    yield "get", (T, get(b"r03"))
    for row in (b"c", b"ap"):
        yield "deleteSingle", (T, delete(row))
    # Scans.
    scans = [{}, {"startRow": b"r01", "stopRow": b"r05"}, {"columns": [column(b"f", b"a")]}, {"columns": [column(b"h")]},
             {"maxVersions": 5, "stopRow": b"r03"}, {"timeRange": idl.TTimeRange(minStamp=0, maxStamp=60)},
             {"filterString": b"PrefixFilter('s')"}, {"batchSize": 1, "stopRow": b"r03"}, {"reversed": True, "startRow": b"r05"},
             {"limit": 2}, {"caching": 1}, {"cacheBlocks": False, "stopRow": b"r02"}, {"readType": 2, "limit": 3},
             {"colFamTimeRangeMap": {b"f": idl.TTimeRange(minStamp=0, maxStamp=11)}, "stopRow": b"r03"}, {"startRow": b"zz"}]
    for more in scans:
        scan = idl.TScan(**more)
        yield "getScannerResults", (T, scan, 4)
        yield "openScanner", (T, scan)
        yield "getScannerRows", (SCANNER, 2)
        yield "getScannerRows", (SCANNER, 100)
        yield "getScannerRows", (SCANNER, 1)
        yield "closeScanner", (SCANNER,)
    yield "getScannerRows", (SCANNER, 1)
    yield "closeScanner", (SCANNER,)
    yield "getScannerResults", (T, idl.TScan(), 0)
    yield "getScannerResults", (N, idl.TScan(), 3)
    yield "getScannerResults", (T, idl.TScan(filterString=b"Nonsense("), 3)
    yield "openScanner", (T, idl.TScan(filterString=b"Nonsense("))
    yield "openScanner", (N, idl.TScan())
    # The end.
    yield "deleteTable", (name(T),)
    yield "truncateTable", (name(T), True)
    yield "disableTable", (name(B),)
    yield "disableTable", (name(B),)
    yield "isTableDisabled", (name(B),)
    yield "truncateTable", (name(B), True)
    yield "isTableAvailableWithSplit", (name(B), [b"k", b"p"])
    yield "enableTable", (name(B),)
    yield "modifyTable", (table(B, family(b"f", maxVersions=9), family(b"z")),)
    yield "modifyTable", (table(N, family(b"f")),)
    yield "getTableDescriptor", (name(B),)
    for one in (T, B):
        yield "disableTable", (name(one),)
        yield "deleteTable", (name(one),)
    yield "deleteTable", (name(N),)
    yield "disableTable", (name(N),)
    yield "enableTable", (name(N),)


def message(service, method, arguments, sequence):
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    names = [spec[1] for _, spec in sorted(getattr(service, method + "_args").thrift_spec.items())]
    protocol.write_message_begin(method, TMessageType.CALL, sequence)
    getattr(service, method + "_args")(**dict(zip(names, arguments))).write(protocol)
    protocol.write_message_end()
    return buffer.getvalue()


class Recording:
    """A transport that keeps what was read."""

    def __init__(self, stream):
        self.stream, self.seen = stream, b""

    def read(self, size):
        data = self.stream.read(size)
        if len(data) < size:
            raise EOFError("the server closed the connection")
        self.seen += data
        return data


def opened(answer, method):
    """The scanner's number where the answer to an opening brought one: field 0, an i32."""
    at = 4 + 4 + len(method) + 4
    return answer[at + 3:at + 7] if answer[at:at + 3] == b"\x08\x00\x00" else None


def thrown(answer, method):
    """The number and the message's first line of an exception of the IDL: a struct in a field that is not 0."""
    at = 4 + 4 + len(method) + 4
    kind, field = struct.unpack(">bh", answer[at:at + 3].ljust(3, b"\0"))
    if answer[3] != TMessageType.REPLY or kind != 12 or field == 0:
        return None
    if answer[at + 3:at + 6] != b"\x0b\x00\x01":
        return {"thrown": field, "message": None}
    length, = struct.unpack(">i", answer[at + 6:at + 10])
    return {"thrown": field, "message": answer[at + 10:at + 10 + length].decode().split("\n")[0]}


def main():
    version, file, host, port = sys.argv[1:]
    idl = thriftpy2.load(file, module_name="idl%s_thrift" % version)
    service, corpus = (idl.Hbase, thrift1) if version == "1" else (idl.THBaseService, thrift2)
    connection = socket.create_connection((host, int(port)), timeout=60)
    stream = Recording(connection.makefile("rb"))
    scanner = struct.pack(">i", 0)
    for sequence, (method, arguments) in enumerate(corpus(idl), 1):
        call = message(service, method, arguments, sequence)
        sent = call.replace(struct.pack(">i", SCANNER), scanner)
        connection.sendall(sent)
        stream.seen = b""
        protocol = TBinaryProtocol(stream)
        _, kind, _ = protocol.read_message_begin()
        (TApplicationException if kind == TMessageType.EXCEPTION else getattr(service, method + "_result"))().read(protocol)
        answer = stream.seen
        if "pen" in method:
            scanner = opened(answer, method) or scanner
        brought = thrown(answer, method) or {"answer": base64.b64encode(answer).decode()}
        print(json.dumps({"method": method, "call": base64.b64encode(call).decode()} | brought))


if __name__ == "__main__":
    main()
