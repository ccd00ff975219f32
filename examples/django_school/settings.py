"""The settings: `GRAPH` is where the graph is, and `GRAPH_MODELS` its classes. Django itself needs no database."""

import os

GRAPH = os.environ.get("GRAPH", "school.db")
GRAPH_MODELS = "examples.django_school.models.MODELS"

SECRET_KEY = os.environ.get("SECRET_KEY", "change me")
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
INSTALLED_APPS = ["examples.django_school.apps.School"]
MIDDLEWARE = ["examples.django_school.graph.errors_as_statuses"]
ROOT_URLCONF = "examples.django_school.views"
USE_TZ = True
