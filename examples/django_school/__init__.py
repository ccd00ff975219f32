"""A Django project whose data is in a graph: its settings, a check for `manage.py check`, and views.

python -m examples.django_school check
python -m examples.django_school runserver
"""
