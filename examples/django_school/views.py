"""The views, and their addresses."""

from __future__ import annotations

from datetime import date

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from adjoin import NotFound
from examples.django_school.graph import graph
from examples.django_school.models import Course, Enrollment, Student


@require_GET
def student(request: HttpRequest, id: str) -> HttpResponse:
    found = graph().get(Student, id)
    if found is None:
        raise NotFound(f"there is no student {id}")
    return JsonResponse(found.model_dump(mode="json"))


@require_GET
def courses(request: HttpRequest, id: str) -> HttpResponse:
    page = graph().out(Student.ref(id), Enrollment).page(limit=20, after=request.GET.get("after"))
    shown = [{"course": each.target, "since": each.since.isoformat()} for each in page.items]
    return JsonResponse({"courses": shown, "next": page.next})


@require_POST
def enroll(request: HttpRequest, id: str, course: str) -> HttpResponse:
    since = date.fromisoformat(request.POST["since"])
    graph().connect(Enrollment, Student.ref(id), Course.ref(course), since=since)
    return HttpResponse(status=201)


urlpatterns = [
    path("students/<str:id>", student),
    path("students/<str:id>/courses", courses),
    path("students/<str:id>/courses/<str:course>", enroll),
]
