"""Read the report directories that the Poplar SDK writes when a program for a Graphcore IPU is profiled."""
