"""Readers: one file format each, from bytes to the tables of :mod:`pvanalyse.tables`."""
