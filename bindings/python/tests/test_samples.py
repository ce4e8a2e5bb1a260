"""The samples print what they print in every language."""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(__file__)


@pytest.mark.parametrize("name", ["basic", "counters", "view", "cache", "ping_pong", "work", "log"])
def test_sample(folder, name):
    with open(os.path.join(HERE, "..", "..", "samples", f"{name}.expected")) as expected:
        wanted = expected.read()
    script = os.path.join(HERE, "..", "samples", f"{name}.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr, done.returncode) == (wanted, "", 0)
    assert os.listdir(folder) == []


@pytest.mark.parametrize("page", ["README.md", "bindings/python/README.md"])
def test_the_first_code_of_a_page(folder, tmp_path, page):
    with open(os.path.join(HERE, "..", "..", "..", page)) as file:
        code = file.read().split("```python\n")[1].split("```")[0]
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "user:7" in done.stdout
