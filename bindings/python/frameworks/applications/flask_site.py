"""Sessions of Flask-Session in a store that is opened before the workers are forked."""

import os

from flask import Flask, session
from flask_session import Session

from hashmere.cachelib import HashmereCache

app = Flask(__name__)
app.config.update(SESSION_TYPE="cachelib", SESSION_CACHELIB=HashmereCache("flask", max_bytes=8 << 20))
Session(app)


@app.get("/")
def count():
    session["seen"] = session.get("seen", 0) + 1
    return {"pid": os.getpid(), "seen": session["seen"]}
