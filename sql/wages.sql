-- A statistical office publishes wages in rows that look like rows: `muco` beside `mondrian` and `anatomy`.
-- Run `cargo run --release -- -f sql/wages.sql`. The script writes below lake/; remove lake/ to start over.

CREATE TABLE people AS SELECT person_id, age, gender, education, birthplace, income FROM census(20000, 1);

-- delta = 0.2: in hidden groups, five people or more could have each published value of age, gender, education or birthplace.
-- l = 10: each group has ten or more rows with ten different incomes. The private view tells the person of each row.
CREATE TABLE muco_wages AS
SELECT * FROM muco(people, 0.2, 10, id => person_id, quasi => (age, gender, education, birthplace), sensitive => income, private => true, seed => 1);

-- The release has as many rows as the table, of the same types, with all incomes. No row stays as it was if two quasi-identifiers differ in its group.
SELECT count(*) AS rows, sum(r.income) = sum(p.income) AS same_incomes,
       count(*) FILTER (WHERE r.age = p.age AND r.gender = p.gender AND r.education = p.education AND r.birthplace = p.birthplace) AS unchanged
FROM muco_wages r JOIN people p ON r.person_id = p.person_id;

-- Mean distance of replaced values, as a share of the greatest in the table, and the share of replaced values.
SELECT attribute, round(distance, 3) AS distance FROM information_loss(people, (SELECT * FROM muco_wages), id => person_id) ORDER BY attribute;

SELECT round(avg(CASE WHEN r.age = p.age THEN 0 ELSE 1 END), 2) AS age, round(avg(CASE WHEN r.gender = p.gender THEN 0 ELSE 1 END), 2) AS gender,
       round(avg(CASE WHEN r.education = p.education THEN 0 ELSE 1 END), 2) AS education
FROM muco_wages r JOIN people p ON r.person_id = p.person_id;

-- Questions work as on the table. Errors are of sums of incomes, under four conditions that each select a tenth, beside those of
-- the other two methods with the same l.
SELECT 'muco' AS method, round(median(relative_error), 2) AS median_error FROM query_accuracy(people,
    muco(people, 0.2, 10, quasi => (age, gender, education, birthplace), sensitive => income, seed => 1),
    queries => 500, selectivity => 0.1, aggregate => 'sum', seed => 1)
UNION ALL
SELECT 'mondrian', round(median(relative_error), 2) FROM query_accuracy(people,
    mondrian(people, l => 10, quasi => (age, gender, education, birthplace), sensitive => income, seed => 1),
    queries => 500, selectivity => 0.1, aggregate => 'sum', seed => 1)
UNION ALL
SELECT 'anatomy', round(median(relative_error), 2) FROM query_accuracy(people,
    anatomy(people, 10, quasi => (age, gender, education, birthplace), sensitive => income, seed => 1),
    queries => 500, selectivity => 0.1, aggregate => 'sum', seed => 1)
ORDER BY method;

-- Publish one release only. A publication takes no person twice, and the same table again publishes nothing.
CREATE EXTERNAL TABLE wages (person_id BIGINT, age INT, gender INT, education INT, birthplace INT, income INT)
STORED AS PUBLICATION LOCATION 'lake/walk_wages/'
OPTIONS ('begin' 'true', 'method' 'muco', 'delta' '0.2', 'l' '10', 'id' 'person_id', 'quasi' 'age, gender, education, birthplace', 'sensitive' 'income',
         'allow_independent_releases' 'true');

INSERT INTO wages SELECT * FROM people;
INSERT INTO wages SELECT * FROM people;

-- A year later five thousand people are new. Only they are published; INSERT refuses people who return ('delta' 'equal' takes them).
INSERT INTO wages SELECT person_id + 20000 AS person_id, age, gender, education, birthplace, income FROM census(5000, 2);

SELECT release, method, rows, reader FROM releases(wages) ORDER BY release;

-- An estimate is from the newest release.
SELECT count(*) AS people, round(avg(income), 1) AS mean_income FROM wages;

SELECT bool_and(passed) AS passed FROM audit(wages);
