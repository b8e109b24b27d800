-- Patients move house and their diseases change: `m_distinct`.
-- Run `cargo run --release -- -f sql/moving_patients.sql`. The script writes below lake/; remove lake/ to start over.

-- A disease can become any other of its kind until the next release.
CREATE TABLE kinds AS SELECT * FROM (VALUES
  ('dyspepsia', 'stomach'), ('gastritis', 'stomach'), ('ulcer', 'stomach'),
  ('flu', 'lung'), ('bronchitis', 'lung'), ('pneumonia', 'lung')) AS t(disease, kind);

CREATE TABLE courses AS
SELECT a.disease AS from_value, b.disease AS to_value FROM kinds a JOIN kinds b ON a.kind = b.kind;

CREATE TABLE spring AS SELECT patient_id, age, zip, disease FROM 'data/patients_q1.parquet';

-- Half a year later all people under 40 have moved, one flu is a pneumonia, and two stomach diseases got worse.
CREATE TABLE autumn AS
SELECT patient_id, age, CASE WHEN age < 40 THEN arrow_cast(zip + 3000, 'Int32') ELSE zip END AS zip,
       CASE WHEN patient_id = 5 THEN 'pneumonia' WHEN patient_id IN (6, 10) THEN 'ulcer' ELSE disease END AS disease
FROM spring;

-- `m_invariant` with a ledger refuses a disease that the last group did not have.

-- Without a ledger, each release has groups of two diseases or more, and knows nothing of the other.
CREATE TABLE careless_spring AS
SELECT * FROM m_invariant(spring, 2, id => patient_id, quasi => (age, zip), sensitive => disease, private => true, seed => 1);

CREATE TABLE careless_autumn AS
SELECT * FROM m_invariant(autumn, 2, id => patient_id, quasi => (age, zip), sensitive => disease, private => true, seed => 1);

-- The true diseases, release by release.
CREATE TABLE truth AS
SELECT 1 AS release, * FROM spring UNION ALL SELECT 2 AS release, * FROM autumn;

-- A reader who knows the possible changes rules diseases out. Some patients are left with one disease.
SELECT patient_id, release, candidates, remaining
FROM disclosure((careless_spring, careless_autumn), original => truth, updates => courses, strength => 'group', id => patient_id)
WHERE vulnerable ORDER BY patient_id, release;

-- In `m_distinct` each person keeps a place. At every place stands a value that the last one there can have become.
CREATE TABLE first AS
SELECT * FROM m_distinct(spring, 2, updates => courses, id => patient_id, quasi => (age, zip), sensitive => disease, private => true, seed => 1);

CREATE TABLE second AS
SELECT * FROM m_distinct(autumn, 2, updates => courses, previous => first, id => patient_id, quasi => (age, zip), sensitive => disease,
                         private => true, seed => 1);

SELECT a.patient_id, array_sort(a.signature) AS spring, array_sort(b.signature) AS autumn, b.disease
FROM first a JOIN second b ON a.patient_id = b.patient_id WHERE a.patient_id IN (5, 6, 10) ORDER BY a.patient_id;

SELECT count(*) AS versions, count(*) FILTER (WHERE vulnerable) AS vulnerable, min(remaining_count) AS fewest_left
FROM disclosure((first, second), original => truth, updates => courses, strength => 'group', id => patient_id);

-- The same as a publication. The first release pins the courses; INSERT refuses other ones.
CREATE EXTERNAL TABLE patients (patient_id BIGINT, age INT, zip INT, disease VARCHAR)
STORED AS PUBLICATION LOCATION 'lake/walk_patients/'
OPTIONS ('begin' 'true', 'method' 'm_distinct', 'm' '2', 'updates' 'courses', 'id' 'patient_id', 'quasi' 'age, zip', 'sensitive' 'disease');

INSERT INTO patients SELECT * FROM spring;
INSERT INTO patients SELECT * FROM autumn;

SELECT release, method, rows - counterfeits AS people FROM releases(patients) ORDER BY release;

-- The audit checks the stored tables and the ledger, and that each group can follow from the one before, place by place.
-- disclosure(..) above measures a reader who combines all of it.
SELECT bool_and(passed) AS passed FROM audit(patients);
