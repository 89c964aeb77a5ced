"""What Python's clients of PostgreSQL do with basalt-sql. One line for each case: `ok NAME` or `FAILED NAME: why`.

Run by `cargo xtask sql`; by hand: python suite.py PORT PROCESS-OF-BASALT-SQL
"""
import asyncio
import datetime
import decimal
import os
import socket
import struct
import sys
import threading
import time

import asyncpg
import pg8000.native
import psycopg
import sqlalchemy

PORT = int(sys.argv[1])
PROCESS = int(sys.argv[2])
CONNECTION = f"host=127.0.0.1 port={PORT} user=me dbname=basalt"
ROW = (1, "one", decimal.Decimal("12.50"), datetime.datetime(2024, 1, 2, 3, 4, 5, 678000), datetime.date(2024, 1, 2), True, b"\x00\xff", 1.5)
COLUMNS = "id, name, amount, at, d, ok, raw, f"
CASES = []


def case(function):
    CASES.append(function)
    return function


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


@case
def psycopg_writes_with_parameters():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("drop table if exists clients")
        connection.execute(
            "create table clients (id integer primary key, name text, amount numeric(10,2), at timestamp, d date,"
            " ok boolean, raw bytea, f double precision)"
        )
        equal(connection.execute("insert into clients values (%s,%s,%s,%s,%s,%s,%s,%s)", ROW).rowcount, 1)
        rows = [(i, f"n{i}") for i in range(2, 12)]
        connection.cursor().executemany("insert into clients (id, name) values (%s, %s)", rows)
        equal(connection.execute("update clients set name = %s where id = %s", ("x", 3)).rowcount, 1)
        equal(connection.execute("delete from clients where id > %s", (9,)).rowcount, 2)


@case
def psycopg_reads_text_and_binary():
    with psycopg.connect(CONNECTION) as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            equal(cursor.execute("select * from clients where id = %s", (1,)).fetchall(), [ROW])
            counted = cursor.execute("select count(*), min(id), max(name) from clients where id < %s", (5,)).fetchone()
            equal(counted, (4, 1, "x"))


@case
def psycopg_sees_postgresqls_errors():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        for statement, error in [
            ("select * from nosuch", psycopg.errors.UndefinedTable),
            ("select nosuch from clients", psycopg.errors.UndefinedColumn),
            ("selekt 1", psycopg.errors.SyntaxError),
            ("select 1/0", psycopg.errors.DivisionByZero),
        ]:
            try:
                connection.execute(statement)
            except error:
                continue
            raise AssertionError(f"{statement}: no error")
        equal(connection.execute("select 1").fetchone(), (1,))


@case
def psycopg_has_cursors_on_the_server():
    with psycopg.connect(CONNECTION) as connection, connection.cursor(name="named") as cursor:
        cursor.itersize = 3
        cursor.execute("select id from clients order by id")
        equal([row[0] for row in cursor], list(range(1, 10)))


@case
def asyncpg_prepares_statements():
    async def work():
        connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="basalt")
        row = await connection.fetchrow(f"select {COLUMNS} from clients where id = $1", 1)
        equal(tuple(row), ROW)
        await connection.execute("insert into clients (id, name, amount) values ($1, $2, $3)", 77, "seven", decimal.Decimal("7.7"))
        prepared = await connection.prepare("select name from clients where id = $1")
        equal([await prepared.fetchval(key) for key in (1, 77)], ["one", "seven"])
        await connection.close()

    asyncio.run(work())


@case
def asyncpg_pages_by_rows_of_parameters():
    async def work():
        connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="basalt")
        try:
            page = await connection.fetch("select id from clients where (id, name) > ($1, $2) order by id, name limit 2", 5, "n5")
            equal([row[0] for row in page], [6, 7])
            some = await connection.fetch("select id from clients where (id, name) in (($1, $2), (6, $3)) order by id", 2, "n2", "x")
            equal([row[0] for row in some], [2])
        finally:
            await connection.close()

    asyncio.run(work())


@case
def pg8000_reads():
    connection = pg8000.native.Connection("me", host="127.0.0.1", port=PORT, database="basalt")
    equal(connection.run("select id, name, amount, at from clients where id = :id", id=1), [list(ROW[:4])])
    connection.close()


