"""Called by bench/http: user and system time of one server, by requests of two protocols in turns."""

import argparse
import os
import re
import socket
import statistics
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument('hashmere')
parser.add_argument('--requests', type=int, default=40_000)
parser.add_argument('--rounds', type=int, default=7)
options = parser.parse_args()

VALUE = b'v' * 100


def cpu_ns(pid):
    """CPU time of all threads: schedstat counts nanoseconds, /proc/PID/stat ticks of ten milliseconds."""
    total = 0
    for thread in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{thread}/schedstat') as figures:
            total += int(figures.read().split()[0])
    return total


def measure(pid, port, request, end):
    """Nanoseconds of the server for each request; one is sent when the one before is answered."""
    with socket.create_connection(('127.0.0.1', port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for count in (1000, options.requests):
            before = cpu_ns(pid)
            for _ in range(count):
                client.sendall(request)
                answer = client.recv(65536)
                while not answer.endswith(end):
                    answer += client.recv(65536)
        return (cpu_ns(pid) - before) / options.requests


command = [options.hashmere, 'serve', 'bench', '-t', '1', '-p', '-1', '-l', '127.0.0.1', '--http', '127.0.0.1:0']
server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
try:
    ports = [int(port) for port in re.findall(r'tcp:127\.0\.0\.1:(\d+)', server.stderr.readline())]
    subprocess.run([options.hashmere, 'set', 'bench', 'key', VALUE.decode()], check=True)
    jobs = {
        'memcached': (ports[0], b'get key\r\n', b'END\r\n'),
        'http': (ports[1], b'GET /store/key HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n', VALUE),
    }
    took = {name: [] for name in jobs}
    for _ in range(options.rounds):
        for name, job in jobs.items():
            took[name].append(measure(server.pid, *job))
    ratios = [http / memcached for http, memcached in zip(took['http'], took['memcached'])]
    for name, times in took.items():
        print(f'{name:<10} {statistics.median(times):8.0f} ns of CPU a request (least {min(times):.0f})')
    print(f'ratio      {statistics.median(ratios):8.2f} (median of {options.rounds} rounds; the bar is 2)')
finally:
    server.terminate()
    server.wait()
