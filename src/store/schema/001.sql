-- Times are microseconds since 1970 in UTC, durations are microseconds. Outcomes and kinds of failure
-- are the numbers of codes.h. Row 0 of plans and signatures means "none", so that no key needs a NULL.

CREATE TABLE tests (
  id INTEGER PRIMARY KEY,
  target TEXT NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (target, name)
) STRICT;

CREATE TABLE targets (
  name TEXT PRIMARY KEY,
  framework TEXT NOT NULL,
  path TEXT NOT NULL,
  argv BLOB NOT NULL  -- each word ends in a NUL byte, the only byte that no word can hold
) STRICT, WITHOUT ROWID;

-- The uuid names a session outside of this database too: what is written twice is counted once.
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  started_us INTEGER NOT NULL,
  ended_us INTEGER,  -- NULL while it runs, and for ever when it was killed
  commit_id TEXT NOT NULL,
  branch TEXT NOT NULL,
  dirty INTEGER NOT NULL,
  machine TEXT NOT NULL,
  unflake_version TEXT NOT NULL,
  command_line TEXT NOT NULL,
  seed INTEGER  -- the bits of an unsigned number; NULL when the order was not shuffled
) STRICT;

CREATE TABLE plans (
  id INTEGER PRIMARY KEY,
  plan TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO plans VALUES (0, '');

-- What the first failing run with this signature showed.
CREATE TABLE signatures (
  id INTEGER PRIMARY KEY,
  signature TEXT NOT NULL UNIQUE,
  kind INTEGER NOT NULL,
  file TEXT NOT NULL,
  line INTEGER NOT NULL,
  function TEXT NOT NULL,
  expression TEXT NOT NULL,
  message TEXT NOT NULL
) STRICT;
INSERT INTO signatures VALUES (0, '', 0, '', 0, '', '', '');

-- Runs that the tables below do not have yet. Recording a run is one insert here and touches one page;
-- everything that costs more waits until many runs are moved on together.
CREATE TABLE fresh_runs (
  test INTEGER NOT NULL REFERENCES tests,
  started_us INTEGER NOT NULL,
  session INTEGER NOT NULL REFERENCES sessions,
  attempt INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  signature INTEGER NOT NULL REFERENCES signatures,
  plan INTEGER NOT NULL REFERENCES plans,
  PRIMARY KEY (test, started_us, session, attempt)
) STRICT, WITHOUT ROWID;

-- All other runs, for ever. Ordered by test and time because they are asked for by test, newest first.
-- Its rows have passed the references of fresh_runs: to check them again would cost more than the move.
CREATE TABLE runs (
  test INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  session INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  signature INTEGER NOT NULL,
  plan INTEGER NOT NULL,
  PRIMARY KEY (test, started_us, session, attempt)
) STRICT, WITHOUT ROWID;

-- The sums over `runs`: a test with millions of runs is summarised from a few rows.
CREATE TABLE totals (
  test INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  signature INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  sum_us REAL NOT NULL,  -- an integer could overflow, and no sum may ever refuse a run
  min_us INTEGER NOT NULL,
  max_us INTEGER NOT NULL,
  first_us INTEGER NOT NULL,
  first_session INTEGER NOT NULL,
  last_us INTEGER NOT NULL,
  last_session INTEGER NOT NULL,
  PRIMARY KEY (test, outcome, signature)
) STRICT, WITHOUT ROWID;

-- How many of the `runs` of a test took how long: the quantiles of a test with many runs.
CREATE TABLE histograms (
  test INTEGER NOT NULL,
  failing INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  PRIMARY KEY (test, failing, bucket)
) STRICT, WITHOUT ROWID;

-- What failing runs printed. The slots of a test's signature are used in turn, so that the newest
-- output takes the place of the oldest and nothing has to be counted or deleted.
CREATE TABLE outputs (
  test INTEGER NOT NULL REFERENCES tests,
  signature INTEGER NOT NULL REFERENCES signatures,
  slot INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  output BLOB NOT NULL,
  PRIMARY KEY (test, signature, slot)
) STRICT, WITHOUT ROWID;
