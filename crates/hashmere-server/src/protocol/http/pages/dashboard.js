'use strict';
// Figures once a second from /api/stats. Nothing is drawn anew that has not changed.

const KEPT = 300;
const $ = (id) => document.getElementById(id);
const hashmere = { write: false };

/** Asks this server, with the token if there is one. */
hashmere.ask = async (target, options = {}) => {
  const token = sessionStorage.getItem('token');
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const reply = await fetch(target, { ...options, headers, cache: 'no-store' });
  $('ask').hidden = reply.status !== 401;
  return reply;
};

hashmere.text = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

hashmere.bytes = (bytes) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
};

hashmere.count = (number) => number.toLocaleString('en-US', { maximumFractionDigits: number < 10 ? 1 : 0 });

/** Fills a table with rows of texts, and touches only cells that differ. */
hashmere.rows = (table, rows) => {
  const body = table.tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((cells, i) => {
    const row = body.rows[i] || body.insertRow();
    cells.forEach((cell, j) => hashmere.text(row.cells[j] || row.insertCell(), String(cell)));
  });
};

const charts = {
  operations: { series: ['hits', 'misses', 'sets', 'deletes'], show: hashmere.count },
  memory: { series: ['live', 'dead', 'free', 'index'], show: hashmere.bytes, steps: Array.from({ length: 40 }, (_, i) => 2 ** i) },
  ratio: { series: ['hit ratio'], show: (value) => `${value.toFixed(1)} %`, range: [0, 100] },
  requests: { series: ['gets', 'sets', 'http'], show: hashmere.count },
  lookups: { series: ['p50', 'p90', 'p99'], show: (ns) => `${hashmere.count(ns)} ns` },
};

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function clock(second) {
  return new Date(second * 1000).toLocaleTimeString('en-GB');
}

