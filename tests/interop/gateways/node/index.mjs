// The client `hbase` of npm against a REST gateway. Usage: node index.mjs HOST PORT
import hbase from 'hbase'

const [host, port] = process.argv.slice(2)
const client = hbase({ host, port: Number(port) })
let passed = 0
let failed = 0

const promised = (start) => new Promise((done, refuse) => start((error, value) => (error ? refuse(error) : done(value))))

async function check(name, run, wanted) {
  try {
    const seen = JSON.stringify(await run())
    if (seen !== JSON.stringify(wanted)) throw new Error(`${seen}, wanted ${JSON.stringify(wanted)}`)
    passed += 1
    console.log(`ok node rest ${name}`)
  } catch (error) {
    failed += 1
    console.log(`FAILED node rest ${name}: ${error.message}`)
  }
}

const table = client.table('it_node')
await check('create', () => promised((done) => table.create('f', done)), true)
await check('exists', () => promised((done) => table.exists(done)), true)
const cells = [1, 2, 3].map((n) => ({ key: `r${n}`, column: 'f:q', $: `value ${n}` }))
await check('put', () => promised((done) => client.table('it_node').row(null).put(cells, done)), true)
await check(
  'get',
  () => promised((done) => client.table('it_node').row('r2').get('f:q', done)).then((found) => found.map((cell) => cell.$)),
  ['value 2'],
)
await check(
  'scan',
  () => promised((done) => client.table('it_node').scan({ startRow: 'r1', maxVersions: 1 }, done)).then((found) => found.map((cell) => cell.key)),
  ['r1', 'r2', 'r3'],
)
await check('delete', () => promised((done) => client.table('it_node').row('r2').delete(done)), true)
await check('row that was deleted', () => promised((done) => client.table('it_node').row('r2').exists(done)), false)
await check('drop', () => promised((done) => table.delete(done)), true)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed ? 1 : 0)
