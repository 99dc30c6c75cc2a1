-- The layout "pvanalyse-1" of profile.pop.
--
-- Per-tile BLOBs (u32[T]) hold one little-endian unsigned 32-bit number for each of the target's tiles, tile by tile,
-- IPU by IPU; NULL stands for all zeros. Bytes are storage sizes, cycles are tile clock cycles, us is host time in
-- microseconds. A step counts the compile-time liveness steps from 0; intervals are [begin, end).
-- A table that is missing or empty was not captured.

PRAGMA application_id = 0x50564131;      -- "PVA1"

-- ------------------------------------------------------------------------------------------------------ the report
CREATE TABLE report_info (               -- layout is always there; the other keys may be absent
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE engine_options (
  scope TEXT NOT NULL,                   -- engine, target or report
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID;

-- -------------------------------------------------------------------------------------------------- the compilation
CREATE TABLE target (                    -- one row
  type                 TEXT    NOT NULL,
  architecture         TEXT    NOT NULL,
  num_ipus             INTEGER NOT NULL, -- of all replicas
  num_replicas         INTEGER NOT NULL,
  tiles_per_ipu        INTEGER NOT NULL,
  num_tiles            INTEGER NOT NULL,
  bytes_per_tile       INTEGER NOT NULL,
  clock_frequency      REAL    NOT NULL, -- Hz
  interleaved_begin    INTEGER,          -- tile byte offset
  relative_sync_delay_by_tile BLOB,      -- u32[T], cycles
  min_sync_delay       INTEGER           -- cycles
);
CREATE TABLE graph (                     -- one row
  num_vertices INTEGER, num_edges INTEGER, num_variables INTEGER, num_compute_sets INTEGER
);

CREATE TABLE tile_memory (
  tile                        INTEGER PRIMARY KEY,
  total_including_gaps        INTEGER NOT NULL,
  total_excluding_gaps        INTEGER NOT NULL,
  non_interleaved_including_gaps INTEGER NOT NULL, non_interleaved_excluding_gaps INTEGER NOT NULL,
  interleaved_including_gaps  INTEGER NOT NULL,    interleaved_excluding_gaps     INTEGER NOT NULL,
  overflowed_including_gaps   INTEGER NOT NULL,    overflowed_excluding_gaps      INTEGER NOT NULL,
  always_live_bytes           INTEGER NOT NULL,
  not_always_live_bytes       INTEGER NOT NULL     -- the tile's own peak
);
CREATE TABLE tile_memory_category (      -- without rows of zeros
  tile       INTEGER NOT NULL,
  category   TEXT    NOT NULL,
  region     TEXT    NOT NULL,           -- nonInterleaved, interleaved or overflowed
  non_overlapped INTEGER NOT NULL,       -- bytes at addresses of their own
  overlapped INTEGER NOT NULL,           -- bytes at addresses that something else uses at another time
  PRIMARY KEY (tile, category, region)
) WITHOUT ROWID;

CREATE TABLE vertex_types (
  vertex_type_id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  instance_bytes INTEGER NOT NULL
);
CREATE TABLE tile_vertices (             -- vertex code on a tile
  tile INTEGER NOT NULL, vertex_type_id INTEGER NOT NULL, code_bytes INTEGER NOT NULL,
  PRIMARY KEY (tile, vertex_type_id)
) WITHOUT ROWID;

CREATE TABLE compute_sets (
  compute_set_id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  estimated_cycles_by_tile BLOB,         -- u32[T]
  flops INTEGER,                         -- of all tiles of a replica
  debug_context_id INTEGER
);
CREATE TABLE compute_set_vertices (
  compute_set_id INTEGER NOT NULL, vertex_type_id INTEGER NOT NULL,
  count_by_tile BLOB NOT NULL,           -- u32[T]
  PRIMARY KEY (compute_set_id, vertex_type_id)
) WITHOUT ROWID;

CREATE TABLE programs (
  program_id   INTEGER PRIMARY KEY,
  type         TEXT NOT NULL,
  name         TEXT NOT NULL,
  repeat_count INTEGER,                  -- of a Repeat
  compute_set_id INTEGER,                -- of an OnTileExecute
  control_code_by_tile BLOB,             -- u32[T], bytes, with the children's
  code_bytes_by_tile   BLOB,             -- u32[T], bytes of exchange code
  estimated_cycles_by_tile BLOB,         -- u32[T], of exchanges
  debug_context_id INTEGER
);
CREATE TABLE program_children (          -- in order; the child of a Call is the function's body
  program_id INTEGER NOT NULL, position INTEGER NOT NULL, child_id INTEGER NOT NULL,
  PRIMARY KEY (program_id, position)
) WITHOUT ROWID;
CREATE TABLE program_roots (
  kind TEXT NOT NULL,                    -- control or function
  position INTEGER NOT NULL, program_id INTEGER NOT NULL,
  PRIMARY KEY (kind, position)
) WITHOUT ROWID;

CREATE TABLE variables (                 -- tensors as the user's program declares them
  variable_id INTEGER PRIMARY KEY, name TEXT NOT NULL,
  element_type TEXT,
  shape TEXT,                            -- JSON array
  debug_context_id INTEGER
);
CREATE TABLE lowered_variables (         -- allocations on a tile
  lowered_variable_id INTEGER PRIMARY KEY,
  variable_id INTEGER,                   -- NULL: the compiler's own
  name TEXT NOT NULL,
  tile INTEGER NOT NULL,
  offset INTEGER,                        -- tile byte offset; NULL: no place was found
  bytes INTEGER NOT NULL,
  alignment INTEGER NOT NULL,
  category TEXT NOT NULL,
  region TEXT NOT NULL,
  always_live INTEGER NOT NULL,
  is_constant INTEGER NOT NULL,
  is_executable INTEGER NOT NULL,
  equivalence_class_id INTEGER           -- NULL: always live
);
CREATE INDEX lowered_variables_tile ON lowered_variables(tile);
CREATE TABLE program_lowered_variables ( -- what a program reads or writes
  program_id INTEGER NOT NULL, lowered_variable_id INTEGER NOT NULL,
  PRIMARY KEY (program_id, lowered_variable_id)
) WITHOUT ROWID;

-- ------------------------------------------------------------------------------------- the liveness of one replica
CREATE TABLE liveness_steps (
  step INTEGER PRIMARY KEY, program_id INTEGER NOT NULL,
  not_always_live_bytes INTEGER NOT NULL
);
CREATE TABLE equivalence_class_intervals (
  equivalence_class_id INTEGER NOT NULL, step_begin INTEGER NOT NULL, step_end INTEGER NOT NULL,
  PRIMARY KEY (equivalence_class_id, step_begin)
) WITHOUT ROWID;
CREATE TABLE always_live_variables (
  name TEXT NOT NULL, variable_id INTEGER, bytes INTEGER NOT NULL
);
CREATE TABLE variable_liveness (
  variable_id INTEGER, name TEXT NOT NULL,
  step_begin INTEGER NOT NULL, step_end INTEGER NOT NULL,
  bytes INTEGER NOT NULL
);

-- ---------------------------------------------------------------------------------------------------- the execution
CREATE TABLE runs (
  run_id INTEGER PRIMARY KEY, name TEXT NOT NULL, start_us INTEGER NOT NULL, end_us INTEGER NOT NULL
);
CREATE TABLE execution_steps (
  step_id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL, program_id INTEGER NOT NULL,
  cycles_by_tile BLOB                    -- u32[T], where tiles were measured
);
CREATE TABLE execution_step_ipus (
  step_id INTEGER NOT NULL, ipu INTEGER NOT NULL,
  cycles INTEGER NOT NULL,
  active_from_min INTEGER NOT NULL, active_from_max INTEGER NOT NULL,
  active_to_min   INTEGER NOT NULL, active_to_max   INTEGER NOT NULL,
  all_from_min    INTEGER NOT NULL, all_from_max    INTEGER NOT NULL,
  all_to_min      INTEGER NOT NULL, all_to_max      INTEGER NOT NULL,
  tile_balance REAL, active_tile_balance REAL,
  data_in INTEGER, data_out INTEGER,     -- bytes
  PRIMARY KEY (step_id, ipu)
) WITHOUT ROWID;
CREATE TABLE execution_blocks (          -- of lightweight profiling
  block_id INTEGER PRIMARY KEY, tile INTEGER NOT NULL, program_id INTEGER, name TEXT NOT NULL,
  kind TEXT NOT NULL,                    -- common, streamCopy, overflow or blockFlush
  cycles_from INTEGER NOT NULL, cycles_to INTEGER NOT NULL
);
CREATE TABLE stream_copies (             -- of StreamCopyMid programs
  program_id INTEGER NOT NULL, stream TEXT NOT NULL,
  direction TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (program_id, stream)
) WITHOUT ROWID;
CREATE TABLE remote_buffers (
  name TEXT PRIMARY KEY, element_type TEXT, num_elements INTEGER NOT NULL, repeats INTEGER NOT NULL, bytes INTEGER NOT NULL
) WITHOUT ROWID;
