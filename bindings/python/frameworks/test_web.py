"""Flask and Django in gunicorn: two workers share sessions, also behind one that is killed."""

import json
import os
import signal
import urllib.error
import urllib.request
from http.cookiejar import CookieJar

from conftest import until


def browser():
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))


def ask(opener, url):
    """An answer as JSON. What a worker that is killed leaves unanswered is asked again."""

    def answer():
        try:
            with opener.open(url, timeout=60) as reply:
                return json.loads(reply.read() or b"{}") or True
        except urllib.error.HTTPError:
            raise
        except OSError:
            return None

    return until(answer, lambda: f"no answer from {url}")


def sessions(serve, application):
    url, server = serve(application)
    people = [browser() for _ in range(3)]
    answers = [ask(person, url) for _ in range(20) for person in people]
    assert [answer["seen"] for answer in answers] == [n for n in range(1, 21) for _ in people]
    pids = {answer["pid"] for answer in answers}
    assert pids <= set(server.children())
    os.kill(pids.pop(), signal.SIGKILL)
    after = [ask(person, url)["seen"] for person in people]
    # A worker may have counted what it did not answer any more.
    assert all(21 <= seen <= 22 for seen in after), after
    assert ask(browser(), url)["seen"] == 1
    return url, people


def test_flask_session(serve):
    sessions(serve, "flask_site:app")


def test_django(serve):
    url, people = sessions(serve, "django_site:application")
    assert ask(people[0], url)["all"] >= 65
    ask(people[0], f"{url}/leave")
    assert ask(people[0], url)["seen"] == 1 and ask(people[1], url)["seen"] >= 22
    statuses, refused = [], None
    for _ in range(30):
        try:
            with urllib.request.urlopen(f"{url}/limited?client=7", timeout=60) as reply:
                statuses.append(reply.status)
        except urllib.error.HTTPError as error:
            statuses.append(error.code)
            refused = error
    assert statuses == [200] * 20 + [429] * 10 and 0 < int(refused.headers["Retry-After"]) <= 3660
    assert ask(browser(), f"{url}/limited?client=8")
