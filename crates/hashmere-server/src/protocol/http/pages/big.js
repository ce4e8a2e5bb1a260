'use strict';
// What takes the room, from /api/big: each question has the server count on, for as long as the page asks.

let counting = false;

/** A prefix as the key browser shows it, by its level; what is not listed of a level has no name. */
function prefixName(line) {
  const own = 'prefix' in line || 'prefix_base64' in line;
  const bytes = own ? bytesOf({ key: line.prefix, key_base64: line.prefix_base64 }) : null;
  return `${'\u00a0\u00a0'.repeat(line.level)}${own ? shownKey(bytes) : '(other)'}`;
}

function showBig(big) {
  const share = (bytes) => `${((100 * bytes) / Math.max(big.bytes, 1)).toFixed(1)} %`;
  hashmere.rows($('big-keys'), big.largest.map((one) => [hashmere.bytes(one.bytes), shownKey(bytesOf(one))]));
  hashmere.rows($('big-sizes'), big.sizes.map((one) => [
    `up to ${hashmere.bytes(one.to)}`, hashmere.count(one.keys), hashmere.bytes(one.bytes), share(one.bytes),
  ]));
  hashmere.rows($('big-prefixes'), big.prefixes.map((one) => [
    hashmere.count(one.keys), hashmere.bytes(one.bytes), share(one.bytes), prefixName(one),
  ]));
  $('big').hidden = false;
}

function sayBig(big) {
  const all = Math.max(big.items, big.keys);
  $('big-progress').max = Math.max(all, 1);
  $('big-progress').value = big.done ? all : big.keys;
  const keys = `${hashmere.count(big.keys)} keys, ${hashmere.bytes(big.bytes)} in keys and values`;
  hashmere.text($('big-said'), big.done ? keys : `${keys} so far`);
}

async function countBig() {
  let target = '/api/big?new';
  let shown = performance.now();
  while (counting) {
    const reply = await hashmere.ask(target);
    if (!reply.ok) throw new Error((await reply.text()).trim());
    const big = await reply.json();
    sayBig(big);
    if (big.largest) showBig(big);
    if (big.done) return;
    // The server is left alone most of the time; details come once a second.
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    const detailed = performance.now() - shown > 1000;
    if (detailed) shown = performance.now();
    target = detailed ? '/api/big?details' : '/api/big';
  }
}

function setCounting(on) {
  counting = on;
  $('count').setAttribute('aria-pressed', String(on));
  hashmere.text($('count'), on ? 'Stop counting' : 'Count');
  $('big-progress').hidden = !on;
}

$('count').addEventListener('click', async () => {
  setCounting(!counting);
  if (!counting) return;
  $('big-said').classList.remove('bad');
  try {
    await countBig();
  } catch (error) {
    $('big-said').classList.add('bad');
    hashmere.text($('big-said'), `no answer: ${error.message}`);
  }
  setCounting(false);
});
