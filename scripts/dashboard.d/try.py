"""The dashboard in a browser: drawn figures against `hashmere stats`, keys edited, keyboard, narrow, dark, no error."""

import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

from playwright.sync_api import expect, sync_playwright

HASHMERE, SAVE = sys.argv[1], '--save' in sys.argv[2:]
DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'guide'
BINARY = bytes(range(256))
CLIP = {'x': 0, 'y': 0, 'width': 1100, 'height': 1250}


def run(*arguments, data=None):
    return subprocess.run([HASHMERE, *arguments], input=data, check=True, capture_output=True).stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


class Load:
    """A local process that writes, and a client that reads: some of its keys are not there."""

    def __init__(self, port):
        self.port = port
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while not self.stop.is_set():
            lines = ''.join(f'load:{i}\t{"x" * (40 + i % 200)}\n' for i in range(2000))
            subprocess.run([HASHMERE, 'load', 'sessions', '-q'], input=lines.encode(), capture_output=True, check=False)
            reader = http.client.HTTPConnection('127.0.0.1', self.port)
            for i in range(0, 2400, 5):
                reader.request('GET', f'/store/load:{i}')
                reader.getresponse().read()

    def end(self):
        self.stop.set()
        self.thread.join()


def serve(port, *options):
    command = [HASHMERE, 'serve', 'sessions', '-p', '0', '--http', f'127.0.0.1:{port}', *options]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert ' on tcp:' in server.stderr.readline()
    return server


def figure(page, name):
    return page.locator(f'[data-figure={name}]')


def ready(page):
    expect(page.locator('#state')).to_contain_text('live', timeout=30_000)


def compare(page):
    """What is drawn is what the store says, while nothing changes."""
    stats = json.loads(run('stats', 'sessions', '--json'))
    expect(figure(page, 'items')).to_have_text(f"{stats['items']:,}", timeout=10_000)

    def size(number):
        units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
        unit = 0
        while number >= 1024 and unit < 4:
            number, unit = number / 1024, unit + 1
        whole = unit == 0 or number >= 100
        return f'{round(number)} {units[unit]}' if whole else f'{number:.1f} {units[unit]}'

    expect(figure(page, 'live')).to_have_text(size(stats['bytes_live']), timeout=10_000)
    expect(figure(page, 'allocated')).to_have_text(size(stats['bytes_allocated']), timeout=10_000)
    index = stats['segments_index'] * stats['segment_bytes']
    memory = [stats['bytes_live'], stats['bytes_dead'], stats['bytes_free'], index]
    deadline = time.time() + 20
    while (drawn := page.evaluate('charts.memory.plot.data.map((series) => series.at(-1))'))[1:] != memory:
        assert time.time() < deadline, (drawn, stats)
        page.wait_for_timeout(200)
    details = page.locator('#details').inner_text()
    assert f"{stats['index_used']:,} of {stats['index_slots']:,} slots" in details, details
    feed = page.locator('#feed').inner_text()
    assert f"of {stats['feed']['position']:,} changes" in feed, feed


def rates_are_those_of_the_store(page, replies):
    """The drawn rates are the differences of consecutive replies, under load."""
    deadline = time.time() + 60
    while not page.evaluate('charts.operations.data[0].length > 8 && charts.operations.data[3].some((rate) => rate > 0)'):
        assert time.time() < deadline, 'no load is drawn'
        page.wait_for_timeout(200)
    page.click('#pause')
    page.wait_for_timeout(1500)
    drawn = page.evaluate('charts.operations.data')
    seen = [reply.json() for reply in replies]
    for i, second in enumerate(drawn[0]):
        now = next(at for at, one in enumerate(seen) if abs(one['time_ms'] / 1000 - second) < 0.0005)
        seconds = (seen[now]['time_ms'] - seen[now - 1]['time_ms']) / 1000
        for series, name in zip(drawn[1:], ['hits', 'misses', 'sets', 'deletes']):
            rate = (seen[now]['store'][name] - seen[now - 1]['store'][name]) / seconds
            assert abs(series[i] - rate) < 0.001, (name, series[i], rate)
    page.click('#pause')
    ready(page)


def hot(page):
    """Under load: the keys that are read and written are named, for as long as the page asks."""
    page.click('#sample')
    for kind in ['reads', 'writes']:
        expect(page.locator(f'#hot-{kind} tbody tr').first).to_contain_text('load:', timeout=60_000)
    expect(page.locator('#sampled')).to_contain_text('samples of')
    rates = page.locator('#hot-reads tbody td:first-child').all_inner_texts()
    numbers = [float(rate.replace(',', '')) for rate in rates]
    assert numbers == sorted(numbers, reverse=True) and numbers[0] > 0, rates


