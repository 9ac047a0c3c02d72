-- Functions that tests have executed, by what they are called in every build.
CREATE TABLE functions (
  id INTEGER PRIMARY KEY,
  project INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  file TEXT NOT NULL,  -- empty: not known
  UNIQUE (project, kind, name, file)
) STRICT;

-- What a run executed. Most runs of a test execute what the one before it did, and share this.
CREATE TABLE function_sets (
  id INTEGER PRIMARY KEY,
  hash INTEGER NOT NULL,  -- of the members
  members BLOB NOT NULL   -- rows of functions, ascending, each as its distance from the last
) STRICT;
CREATE INDEX function_sets_by_hash ON function_sets (hash);

CREATE TABLE function_traces (
  test INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  session INTEGER NOT NULL,
  functions INTEGER NOT NULL,  -- of function_sets
  PRIMARY KEY (test, started_us, session)
) STRICT, WITHOUT ROWID;
-- only postgres
ALTER TABLE functions DROP CONSTRAINT functions_project_kind_name_file_key;
CREATE UNIQUE INDEX functions_by_name ON functions (project, kind, md5(name), md5(file));
-- both
