"""What Python's clients of PostgreSQL do with basalt-sql. One line for each case: `ok NAME` or `FAILED NAME: why`.

Run by `cargo xtask sql`; by hand: python suite.py PORT
"""
import asyncio
import datetime
import decimal
import sys

import asyncpg
import pg8000.native
import psycopg
import sqlalchemy

PORT = int(sys.argv[1])
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


for test in CASES:
    try:
        test()
        print("ok", test.__name__)
    except Exception as error:
        print(f"FAILED {test.__name__}: {type(error).__name__}: {error}".replace("\n", " "))
    sys.stdout.flush()
