"""What `manage.py` is in a project of its own."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_school.settings")
execute_from_command_line([sys.argv[0], *sys.argv[1:]])
