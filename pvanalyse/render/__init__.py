"""Renderers: results of analysis as text, JSON, CSV, Markdown and HTML.

A result becomes a :class:`pvanalyse.render.document.Document` once; each renderer knows documents, none knows reports.
"""
