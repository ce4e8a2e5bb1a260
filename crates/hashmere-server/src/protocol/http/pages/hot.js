'use strict';
// Hot keys from /api/hot, which the server samples for as long as the page asks.

let sampling = false;

/** A key as the key browser shows it; of a long one what was sampled. */
function hotName(hot) {
  const bytes = bytesOf(hot);
  const name = shownKey(bytes);
  return bytes.length < hot.key_len ? `${name}... (${hot.key_len} bytes)` : name;
}

function hotRows(hottest) {
  return hottest.keys.map((hot) => [
    hashmere.count(hot.rate.per_second),
    `${hashmere.count(hot.rate.low)} to ${hashmere.count(hot.rate.high)}`,
    `${(100 * hot.share).toFixed(1)} %`,
    hotName(hot),
  ]);
}

async function askHot() {
  if (!sampling || document.hidden) return;
  const said = $('sampled');
  try {
    const reply = await hashmere.ask('/api/hot');
    if (!reply.ok) throw new Error((await reply.text()).trim());
    const hot = await reply.json();
    // Switched off in the meantime.
    if (!sampling) return;
    said.classList.remove('bad');
    if (!hot.reads) {
      hashmere.text(said, 'sampling');
      return;
    }
    const lost = hot.lost ? `, ${hashmere.count(hot.lost)} lost` : '';
    hashmere.text(said, `${hashmere.count(hot.samples)} samples of ${hot.seconds.toFixed(1)} s${lost}`);
    hashmere.rows($('hot-reads'), hotRows(hot.reads));
    hashmere.rows($('hot-writes'), hotRows(hot.writes));
    $('hot').hidden = false;
  } catch (error) {
    said.classList.add('bad');
    hashmere.text(said, `no answer: ${error.message}`);
  }
}

$('sample').addEventListener('click', () => {
  sampling = !sampling;
  $('sample').setAttribute('aria-pressed', String(sampling));
  hashmere.text($('sample'), sampling ? 'Stop sampling' : 'Sample');
  hashmere.text($('sampled'), sampling ? 'sampling' : 'not sampled');
  askHot();
});
setInterval(askHot, 1000);
