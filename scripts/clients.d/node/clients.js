// memjs (binary protocol) does its usual work; values are compared.
const memjs = require('memjs');

function check(what, is) {
  if (!is) {
    console.error(`memjs: ${what}`);
    process.exit(1);
  }
}

async function work() {
  const client = memjs.Client.create(`127.0.0.1:${process.argv[2]}`, { timeout: 5, retries: 0 });
  check('set', await client.set('node', 'value', { expires: 100 }));
  const { value } = await client.get('node');
  check('get', value.toString() === 'value');
  check('add', !(await client.add('node', 'x', {})) && (await client.replace('node', 'next', {})));
  // Not `prepend`: memjs 1.3.2 sends the opcode of `append` for it.
  check('append', await client.append('node', '!'));
  check('after append', (await client.get('node')).value.toString() === 'next!');
  check('incr', (await client.increment('count', 1, { initial: 10 })).value === 10);
  check('incr again', (await client.increment('count', 5, {})).value === 15);
  check('decr', (await client.decrement('count', 20, {})).value === 0);
  check('touch', await client.touch('node', 10));
  check('delete', (await client.delete('node')) && (await client.get('node')).value === null);
  const long = Buffer.alloc(900000, 'v');
  await client.set('long', long, {});
  check('long value', (await client.get('long')).value.equals(long));
  await Promise.all([...Array(300).keys()].map((i) => client.set(`n${i}`, 'x'.repeat(i), {})));
  const all = await Promise.all([...Array(300).keys()].map((i) => client.get(`n${i}`)));
  all.forEach(({ value }, i) => check(`n${i}`, value.toString() === 'x'.repeat(i)));
  client.close();
  console.log('memjs: ok');
}

work().catch((error) => {
  console.error(`memjs: ${error}`);
  process.exit(1);
});
