-- Makes the Parquet files of data/: the hospital of the m-invariance paper (Tables 1 and 2), with numbers for names.
COPY (SELECT column1 AS patient_id, arrow_cast(column2, 'Int32') AS age, arrow_cast(column3, 'Int32') AS zip, column4 AS disease
      FROM (VALUES (1, 21, 12000, 'dyspepsia'), (2, 22, 14000, 'bronchitis'), (3, 24, 18000, 'flu'), (4, 23, 25000, 'gastritis'),
                   (5, 41, 20000, 'flu'), (6, 36, 27000, 'gastritis'), (7, 37, 33000, 'dyspepsia'), (8, 40, 35000, 'flu'),
                   (9, 43, 26000, 'gastritis'), (10, 52, 33000, 'dyspepsia'), (11, 56, 34000, 'gastritis')))
TO 'data/patients_q1.parquet';
COPY (SELECT column1 AS patient_id, arrow_cast(column2, 'Int32') AS age, arrow_cast(column3, 'Int32') AS zip, column4 AS disease
      FROM (VALUES (1, 21, 12000, 'dyspepsia'), (4, 23, 25000, 'gastritis'), (12, 25, 21000, 'flu'), (7, 37, 33000, 'dyspepsia'),
                   (9, 43, 26000, 'gastritis'), (5, 41, 20000, 'flu'), (13, 46, 30000, 'gastritis'), (14, 54, 31000, 'dyspepsia'),
                   (11, 56, 34000, 'gastritis'), (15, 60, 44000, 'gastritis'), (16, 65, 36000, 'flu')))
TO 'data/patients_q2.parquet';
