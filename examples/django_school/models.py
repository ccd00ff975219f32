"""The classes of the graph, in the place of Django's own models."""

from datetime import date

from adjoin import Edge, Node


class Student(Node):
    id: str
    name: str


class Course(Node):
    id: str
    title: str


class Enrollment(Edge[Student, Course], order="since"):
    since: date


MODELS = [Student, Course, Enrollment]
