"""Analysis: pure functions from tables to tables and plain values."""
