-- Layout "pvanalyse-1" of profile.pop, as the test reports are written.
-- *_by_tile: BLOB of little-endian 32-bit unsigned integers, one per tile; NULL means that all are zero.
-- An absent or empty table means "not captured".
PRAGMA application_id = 0x50564131;

CREATE TABLE report_info (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE engine_options (
  scope TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID;

-- compilation
CREATE TABLE target (  -- one row
  type TEXT NOT NULL, architecture TEXT NOT NULL,
  num_ipus INTEGER NOT NULL, num_replicas INTEGER NOT NULL,
  tiles_per_ipu INTEGER NOT NULL, num_tiles INTEGER NOT NULL,
  bytes_per_tile INTEGER NOT NULL, clock_frequency REAL NOT NULL,
  interleaved_begin INTEGER,
  relative_sync_delay_by_tile BLOB, min_sync_delay INTEGER
);
CREATE TABLE graph (  -- one row
  num_vertices INTEGER, num_edges INTEGER, num_variables INTEGER, num_compute_sets INTEGER
);
CREATE TABLE tile_memory (
  tile INTEGER PRIMARY KEY,
  total_including_gaps INTEGER NOT NULL, total_excluding_gaps INTEGER NOT NULL,
  non_interleaved_including_gaps INTEGER NOT NULL, non_interleaved_excluding_gaps INTEGER NOT NULL,
  interleaved_including_gaps INTEGER NOT NULL, interleaved_excluding_gaps INTEGER NOT NULL,
  overflowed_including_gaps INTEGER NOT NULL, overflowed_excluding_gaps INTEGER NOT NULL,
  always_live_bytes INTEGER NOT NULL, not_always_live_bytes INTEGER NOT NULL
);
CREATE TABLE tile_memory_category (
  tile INTEGER NOT NULL, category TEXT NOT NULL, region TEXT NOT NULL,
  non_overlapped INTEGER NOT NULL, overlapped INTEGER NOT NULL,
  PRIMARY KEY (tile, category, region)
) WITHOUT ROWID;
CREATE TABLE vertex_types (vertex_type_id INTEGER PRIMARY KEY, name TEXT NOT NULL, instance_bytes INTEGER NOT NULL);
CREATE TABLE tile_vertices (
  tile INTEGER NOT NULL, vertex_type_id INTEGER NOT NULL, code_bytes INTEGER NOT NULL,
  PRIMARY KEY (tile, vertex_type_id)
) WITHOUT ROWID;
CREATE TABLE compute_sets (
  compute_set_id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  estimated_cycles_by_tile BLOB, flops INTEGER, debug_context_id INTEGER
);
CREATE TABLE compute_set_vertices (
  compute_set_id INTEGER NOT NULL, vertex_type_id INTEGER NOT NULL, count_by_tile BLOB NOT NULL,
  PRIMARY KEY (compute_set_id, vertex_type_id)
) WITHOUT ROWID;
CREATE TABLE programs (
  program_id INTEGER PRIMARY KEY, type TEXT NOT NULL, name TEXT NOT NULL,
  repeat_count INTEGER, compute_set_id INTEGER,
  control_code_by_tile BLOB, code_bytes_by_tile BLOB, estimated_cycles_by_tile BLOB,
  debug_context_id INTEGER
);
CREATE TABLE program_children (
  program_id INTEGER NOT NULL, position INTEGER NOT NULL, child_id INTEGER NOT NULL,
  PRIMARY KEY (program_id, position)
) WITHOUT ROWID;
CREATE TABLE program_roots (
  kind TEXT NOT NULL, position INTEGER NOT NULL, program_id INTEGER NOT NULL,
  PRIMARY KEY (kind, position)
) WITHOUT ROWID;
CREATE TABLE variables (
  variable_id INTEGER PRIMARY KEY, name TEXT NOT NULL, element_type TEXT, shape TEXT, debug_context_id INTEGER
);
CREATE TABLE lowered_variables (
  lowered_variable_id INTEGER PRIMARY KEY, variable_id INTEGER, name TEXT NOT NULL,
  tile INTEGER NOT NULL, offset INTEGER, bytes INTEGER NOT NULL, alignment INTEGER NOT NULL,
  category TEXT NOT NULL, region TEXT NOT NULL,
  always_live INTEGER NOT NULL, is_constant INTEGER NOT NULL, is_executable INTEGER NOT NULL,
  equivalence_class_id INTEGER
);
CREATE INDEX lowered_variables_tile ON lowered_variables(tile);
CREATE TABLE program_lowered_variables (
  program_id INTEGER NOT NULL, lowered_variable_id INTEGER NOT NULL,
  PRIMARY KEY (program_id, lowered_variable_id)
) WITHOUT ROWID;

-- liveness of one replica
CREATE TABLE liveness_steps (
  step INTEGER PRIMARY KEY, program_id INTEGER NOT NULL, not_always_live_bytes INTEGER NOT NULL
);
CREATE TABLE equivalence_class_intervals (
  equivalence_class_id INTEGER NOT NULL, step_begin INTEGER NOT NULL, step_end INTEGER NOT NULL,
  PRIMARY KEY (equivalence_class_id, step_begin)
) WITHOUT ROWID;
CREATE TABLE always_live_variables (name TEXT NOT NULL, variable_id INTEGER, bytes INTEGER NOT NULL);
CREATE TABLE variable_liveness (
  variable_id INTEGER, name TEXT NOT NULL,
  step_begin INTEGER NOT NULL, step_end INTEGER NOT NULL, bytes INTEGER NOT NULL
);

-- execution
CREATE TABLE runs (run_id INTEGER PRIMARY KEY, name TEXT NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL);
CREATE TABLE execution_steps (
  step_id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL, program_id INTEGER NOT NULL, cycles_by_tile BLOB
);
CREATE TABLE execution_step_ipus (
  step_id INTEGER NOT NULL, ipu INTEGER NOT NULL, cycles INTEGER NOT NULL,
  active_from_min INTEGER NOT NULL, active_from_max INTEGER NOT NULL,
  active_to_min INTEGER NOT NULL, active_to_max INTEGER NOT NULL,
  all_from_min INTEGER NOT NULL, all_from_max INTEGER NOT NULL,
  all_to_min INTEGER NOT NULL, all_to_max INTEGER NOT NULL,
  tile_balance REAL, active_tile_balance REAL,
  data_in INTEGER, data_out INTEGER,
  PRIMARY KEY (step_id, ipu)
) WITHOUT ROWID;
CREATE TABLE execution_blocks (
  block_id INTEGER PRIMARY KEY, tile INTEGER NOT NULL, program_id INTEGER, name TEXT NOT NULL, kind TEXT NOT NULL,
  cycles_from INTEGER NOT NULL, cycles_to INTEGER NOT NULL
);
CREATE TABLE stream_copies (
  program_id INTEGER NOT NULL, stream TEXT NOT NULL, direction TEXT NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (program_id, stream)
) WITHOUT ROWID;
CREATE TABLE remote_buffers (
  name TEXT PRIMARY KEY, element_type TEXT,
  num_elements INTEGER NOT NULL, repeats INTEGER NOT NULL, bytes INTEGER NOT NULL
) WITHOUT ROWID;
