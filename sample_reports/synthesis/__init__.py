"""A small deterministic model of compiling and running a network, which writes report directories."""
