-- A hospital publishes its patients' diseases twice. Run with: cargo run --release -- -f sql/quickstart.sql

-- The first quarter: groups of at least two patients with different diseases.
SELECT * FROM m_invariant('data/patients_q1.parquet', 2,
                          id => patient_id, quasi => (age, zip), sensitive => disease, seed => 2)
ORDER BY group_id, disease;

-- The publisher keeps the private view: who is in which group.
CREATE TABLE q1 AS
SELECT * FROM m_invariant('data/patients_q1.parquet', 2,
                          id => patient_id, quasi => (age, zip), sensitive => disease, seed => 2, private => true);

-- The second quarter: some patients left, some came. Those who stayed meet the diseases that they were published with.
CREATE TABLE q2 AS
SELECT * FROM m_invariant('data/patients_q2.parquet', 2, previous => q1,
                          id => patient_id, quasi => (age, zip), sensitive => disease, seed => 2, private => true);

-- What the world gets. Counterfeits look like rows; each group says how many of its rows are.
SELECT age, zip, disease, group_id, group_size, counterfeits FROM q2 ORDER BY group_id, disease;

-- Put side by side, the two releases tell nothing that one of them did not: the signatures are the same.
SELECT q1.patient_id, q1.signature AS first, q2.signature AS second
FROM q1 JOIN q2 ON q1.patient_id = q2.patient_id
ORDER BY 1;
