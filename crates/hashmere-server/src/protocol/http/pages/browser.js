'use strict';
// The keys of the store: a list by prefix, and one of them with its value.

const browser = { cursor: null, keys: [], key: null, bytes: null, tag: null };

function bytesOf(item) {
  if (item.key_base64 === undefined) return new TextEncoder().encode(item.key);
  return Uint8Array.from(atob(item.key_base64), (letter) => letter.charCodeAt(0));
}

function targetOf(bytes) {
  return `/store/${Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`;
}

function shownKey(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return Array.from(bytes, (byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`)).join('');
  }
}

function say(text, isBad) {
  $('said').classList.toggle('bad', Boolean(isBad));
  hashmere.text($('said'), text);
}

async function list(isMore) {
  const prefix = encodeURIComponent($('prefix').value);
  let cursor = isMore ? browser.cursor : null;
  if (!isMore) browser.keys = [];
  const start = browser.keys.length;
  // A reply may have no key, and more may follow.
  for (let asked = 0; asked < 50; asked += 1) {
    const reply = await hashmere.ask(`/store/?prefix=${prefix}&limit=50${cursor ? `&cursor=${cursor}` : ''}`);
    if (!reply.ok) {
      hashmere.text($('found'), (await reply.text()).trim());
      return;
    }
    const found = await reply.json();
    browser.keys.push(...found.keys);
    cursor = found.cursor;
    if (cursor === null || browser.keys.length >= start + 50) break;
  }
  browser.cursor = cursor;
  $('more').disabled = cursor === null;
  hashmere.text($('found'), `${browser.keys.length} keys${cursor === null ? '' : ', there are more'}`);
  const body = $('list').tBodies[0];
  body.replaceChildren(...browser.keys.map((item) => {
    const row = document.createElement('tr');
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = shownKey(bytesOf(item));
    button.addEventListener('click', () => open(bytesOf(item)));
    row.insertCell().append(button);
    row.insertCell().textContent = hashmere.count(item.value_len);
    row.insertCell().textContent = item.expires_at_ms === null ? 'never' : new Date(item.expires_at_ms).toLocaleString();
    return row;
  }));
}

async function open(key) {
  const reply = await hashmere.ask(targetOf(key));
  $('item').hidden = false;
  browser.key = key;
  hashmere.text($('key'), shownKey(key));
  if (!reply.ok) {
    browser.bytes = new Uint8Array();
    hashmere.text($('about'), '');
    say((await reply.text()).trim(), true);
  } else {
    browser.bytes = new Uint8Array(await reply.arrayBuffer());
    browser.tag = reply.headers.get('ETag');
    browser.flags = reply.headers.get('X-Hashmere-Flags');
    const ttl = reply.headers.get('X-Hashmere-TTL');
    const parts = [`${hashmere.count(browser.bytes.length)} bytes`, `version ${(browser.tag || '').replaceAll('"', '')}`];
    parts.push(ttl ? `expires in ${ttl} s` : 'never expires');
    if (browser.flags) parts.push(`flags ${browser.flags}`);
    hashmere.text($('about'), parts.join(', '));
    $('ttl').value = ttl || '';
    say('');
  }
  render();
}

const FORMS = {
  text: (bytes) => new TextDecoder().decode(bytes),
  json: (bytes) => {
    try {
      return JSON.stringify(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)), null, 2);
    } catch (error) {
      return `(not JSON: ${error.message})`;
    }
  },
  hex: (bytes) => {
    const lines = [];
    for (let at = 0; at < bytes.length && at < 65536; at += 16) {
      const part = bytes.subarray(at, at + 16);
      const hex = Array.from(part, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
      const text = Array.from(part, (byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
      lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${text}`);
    }
    return lines.join('\n');
  },
};

function render() {
  const form = document.querySelector('[name=form]:checked').value;
  const value = $('value');
  value.value = FORMS[form](browser.bytes);
  // What is shown as text is what is stored only if it is text.
  const isText = FORMS.text(browser.bytes) === value.value && !value.value.includes('\ufffd');
  value.readOnly = !(hashmere.write && form === 'text' && isText);
  $('change').hidden = !hashmere.write;
  $('save').disabled = value.readOnly;
}

$('find').addEventListener('submit', (event) => {
  event.preventDefault();
  list(false);
});
$('more').addEventListener('click', () => list(true));
document.querySelectorAll('[name=form]').forEach((choice) => choice.addEventListener('change', render));
$('item').addEventListener('submit', async (event) => {
  event.preventDefault();
  const headers = browser.tag ? { 'If-Match': browser.tag } : {};
  if ($('ttl').value.trim()) headers['X-Hashmere-TTL'] = $('ttl').value.trim();
  if (browser.flags) headers['X-Hashmere-Flags'] = browser.flags;
  const body = new TextEncoder().encode($('value').value);
  const reply = await hashmere.ask(targetOf(browser.key), { method: 'PUT', headers, body });
  if (reply.ok) {
    await open(browser.key);
    say('saved');
  } else {
    say(reply.status === 412 ? 'not saved: the key has changed since; open it again' : (await reply.text()).trim(), true);
  }
});
$('delete').addEventListener('click', async () => {
  const headers = browser.tag ? { 'If-Match': browser.tag } : {};
  const reply = await hashmere.ask(targetOf(browser.key), { method: 'DELETE', headers });
  if (reply.ok) {
    $('item').hidden = true;
    await list(false);
  } else {
    say(reply.status === 412 ? 'not deleted: the key has changed since; open it again' : (await reply.text()).trim(), true);
  }
});
