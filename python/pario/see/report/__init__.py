"""Reporters: an :class:`pario.see.analyze.model.Analysis` in, a page out. No reporter opens a log,
and none computes anything but layout.

``terminal.render(analysis, console)``, ``html.render(analysis)`` and ``json.render(analysis)``; how
numbers and names look is decided in
:mod:`pario.wording` alone.
"""
