"""Sessions, a cache and a limit of Django."""

import os

from django.conf import settings

settings.configure(
    SECRET_KEY="for tests",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    SESSION_ENGINE="hashmere.django_sessions",
    CACHES={"default": {"BACKEND": "hashmere.django.HashmereCache", "LOCATION": "cache", "OPTIONS": {"max_bytes": 8 << 20}}},
)

from django.core.cache import cache  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402

import hashmere  # noqa: E402
from hashmere.limits import SlidingWindow  # noqa: E402

limit = SlidingWindow(hashmere.open("limits"), limit=20, period=3600)


def count(request):
    request.session["seen"] = request.session.get("seen", 0) + 1
    cache.add("all", 0)
    return JsonResponse({"pid": os.getpid(), "seen": request.session["seen"], "all": cache.incr("all")})


def limited(request):
    decision = limit.take(request.GET["client"])
    return HttpResponse(status=200 if decision else 429, headers={"Retry-After": round(decision.retry_after)})


def leave(request):
    request.session.flush()
    return HttpResponse()


urlpatterns = [path("", count), path("limited", limited), path("leave", leave)]
application = get_wsgi_application()
