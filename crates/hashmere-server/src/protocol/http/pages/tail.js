'use strict';
// The last lines of a log, from /api/log, once a second while it is shown.

const TAIL_KEPT = 200;
let tailed = '';
let tailAfter = '';

/** The names in the list of logs are those of the store, and the chosen one stays. */
function chooseLogs(names) {
  const list = $('tail-of');
  const known = [...list.options].slice(1).map((option) => option.value);
  if (known.join('\n') === names.join('\n')) return;
  list.replaceChildren(list.options[0], ...names.map((name) => new Option(name, name)));
  list.value = names.includes(tailed) ? tailed : '';
  $('tail').hidden = names.length === 0;
}

/** A line as `hashmere log` prints it. */
function lineOf({ line }) {
  if (!line) return '(a line that is not shown)';
  const fields = Object.entries(line.fields || {}).map(([name, value]) => ` ${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const lost = line.lost ? ` (${line.lost} lines were lost here)` : '';
  return `${line.time} ${(line.level || '').toUpperCase().padEnd(5)} ${line.process}[${line.pid}] ${line.thread}: ${line.text}${fields.join('')}${lost}`;
}

async function askTail() {
  if (tailed === '' || paused || document.hidden) return;
  const name = tailed;
  const said = $('tail-said');
  try {
    const after = tailAfter === '' ? '' : `&after=${tailAfter}`;
    const reply = await hashmere.ask(`/api/log?name=${encodeURIComponent(name)}${after}`);
    if (!reply.ok) throw new Error((await reply.text()).trim());
    const { lines, missed_bytes: missed } = await reply.json();
    // Another log was chosen in the meantime.
    if (name !== tailed) return;
    said.classList.remove('bad');
    hashmere.text(said, missed ? `${hashmere.bytes(missed)} were written over before they were read` : '');
    if (lines.length === 0) return;
    tailAfter = lines.at(-1).position;
    const box = $('tail-lines');
    const follows = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    const shown = box.textContent === '' ? [] : box.textContent.split('\n');
    box.textContent = [...shown, ...lines.flatMap((line) => lineOf(line).split('\n'))].slice(-TAIL_KEPT).join('\n');
    if (follows) box.scrollTop = box.scrollHeight;
  } catch (error) {
    said.classList.add('bad');
    hashmere.text(said, `no answer: ${error.message}`);
  }
}

$('tail-of').addEventListener('change', () => {
  tailed = $('tail-of').value;
  tailAfter = '';
  $('tail-lines').textContent = '';
  $('tail-lines').hidden = tailed === '';
  hashmere.text($('tail-said'), '');
  askTail();
});
setInterval(askTail, 1000);