function draw(id) {
  const chart = charts[id];
  chart.data ||= [[], ...chart.series.map(() => [])];
  const axis = { stroke: colour('--dim'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
  const place = $(id);
  if (chart.plot) chart.plot.destroy();
  chart.plot = new uPlot({
    width: place.clientWidth,
    height: 170,
    cursor: { y: false },
    scales: { y: { range: chart.range || ((plot, low, high) => [0, high > 0 ? high * 1.1 : 1]) } },
    axes: [
      { ...axis, space: 80, size: 30, values: (plot, ticks) => ticks.map(clock) },
      { ...axis, size: 68, values: (plot, ticks) => ticks.map(chart.show), ...(chart.steps && { incrs: chart.steps }) },
    ],
    series: [{ label: 'time', value: (plot, second) => (second == null ? '-' : clock(second)) }, ...chart.series.map((label, i) => ({
      label, stroke: colour(`--c${i + 1}`), width: 1.5, points: { show: false },
      value: (plot, value) => (value == null ? '-' : chart.show(value)),
    }))],
  }, chart.data, place);
}

function push(id, second, values) {
  const { data, plot } = charts[id];
  [second, ...values].forEach((value, i) => {
    data[i].push(value);
    if (data[i].length > KEPT) data[i].shift();
  });
  plot.setData(data);
}

let before = null;

function show(now) {
  if (before && now.time_ms === before.time_ms) return;
  const { store, server } = now;
  const seconds = before ? (now.time_ms - before.time_ms) / 1000 : 0;
  const rate = (of) => (seconds > 0 ? Math.max(0, of(now) - of(before)) / seconds : 0);
  const figure = (name, text) => hashmere.text(document.querySelector(`[data-figure=${name}]`), text);
  const of = (name) => rate((stats) => stats.store[name]);
  const [hits, misses, sets, deletes] = ['hits', 'misses', 'sets', 'deletes'].map(of);
  const reads = hits + misses;
  const ratio = reads > 0 ? (100 * hits) / reads : null;
  hashmere.text($('name'), store.name);
  hashmere.text($('path'), `${store.path}, ${store.mode}`);
  figure('items', hashmere.count(store.items));
  figure('reads', hashmere.count(reads));
  figure('writes', hashmere.count(sets + deletes));
  figure('ratio', ratio === null ? '-' : `${ratio.toFixed(1)} %`);
  figure('live', hashmere.bytes(store.live_bytes));
  figure('allocated', hashmere.bytes(store.allocated_bytes));
  figure('processes', hashmere.count(now.processes.length));
  figure('evictions', hashmere.count(of('evictions')));
  if (before) {
    const second = now.time_ms / 1000;
    const request = (name) => rate((stats) => stats.server.counters[name]);
    push('operations', second, [hits, misses, sets, deletes]);
    push('memory', second, [store.live_bytes, store.dead_bytes, store.free_bytes, store.index_bytes]);
    push('ratio', second, [ratio]);
    const times = now.lookups;
    push('lookups', second, ['p50_ns', 'p90_ns', 'p99_ns'].map((name) => (times ? times[name] : null)));
    hashmere.text($('clock'), times ? `, with the ${times.clock_ns} ns of the clock` : '');
    push('requests', second, ['cmd_get', 'cmd_set', 'http_requests'].map(request));
  }
  processes(now, seconds);
  hashmere.rows($('regions'), now.regions.map((region) => [region.kind, region.name, hashmere.bytes(region.bytes)]));
  queuesAndLogs(now, seconds);
  hashmere.text($('feed'), now.feed
    ? `The feed keeps ${hashmere.count(now.feed.position - now.feed.oldest)} of ${hashmere.count(now.feed.position)} changes; `
      + `${now.feed.streams} clients follow it over HTTP.`
    : 'The store keeps no changes.');
  hashmere.rows($('details'), [
    ['Maximum size', store.max_bytes ? hashmere.bytes(store.max_bytes) : 'none'],
    ['Segments', `${hashmere.count(store.segments)}, ${hashmere.count(store.segments_free)} of them free`],
    ['Index', `${hashmere.count(store.index_used)} of ${hashmere.count(store.index_slots)} slots`],
    ['Cleaned', `${hashmere.count(store.segments_cleaned)} segments, ${hashmere.count(store.records_moved)} records moved`],
    ['Evicted, expired', `${hashmere.count(store.evictions)}, ${hashmere.count(store.expiries)}`],
    ['Lock waits, take-overs', `${hashmere.count(store.lock_waits)}, ${hashmere.count(store.takeovers)}`],
    ['Connections', `${hashmere.count(server.connections)} of ${hashmere.count(server.connections_max)}`],
    ['Server', `${now.version}, PID ${server.pid}, up ${hashmere.count(server.uptime_s)} s`],
  ]);
  hashmere.write = now.write;
  before = now;
}

/** Queues with their lengths, logs, and how far a replica is behind. */
function queuesAndLogs(now, seconds) {
  const rate = (value, old) => (seconds > 0 && old !== undefined ? hashmere.count(Math.max(0, value - old) / seconds) : '-');
  const known = (list, name) => (list || []).find((one) => one.name === name);
  const old = before || {};
  const queues = now.pools.flatMap((pool) => pool.queues.map((queue) => {
    const was = known(known(old.pools, pool.name)?.queues, queue.name);
    return [pool.name, queue.name, hashmere.count(queue.len), hashmere.count(queue.bound), rate(queue.pushed, was?.pushed)];
  }));
  const logs = now.logs.map((log) => [
    log.name, rate(log.lines, known(old.logs, log.name)?.lines), hashmere.count(log.lost), hashmere.bytes(log.waiting_bytes),
  ]);
  [['queues', queues], ['logs', logs]].forEach(([id, rows]) => {
    hashmere.rows($(id), rows);
    $(id).hidden = rows.length === 0;
  });
  chooseLogs(now.logs.map((log) => log.name));
  const replica = now.replica;
  hashmere.text($('replica'), replica
    ? `This store follows another one (${replica.phase}): ${hashmere.count(replica.lag)} changes behind, `
      + `${hashmere.count(replica.changes)} applied.`
    : '');
}

function processes(now, seconds) {
  const name = (process) => `${process.pid} ${process.name} ${process.own}`;
  const old = new Map((before ? before.processes : []).map((process) => [name(process), process]));
  const rows = now.processes.map((process) => {
    const was = old.get(name(process));
    const rate = (field) => {
      const known = was && seconds > 0 && was.threads === process.threads;
      return known ? hashmere.count(Math.max(0, process[field] - was[field]) / seconds) : '-';
    };
    const own = process.own ? `${process.name} (this server)` : process.name;
    return [process.pid, own, process.threads, ...['hits', 'misses', 'sets', 'deletes'].map(rate), process.pins];
  });
  hashmere.rows($('processes'), rows);
}

let paused = false;

async function tick() {
  if (paused || document.hidden) return;
  const state = $('state');
  try {
    const reply = await hashmere.ask('/api/stats');
    if (!reply.ok) throw new Error((await reply.text()).trim());
    show(await reply.json());
    state.classList.remove('bad');
    hashmere.text(state, hashmere.write ? 'live, changes allowed' : 'live, read-only');
  } catch (error) {
    state.classList.add('bad');
    hashmere.text(state, `no answer: ${error.message}`);
  }
}

function drawAll() {
  Object.keys(charts).forEach(draw);
}

$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  hashmere.text($('pause'), paused ? 'Go on' : 'Pause');
  if (paused) hashmere.text($('state'), 'paused');
});
$('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', $('token').value.trim());
  tick();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
new ResizeObserver(() => {
  Object.entries(charts).forEach(([id, chart]) => {
    const width = $(id).clientWidth;
    if (chart.plot && chart.plot.width !== width) chart.plot.setSize({ width, height: 170 });
  });
}).observe($('charts'));
drawAll();
tick();
setInterval(tick, 1000);
