"""Splitting a program that was compiled for one IPU into the stages of a pipeline.

:mod:`~pvanalyse.analysis.splitting.layers` says what the layers are, between which a pipeline can be split;
:mod:`~pvanalyse.analysis.splitting.stage_memory` what layers need on each tile when they are a stage;
:mod:`~pvanalyse.analysis.splitting.partition` which layers go together; and
:mod:`~pvanalyse.analysis.splitting.pipeline_split` puts it together.
"""
