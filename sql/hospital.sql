-- A hospital publishes diseases of its patients every quarter, as a publication of `m_invariant`.
-- Run `cargo run --release -- -f sql/hospital.sql`. The script writes below lake/; remove lake/ to start over.

-- A publication looks like the table that it protects. CREATE writes nothing; every job repeats it.
CREATE EXTERNAL TABLE hospital (patient_id BIGINT, age INT, zip INT, disease VARCHAR)
STORED AS PUBLICATION LOCATION 'lake/walk_hospital/'
OPTIONS ('begin' 'true', 'method' 'm_invariant', 'm' '2', 'id' 'patient_id', 'quasi' 'age, zip', 'sensitive' 'disease');

-- Two quarters: five patients leave and five come. The ledger is lake/walk_hospital.private/.
INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q1.parquet';
INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q2.parquet';

-- Each release has all people of its quarter. Counterfeits replace members of a group who left. Their number differs in each run.
SELECT release, method, rows - counterfeits AS people, groups > 0 AS in_groups FROM releases(hospital) ORDER BY release;

-- No group has fewer than two diseases, and none has a disease twice. Read the rows by SELECT * FROM release(hospital, 2).
SELECT min(diseases) AS fewest_diseases, max(rows - diseases) AS repeated
FROM (SELECT group_id, count(DISTINCT disease) AS diseases, count(*) AS rows FROM release(hospital, 2) GROUP BY group_id);

-- The publication's own name answers from the newest release. Estimates correct for counterfeits: eleven people.
SELECT count(*) AS people, count(*) FILTER (WHERE age < 200) AS with_an_age FROM hospital;

-- Estimates of parts have errors (count_stddev). They are large for so few patients.
SELECT count(*) BETWEEN 1 AND 11 AS some, count_stddev(*) > 0 AS with_an_error FROM hospital WHERE age BETWEEN 20 AND 40;

-- The reader knows age and zip of all people, and who was present ('cover'). From both releases together, no disease is certain.
SELECT count(*) AS looked_at, min(remaining_count) >= 2 AS never_certain
FROM disclosure(hospital, id => patient_id, original => (
    SELECT * FROM 'data/patients_q1.parquet' WHERE patient_id IN (SELECT patient_id FROM 'data/patients_q2.parquet')));

-- The same snapshots without a ledger are two releases that do not know of each other.
CREATE TABLE first_alone AS
SELECT * FROM m_invariant('data/patients_q1.parquet', 2, id => patient_id, quasi => (age, zip), sensitive => disease, seed => 2);

CREATE TABLE second_alone AS
SELECT * FROM m_invariant('data/patients_q2.parquet', 2, id => patient_id, quasi => (age, zip), sensitive => disease, seed => 4);

SELECT patient_id, release, candidates, remaining
FROM disclosure((first_alone, second_alone), id => patient_id, original => (
    SELECT * FROM 'data/patients_q1.parquet' WHERE patient_id IN (SELECT patient_id FROM 'data/patients_q2.parquet')))
WHERE vulnerable ORDER BY patient_id, release;

-- The audit checks every release, the ledger, and both together. With --fail-on-audit a nightly job fails if a check fails.
SELECT count(*) > 40 AS many_checks, count(*) FILTER (WHERE NOT passed) AS failed FROM audit(hospital);

-- The same snapshot again publishes nothing, so run a killed job again.
INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q2.parquet';

SELECT count(*) AS releases FROM releases(hospital);
