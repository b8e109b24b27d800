-- Working people who change their jobs: m-Distinct with occupations in classes, and what m-invariance would do.
-- Run with: cargo run --release -- -f sql/changing_jobs.sql        Writes nothing but what it shows.

-- 10,000 people with 50 occupations in five classes of ten; who changes jobs, stays in the class.
CREATE TABLE jobs AS SELECT value AS job, value % 5 AS class FROM generate_series(1, 50);

CREATE TABLE changes AS
SELECT arrow_cast(a.job, 'Int32') AS from_value, arrow_cast(b.job, 'Int32') AS to_value FROM jobs a JOIN jobs b ON a.class = b.class;

CREATE TABLE year1 AS SELECT person_id, age, education, birthplace, occupation FROM census(10000, 1) WHERE person_id <= 9000;

-- A year later: everybody is a year older, every fourth has another job, the first thousand have gone, a thousand others came.
CREATE TABLE year2 AS
SELECT person_id, age + 1 AS age, education, birthplace,
       CASE WHEN person_id % 4 = 0
            THEN arrow_cast((occupation - 1 + 5 * (1 + person_id % 9)) % 50 + 1, 'Int32')
            ELSE occupation END AS occupation
FROM census(10000, 1) WHERE person_id > 1000;

SELECT count(*) AS people, count(*) FILTER (WHERE a.occupation <> b.occupation) AS changed
FROM year1 a JOIN year2 b ON a.person_id = b.person_id;

-- disjoint => true (m-Distinct*): in the first group of everybody no two occupations are of one class.
CREATE TABLE first AS
SELECT * FROM m_distinct(year1, 4, updates => changes, disjoint => true, id => person_id, quasi => (age, education, birthplace),
                         sensitive => occupation, private => true, seed => 1);

CREATE TABLE second AS
SELECT * FROM m_distinct(year2, 4, updates => changes, disjoint => true, previous => first, id => person_id,
                         quasi => (age, education, birthplace), sensitive => occupation, private => true, seed => 1);

-- Groups have four occupations of four classes; in the second release, too.
SELECT count(*) AS groups, min(occupations) AS occupations, min(classes) AS classes
FROM (SELECT group_id, count(DISTINCT occupation) AS occupations, count(DISTINCT occupation % 5) AS classes
      FROM second GROUP BY group_id);

SELECT sum(CASE WHEN counterfeit THEN 1 ELSE 0 END) AS counterfeits, count(*) AS rows FROM second;

-- What a reader infers who knows everybody's age, education and birthplace, the groups, and which changes are possible. Classes are
-- of one size and all changes equally likely, so m-Distinct* bounds the risk by 1/4.
CREATE TABLE truth AS
SELECT 1 AS release, person_id, age, education, birthplace, occupation FROM year1
UNION ALL SELECT 2 AS release, person_id, arrow_cast(age, 'Int32'), education, birthplace, occupation FROM year2;

SELECT release, count(*) AS people, min(remaining_count) AS fewest_left, round(max(risk), 3) AS max_risk
FROM disclosure((first, second), original => truth, updates => changes, strength => 'group', id => person_id)
GROUP BY release ORDER BY release;

-- Without memory: a new draw for the second year. Whoever meets other classes than the first time is known to be of one of those
-- that both groups have.
CREATE TABLE careless AS
SELECT * FROM m_distinct(year2, 4, updates => changes, disjoint => true, id => person_id, quasi => (age, education, birthplace),
                         sensitive => occupation, private => true, seed => 2);

SELECT release, count(*) FILTER (WHERE remaining_count < 4) AS fewer_than_four, round(max(risk), 3) AS max_risk
FROM disclosure((first, careless), original => truth, updates => changes, strength => 'group', id => person_id)
GROUP BY release ORDER BY release;

-- What it costs: how much of the domain of each attribute an interval covers, in both releases.
SELECT f.attribute, round(f.iloss, 2) AS first, round(s.iloss, 2) AS second
FROM information_loss(year1, (SELECT * FROM first)) f JOIN information_loss(year2, (SELECT * FROM second)) s ON f.attribute = s.attribute
ORDER BY f.attribute;