def logs(page):
    """What a log has drained and lost."""
    row = page.locator('#logs tbody tr').first
    expect(row).to_contain_text('events', timeout=10_000)
    stats = json.loads(run('log', 'stats', 'sessions', '--name', 'events', '--json'))
    cells = row.locator('td').all_inner_texts()
    assert (cells[0], cells[2]) == ('events', f"{stats['lost']:,}"), (cells, stats)


def lookups(page, replies):
    """What look-ups took is drawn as the server says."""
    seen = {round(reply.json()['time_ms']): reply.json()['lookups'] for reply in replies}
    drawn = page.evaluate('charts.lookups.data')
    compared = 0
    for i, second in enumerate(drawn[0]):
        times = seen[round(second * 1000)]
        if times:
            assert [series[i] for series in drawn[1:]] == [times[name] for name in ['p50_ns', 'p90_ns', 'p99_ns']], (i, times)
            assert 0 < times['p50_ns'] <= times['p90_ns'] <= times['p99_ns'] <= times['max_ns'], times
            compared += 1
    assert compared > 8, drawn
    expect(page.locator('#clock')).to_contain_text('ns of the clock')


def big(page):
    """The largest keys, sizes and prefixes are those that `hashmere big` prints."""
    page.click('#count')
    expect(page.locator('#count')).to_have_text('Count', timeout=30_000)
    said = json.loads(run('big', 'sessions', '--json', '--top', '20'))
    expect(page.locator('#big-said')).to_contain_text(f"{said['keys']:,} keys")
    prefixes = page.locator('#big-prefixes tbody tr').all_inner_texts()
    named = [prefix.split('\t')[3].strip() for prefix in prefixes]
    assert named == [line['prefix'] or '(other)' for line in said['prefixes']], (named, said)
    counted = [prefix.split('\t')[0] for prefix in prefixes]
    assert counted == [f"{line['keys']:,}" for line in said['prefixes']], (counted, said)
    sizes = page.locator('#big-sizes tbody td:nth-child(2)').all_inner_texts()
    assert sizes == [f"{line['keys']:,}" for line in said['sizes']], (sizes, said)
    assert page.locator('#big-keys tbody tr').count() == min(20, said['keys'])


def tail(page):
    """The lines of a log come as they are drained; none is markup, and each is shown once."""
    assert page.locator('#tail-of').locator('option').all_inner_texts() == ['none', 'events']
    page.select_option('#tail-of', 'events')
    expect(page.locator('#tail-lines')).to_contain_text('a line')
    for i in range(3):
        run('log', 'write', '--name', 'events', 'sessions', f'<b>line {i}</b>')
        run('log', '--once', '--name', 'events', 'sessions')
        expect(page.locator('#tail-lines')).to_contain_text(f'<b>line {i}</b>')
    lines = page.locator('#tail-lines').inner_text().split('\n')
    assert len(lines) == 4 and all(': ' in line for line in lines), lines
    assert page.locator('#tail-lines b').count() == 0
    page.select_option('#tail-of', '')
    expect(page.locator('#tail-lines')).to_be_hidden()


def keys(page):
    page.fill('#prefix', 'user:')
    page.keyboard.press('Enter')
    expect(page.locator('#found')).to_have_text('3 keys')
    page.get_by_role('button', name='user:json').click()
    expect(page.locator('#value')).to_have_value('{"a":[1,2]}')
    page.get_by_label('JSON').check()
    expect(page.locator('#value')).to_have_value('{\n  "a": [\n    1,\n    2\n  ]\n}')
    expect(page.locator('#save')).to_be_disabled()
    page.get_by_label('hex').check()
    assert '7b 22 61 22' in page.locator('#value').input_value()
    # Markup is text.
    page.get_by_role('button', name='user:<img src=x onerror=alert(1)>').click()
    expect(page.locator('#key')).to_have_text('user:<img src=x onerror=alert(1)>')
    assert page.locator('img').count() == 0


