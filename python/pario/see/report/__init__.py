"""Reporters: turn an :class:`pario.see.analyze.model.Analysis` into a page. No reporter opens a
log, and none computes anything but layout.

They are ``terminal.render(analysis, console)``, ``html.render(analysis)`` and
``json.render(analysis)``. :mod:`pario.wording` alone formats numbers and names.
"""