@case
def sqlalchemy_writes_and_reads():
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://me@127.0.0.1:{PORT}/basalt")
    table = sqlalchemy.Table(
        "clients",
        sqlalchemy.MetaData(),
        sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
        sqlalchemy.Column("name", sqlalchemy.String),
    )
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"id": 100, "name": "a"}, {"id": 101, "name": "b"}])
        found = connection.execute(sqlalchemy.select(table.c.name).where(table.c.id >= 100).order_by(table.c.id))
        equal([row.name for row in found], ["a", "b"])


# Ten thousand million rows out of ten: nothing but work.
LONG = (
    "with n as (select * from (values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)) as v(x))"
    " select count(*) from n a, n b, n c, n d, n e, n f, n g, n h, n i, n j"
    " where a.x + b.x + c.x + d.x + e.x + f.x + g.x + h.x + i.x + j.x > 80"
)
# The same without a filter between the joins, and with what must see all rows first.
ALSO_LONG = [LONG, LONG.replace("count(*)", "max(a.x * j.x)"), LONG.split(" where")[0].replace("count(*)", "count(distinct a.x + j.x)")]


def seconds_of_cpu():
    fields = open(f"/proc/{PROCESS}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_idle():
    """Whether the server computes nothing any more."""
    for _ in range(20):
        before = seconds_of_cpu()
        time.sleep(0.2)
        if seconds_of_cpu() - before < 0.06:
            return True
    return False


@case
def a_cancel_ends_a_query_that_computes():
    for query in ALSO_LONG:
        with psycopg.connect(CONNECTION, autocommit=True) as connection:
            asked = []

            def cancel():
                asked.append(time.monotonic())
                connection.cancel()

            threading.Timer(0.5, cancel).start()
            try:
                connection.execute(query)
                raise AssertionError("no error")
            except psycopg.errors.QueryCanceled:
                took = time.monotonic() - asked[0]
            assert took < 1, f"{took:.2f} s"
            equal(connection.execute("select 1").fetchone(), (1,))
            assert is_idle(), "it computes on"


@case
def a_time_limit_ends_a_query():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("set statement_timeout = 300")
        start = time.monotonic()
        try:
            connection.execute(LONG)
            raise AssertionError("no error")
        except psycopg.errors.QueryCanceled as error:
            assert "statement timeout" in str(error), error
        took = time.monotonic() - start
        assert 0.25 < took < 1.3, f"{took:.2f} s"
        connection.execute("set statement_timeout = 0")
        equal(connection.execute("select 1").fetchone(), (1,))


@case
def a_client_that_leaves_ends_its_query():
    with socket.create_connection(("127.0.0.1", PORT)) as client:
        start = b"user\0me\0database\0basalt\0\0"
        client.sendall(struct.pack("!ii", len(start) + 8, 196608) + start)
        heard = b""
        while not heard.endswith(b"Z\0\0\0\5I"):
            heard += client.recv(4096)
        query = LONG.encode() + b"\0"
        client.sendall(b"Q" + struct.pack("!i", len(query) + 4) + query)
        time.sleep(0.5)
        before = seconds_of_cpu()
        time.sleep(0.3)
        assert seconds_of_cpu() > before + 0.1, "the query does not run"
    assert is_idle(), "it computes on"


@case
def others_are_served_while_queries_compute():
    running = [psycopg.connect(CONNECTION, autocommit=True) for _ in range(3)]

    def compute(connection):
        try:
            connection.execute(LONG)
        except psycopg.errors.QueryCanceled:
            pass

    threads = [threading.Thread(target=compute, args=(connection,)) for connection in running]
    [thread.start() for thread in threads]
    time.sleep(0.3)
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        start = time.monotonic()
        for _ in range(20):
            equal(connection.execute("select name from clients where id = 1").fetchone(), ("one",))
        took = time.monotonic() - start
    [connection.cancel() for connection in running]
    [thread.join() for thread in threads]
    [connection.close() for connection in running]
    assert took < 5, f"20 rows in {took:.2f} s"


def until(holds, what):
    """Waits for what another connection does."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, f"not in 20 s: {what}"
        time.sleep(0.02)


@case
def what_connections_do_and_how_far_they_are_is_seen():
    with psycopg.connect(CONNECTION, autocommit=True, application_name="worker") as worker, psycopg.connect(
        CONNECTION, autocommit=True
    ) as watcher:
        worker.execute("drop table if exists watched")
        worker.execute("create table watched (k integer primary key, v text) split on (1000, 2000)")
        with worker.cursor().copy("copy watched from stdin") as copy:
            for k in range(3000):
                copy.write_row((k, "x" * 1000))
        size = "select pg_table_size(oid), pg_size_pretty(pg_total_relation_size(oid)) from pg_class where relname = 'watched'"
        size, pretty = watcher.execute(size).fetchone()
        assert 2_000_000 < size < 8_000_000 and pretty.endswith(("kB", "MB")), (size, pretty)

        def state():
            of_worker = "select state, query, usename, application_name, client_addr from pg_stat_activity where pid = %s"
            return watcher.execute(of_worker, (worker.info.backend_pid,)).fetchone()

        equal((state()[0], *state()[2:]), ("idle", "me", "worker", "127.0.0.1"))
        query = LONG.replace("from n a,", "from watched w, n a,")

        def compute():
            try:
                worker.execute(query)
            except psycopg.errors.QueryCanceled:
                pass

        thread = threading.Thread(target=compute)
        thread.start()
        until(lambda: state()[:2] == ("active", query), "the query is active")
        progress = "select relname, phase, regions_total, regions_done, rows_read, query from pg_stat_progress_query where pid = %s"
        done = ("watched", "scanning", 3, 3, 3000, query)
        until(lambda: watcher.execute(progress, (worker.info.backend_pid,)).fetchall() == [done], "it has read its table")
        with psycopg.connect(CONNECTION.replace("user=me", "user=another"), autocommit=True) as other:
            equal(other.execute("select count(*) from pg_stat_progress_query").fetchone(), (0,))
            of_worker = "select state, query from pg_stat_activity where pid = %s"
            equal(other.execute(of_worker, (worker.info.backend_pid,)).fetchone(), (None, "<insufficient privilege>"))
        worker.cancel()
        thread.join()
        until(lambda: state()[0] == "idle", "it is idle")
        equal(watcher.execute(progress, (worker.info.backend_pid,)).fetchall(), [])


@case
def psycopg_copies():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("drop table if exists copied")
        connection.execute("create table copied (k integer primary key, t text, b bytea, d date)")
        rows = [(k, f"a\t\\{k}\n", bytes([k % 256]), datetime.date(2024, 1, 1 + k % 28)) for k in range(2500)]
        with connection.cursor().copy("copy copied from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        with connection.cursor().copy("copy (select * from copied order by k) to stdout") as copy:
            copy.set_types(["int4", "text", "bytea", "date"])
            equal(list(copy.rows()), rows)
        with connection.cursor().copy("copy (select * from copied order by k) to stdout (format binary)") as copy:
            copy.set_types(["int4", "text", "bytea", "date"])
            equal(list(copy.rows()), rows)
        try:
            with connection.cursor().copy("copy copied (k, d) from stdin csv") as copy:
                copy.write("1,2024-01-01\n2,yesterday\n")
            raise AssertionError("no error")
        except psycopg.errors.InvalidDatetimeFormat as error:
            assert "line 2" in str(error), error
        equal(connection.execute("select count(*) from copied").fetchone(), (2500,))


@case
def asyncpg_copies():
    async def work():
        connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="basalt")
        out = bytearray()

        async def gather(data):
            out.extend(data)

        status = await connection.copy_from_query("select k, d from copied where k < 3 order by k", output=gather, format="csv")
        equal((status, bytes(out)), ("COPY 3", b"0,2024-01-01\n1,2024-01-02\n2,2024-01-03\n"))
        # Its rows go in binary.
        await connection.execute("drop table if exists records")
        types = "k bigint primary key, s smallint, i integer, r real, f double precision, n numeric(20,4), t text, b bytea, ok boolean"
        await connection.execute(f"create table records ({types}, d date, h time, at timestamp)")
        numbers = ["0", "-0.0001", "1234567890123456.7891", "10000", "99999999", "-12.3"]
        rows = [
            (k, k - 3, k * 1000, k / 4, k / 3, decimal.Decimal(number), f"\u00e4{k}", bytes([k]), k % 2 == 0)
            + (datetime.date(1998 + k, 2, 28), datetime.time(k, 59, 1, 1000 * k), datetime.datetime(1969, 12, 31, 23, 59, k, 7))
            for k, number in enumerate(numbers)
        ]
        rows.append((100,) + (None,) * 11)
        equal(await connection.copy_records_to_table("records", records=rows), "COPY 7")
        equal([tuple(row) for row in await connection.fetch("select * from records order by k")], rows)
        try:
            await connection.copy_records_to_table("records", records=[(7, 1)], columns=["k", "i"])
            await connection.copy_records_to_table("records", records=[(None, 1)], columns=["k", "i"])
            raise AssertionError("no error")
        except asyncpg.NotNullViolationError:
            pass
        equal(await connection.fetchval("select i from records where k = 7"), 1)
        await connection.close()

    asyncio.run(work())


@case
def rows_come_back_from_writes():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute("insert into clients (id, name) values (%s, %s) returning id, upper(name) as big", (500, "x"))
            equal(cursor.fetchall(), [(500, "X")])
            cursor.execute("update clients set name = %s where id = %s returning name, id + 1", ("y", 500))
            equal(cursor.fetchall(), [("y", 501)])
            cursor.execute("delete from clients where id = %s returning *", (500,))
            equal(cursor.fetchone()[:2], (500, "y"))


@case
def parameters_stand_in_do_update():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("drop table if exists merged")
        connection.execute("create table merged (k text primary key, n bigint, at timestamp, note text)")
        insert = "insert into merged (k, n) values (%s, %s) on conflict (k) do update set "
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            time_of = datetime.datetime(2024, 1, 2, 3, 4, 5)
            cursor.execute("delete from merged")
            cursor.execute(insert + "n = %s", ("a", 1, 7))
            equal(cursor.execute("select n from merged").fetchone(), (1,))
            cursor.execute(insert + "n = merged.n + excluded.n * %s, at = %s, note = %s || merged.k", ("a", 2, 10, time_of, "of "))
            equal(cursor.execute("select * from merged").fetchone(), ("a", 21, time_of, "of a"))
            cursor.execute(insert + "n = null, note = %s where merged.n > %s returning note", ("a", 2, "no", 21))
            equal(cursor.fetchall(), [])
            cursor.execute(insert + "n = %s::bigint, note = %s where merged.n = %s returning n, note", ("a", 2, 5, None, 21))
            equal(cursor.fetchall(), [(5, None)])


@case
def asyncpg_has_parameters_in_do_update():
    async def work():
        connection = await asyncpg.connect(host="127.0.0.1", port=PORT, user="me", database="basalt")
        await connection.execute("delete from merged")
        insert = "insert into merged (k, n) values ($1, $2) on conflict (k) do update set n = merged.n + $2, note = $3"
        await connection.execute(insert, "b", 5, "first")
        await connection.executemany(insert, [("b", 6, "second"), ("b", 7, "third")])
        equal(tuple(await connection.fetchrow("select n, note from merged where k = 'b'")), (18, "third"))
        await connection.close()

    asyncio.run(work())


@case
def counters_of_many_clients_lose_nothing():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("drop table if exists counters")
        connection.execute("create table counters (k text primary key, n bigint)")
    failed = []

    def count():
        try:
            with psycopg.connect(CONNECTION, autocommit=True) as connection:
                for _ in range(25):
                    connection.execute(
                        "insert into counters values (%s, 1) on conflict (k) do update set n = counters.n + excluded.n", ("c",)
                    )
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=count) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    equal(failed, [])
    with psycopg.connect(CONNECTION) as connection:
        equal(connection.execute("select n from counters where k = 'c'").fetchone(), (100,))


@case
def tables_are_read_as_they_were():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("drop table if exists times")
        connection.execute("create table times (k integer primary key, v text) with (versions = 5)")
        connection.execute("insert into times values (1, 'old'), (2, 'gone')")
        time.sleep(0.01)
        then = int(time.time() * 1000)
        time.sleep(0.01)
        connection.execute("insert into times values (1, 'new'), (3, 'later')")
        equal(connection.execute("select k, v from times order by k").fetchall(), [(1, "new"), (2, "gone"), (3, "later")])
        was = connection.execute(f"select t.k, v from times as of {then} t order by k").fetchall()
        equal(was, [(1, "old"), (2, "gone")])
        counted = connection.execute(f"select count(*) from times as of {then}").fetchone()
        equal(counted, (2,))
        changed = connection.execute(
            f"select n.k, w.v from times n left join times as of {then} as w on n.k = w.k where w.v is distinct from n.v order by 1"
        )
        equal(changed.fetchall(), [(1, "old"), (3, None)])


@case
def all_versions_of_rows_are_read_with_their_times():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("drop table if exists history")
        connection.execute(
            "create table history (k integer primary key, v text, n integer) with (versions = 5) split on (2)"
        )
        connection.execute("insert into history values (1, 'a', 1), (2, 'b', 2)")
        time.sleep(0.01)
        connection.execute("update history set n = 10 where k = 1")
        time.sleep(0.01)
        between = int(time.time() * 1000)
        time.sleep(0.01)
        connection.execute("update history set v = 'c' where k = 1")
        rows = connection.execute("select k, v, n from history for system_time all order by k, row_start desc").fetchall()
        equal(rows, [(1, "c", 10), (1, "a", 10), (1, "a", 1), (2, "b", 2)])
        # Columns that are not asked for make versions, too.
        equal(connection.execute("select count(*) from history for system_time all").fetchone(), (4,))
        equal(connection.execute("select n from history for system_time all where v = 'a' and k < 2 limit 1").fetchone(), (10,))
        equal(connection.execute("select count(n) from history for system_time all h where h.k = 1").fetchone(), (3,))
        times = connection.execute("select row_start from history for system_time all where k = 1 order by 1").fetchall()
        equal(times, sorted(set(times)))
        was = f"select v, row_start from history for system_time as of {between} where k = 1"
        equal(connection.execute(was).fetchone(), ("a", times[1][0]))
        newest = connection.execute("select max(row_start) from history for system_time all").fetchone()
        equal(newest, times[2])


@case
def one_row_by_its_key_is_the_same_in_every_way():
    with psycopg.connect(CONNECTION, autocommit=True) as connection:
        connection.execute("drop table if exists points")
        connection.execute(
            "create table points (a text, b integer, c timestamp, v numeric(8,2), w real, primary key (a, b desc, c))"
            " with (salt_buckets = 4)"
        )
        at = datetime.datetime(2024, 5, 6, 7, 8, 9, 120000)
        for b in range(-20, 20):
            connection.execute("insert into points values (%s, %s, %s, %s, %s)", (f"k{b % 3}", b, at, b / 4, b / 8))
        for binary in (False, True):
            for b in (-20, 0, 7, 19, 20):
                for prepare in (False, True):
                    row = connection.cursor(binary=binary).execute(
                        "select v, w, c, a as name from points where a = %s and b = %s and c = %s",
                        (f"k{b % 3}", b, at),
                        prepare=prepare,
                    )
                    expected = None if b == 20 else (decimal.Decimal(b) / 4, b / 8, at, f"k{b % 3}")
                    equal(row.fetchone(), expected)
        # A zero byte must not make two columns of one.
        connection.execute("drop table if exists pairs")
        connection.execute("create table pairs (a text, b text, v integer, primary key (a, b))")
        connection.execute("insert into pairs values ('x', 'y', 1)")
        equal(connection.execute("select v from pairs where a = 'x' and b = 'y'").fetchone(), (1,))


for test in CASES:
    try:
        test()
        print("ok", test.__name__)
    except Exception as error:
        print(f"FAILED {test.__name__}: {type(error).__name__}: {error}".replace("\n", " "))
    sys.stdout.flush()