def edit(page):
    page.get_by_label('text').check()
    page.get_by_role('button', name='user:ada').click()
    expect(page.locator('#value')).to_have_value('Ada')
    page.fill('#value', 'Ada Lovelace')
    page.fill('#ttl', '3600')
    page.click('#save')
    expect(page.locator('#said')).to_have_text('saved')
    assert run('get', 'sessions', 'user:ada') == b'Ada Lovelace'
    # Changed by another process in the meantime: nothing is overwritten.
    run('set', 'sessions', 'user:ada', 'by another')
    page.fill('#value', 'mine')
    page.click('#save')
    expect(page.locator('#said')).to_contain_text('has changed since')
    assert run('get', 'sessions', 'user:ada') == b'by another'
    page.get_by_role('button', name='user:ada').click()
    expect(page.locator('#value')).to_have_value('by another')
    page.click('#delete')
    expect(page.locator('#found')).to_have_text('2 keys')
    assert subprocess.run([HASHMERE, 'exists', 'sessions', 'user:ada'], check=False).returncode == 1
    # A key and a value that are no text.
    page.fill('#prefix', 'bin')
    page.keyboard.press('Enter')
    page.get_by_role('button', name='bin\\xff').click()
    page.get_by_label('hex').check()
    assert page.locator('#value').input_value().startswith('00000000  00 01 02 03')
    page.get_by_label('text').check()
    expect(page.locator('#save')).to_be_disabled()


def keyboard(page):
    """Every control is reached by the tabulator, and what has the focus shows it."""
    page.reload()
    ready(page)
    reached = []
    for _ in range(6):
        page.keyboard.press('Tab')
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {'skip', 'pause', 'prefix'} <= set(reached), reached
    page.locator('#pause').focus()
    page.keyboard.press('Space')
    expect(page.locator('#state')).to_have_text('paused')
    page.keyboard.press('Space')
    ready(page)


def no_flicker(page):
    """An update with the same figures touches no node."""
    page.evaluate("""() => {
      window.touched = 0;
      new MutationObserver((records) => {
        window.touched += records.filter((record) => !record.target.closest?.('.uplot') && record.addedNodes.length > 1).length;
      }).observe(document.querySelector('main'), { childList: true, subtree: true });
    }""")
    time.sleep(2.5)
    assert page.evaluate('window.touched') == 0


def narrow(page):
    page.set_viewport_size({'width': 360, 'height': 740})
    time.sleep(0.5)
    wide = page.evaluate('document.documentElement.scrollWidth')
    assert wide <= 360, f'the page is {wide} wide'


def main():
    run('create', 'sessions', '--feed', '4M')
    for key, value in {'user:ada': 'Ada', 'user:json': '{"a":[1,2]}', 'user:<img src=x onerror=alert(1)>': 'x'}.items():
        run('set', 'sessions', key, value)
    run('set', 'sessions', '--escape', 'bin\\xff', ''.join(f'\\x{byte:02x}' for byte in BINARY))
    run('log', 'write', '--name', 'events', 'sessions', 'a line')
    run('log', '--once', '--name', 'events', 'sessions')
    port = free_port()
    server = serve(port, '--http-write')
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path='/usr/bin/chromium', args=['--no-sandbox'])
            page = browser.new_page(viewport={'width': 1100, 'height': 1250})
            problems, asked, replies = [], [], []
            page.on('response', lambda reply: replies.append(reply) if reply.url.endswith('/api/stats') else None)
            page.on('console', lambda message: problems.append(message.text) if message.type in ('error', 'warning') else None)
            page.on('pageerror', lambda error: problems.append(str(error)))
            page.on('request', lambda request: asked.append(request.url))
            page.goto(f'http://127.0.0.1:{port}/')
            ready(page)
            load = Load(port)
            try:
                rates_are_those_of_the_store(page, replies)
                hot(page)
                if SAVE:
                    time.sleep(40)
                    page.fill('#prefix', 'load:1')
                    page.keyboard.press('Enter')
                    expect(page.locator('#found')).to_contain_text('keys')
                    page.locator('#list button').first.click()
                    page.evaluate('scrollTo(0, 0)')
                    page.screenshot(path=DOCS / 'dashboard-light.png', clip=CLIP)
                    page.emulate_media(color_scheme='dark')
                    time.sleep(2)
                    page.screenshot(path=DOCS / 'dashboard-dark.png', clip=CLIP)
                    page.emulate_media(color_scheme='light')
            finally:
                load.end()
            page.click('#sample')
            expect(page.locator('#sampled')).to_have_text('not sampled')
            compare(page)
            lookups(page, replies)
            logs(page)
            big(page)
            tail(page)
            no_flicker(page)
            keys(page)
            expected = [problem for problem in problems if '412' in problem]
            edit(page)
            keyboard(page)
            narrow(page)
            assert expected == [] and all(re.search('412', problem) for problem in problems), problems
            assert all(url.startswith(f'http://127.0.0.1:{port}/') for url in asked), asked
            browser.close()
    finally:
        server.terminate()
        server.wait()
    print('dashboard: what is drawn is what the store says; keys, keyboard, narrow screen and no request elsewhere')


main()
