-- Several projects share a history. Project 0 has no name: it is the one whose own file this is.
CREATE TABLE projects (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO projects VALUES (0, '');

-- only sqlite
CREATE TABLE old_tests AS SELECT * FROM tests;
DROP TABLE tests;
CREATE TABLE tests (
  id INTEGER PRIMARY KEY,
  project INTEGER NOT NULL,
  target TEXT NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (project, target, name)
) STRICT;
INSERT INTO tests SELECT id, 0, target, name FROM old_tests;
DROP TABLE old_tests;

CREATE TABLE old_targets AS SELECT * FROM targets;
DROP TABLE targets;
CREATE TABLE targets (
  project INTEGER NOT NULL,
  name TEXT NOT NULL,
  framework TEXT NOT NULL,
  path TEXT NOT NULL,
  argv BLOB NOT NULL,
  PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;
INSERT INTO targets SELECT 0, name, framework, path, argv FROM old_targets;
DROP TABLE old_targets;
-- only postgres
ALTER TABLE tests ADD COLUMN project BIGINT NOT NULL DEFAULT 0;
ALTER TABLE targets ADD COLUMN project BIGINT NOT NULL DEFAULT 0;
-- both

ALTER TABLE sessions ADD COLUMN project INTEGER NOT NULL DEFAULT 0;
-- What CI calls the build; the session's uuid when it is a build of its own.
ALTER TABLE sessions ADD COLUMN build TEXT NOT NULL DEFAULT '';
UPDATE sessions SET build = uuid;
CREATE INDEX sessions_by_build ON sessions (project, build);
CREATE INDEX sessions_by_commit ON sessions (project, commit_id);
CREATE INDEX sessions_by_time ON sessions (project, started_us);

-- The sums over a session's runs, those under a plan left out.
CREATE TABLE session_totals (
  session INTEGER PRIMARY KEY,
  runs INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  last_us INTEGER NOT NULL  -- the end of the last one
) STRICT;

-- A failure of a test in a session, runs under a plan left out: the rare rows from which everything
-- about flakiness is told.
CREATE TABLE incidents (
  session INTEGER NOT NULL,
  test INTEGER NOT NULL,
  signature INTEGER NOT NULL,
  outcome INTEGER NOT NULL,   -- of the first run that failed so
  failures INTEGER NOT NULL,  -- with this signature
  passes INTEGER NOT NULL,    -- of the test in this session
  first_us INTEGER NOT NULL,  -- starts of the first and the last run that failed so
  last_us INTEGER NOT NULL,
  wasted_us INTEGER NOT NULL,  -- in these failures, and in the passing attempts that came next to them
  flaky INTEGER NOT NULL,      -- 1: the test passed in this session, in another one of the build or of
                               -- the clean commit
  PRIMARY KEY (session, test, signature)
) STRICT, WITHOUT ROWID;
CREATE INDEX incidents_by_test ON incidents (test, first_us);

-- Failures that quarantine kept from failing the session's build.
CREATE TABLE suppressions (
  session INTEGER NOT NULL,
  test INTEGER NOT NULL,
  signature INTEGER NOT NULL,
  PRIMARY KEY (session, test, signature)
) STRICT, WITHOUT ROWID;

CREATE TABLE lifecycle (
  test INTEGER NOT NULL,
  at_us INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  signature TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  owner TEXT NOT NULL,
  url TEXT NOT NULL,
  PRIMARY KEY (test, at_us, kind, signature)
) STRICT, WITHOUT ROWID;

CREATE TABLE causes (
  id INTEGER PRIMARY KEY,
  project INTEGER NOT NULL,
  title TEXT NOT NULL,
  state INTEGER NOT NULL,
  opened_us INTEGER NOT NULL,
  closed_us INTEGER,
  reopened INTEGER NOT NULL,
  category TEXT NOT NULL,
  url TEXT NOT NULL
) STRICT;

CREATE TABLE cause_signatures (
  cause INTEGER NOT NULL,
  signature TEXT NOT NULL,
  PRIMARY KEY (cause, signature)
) STRICT, WITHOUT ROWID;

-- Runs that began before it were forgotten; one that is delivered again must not count again.
CREATE TABLE horizons (
  project INTEGER PRIMARY KEY,
  passing_us INTEGER NOT NULL,
  failing_us INTEGER NOT NULL
) STRICT;

-- only sqlite
-- Runs on their way from fresh_runs to runs: the sums over sessions have them, the sums over tests do
-- not yet. Ordered as they arrive, so that the runs of a session take few pages; to put each run of
-- thousands of tests to the other runs of its test takes a page for each, so that waits for many.
CREATE TABLE staged_runs (
  session INTEGER NOT NULL,
  test INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  signature INTEGER NOT NULL,
  plan INTEGER NOT NULL,
  PRIMARY KEY (session, test, started_us, attempt)
) STRICT, WITHOUT ROWID;

-- The stretch of time in which a session's `runs` began; a session without a row has none there.
CREATE TABLE placed_sessions (
  session INTEGER PRIMARY KEY,
  first_us INTEGER NOT NULL,
  last_us INTEGER NOT NULL,
  runs INTEGER NOT NULL
) STRICT;

INSERT INTO placed_sessions
  SELECT session, min(started_us), max(started_us), count(*) FROM runs GROUP BY session;

INSERT INTO session_totals
  SELECT session, count(*), count(*) FILTER (WHERE outcome NOT IN (0, 4)),
         max(started_us + min(duration_us, 1000000000000000))
  FROM runs WHERE plan = 0 GROUP BY session;

INSERT INTO incidents
  SELECT session, test, signature, min(outcome), count(*), 0, min(started_us), max(started_us),
         sum(min(duration_us, 1000000000000) + coalesce(
           (SELECT iif(plan = 0 AND outcome = 0 AND attempt = failed.attempt + 1,
                       min(duration_us, 1000000000000), 0)
            FROM runs WHERE test = failed.test AND session = failed.session
             AND (started_us, session, attempt)
               > (failed.started_us, failed.session, failed.attempt)
            ORDER BY started_us, session, attempt LIMIT 1), 0)), 0
  FROM runs AS failed WHERE plan = 0 AND outcome NOT IN (0, 4)
  GROUP BY session, test, signature;
UPDATE incidents SET passes =
  (SELECT count(*) FROM placed_sessions AS placed
   JOIN runs ON runs.test = incidents.test AND runs.session = placed.session
    AND runs.started_us BETWEEN placed.first_us AND placed.last_us
   WHERE placed.session = incidents.session AND plan = 0 AND outcome = 0);
UPDATE incidents SET flaky = passes > 0 OR EXISTS
  (SELECT 1 FROM sessions AS own
   JOIN sessions AS other ON other.project = own.project AND other.commit_id = own.commit_id
   JOIN placed_sessions AS placed ON placed.session = other.id
   JOIN runs ON runs.test = incidents.test AND runs.session = other.id
    AND runs.started_us BETWEEN placed.first_us AND placed.last_us
   WHERE own.id = incidents.session AND own.commit_id <> '' AND own.dirty = 0 AND other.dirty = 0
    AND runs.plan = 0 AND runs.outcome = 0);
-- only postgres
-- An index holds no text of more than 2700 bytes and names may be longer, so hashes stand for them.
ALTER TABLE projects DROP CONSTRAINT projects_name_key;
CREATE UNIQUE INDEX projects_by_name ON projects (md5(name));
ALTER TABLE tests DROP CONSTRAINT tests_target_name_key;
CREATE UNIQUE INDEX tests_by_name ON tests (project, md5(target), md5(name));
ALTER TABLE targets DROP CONSTRAINT targets_pkey;
CREATE UNIQUE INDEX targets_by_name ON targets (project, md5(name));
ALTER TABLE plans DROP CONSTRAINT plans_plan_key;
CREATE UNIQUE INDEX plans_by_name ON plans (md5(plan));
ALTER TABLE signatures DROP CONSTRAINT signatures_signature_key;
CREATE UNIQUE INDEX signatures_by_name ON signatures (md5(signature));
ALTER TABLE sessions DROP CONSTRAINT sessions_uuid_key;
CREATE UNIQUE INDEX sessions_by_uuid ON sessions (md5(uuid));
DROP INDEX sessions_by_build;
CREATE INDEX sessions_by_build ON sessions (project, md5(build));
DROP INDEX sessions_by_commit;
CREATE INDEX sessions_by_commit ON sessions (project, md5(commit_id));
ALTER TABLE lifecycle DROP CONSTRAINT lifecycle_pkey;
CREATE UNIQUE INDEX lifecycle_by_key ON lifecycle (test, at_us, kind, md5(signature));
ALTER TABLE cause_signatures DROP CONSTRAINT cause_signatures_pkey;
CREATE UNIQUE INDEX cause_signatures_by_key ON cause_signatures (cause, md5(signature));

-- Questions about a test are answered from the index alone: its runs stand together there, and all
-- over the table.
ALTER TABLE runs DROP CONSTRAINT runs_pkey;
ALTER TABLE runs ADD PRIMARY KEY (test, started_us, session, attempt)
  INCLUDE (duration_us, outcome, signature, plan);
ALTER TABLE runs SET (autovacuum_vacuum_insert_scale_factor = 0.02);

-- Every run is in `runs` from the start. These are copies of the ones that the sums over tests do
-- not have yet: writers only append here, and never wait for each other.
DROP TABLE fresh_runs;
CREATE TABLE fresh_runs (
  test BIGINT NOT NULL,
  started_us BIGINT NOT NULL,
  session BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  duration_us BIGINT NOT NULL,
  outcome BIGINT NOT NULL,
  signature BIGINT NOT NULL,
  plan BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Every fold updates most rows of these; with room for that on their pages they stay small.
ALTER TABLE totals SET (fillfactor = 40);
ALTER TABLE histograms SET (fillfactor = 80);
ALTER TABLE session_totals SET (fillfactor = 60);

-- The start of a session's first run: its runs of a test are looked for from there to last_us.
ALTER TABLE session_totals ADD COLUMN first_us BIGINT NOT NULL;
-- both
