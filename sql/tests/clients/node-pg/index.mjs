// What node-postgres does with basalt-sql. One line for each case: `ok NAME` or `FAILED NAME: why`.
// Run by `cargo xtask sql`; by hand: node index.mjs PORT
import assert from 'node:assert/strict';
import pg from 'pg';
import Cursor from 'pg-cursor';

const settings = { host: '127.0.0.1', port: Number(process.argv[2]), user: 'me', database: 'basalt' };
const cases = [];
const test = (name, work) => cases.push([name, work]);

async function connected(work) {
  const client = new pg.Client(settings);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

test('writes_and_reads', () =>
  connected(async (client) => {
    await client.query('drop table if exists node');
    await client.query('create table node (id integer primary key, name text, amount double precision, ok boolean)');
    for (let id = 0; id < 20; id += 1) {
      await client.query('insert into node values ($1, $2, $3, $4)', [id, `n${id}`, id / 4, id % 2 === 0]);
    }
    const all = await client.query('select id, name, amount, ok from node where id < 2 order by id');
    assert.deepEqual(all.rows, [
      { id: 0, name: 'n0', amount: 0, ok: true },
      { id: 1, name: 'n1', amount: 0.25, ok: false },
    ]);
    assert.equal(all.rowCount, 2);
  }));

test('prepares_statements_by_name', () =>
  connected(async (client) => {
    for (const id of [3, 4, 99]) {
      const query = { name: 'by-id', text: 'select name from node where id = $1', values: [id] };
      const found = await client.query(query);
      assert.deepEqual(found.rows, id === 99 ? [] : [{ name: `n${id}` }]);
    }
  }));

test('has_cursors', () =>
  connected(async (client) => {
    const cursor = client.query(new Cursor('select id from node order by id'));
    const sizes = [];
    for (;;) {
      const rows = await cursor.read(8);
      if (rows.length === 0) break;
      sizes.push(rows.length);
    }
    assert.deepEqual(sizes, [8, 8, 4]);
    await cursor.close();
  }));

test('returns_what_it_wrote', () =>
  connected(async (client) => {
    const written = await client.query("insert into node (id, name) values (50, 'fifty') returning id, name, ok");
    assert.deepEqual(written.rows, [{ id: 50, name: 'fifty', ok: null }]);
    const gone = await client.query('delete from node where id = $1 returning name', [50]);
    assert.deepEqual(gone.rows, [{ name: 'fifty' }]);
  }));

test('sees_errors_and_goes_on', () =>
  connected(async (client) => {
    await assert.rejects(client.query('select nosuch from node'), { code: '42703' });
    await assert.rejects(client.query('select 1/0'), { code: '22012' });
    assert.deepEqual((await client.query('select 1 as one')).rows, [{ one: '1' }]);
  }));

test('pools', async () => {
  const pool = new pg.Pool({ ...settings, max: 4 });
  const ids = Array.from({ length: 40 }, (_, id) => id % 20);
  const found = await Promise.all(ids.map((id) => pool.query('select name from node where id = $1', [id])));
  assert.deepEqual(found.map((answer) => answer.rows[0].name), ids.map((id) => `n${id}`));
  await pool.end();
});

for (const [name, work] of cases) {
  try {
    await work();
    console.log(`ok node_${name}`);
  } catch (error) {
    console.log(`FAILED node_${name}: ${String(error.stack).replaceAll('\n', ' ')}`);
  }
}
