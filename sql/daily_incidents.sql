-- Incidents are published day by day: `reposition` makes small and skewed days publishable.
-- Run `cargo run --release -- -f sql/daily_incidents.sql`. The script writes below lake/; remove lake/ to start over.

-- A synthetic stream of 60 days with twelve incidents each, of eight kinds. Half of the reports at weekends are noise.
CREATE TABLE incidents AS
SELECT number, arrow_cast(20148 + number / 12, 'Date32') AS day, arrow_cast(18 + number * 37 % 53, 'Int32') AS age,
       CASE WHEN number / 12 % 7 >= 5 AND number % 12 < 6 THEN 'noise'
            WHEN number * 7919 % 101 < 20 THEN 'theft' WHEN number * 7919 % 101 < 38 THEN 'fight' WHEN number * 7919 % 101 < 53 THEN 'burglary'
            WHEN number * 7919 % 101 < 67 THEN 'fraud' WHEN number * 7919 % 101 < 77 THEN 'noise' WHEN number * 7919 % 101 < 87 THEN 'arson'
            WHEN number * 7919 % 101 < 95 THEN 'robbery' ELSE 'threat' END AS kind
FROM (SELECT arrow_cast(value, 'Int32') AS number FROM generate_series(0, 719));

-- No kind may have more than a quarter of a day (l = 4). On weekends and some other days one kind does. In all 60 days
-- together none does.
SELECT count(*) AS days, count(*) FILTER (WHERE most * 4 > incidents) AS too_skewed
FROM (SELECT day, max(n) AS most, sum(n) AS incidents FROM (SELECT day, kind, count(*) AS n FROM incidents GROUP BY day, kind) GROUP BY day);

SELECT kind, count(*) AS incidents FROM incidents GROUP BY kind ORDER BY incidents DESC, kind LIMIT 2;

-- A week is held back, and a record is published up to six days late. finish => true ends the stream. The private view
-- tells the status of each record.
CREATE TABLE repositioned AS
SELECT * FROM reposition(incidents, 4, time => day, window => 7, sensitive => kind, finish => true, private => true, seed => 1);

SELECT status, count(*) AS incidents, max(day - original_time) AS most_days_late
FROM repositioned GROUP BY status ORDER BY status;

-- A window of one day only suppresses.
SELECT status, count(*) AS incidents
FROM reposition(incidents, 4, time => day, window => 1, sensitive => kind, finish => true, private => true, seed => 1)
GROUP BY status ORDER BY status;

-- Now every day is eligible. A method can be put over it, within the published day. No private column is published.
SELECT count(DISTINCT day) AS days, count(*) AS rows, min(members) AS smallest_group
FROM (SELECT day, group_id, count(*) OVER (PARTITION BY day, group_id) AS members FROM anatomy(
  (SELECT * FROM reposition(incidents, 4, time => day, window => 7, sensitive => kind, finish => true, seed => 1)),
  4, id => number, quasi => age, sensitive => kind, within => day, seed => 1));

-- Errors of questions: incidents of the kind that moves most, in every ten days, and those published in them.
SELECT t.days, t.noise, p.noise AS published FROM
  (SELECT (day - DATE '2025-03-01') / 10 AS days, count(*) AS noise FROM incidents WHERE kind = 'noise' GROUP BY 1) t JOIN
  (SELECT (day - DATE '2025-03-01') / 10 AS days, count(*) AS noise FROM repositioned WHERE kind = 'noise' AND day IS NOT NULL GROUP BY 1) p
  ON t.days = p.days ORDER BY t.days;

-- As a publication, with anatomy inside: an INSERT brings the days since the last one, and publishes those that leave the window.
-- No incident is in two releases, so releases need not know of each other.
CREATE EXTERNAL TABLE published (day DATE, age INT, kind VARCHAR) STORED AS PUBLICATION LOCATION 'lake/walk_incidents/'
OPTIONS ('begin' 'true', 'method' 'reposition', 'inner' 'anatomy', 'l' '4', 'time' 'day', 'window' '7', 'quasi' 'age', 'sensitive' 'kind',
         'allow_independent_releases' 'true');

INSERT INTO published SELECT day, age, kind FROM incidents WHERE day < DATE '2025-03-15';
INSERT INTO published SELECT day, age, kind FROM incidents WHERE day BETWEEN DATE '2025-03-15' AND DATE '2025-03-22';

SELECT release, count(DISTINCT day) AS days, min(day) AS first_day, max(day) AS last_day
FROM (SELECT 1 AS release, day FROM release(published, 1) UNION ALL SELECT 2 AS release, day FROM release(published, 2))
GROUP BY release ORDER BY release;

SELECT bool_and(passed) AS passed FROM audit(published);
