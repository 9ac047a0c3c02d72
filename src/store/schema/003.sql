-- What was done to a test in trials, and what for. Thousands of trials share few of these.
CREATE TABLE trial_plans (
  id INTEGER PRIMARY KEY,
  purpose TEXT NOT NULL,
  plan TEXT NOT NULL,  -- in words; empty when nothing was done
  UNIQUE (purpose, plan)
) STRICT;

-- Runs that searches made, and looks into single tests. They say nothing of what a test does by
-- itself, so that no sum has them, and they are the first that are forgotten.
CREATE TABLE trials (
  test INTEGER NOT NULL,
  started_us INTEGER NOT NULL,
  session INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  duration_us INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  signature INTEGER NOT NULL,
  plan INTEGER NOT NULL,  -- of trial_plans
  PRIMARY KEY (test, started_us, session, attempt)
) STRICT, WITHOUT ROWID;

-- Runs under a plan used to be among the others, and in the sums over tests. From now on `plan` is 0
-- in all tables but this one.
INSERT INTO trial_plans (purpose, plan) SELECT '', plan FROM plans WHERE id <> 0;
INSERT INTO trials
  SELECT test, started_us, session, attempt, duration_us, outcome, signature, trial_plans.id
  FROM runs JOIN plans ON plans.id = runs.plan
  JOIN trial_plans ON trial_plans.plan = plans.plan
  WHERE runs.plan <> 0;

-- only sqlite
UPDATE totals SET runs = totals.runs - planned.runs, sum_us = totals.sum_us - planned.sum_us
  FROM (SELECT test, outcome, signature, count(*) AS runs, sum(max(duration_us, 0)) AS sum_us
        FROM runs WHERE plan <> 0 GROUP BY test, outcome, signature) AS planned
  WHERE totals.test = planned.test AND totals.outcome = planned.outcome
    AND totals.signature = planned.signature;
INSERT INTO trials
  SELECT test, started_us, session, attempt, duration_us, outcome, signature, trial_plans.id
  FROM staged_runs JOIN plans ON plans.id = staged_runs.plan
  JOIN trial_plans ON trial_plans.plan = plans.plan
  WHERE staged_runs.plan <> 0;
INSERT INTO trials
  SELECT test, started_us, session, attempt, duration_us, outcome, signature, trial_plans.id
  FROM fresh_runs JOIN plans ON plans.id = fresh_runs.plan
  JOIN trial_plans ON trial_plans.plan = plans.plan
  WHERE fresh_runs.plan <> 0;
DELETE FROM staged_runs WHERE plan <> 0;
-- only postgres
UPDATE totals SET runs = totals.runs - planned.runs, sum_us = totals.sum_us - planned.sum_us
  FROM (SELECT test, outcome, signature, count(*) AS runs,
               sum(greatest(duration_us, 0)) AS sum_us
        FROM runs WHERE plan <> 0 AND NOT EXISTS (
          SELECT FROM fresh_runs AS fresh
          WHERE (fresh.test, fresh.started_us, fresh.session, fresh.attempt)
                = (runs.test, runs.started_us, runs.session, runs.attempt))
        GROUP BY test, outcome, signature) AS planned
  WHERE totals.test = planned.test AND totals.outcome = planned.outcome
    AND totals.signature = planned.signature;
ALTER TABLE trial_plans DROP CONSTRAINT trial_plans_purpose_plan_key;
CREATE UNIQUE INDEX trial_plans_by_name ON trial_plans (md5(purpose), md5(plan));
-- both
DELETE FROM fresh_runs WHERE plan <> 0;
DELETE FROM runs WHERE plan <> 0;
DELETE FROM totals WHERE runs <= 0;
