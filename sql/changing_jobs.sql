-- Working people change their jobs: `m_distinct` with occupations in classes.
-- Run `cargo run --release -- -f sql/changing_jobs.sql`. The script writes no files.

-- 10,000 people have 50 occupations in five classes of ten. A person who changes jobs stays in the class.
CREATE TABLE jobs AS SELECT value AS job, value % 5 AS class FROM generate_series(1, 50);

CREATE TABLE changes AS
SELECT arrow_cast(a.job, 'Int32') AS from_value, arrow_cast(b.job, 'Int32') AS to_value FROM jobs a JOIN jobs b ON a.class = b.class;

CREATE TABLE year1 AS SELECT person_id, age, education, birthplace, occupation FROM census(10000, 1) WHERE person_id <= 9000;

-- A year later all people are a year older, and a quarter has another job. A thousand people left, and a thousand others came.
CREATE TABLE year2 AS
SELECT person_id, age + 1 AS age, education, birthplace,
       CASE WHEN person_id % 4 = 0
            THEN arrow_cast((occupation - 1 + 5 * (1 + person_id % 9)) % 50 + 1, 'Int32')
            ELSE occupation END AS occupation
FROM census(10000, 1) WHERE person_id > 1000;

SELECT count(*) AS people, count(*) FILTER (WHERE a.occupation <> b.occupation) AS changed
FROM year1 a JOIN year2 b ON a.person_id = b.person_id;

-- disjoint => true (m-Distinct*): no two occupations of a first group are of one class.
CREATE TABLE first AS
SELECT * FROM m_distinct(year1, 4, updates => changes, disjoint => true, id => person_id, quasi => (age, education, birthplace),
                         sensitive => occupation, private => true, seed => 1);

CREATE TABLE second AS
SELECT * FROM m_distinct(year2, 4, updates => changes, disjoint => true, previous => first, id => person_id,
                         quasi => (age, education, birthplace), sensitive => occupation, private => true, seed => 1);

-- Groups have four occupations of four classes, also in the second release.
SELECT count(*) AS groups, min(occupations) AS occupations, min(classes) AS classes
FROM (SELECT group_id, count(DISTINCT occupation) AS occupations, count(DISTINCT occupation % 5) AS classes
      FROM second GROUP BY group_id);

SELECT sum(CASE WHEN counterfeit THEN 1 ELSE 0 END) AS counterfeits, count(*) AS rows FROM second;

-- The reader knows age, education, birthplace and group of each person, and the possible changes. Classes have one size
-- and all changes are equally probable, so the bound is 1/4.
CREATE TABLE truth AS
SELECT 1 AS release, person_id, age, education, birthplace, occupation FROM year1
UNION ALL SELECT 2 AS release, person_id, arrow_cast(age, 'Int32'), education, birthplace, occupation FROM year2;

SELECT release, count(*) AS people, min(remaining_count) AS fewest_left, round(max(risk), 3) AS max_risk
FROM disclosure((first, second), original => truth, updates => changes, strength => 'group', id => person_id)
GROUP BY release ORDER BY release;

-- Without a ledger, the second year is an independent release. A reader rules out classes that only one of a person's groups has.
CREATE TABLE careless AS
SELECT * FROM m_distinct(year2, 4, updates => changes, disjoint => true, id => person_id, quasi => (age, education, birthplace),
                         sensitive => occupation, private => true, seed => 2);

SELECT release, count(*) FILTER (WHERE remaining_count < 4) AS fewer_than_four, round(max(risk), 3) AS max_risk
FROM disclosure((first, careless), original => truth, updates => changes, strength => 'group', id => person_id)
GROUP BY release ORDER BY release;

-- The loss of both releases: the share of each domain that a range covers.
SELECT f.attribute, round(f.iloss, 2) AS first, round(s.iloss, 2) AS second
FROM information_loss(year1, (SELECT * FROM first)) f JOIN information_loss(year2, (SELECT * FROM second)) s ON f.attribute = s.attribute
ORDER BY f.attribute;
