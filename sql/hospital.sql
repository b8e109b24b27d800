-- A hospital publishes its patients' diseases every quarter: m-invariance as a publication, questions to the releases, an audit.
-- Run with: cargo run --release -- -f sql/hospital.sql        It writes below lake/; remove lake/ to start over.

-- A publication looks like the table that it protects. CREATE writes nothing; every job declares the table again.
CREATE EXTERNAL TABLE hospital (patient_id BIGINT, age INT, zip INT, disease VARCHAR)
STORED AS PUBLICATION LOCATION 'lake/walk_hospital/'
OPTIONS ('begin' 'true', 'method' 'm_invariant', 'm' '2', 'id' 'patient_id', 'quasi' 'age, zip', 'sensitive' 'disease');

-- Two quarters. Between them five patients left and five came; what later releases must know is in the ledger beside the
-- public table, lake/walk_hospital.private/.
INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q1.parquet';
INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q2.parquet';

-- Each release has everybody. Where somebody's companions left, counterfeits take their places. How
-- many depends on the draw, which is another one in every run.
SELECT release, method, rows - counterfeits AS people, groups > 0 AS in_groups FROM releases(hospital) ORDER BY release;

-- What the world gets: SELECT * FROM release(hospital, 2). Here is only what is so in every draw: no group has fewer than two
-- diseases, and none has a disease twice.
SELECT min(diseases) AS fewest_diseases, max(rows - diseases) AS repeated
FROM (SELECT group_id, count(DISTINCT disease) AS diseases, count(*) AS rows FROM release(hospital, 2) GROUP BY group_id);

-- A question to the newest release is put to the publication's own name. Counterfeits are corrected for: eleven people.
SELECT count(*) AS people, count(*) FILTER (WHERE age < 200) AS with_an_age FROM hospital;

-- Estimates of parts are not exact, and say by how much they may be off (count_stddev). With so few patients that is a lot.
SELECT count(*) BETWEEN 1 AND 11 AS some, count_stddev(*) > 0 AS with_an_error FROM hospital WHERE age BETWEEN 20 AND 40;

-- What a reader can infer who knows everybody's age and zip and who was there, from both releases together: nothing is
-- certain. 'cover' is this reader; here only those who were there both times.
SELECT count(*) AS looked_at, min(remaining_count) >= 2 AS never_certain
FROM disclosure(hospital, id => patient_id, original => (
    SELECT * FROM 'data/patients_q1.parquet' WHERE patient_id IN (SELECT patient_id FROM 'data/patients_q2.parquet')));

-- The same snapshots without memory: two draws that do not know of each other.
CREATE TABLE first_alone AS
SELECT * FROM m_invariant('data/patients_q1.parquet', 2, id => patient_id, quasi => (age, zip), sensitive => disease, seed => 2);

CREATE TABLE second_alone AS
SELECT * FROM m_invariant('data/patients_q2.parquet', 2, id => patient_id, quasi => (age, zip), sensitive => disease, seed => 4);

SELECT patient_id, release, candidates, remaining
FROM disclosure((first_alone, second_alone), id => patient_id, original => (
    SELECT * FROM 'data/patients_q1.parquet' WHERE patient_id IN (SELECT patient_id FROM 'data/patients_q2.parquet')))
WHERE vulnerable ORDER BY patient_id, release;

-- An audit of what is stored: of every release, of the ledger, and of both together. In a nightly job, run it with
-- --fail-on-audit, which makes a failed check a failed job.
SELECT count(*) > 40 AS many_checks, count(*) FILTER (WHERE NOT passed) AS failed FROM audit(hospital);

-- The same snapshot again publishes nothing: a job that was killed is simply run again.
INSERT INTO hospital SELECT patient_id, age, zip, disease FROM 'data/patients_q2.parquet';

SELECT count(*) AS releases FROM releases(hospital);
