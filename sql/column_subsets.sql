-- One table is published several times, with other columns each time: `sequential`.
-- Run `cargo run --release -- -f sql/column_subsets.sql`. The script writes below lake/; remove lake/ to start over.

CREATE TABLE people AS SELECT person_id, age, gender, education, birthplace, occupation FROM census(5000, 1);

-- One researcher needs age and birthplace, another one gender, age and education, both with the occupation. Each of the two
-- releases below hides each person among four occupations or more. They do not know of each other.
CREATE TABLE careless_1 AS
SELECT * FROM mondrian(people, l => 4, id => person_id, quasi => (age, birthplace), sensitive => occupation, private => true, seed => 1);

CREATE TABLE careless_2 AS
SELECT * FROM mondrian(people, l => 4, id => person_id, quasi => (gender, age, education), sensitive => occupation, private => true, seed => 2);

-- A reader who knows the groups of a person takes the occupations that are in both:
CREATE TABLE seen AS
SELECT 1 AS release, r.person_id, g.occupations FROM careless_1 r
JOIN (SELECT group_id, array_agg(DISTINCT occupation) AS occupations FROM careless_1 GROUP BY group_id) g ON r.group_id = g.group_id
UNION ALL
SELECT 2, r.person_id, g.occupations FROM careless_2 r
JOIN (SELECT group_id, array_agg(DISTINCT occupation) AS occupations FROM careless_2 GROUP BY group_id) g ON r.group_id = g.group_id;

SELECT least(cardinality(array_intersect(a.occupations, b.occupations)), 4) AS left_over, count(*) AS people
FROM seen a JOIN seen b ON a.person_id = b.person_id WHERE a.release = 1 AND b.release = 2 GROUP BY 1 ORDER BY 1;

-- sequential_worlds prepares three other worlds, in which each person carries the occupation of a similar person. Store the worlds,
-- and keep them secret: other worlds would contradict the releases.
CREATE TABLE worlds AS
SELECT * FROM sequential_worlds(people, 4, id => person_id, quasi => (age, gender, education, birthplace), sensitive => occupation, seed => 1);

SELECT count(*) AS people, min(occupations) AS fewest, max(occupations) AS most FROM (
  SELECT w.person_id, count(DISTINCT p.occupation) AS occupations
  FROM (SELECT person_id, unnest(array_append(partners, person_id)) AS carried FROM worlds) w JOIN people p ON w.carried = p.person_id
  GROUP BY w.person_id);

-- A release is generalized until it fits all worlds. It has no groups and no counterfeits.
CREATE TABLE first AS
SELECT * FROM sequential_release(people, worlds, id => person_id, quasi => (age, birthplace), sensitive => occupation, seed => 1);

CREATE TABLE second AS
SELECT * FROM sequential_release(people, worlds, id => person_id, quasi => (gender, age, education), sensitive => occupation, seed => 2);

SELECT count(*) AS rows, count(*) FILTER (WHERE age.lo < age.hi) > 0 AS some_are_ranges, count(DISTINCT occupation) AS occupations FROM first;

-- In each of the four worlds, each person finds rows of both releases that cover them and have the occupation that they carry.
SELECT count(DISTINCT w.person_id) AS people, count(DISTINCT (w.person_id, w.carried)) AS in_worlds
FROM (SELECT person_id, unnest(array_append(partners, person_id)) AS carried FROM worlds) w
JOIN people me ON me.person_id = w.person_id
JOIN people other ON other.person_id = w.carried
WHERE EXISTS (SELECT 1 FROM first f WHERE f.occupation = other.occupation
                AND me.age BETWEEN f.age.lo AND f.age.hi AND me.birthplace BETWEEN f.birthplace.lo AND f.birthplace.hi)
  AND EXISTS (SELECT 1 FROM second s WHERE s.occupation = other.occupation AND me.age BETWEEN s.age.lo AND s.age.hi
                AND me.gender BETWEEN s.gender.lo AND s.gender.hi AND me.education BETWEEN s.education.lo AND s.education.hi);

-- A release without travelling columns needs no ranges.
SELECT count(*) AS rows, count(*) FILTER (WHERE age.lo < age.hi OR education.lo < education.hi) AS ranges
FROM sequential_release(people, worlds, id => person_id, quasi => (age, education));

-- As a publication: the ledger keeps the worlds, and an INSERT names the columns of its release. Declare all columns
-- that will ever be published.
CREATE EXTERNAL TABLE survey (person_id BIGINT, age INT, gender INT, education INT, birthplace INT, occupation INT)
STORED AS PUBLICATION LOCATION 'lake/walk_survey/'
OPTIONS ('begin' 'true', 'method' 'sequential', 'l' '4', 'id' 'person_id', 'quasi' 'age, gender, education, birthplace', 'sensitive' 'occupation');

INSERT INTO survey (person_id, age, birthplace, occupation) SELECT person_id, age, birthplace, occupation FROM people;
INSERT INTO survey (person_id, gender, age, education, occupation) SELECT person_id, gender, age, education, occupation FROM people;

SELECT release, method, rows FROM releases(survey) ORDER BY release;

-- The newest release has no birthplace and all occupations, so this count is exact.
SELECT count(*) AS people FROM survey WHERE occupation BETWEEN 1 AND 10;

SELECT bool_and(passed) AS passed FROM audit(survey);
